"""A stream in a directory of its own, and what the engine in this process says it must have found."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate import Engine, Event
from headgate.contents.protocol import SCORE, SUBSCRIPTION_ID
from headgate.engine.question import Question
from headgate.errors import GraphError
from headgate.local import stream as local_stream
from headgate.runtime.engines import Runtime
from headgate.runtime.log import Subscriptions
from headgate.runtime.operations import read_change
from headgate.runtime.snapshots import Version, default_dialect, read_segment
from headgate.runtime.state import State
from headgate.spark.stream.run import run_stream
from headgate.stream.settings import JSONL, PARQUET, StreamSettings
from headgate.stream.sources.registry import open_changes

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from headgate.engine.question import Top
    from headgate.stream.reporting import StreamResult

Row = dict[str, Any]
Match = tuple[Any, ...]


def lines(rows: Iterable[Mapping[str, Any] | str]) -> str:
    """Write rows as JSON lines; text as it is."""
    return "".join(
        (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)) + "\n" for row in rows
    )


def move(folder: Path, name: str, content: str | bytes) -> Path:
    """Put a file into a folder whole."""
    beside = folder / f".{name}.new"
    beside.write_bytes(content.encode() if isinstance(content, str) else content)
    return beside.rename(folder / name)


def read_folder(folder: Path) -> list[Row]:
    """Read all that a stream has committed to a folder."""
    found: list[Row] = []
    for file in sorted(folder.glob("*.jsonl")):
        found += [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for file in sorted(folder.glob("*.parquet")):
        found += pq.ParquetFile(file).read().to_pylist()
    return found


def do(engine: Engine, change: Mapping[str, Any], dialect: str) -> None:
    """Do a change to an engine in one piece."""
    Runtime.of(engine.backend).apply(read_change(change, dialect))


def log_of(settings: StreamSettings, state: State) -> Subscriptions:
    """Open the log of a stream's subscriptions, as the stream does."""
    return Subscriptions(settings, state, open_changes(settings))


@dataclass
class World:
    """Directories of one stream."""

    root: Path
    more: dict[str, Any] = field(default_factory=dict)
    """Settings that differ from the usual."""
    ends: list[Callable[[], None]] = field(default_factory=list)
    """How to end what was started and may still go on."""
    whole: Path | None = None
    """The first snapshot in one piece, if the stream has it in shards: from there the engine is built."""

    def __post_init__(self) -> None:
        for folder in (self.events, self.changes):
            folder.mkdir(parents=True, exist_ok=True)

    @property
    def snapshot(self) -> Path:
        return self.root / "snapshot"

    @property
    def events(self) -> Path:
        return self.root / "in"

    @property
    def changes(self) -> Path:
        return self.root / "changes"

    @property
    def output(self) -> Path:
        return self.root / "out"

    @property
    def state(self) -> Path:
        return self.root / "state"

    def settings(self, **more: Any) -> StreamSettings:
        """Return settings: all that is there, once, unless more is said."""
        places = {"snapshot": self.snapshot, "events": self.events, "output": self.output}
        places |= {"state": self.state, "changes": self.changes}
        given = {name: str(place) for name, place in places.items()}
        return StreamSettings(**{**given, "format": JSONL, "once": True, **self.more, **more})

    def run(
        self, spark: SparkSession | None = None, stop: threading.Event | None = None, **more: Any
    ) -> StreamResult:
        """Run the stream, without Spark in this process."""
        if spark is None:
            return local_stream.run_stream(self.settings(**more), stop=stop, quiet=True)
        return run_stream(spark, self.settings(**more), stop=stop, quiet=True)

    def send(self, name: str, rows: Iterable[Mapping[str, Any] | str]) -> None:
        """Move a file of events into place."""
        move(self.events, name, lines(rows))

    def change(self, name: str, rows: Iterable[Mapping[str, Any] | str]) -> None:
        """Move a file of changes into place."""
        move(self.changes, name, lines(rows))

    def matches(self) -> Counter[Match]:
        """Read what the stream found."""
        return Counter(tuple(row.values()) for row in read_folder(self.output))

    def dead(self) -> list[Row]:
        """Read the dead letters."""
        return read_folder(Path(self.settings().dead))

    def rejected(self) -> list[Row]:
        """Read the changes that were refused."""
        return read_folder(Path(self.settings().rejected))

    def engine_at(self, record: Row) -> Engine:
        """Build the engine that a batch must have used, from its record alone."""
        place, since = self.state / "snapshots" / record["snapshot"], record["since"]
        if self.whole is not None:
            place, since = self.whole, 0
        engine = Engine.open(place)
        for version in range(since + 1, record["version"] + 1):
            for change in read_segment(self.state / "log", version):
                do(engine, change, default_dialect(place))
        return engine

    def expected(self, *, default_type: str | None = None) -> Counter[Match]:
        """Say what must have been found: each batch's events, less its dead letters, by the engine.

        Every file must be in one batch.
        """
        settings = self.settings()
        dead = Counter((row["batch"], row["origin"], row["row"]) for row in self.dead())
        found: Counter[Match] = Counter()
        names: list[str] = []
        engines: dict[Any, Engine] = {}
        for record in State(self.state).committed():
            key = (record["snapshot"], record["since"], record["version"])
            engine = engines.get(key) or engines.setdefault(key, self.engine_at(record))
            for origin in record["origins"]:
                names.append(origin)
                for event, text in read_events(Path(origin), default_type):
                    if dead[record["batch"], origin, text]:
                        dead[record["batch"], origin, text] -= 1
                        continue
                    found.update(answer(engine, event, settings))
        assert len(names) == len(set(names))
        return found


def read_events(file: Path, default_type: str | None) -> list[tuple[Event, str]]:
    """Read the events of a file that are any, in this process, with their lines."""
    found = []
    if file.suffix == ".parquet":
        rows = pq.ParquetFile(file).read().to_pylist()
        found += [(Event.from_row(row), json.dumps(row, ensure_ascii=False, default=str)) for row in rows]
    elif file.suffix == ".jsonl":
        for line in file.read_text("utf-8").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if not isinstance(row, dict):
                continue
            if default_type is not None:
                row.setdefault("datacontenttype", default_type)
            found.append((Event.from_row(row), line))
    else:
        assert default_type is not None
        found.append((Event(file.name, file.read_bytes(), content_type=default_type), ""))
    return found


def published(engines: Runtime, event: Event) -> list[Any]:
    """Ask live subscriptions who gets an event, sorted."""
    return sorted(row[SUBSCRIPTION_ID] for row in rows_of(engines, [event], pa.array([0]), None))


def best(engines: Runtime, event: Event, top: Top) -> list[tuple[Any, float]]:
    """Ask live subscriptions for the best, with what each is worth."""
    return [(row[SUBSCRIPTION_ID], row[SCORE]) for row in rows_of(engines, [event], pa.array([0]), top)]


def rows_of(
    engines: Runtime, events: Sequence[Event], ids: pa.Array[Any], top: Top | None
) -> list[dict[str, Any]]:
    """Ask live subscriptions, and put the portions of the answer together."""
    return [row for part in engines.ask(events, ids, Question(top)) for row in part.to_pylist()]


def answer(engine: Engine, event: Event, settings: StreamSettings) -> list[Match]:
    """Ask the engine for one event, as a row of the sink says it."""
    top = settings.best
    try:
        if top is None:
            return [(str(event.id), found) for found in engine.match(event)]
        best: Any = engine.top(event, top.k, top.mode, factors=top.weighing)
    except GraphError:
        return []
    return [(str(event.id), each.subscription, each.value, rank) for rank, each in enumerate(best, 1)]


__all__ = ["JSONL", "PARQUET", "State", "StreamSettings", "Version", "World", "lines", "move", "read_folder"]
