"""A file of statistics of subscriptions, which jobs add to: Parquet, a row for each subscription.

What is in it is the sum of all jobs. It is replaced as a whole, and locked meanwhile, so that jobs that end
at the same time lose nothing. Columns are those of `headgate.engine.counters`.
"""

from __future__ import annotations

import fcntl
import json
import time
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.machine import put_file
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    import pyarrow as pa

    from headgate.core.ids import Ids

LAYOUT = 1
WAIT = 30.0
"""Seconds between additions to the file of a stream, at least."""
_ABOUT = b"headgate.statistics"


class Kept(NamedTuple):
    """Statistics in a file: of how many events, and between which moments, in seconds since 1970."""

    table: pa.Table
    events: int
    since: float
    until: float


def check_statistics(path: Path) -> None:
    """Refuse a place that cannot be one of statistics, before any work."""
    if path.exists():
        read_statistics(path)
    elif not path.absolute().parent.is_dir():
        raise TableError(f"{path}: there is no folder {path.absolute().parent}: make it first")


def read_statistics(path: Path) -> Kept:
    """Read a file of statistics; refuses what is none."""
    if not path.exists():
        raise TableError(f"{path} does not exist: headgate match --stats {path} writes it")
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.ParquetFile(path).read()
    except (pa.ArrowException, OSError):
        raise TableError(_no_statistics(path)) from None
    noted = (table.schema.metadata or {}).get(_ABOUT)
    if noted is None:
        raise TableError(_no_statistics(path))
    about: dict[str, Any] = json.loads(noted)
    if about["layout"] != LAYOUT:
        raise TableError(
            f"{path} has layout {about['layout']} of statistics, and this Headgate reads {LAYOUT}: name "
            "another file, or use the Headgate that wrote it"
        )
    return Kept(table, about["events"], about["since"], about["until"])


def _no_statistics(path: Path) -> str:
    return f"{path} is not a file of statistics: give one that headgate match --stats has written"


def add_statistics(
    path: Path,
    table: pa.Table,
    events: int,
    begun: float,
    *,
    to: Path | None = None,
    held: ExitStack | None = None,
) -> None:
    """Add statistics of so many events to a file, which is made if there is none.

    With `to`, the sum is written there, and whoever moves it to its place keeps others away in `held`.
    """
    from headgate.engine.counters import ID, merged

    with ExitStack() as here:
        (held or here).enter_context(_locked(path))
        kept = Kept(table, events, begun, time.time())
        if path.exists():
            old = read_statistics(path)
            mine, theirs = (each.schema.field(ID).type for each in (table, old.table))
            if mine != theirs and table.num_rows and old.table.num_rows:
                raise TableError(
                    f"{path} is about subscriptions whose ids are {_kind(theirs)}, and ids here are "
                    f"{_kind(mine)}: name another file"
                )
            tables = [each.replace_schema_metadata(None) for each in (old.table, table) if each.num_rows]
            kept = Kept(
                merged(tables) if tables else table,
                old.events + events,
                min(old.since, begun),
                max(old.until, kept.until),
            )
        _write(to or path, kept)


def _kind(type_: pa.DataType) -> str:
    return "whole numbers" if str(type_) == "int64" else "text"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Have the file for oneself: others wait."""
    with path.with_name(f".{path.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _write(path: Path, kept: Kept) -> None:
    """Put a file in place at once, whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    about = {"layout": LAYOUT, "events": kept.events, "since": kept.since, "until": kept.until}
    table = kept.table.replace_schema_metadata({_ABOUT: json.dumps(about).encode()})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    put_file(path, sink.getvalue().to_pybytes())


# Looking

NEVER, EVERY, COSTLY, EXCEEDED = KINDS = ("never", "every", "costly", "exceeded")
"""Subscriptions to look at: that never matched, matched every event, cost anything, or exceeded a bound."""
SORTS = {
    "work": ("work", "descending"),
    "matches": ("matches", "descending"),
    "candidates": ("candidates", "descending"),
    "failed": ("failed", "descending"),
    "exceeded": ("exceeded", "descending"),
    "last": ("last_match", "ascending"),
    "id": ("subscription_id", "ascending"),
}
"""What subscriptions may be sorted by; of the last match, the longest ago first."""


def listed(table: pa.Table, sort: str = "work", only: str | None = None) -> pa.Table:
    """Return statistics in an order, of all subscriptions or of one of `KINDS`.

    Two columns are added: `failed`, the candidates that did not match, and `share`, the part of the events
    that did. Candidates are estimated, so that they may seem fewer than matches; then none failed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    compute: Any = pc
    matches, events = table["matches"], table["events"]
    failed = compute.max_element_wise(
        compute.subtract(table["candidates"], matches), pa.scalar(0, pa.int64()), skip_nulls=False
    )
    counted = compute.if_else(compute.greater(events, 0), events, pa.scalar(None, pa.int64()))
    share = compute.divide(matches.cast(pa.float64()), counted.cast(pa.float64()))
    table = table.append_column("failed", failed).append_column("share", share)
    wanted = {
        None: None,
        NEVER: compute.equal(matches, 0),
        EVERY: compute.and_(compute.greater(events, 0), compute.equal(matches, events)),
        COSTLY: compute.greater(compute.fill_null(table["work"], 0), 0),
        EXCEEDED: compute.greater(table["exceeded"], 0),
    }[only]
    if wanted is not None:
        table = table.filter(wanted)
    keys: Any = [SORTS[sort], SORTS["id"]] if sort != "id" else [SORTS["id"]]
    return table.sort_by(keys)


# Between processes


def pack_statistics(table: pa.Table) -> bytes:
    """Write what was counted, without subscriptions of which nothing was, as bytes."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from headgate.engine.counters import CANDIDATES, EXCEEDED, MATCHES

    compute: Any = pc
    counted = [compute.fill_null(table[name], 0) for name in (MATCHES, CANDIDATES, EXCEEDED)]
    some = compute.greater(compute.add(compute.add(counted[0], counted[1]), counted[2]), 0)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.filter(some))
    return sink.getvalue().to_pybytes()


def unpack_statistics(packed: Iterable[bytes]) -> list[pa.Table]:
    """Read what `pack_statistics` wrote."""
    import pyarrow as pa

    return [pa.ipc.open_stream(each).read_all() for each in packed]


def with_all(tables: list[pa.Table], ids: Iterable[Ids], events: int) -> pa.Table:
    """Add up what workers have counted, with all subscriptions that there are and the number of events."""
    import numpy as np
    import pyarrow as pa

    from headgate.engine.counters import CANDIDATES, WORK, merged
    from headgate.engine.statistics import Statistics

    every = Statistics(ids)
    every.count(events)
    whole = every.table()
    if not whole.num_rows and tables:
        return merged(tables)
    if any(table[CANDIDATES].null_count < table.num_rows for table in tables):
        # Workers have measured, and leave out what was no candidate.
        for name in (CANDIDATES, WORK):
            nothing = pa.array(np.zeros(whole.num_rows, np.int64))
            whole = whole.set_column(whole.schema.get_field_index(name), name, nothing)
    return merged([whole, *(each.cast(whole.schema) for each in tables)])


class WaitingStatistics:
    """What batches have counted, added to a file now and then, and at the end.

    Which subscriptions there are is looked up then: one that came since the last time has the events of all
    that time. What waits when the process is killed is lost; the file is whole.
    """

    def __init__(self, path: Path, ids: Callable[[], Iterable[Ids]]) -> None:
        self._path = path
        self._ids = ids
        self._packed: list[bytes] = []
        self._events = 0
        self._begun = time.time()

    def add(self, packed: Iterable[bytes], events: int) -> None:
        """Add what the parts of a batch have counted."""
        self._packed += packed
        self._events += events
        if time.time() - self._begun >= WAIT:
            self.write()

    def write(self) -> None:
        """Add what waits to the file."""
        if self._events:
            table = with_all(unpack_statistics(self._packed), self._ids(), self._events)
            add_statistics(self._path, table, self._events, self._begun)
        self._packed, self._events, self._begun = [], 0, time.time()
