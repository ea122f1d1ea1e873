"""Batches of a streaming DataFrame, matched against subscriptions that change meanwhile.

    batch N for the first time ─► take in changes, pin a version ─┐
    batch N again, after a crash ─► the version that was pinned ──┴─► one pass ─► matches, refused ─► write

What is pinned lies in a state directory, as that of `headgate stream` does. Spark says which rows are a
batch, and the caller's own function writes: it is given the same rows for the same number, and so must have
the same effect the second time.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from headgate.contents.protocol import EVENT_ID
from headgate.core.event import CONTENT_TYPE, DATA, ID, SOURCE
from headgate.core.ranks import EXACT
from headgate.engine.question import Question, Top
from headgate.errors import TableError
from headgate.graph.path_cost import DECAY, DEFAULT_PATH_COST, MINUS, PathCost
from headgate.runtime.log import Subscriptions
from headgate.runtime.questions import check_changes, check_snapshot
from headgate.runtime.state import PINNED, STAGE, State
from headgate.runtime.targets import open_target
from headgate.spark.frames.columns import EventColumns, check_names, renamed
from headgate.spark.frames.match import EventFrame
from headgate.stream.settings import PARQUET
from headgate.stream.sources.registry import open_changes, source_of
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.frames.task import ROWS
from headgate.tables.places import check_here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame

    from headgate.runtime.state import Record
    from headgate.runtime.targets import Target

    Write = Callable[[DataFrame, DataFrame, int], object]

REJECTED = "rejected-changes"
"""Where changes go that were refused: a folder of the state, unless another is named."""
FOLD, KEEP = 10_000, 10
"""Changes that are folded into a snapshot, and batches whose records stay."""


def each_batch(
    changes: str | PathLike[str] | None,
    snapshot: str | PathLike[str],
    write: Write,
    *,
    state: str | PathLike[str],
    k: int | None = None,
    mode: str = EXACT,
    factors: Mapping[str, float] | None = None,
    by: str = MINUS,
    decay: float = DECAY,
    hops: bool = False,
    k_column: str | None = None,
    id: str = ID,  # noqa: A002 -- what people call it
    keep: Sequence[str] = (),
    shape: str = ROWS,
    source: str = SOURCE,
    data: str = DATA,
    content_type: str = CONTENT_TYPE,
    format: str | None = None,  # noqa: A002 -- as on the command line
    names: Mapping[str, str] | None = None,
    rejected_changes: str | PathLike[str] | None = None,
    options: Mapping[str, str] | None = None,
    fold: int = FOLD,
    results: bool | int = False,
) -> EachBatch:
    """Return what `foreachBatch` of a streaming DataFrame wants: matches of each batch go to `write`.

    `changes` is a folder to which files of changed subscriptions are moved, or `nats://…`; None if there are
    none. They are taken in before a batch, and the batch sees all of them or those before. `snapshot` is what
    they change. One that is compiled anew into its place is taken up by the next batch.

    `write(matches, refused, batch)` is called once a batch, with DataFrames that are computed in one pass and
    kept until it returns: those of `match` (of `top`, with `k`), and of `refused` with what was exceeded.
    After a crash it is called again with the same number, the same rows and the same subscriptions. Let the
    second call replace what the first one wrote.

    `state` is a directory of this query alone, that drivers and workers see; keep it with the query's
    checkpoint. Changes that are refused go to `rejected_changes`, or else into the state. After `fold`
    changes they are folded into a new snapshot, aside. All else is as in `match` and `top`.

    >>> def write(matches, refused, batch):
    ...     matches.write.mode("overwrite").parquet(f"matches/batch={batch}")
    ...
    >>> batches = each_batch("changes", "snapshot", write, state="state", id="uuid")  # doctest: +SKIP
    >>> events.writeStream.foreachBatch(batches).start()  # doctest: +SKIP
    """
    if not callable(write):
        raise TableError(f"write is {write!r}: give a function of matches, refused rows and a batch's number")
    folder = os.fspath(state)
    check_here(folder)
    if Path(folder).exists() and not Path(folder).is_dir():
        raise TableError(f"{folder} is a file, and the state of a stream is a directory")
    path = PathCost.of(by, decay, hops=hops)
    best = None if k is None else Top.of(k, mode, factors, path, k_column)
    if best is None and (mode != EXACT or factors or path != DEFAULT_PATH_COST):
        raise TableError("mode, factors and such say which are best: say with k how many are wanted")
    check_snapshot(os.fspath(snapshot), best)
    named = None if changes is None else os.fspath(changes)
    if named is not None and source_of(named) is None:
        check_changes(named)
    if fold < 1:
        raise TableError(f"fold is {fold}: use 1 or more")
    return EachBatch(
        LiveSettings(
            str(Path(os.fspath(snapshot)).absolute()),
            named,
            Question.of(best, results),
            str(Path(folder).absolute()),
            os.fspath(rejected_changes or Path(folder).absolute() / REJECTED),
            dict(options or {}),
            fold,
        ),
        EventColumns(id, source, data, content_type),
        format,
        tuple(keep) if not isinstance(keep, str) else keep,
        shape,
        dict(names or {}),
        write,
    )


@dataclass(frozen=True)
class LiveSettings:
    """Which subscriptions, and what changes them."""

    snapshot: str
    changes: str | None
    question: Question
    state: str
    rejected: str
    options: Mapping[str, str]
    fold: int
    format: str = PARQUET


@dataclass
class EachBatch:
    """A function for `foreachBatch`."""

    settings: LiveSettings
    columns: EventColumns
    form: str | None
    keep: Sequence[str]
    shape: str
    names: Mapping[str, str]
    write: Write
    _live: _Live | None = field(default=None, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Go to another process without what is open: Spark Connect runs this at its server."""
        return {**self.__dict__, "_live": None, "_lock": None}

    def __setstate__(self, given: dict[str, Any]) -> None:
        """Open it there when it is needed."""
        self.__dict__.update(given, _lock=threading.Lock())

    def close(self) -> None:
        """Wait for what is folded aside, and end the source of changes; after the query has ended.

        A later call opens them again.
        """
        with self._lock:
            live, self._live = self._live, None
            if live is not None:
                live.subscriptions.close()

    def __call__(self, events: DataFrame, batch: int) -> None:
        """Match a batch and have it written."""
        # One after the other, also if two queries were given this by mistake.
        with self._lock:
            if self._live is None:
                self._live = _Live(self.settings)
            self._do(self._live, events, batch)

    def _do(self, live: _Live, events: DataFrame, batch: int) -> None:
        with live.state.held():
            pinned = live.pinned(batch, _query_of(events))
            version = live.subscriptions.at(pinned["snapshot"], pinned["since"], pinned["version"])
            question = self.settings.question
            frame = EventFrame.of(events, self.columns, live.target(version.snapshot), self.form)
            both = frame.both(version, self.keep, self.shape, question, numbered=live.numbered)
            answers = both.persist()
            try:
                matches = answers.where(sf.col(REASON).isNull()).drop(REASON, ROW)
                refused = answers.where(sf.col(REASON).isNotNull()).select(EVENT_ID, REASON, ROW)
                check_names(self.names, [*matches.columns, REASON, ROW])
                self.write(self._renamed(matches), self._renamed(refused), batch)
            finally:
                answers.unpersist()

    def _renamed(self, frame: DataFrame) -> DataFrame:
        return renamed(frame, {name: other for name, other in self.names.items() if name in frame.columns})


class _Live:
    """The subscriptions of a query, open in the process that has its batches."""

    def __init__(self, settings: LiveSettings) -> None:
        self.state = State(Path(settings.state))
        with self.state.held():
            self.subscriptions = Subscriptions(settings, self.state, open_changes(settings))
            self.subscriptions.take_over()
            self.numbered = bool(self.state.fixed("numbered", self.subscriptions.numbered))
            """Whether ids of subscriptions are whole numbers: it was so when the state was new."""
        self._targets: dict[str, Target] = {}

    def pinned(self, batch: int, query: str | None) -> Record:
        """Return what a batch uses: what was pinned, or else what there is now."""
        self._check_query(query)
        record = self.state.batch(batch)
        if record is not None:
            return record
        last = self.state.newest
        if last is not None and batch < last:
            raise TableError(
                f"batch {batch} comes after batch {last} in state {self.state.root}: this is another "
                "checkpoint; restore both from one copy, or start with a new state"
            )
        # Spark begins a batch when the one before is done, in its checkpoint too: nothing else is needed.
        self.subscriptions.forget()
        self.state.forget(batch - KEEP)
        return self.state.put(batch, {STAGE: PINNED, **self.subscriptions.pin()})

    def _check_query(self, query: str | None) -> None:
        if query is None:
            return
        known = self.state.fixed("query", query)
        if known != query:
            raise TableError(
                f"state {self.state.root} belongs to another query than this one, or its checkpoint is new: "
                "restore both from one copy, or start with a new state"
            )

    def target(self, snapshot: str) -> Target:
        """Return what a snapshot is, looked at once."""
        target = self._targets.get(snapshot)
        if target is None:
            # Of the one before nothing is wanted any more.
            self._targets = {snapshot: (target := open_target(snapshot))}
        return target


def _query_of(events: DataFrame) -> str | None:
    """Return the id of a streaming query, which its checkpoint keeps; with Spark Connect it is not known."""
    context = getattr(events.sparkSession, "_jsparkSession", None) and events.sparkSession.sparkContext
    query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
    return None if query is None else str(query)
