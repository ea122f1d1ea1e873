"""Try changes of subscriptions over a DataFrame of events of the past, before they go live."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import to_arrow_schema

from headgate.backtest.changes import Row, in_order
from headgate.backtest.effects import by_operation
from headgate.backtest.trial import try_changes
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.core.ranks import EXACT
from headgate.engine.question import Question, Top
from headgate.errors import TableError
from headgate.graph.path_cost import DECAY, MINUS, PathCost
from headgate.jobs.choosing import has_any
from headgate.jobs.what_if import Differences, any_engine, differ_of, refused_changes
from headgate.runtime.operations import OP
from headgate.spark.frames.columns import WHAT, EventColumns, GivenEvents, check_frame, is_frame
from headgate.spark.session.session import spark_errors
from headgate.spark.tables.given import FrameTable
from headgate.spark.tables.rows import SparkRows
from headgate.spark.tables.tables import to_frame
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.places import Format
from headgate.tables.requests import check_trial
from headgate.tables.settings import WhatIf as Settings

if TYPE_CHECKING:
    from os import PathLike

    from pyspark.sql import DataFrame

    from headgate.backtest.effects import Effect
    from headgate.backtest.trial import TrialResult

CHANGES = "changes"
"""What a DataFrame of changes is called in messages."""


@dataclass(frozen=True)
class WhatIf:
    """What changes would do. Nothing runs before a DataFrame, or a number, is asked for."""

    changed: DataFrame = field(repr=False)
    """A row for each match that would come or go: `event_id`, `subscription_id`, `change`."""
    refused: DataFrame = field(repr=False)
    """Rows that were refused, of changes and of events: `table`, `row`, `reason`."""
    changes: dict[str, int]
    """Changed subscriptions, and changes of the graph, by what would be done."""
    rejected: int
    """How many rows of changes were refused."""
    _tried: TrialResult = field(repr=False)
    _differences: Differences = field(repr=False)
    _noise: float = field(repr=False)

    @property
    def events(self) -> int:
        """Count the events."""
        return self._asked[0]

    @property
    def effects(self) -> tuple[Effect, ...]:
        """Say what the changes do to each subscription, noisiest first."""
        return self._asked[1]

    @property
    def gained(self) -> int:
        """Count the matches that would come."""
        return sum(each.gained for each in self.effects)

    @property
    def lost(self) -> int:
        """Count the matches that would go."""
        return sum(each.lost for each in self.effects)

    @cached_property
    def _asked(self) -> tuple[int, tuple[Effect, ...]]:
        with spark_errors(), self._differences.rows.kept() as rows:
            kept = Differences(rows, self._differences.differ)
            events = kept.events
            return events, kept.effects(self._tried, events, self._noise)


def what_if(
    events: DataFrame,
    snapshot: str | PathLike[str],
    changes: DataFrame | Iterable[Mapping[str, Any]],
    *,
    k: int | None = None,
    mode: str = EXACT,
    factors: Mapping[str, float] | None = None,
    by: str = MINUS,
    decay: float = DECAY,
    hops: bool = False,
    k_column: str | None = None,
    noise: float = Settings.noise,
    id: str = ID,  # noqa: A002 -- what people call it
    source: str = SOURCE,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
) -> WhatIf:
    """Say what changed subscriptions would gain and lose, event by event and in all.

    `changes` are rows as a stream takes them, tried one after the other: a DataFrame, in the order of its
    partitions, or dicts. A row without `op` replaces a subscription that is there, and adds one that is not.

    With `k` the question is who would be among the best k of an event; `mode`, `factors`, `by`, `decay` and
    `hops` are as in `top`. A subscription that matches more than the share `noise` of the events is told to
    be noisy. The other arguments are as in `match`.

    >>> tried = what_if(events, "snapshot", [{"id": "s1", "filter": "age > 40"}])  # doctest: +SKIP
    >>> tried.gained, tried.lost, tried.changed.show()  # doctest: +SKIP
    """
    check_frame(events, WHAT)
    if events.isStreaming:
        raise TableError(f"{WHAT} are a stream: what is gained and lost is known of a table only")
    path = PathCost.of(by, decay, hops=hops)
    place, top = os.fspath(snapshot), None if k is None else Top.of(k, mode, factors, path, k_column)
    check_trial(place, top, noise)
    form, rows = _rows(changes)
    # Workers make their own engines from what is sent to them: the files are gone before anything is asked.
    with tempfile.TemporaryDirectory(prefix="headgate-") as folder:
        tried = try_changes(place, form, rows, Path(folder), top)
    columns = EventColumns(id, source, data, content_type)
    given = GivenEvents.of(events, columns, tried.target, format)
    task = given.task(any_engine(tried), tried.sources, Question(top))._replace(numbered=tried.numbered)
    ids = to_arrow_schema(given.schema([], ()))
    differ = differ_of(tried, task, ids.field(0).type)
    differences = Differences(SparkRows(given.rows(())).map(differ.of_batches, differ.schema), differ)
    changed = differences.changed
    assert isinstance(changed, SparkRows)
    refused = given.refused([task]).select(sf.lit("events").alias("table"), ROW, REASON)
    return WhatIf(
        changed.frame,
        to_frame(events.sparkSession, refused_changes(tried.trial)).union(refused),
        by_operation(tried.trial),
        len(tried.trial.refused),
        tried,
        differences,
        noise,
    )


def _rows(changes: DataFrame | Iterable[Mapping[str, Any]]) -> tuple[Format, list[Row]]:
    """Read changes, in their order. They come to the driver: a set of changes is small."""
    if is_frame(changes):
        if changes.isStreaming:
            raise TableError(f"{CHANGES} are a stream: hand them to headgate stream, and try a table of them")
        table = FrameTable(changes, CHANGES)
        with spark_errors():
            lines = table.lines(*(() if has_any(table, [OP]) else (ID,))).frame.collect()
        return table.form, in_order(row.asDict() for row in lines)
    if isinstance(changes, str | bytes | Mapping) or not isinstance(changes, Iterable):
        raise TableError(
            f"{CHANGES} are {type(changes).__name__}: give a DataFrame of Spark, or a list of dicts"
        )
    return Format.JSONL, [Row(_written(row)) for row in changes]


def _written(row: object) -> bytes:
    if not isinstance(row, Mapping):
        raise TableError(f"{CHANGES} have a row that is {type(row).__name__}: give dicts")
    try:
        return json.dumps(dict(row), ensure_ascii=False).encode()
    except (TypeError, ValueError) as error:
        raise TableError(f"{CHANGES} have a row that JSON cannot hold: {error}") from None
