"""The batch job and the stream as surfaces: both over snapshots that the compile job made."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from headgate.cli import cli
from headgate.core.rooms import RECORDS
from headgate.engine.question import Question as Asked
from headgate.jobs.match import match_events
from headgate.local import stream as local_stream
from headgate.local.runner import LocalRunner
from headgate.spark.runner import SparkRunner
from headgate.spark.stream.run import run_stream
from headgate.stream.settings import StreamSettings
from headgate.tables.lines import is_plain
from headgate.tables.results import Tables
from tests.contract.refusals import key_of
from tests.contract.surfaces import Match, Refusal, Shape, Surface, Told, event_lines, table_lines
from tests.contract.telling import MIXED, taxonomy
from tests.contract.world import line, loud
from tests.records.random_filters import SCHEMA
from tests.spark.files import get_table, put
from tests.spark.jobs import compile_graph, compile_subscriptions
from tests.streaming.world import read_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from headgate.core.event import Id
    from headgate.runtime.sharding import Sharding
    from headgate.stream.reporting import StreamResult
    from headgate.tables.results import MatchResult
    from tests.contract.world import Question, World
    from tests.spark.files import Row

SHORT = {"text/turtle": "turtle", "nt": "nt", "application/xml": "xml"}
"""What the command calls the formats of documents."""


@dataclass
class Made:
    """A folder, and the snapshots that are there with the rows that were refused."""

    folder: Path
    snapshots: dict[tuple[str, Sharding, bool], tuple[Path, Counter[Refusal]]] = field(default_factory=dict)


class Snapshots:
    """Compiles snapshots, each once, whoever asks for it."""

    def __init__(self, made: Made, get_spark: Callable[[], SparkSession]) -> None:
        self._made = made
        self._get_spark = get_spark

    @property
    def spark(self) -> SparkSession:
        """Return the Spark of all tests; who does not ask starts none."""
        return self._get_spark()

    def get(self, world: World, sharding: Sharding, *, here: bool = False) -> tuple[Path, Counter[Refusal]]:
        """Compile a world; returns where it is, and the rows that were refused. `here` is without Spark."""
        key, made = (world.name, sharding, here), self._made.snapshots
        if key not in made:
            folder = self._made.folder / f"{world.name}-{len(made)}"
            made[key] = self._compile(world, sharding, folder, here=here)
        return made[key]

    def _compile(
        self, world: World, sharding: Sharding, folder: Path, *, here: bool
    ) -> tuple[Path, Counter[Refusal]]:
        place, rejected = folder / "snapshot", folder / "refused.jsonl"
        options: dict[str, Any] = {"rejected": str(rejected), "sharding": sharding}
        options |= {"ranked": world.ranked, "taxonomy": taxonomy(world.content)}
        rows = [{**row, "tenant": f"t{number % 5}"} for number, row in enumerate(world.subscriptions)]
        # In two files: an id may be given again in another one.
        put(folder / "subscriptions" / "0.jsonl", table_lines(rows[:5], ()))
        put(folder / "subscriptions" / "1.jsonl", table_lines(rows[5:], world.bad_subscriptions))
        table = str(folder / "subscriptions")
        done: Any
        if world.graph:
            nodes = put(folder / "nodes.jsonl", table_lines(world.nodes, world.bad_nodes))
            edges = put(folder / "edges.jsonl", table_lines(world.edges, world.bad_edges))
            tables = Tables(nodes, edges, table)
            if here:
                done = compile_graph(None, tables, str(place), **options)
            else:
                done = compile_graph(self.spark, tables, str(place), quiet=True, **options)
        elif here:
            done = compile_subscriptions(None, table, str(place), **options)
        else:
            done = compile_subscriptions(self.spark, table, str(place), quiet=True, **options)
        refused = Counter((key_of(row["row"]), row["reason"]) for row in get_table(rejected))
        assert (done.rejected, done.shards) == (refused.total(), sharding.count)
        assert (done.subscriptions, done.ranked) == (world.count(world.subscriptions), world.ranked)
        assert (done.holds is None) is (world.content == RECORDS)
        return place, refused


def explained(snapshot: Path, world: World, event: Row, subscription: Id) -> Told:
    """Have the command explain a subscription of a snapshot."""
    words = ["explain", "--snapshot", str(snapshot), "--subscription", str(subscription)]
    if "datacontenttype" not in event or not world.graph:
        words += ["--event", line(loud(event))]
    else:
        words += ["--event", event["data"], "--format", SHORT[event["datacontenttype"]]]
        words += ["--source", str(event["source"])]
    ran = CliRunner().invoke(cli, words)
    assert ran.exit_code == 0, (words, ran.output, ran.exception)
    lines = ran.output.splitlines()
    return Told(not lines[0].startswith("no match"), lines)


def put_events(folder: Path, world: World, form: str) -> str:
    """Write the events to several files; one of JSON lines is empty."""
    lines = event_lines(world, columns=form == "parquet")
    # Events with one id are in one file: of several files Spark may read the largest first.
    few, most = lines[:5], lines[5:]
    if form == "parquet":
        folder = folder.with_name(f"{folder.name}.parquet")
        folder.mkdir(exist_ok=True)
        for number, part in enumerate((most, few)):
            table = pa.Table.from_pylist([json.loads(each) for each in part], schema=schema_of(world))
            pq.write_table(table, folder / f"{number}.parquet")
        return str(folder)
    for number, part in enumerate((most, [], few)):
        put(folder / f"{number}.jsonl", "".join(f"{each}\n" for each in part))
    return str(folder)


class Batch(Surface):
    """The compile job and the match job, in one piece or in shards."""

    name, spark = "batch", True
    here = False

    def __init__(self, world: World, shape: Shape) -> None:
        super().__init__(world, shape)
        self._snapshots, self._sharding, self._form, self._out = shape
        self.columns = self._form == "parquet"

    def compile(self) -> Counter[Refusal]:
        """Run the compile job, unless it was."""
        return self._snapshots.get(self.world, self._sharding, here=self.here)[1]

    @property
    def _snapshot(self) -> Path:
        return self._snapshots.get(self.world, self._sharding, here=self.here)[0]

    @property
    def _rejected(self) -> Path:
        return self._snapshot.parent / "refused-events.jsonl"

    def match(self, question: Question) -> Counter[Match]:
        """Run the match job over events in several files, one of them empty."""
        assert not question.changed, "a snapshot does not change"
        folder = self._snapshot.parent
        output = folder / f"matches.{self._out}"
        events = put_events(folder / "events", self.world, self._form)
        done = self._run(str(self._snapshot), events, str(output), question)
        found = Counter(tuple(row.values()) for row in get_table(output))
        assert (done.matches, done.rejected) == (found.total(), self.refused().total())
        assert done.events + done.rejected == len(event_lines(self.world, columns=self.columns))
        assert done.shards == self._sharding.count
        assert done.met <= done.events * done.shards
        return found

    def _run(self, snapshot: str, events: str, output: str, question: Question) -> MatchResult:
        rejected, asked = str(self._rejected), Asked(question.top)
        spark = self._snapshots.spark
        return match_events(
            SparkRunner(spark, quiet=True), snapshot, events, output, rejected=rejected, question=asked
        )

    def refused(self) -> Counter[Refusal]:
        """Read the rejected table."""
        return Counter((key_of(row["row"]), row["reason"]) for row in get_table(self._rejected))

    def explain(self, event: Row, subscription: Id) -> Told:
        """Run the command over the snapshot."""
        return explained(self._snapshot, self.world, event, subscription)


class Local(Batch):
    """The same jobs in this process, without Spark."""

    name, spark, here = "local", False, True

    def _run(self, snapshot: str, events: str, output: str, question: Question) -> MatchResult:
        rejected, asked = str(self._rejected), Asked(question.top)
        runner = LocalRunner(quiet=True)
        return match_events(runner, snapshot, events, output, rejected=rejected, question=asked)


def schema_of(world: World) -> pa.Schema:
    """Say which columns events have."""
    identity: pa.DataType = pa.int64() if world.numbered else pa.string()
    found: dict[str, pa.DataType] = {}
    if world.content in {RECORDS, MIXED}:
        for each in SCHEMA:
            kind = each.type
            if world.content != RECORDS and isinstance(kind, pa.StructType):
                kind = pa.struct([part for part in kind if is_plain(part.type)])
            # Among documents, records have the types of JSON.
            if world.content == RECORDS or is_plain(kind):
                found[each.name] = kind
        found |= {"topic": pa.string(), "age": pa.int64(), "price": pa.float64()}
    if world.content != RECORDS:
        found |= {"data": pa.string(), "datacontenttype": pa.string()}
    found["id"] = identity
    return pa.schema({**found, "source": identity} if world.graph else found)


class Stream(Surface):
    """The stream over a compiled snapshot, with changes or without."""

    name, spark = "stream", True
    here = False
    text_ids = once = changes = True

    def __init__(self, world: World, shape: Shape) -> None:
        super().__init__(world, shape)
        self._snapshots, self._sharding, self._form, self._out = shape
        self.columns = self._form == "parquet"
        self._settings = StreamSettings("", "", "", "")

    def compile(self) -> Counter[Refusal]:
        """Run the compile job, unless it was."""
        return self._snapshots.get(self.world, self._sharding, here=self.here)[1]

    def match(self, question: Question) -> Counter[Match]:
        """Run a stream over all events, once; the changes are there before it begins."""
        snapshot = self._snapshots.get(self.world, self._sharding, here=self.here)[0]
        root = snapshot.parent / f"stream-{len(list(snapshot.parent.glob('stream-*')))}"
        changes = self.world.changes if question.changed else []
        put(root / "changes" / "1.jsonl", table_lines(changes, self.world.bad_changes if changes else ()))
        top = question.top
        self._settings = StreamSettings(
            str(snapshot),
            put_events(root / "in", self.world, self._form),
            str(root / "out"),
            str(root / "state"),
            changes=str(root / "changes"),
            format=self._out,
            once=True,
            top=None if top is None else top.k,
            mode="exact" if top is None else top.mode,
            factors={} if top is None else dict(top.factors),
            **({} if top is None or not self.world.graph else top.path._asdict()),
            fold=1,
        )
        done = self._run(self._settings)
        found = Counter(tuple(row.values()) for row in read_folder(root / "out"))
        dead, rejected = self.refused().total(), self.refused_changes().total()
        assert done.matches == found.total()
        assert done.events + dead == len(event_lines(self.world, columns=self.columns))
        assert (done.changes, done.rejected_changes) == (len(changes), rejected)
        assert done.subscriptions == self.world.count(self.world.at(question))
        return found

    def _run(self, settings: StreamSettings) -> StreamResult:
        return run_stream(self._snapshots.spark, settings, quiet=True)

    def refused(self) -> Counter[Refusal]:
        """Read the dead letters."""
        return refused_in(Path(self._settings.dead))

    def refused_changes(self) -> Counter[Refusal]:
        """Read the changes that were refused."""
        return refused_in(Path(self._settings.rejected))

    def explain(self, event: Row, subscription: Id) -> Told:
        """Run the command over the snapshot into which the stream has folded the changes."""
        return explained(newest(Path(self._settings.state)), self.world, event, subscription)


class LocalStream(Stream):
    """The same in this process, without Spark."""

    name, spark, here = "local stream", False, True

    def _run(self, settings: StreamSettings) -> StreamResult:
        return local_stream.run_stream(settings, quiet=True)


def refused_in(folder: Path) -> Counter[Refusal]:
    """Read refused rows that a stream has written."""
    return Counter((key_of(row["row"]), row["reason"]) for row in read_folder(folder))


def newest(state: Path) -> Path:
    """Return the snapshot into which a stream has folded the changes."""
    return max((state / "snapshots").iterdir(), key=lambda each: each.stat().st_mtime_ns)
