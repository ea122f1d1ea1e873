"""What a set of changes costs: bytes of the snapshot and time of an event, before and after, measured."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import functions as sf
from pyspark.sql.types import DateType, StringType, TimestampNTZType, TimestampType

from headgate.contents.registry import kind_of
from headgate.core.event import TIME, Event
from headgate.core.values import fold
from headgate.errors import EventError, HeadgateError
from headgate.spark.tables.tables import column, read_columns, read_text
from headgate.tables.event_rows import read_event, read_events
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.places import Format, check_input, is_table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headgate.engine.engine import Engine
    from headgate.runtime.questions import Top

_DAY = 86_400.0
SAMPLE = 1000
"""Events that are timed: the first of the table."""
_ROUNDS = 5
"""How often; the quickest counts, because nothing makes it quicker than it is."""


class Cost(NamedTuple):
    """Bytes and microseconds an event, before and after; times are None without an event to try."""

    bytes_before: int
    bytes_after: int
    micros_before: float | None
    micros_after: float | None
    sample: int
    """Events that were timed, one at a time."""
    build_seconds: float
    """To make the changed snapshot."""


class Times(NamedTuple):
    """The microseconds that an event takes, before and after, and how many events were asked."""

    micros: tuple[float, float]
    events: int


def sampled(session: SparkSession, path: str, content: str, rows: DataFrame) -> list[Event]:
    """Read the first events of a table, as Python values; documents from `rows`, where they are read already.

    Records are read anew: workers get no more of their columns than the changed subscriptions look at.
    """
    if kind_of(content).documents:
        read = rows.limit(SAMPLE).toArrow().combine_chunks().to_batches()
        return [event for batch in read for event in read_events(batch, content)]
    form = check_input(path)
    if form is Format.JSONL:
        lines = read_text(session, path).limit(SAMPLE).collect()
        found = [read_event(line[VALUE].encode()) for line in lines]
        return [event for event in found if isinstance(event, Event)]
    table = read_columns(session, path, form).drop(BROKEN).limit(SAMPLE).toArrow()
    given: list[dict[str, Any]] = table.to_pylist()
    return [event for event in map(_from_row, given) if event is not None]


def _from_row(row: dict[str, Any]) -> Event | None:
    try:
        return Event.from_row(row)
    except EventError:
        # Counted and told where events are judged; here it is only not timed.
        return None


def timed(before: Engine, after: Engine, events: Sequence[Event], top: Top | None) -> Times | None:
    """Measure the microseconds that an event takes in both engines; None if none of them can be asked."""
    asks = [_ask(engine, top) for engine in (before, after)]
    # Events from no node of a graph are refused; and what is compiled first is not measured.
    able = [event for event in events if all(_able(ask, event) for ask in asks)]
    if not able:
        return None
    best = [float("inf"), float("inf")]
    for _ in range(_ROUNDS):
        for place, ask in enumerate(asks):
            begun = time.perf_counter()
            for event in able:
                ask(event)
            best[place] = min(best[place], time.perf_counter() - begun)
    return Times((best[0] / len(able) * 1e6, best[1] / len(able) * 1e6), len(able))


def days_of(session: SparkSession, path: str) -> float | None:
    """Measure the days from the first event of a table to the last; None if no two times differ."""
    if not is_table(path):
        # A folder of documents: files have no times of events.
        return None
    form = check_input(path)
    if form is Format.JSONL:
        table = read_text(session, path)
        when = sf.try_to_timestamp(sf.get_json_object(VALUE, f"$.{TIME}"))
    else:
        table = read_columns(session, path, form)
        name = next((name for name in table.columns if fold(name) == TIME), None)
        if name is None:
            return None
        kind = table.schema[name].dataType
        if isinstance(kind, StringType):
            when = sf.try_to_timestamp(column(name))
        elif isinstance(kind, TimestampType | TimestampNTZType | DateType):
            when = column(name).cast("timestamp")
        else:
            return None
    first, last = table.agg(sf.min(when).cast("double"), sf.max(when).cast("double")).collect()[0]
    return (last - first) / _DAY if first is not None and last > first else None


def size_of(place: Path) -> int:
    """Count the bytes of a snapshot's files."""
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def _ask(engine: Engine, top: Top | None) -> Callable[[Event], object]:
    if top is None:
        return engine.match
    return lambda event: engine.top(event, top.k, top.mode, factors=top.weighing)


def _able(ask: Callable[[Event], object], event: Event) -> bool:
    try:
        ask(event)
    except HeadgateError:
        return False
    return True
