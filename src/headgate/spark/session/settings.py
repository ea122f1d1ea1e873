"""Settings of sessions: those that answers depend on, and the memory that workers have.

Jobs have them in sessions of their own, and change none of a caller's.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import RDD
from pyspark.sql import SparkSession

from headgate.core.machine import cores, memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


WORKER_MEMORY = "spark.executor.pyspark.memory"
_MOST_MAPPED = 8 << 30
"""Bytes of snapshots that a worker maps together, at most: its machine may have less than the driver's."""
_LIBRARIES = 1 << 30
"""Bytes that a worker maps before it has any snapshot, about."""
_UNITS = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def worker_memory(session: SparkSession) -> int:
    """Return how many bytes of snapshots a worker should have in memory at once.

    Pages are shared by the workers of a machine. A limit for workers counts what they map, and they may still
    have the snapshot before.
    """
    text = session.conf.get(WORKER_MEMORY, None)
    if text is None:
        return min(memory() // 2, _MOST_MAPPED)
    limit = read_size(text)
    return max(limit - _LIBRARIES, limit // 4) // 4


def building_memory(session: SparkSession) -> int:
    """Return how many bytes a worker may take to build a shard: all cores build at once."""
    limit = session.conf.get(WORKER_MEMORY, None)
    return memory() // 2 // cores() if limit is None else read_size(limit) // 2


def read_size(text: str) -> int:
    """Read a size as Spark writes it; without a unit it is in MiB.

    >>> read_size("2g"), read_size("512"), read_size("64KiB")
    (2147483648, 536870912, 65536)
    """
    match_ = re.fullmatch(r"(\d+)\s*([bkmgtp]?)(?:i?b)?", text.strip().lower())
    if match_ is None:
        raise ValueError(f"{text!r} is not a size")
    return int(match_[1]) << _UNITS[match_[2] or "m"]


SEMANTICS = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.timeZone": "UTC",
    # Else Parquet gets a form of timestamps that others read as nanoseconds without a zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Off by default, and then a table with a column of this type cannot be read at all.
    "spark.sql.timeType.enabled": "true",
}
"""What jobs have, whatever the session says that they are given."""

_PLAIN = (
    "spark.sql.ansi.",
    "spark.sql.columnNameOfCorruptRecord",
    "spark.sql.csv.",
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.files.ignore",
    "spark.sql.json",
    "spark.sql.legacy.",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.datetimeRebase",
    "spark.sql.parquet.infer",
    "spark.sql.parquet.int96",
    "spark.sql.parser.",
    "spark.sql.session.",
    "spark.sql.sources.partitionColumnTypeInference.",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.timestampType",
)
"""How the names of settings begin that jobs leave as Spark has them: they say how files, texts and times are
read. All others are the caller's: those of speed, of memory, and of where things are."""


UNLISTED = "spark.sql.streaming.checkpointFileManagerClass"
"""Spark says of it that it cannot be changed, and takes it."""


def own_session(session: SparkSession, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session on the same Spark that has our `SEMANTICS` and some settings, and else the caller's.

    It is the caller's if that has all of them. No session that is there is changed.
    """
    wanted = {
        name: value
        for name, value in {**SEMANTICS, **(settings or {})}.items()
        if name == UNLISTED or session.conf.isModifiable(name)
    }
    theirs = session.conf.getAll
    odd = [name for name in theirs if name.startswith(_PLAIN) and name not in wanted]
    if not odd and all(session.conf.get(name, None) == value for name, value in wanted.items()):
        return session
    own = _new_session(session)
    there = own.conf.getAll
    for name in there:
        # Those that Spark was started with.
        if name.startswith(_PLAIN) and name not in wanted and own.conf.isModifiable(name):
            own.conf.unset(name)
    for name, value in theirs.items():
        if there.get(name) != value and not name.startswith(_PLAIN) and _settable(own, name):
            own.conf.set(name, value)
    for name, value in wanted.items():
        own.conf.set(name, value)
    return own


def _settable(session: SparkSession, name: str) -> bool:
    """Tell whether a session takes a setting; those of file systems are not Spark's own, and it takes any."""
    return not name.startswith("spark.") or session.conf.isModifiable(name)


def _new_session(session: SparkSession) -> SparkSession:
    # pyspark has `toDF` of all RDDs make DataFrames of the session that was made last.
    to_frame = getattr(RDD, "toDF", None)
    try:
        return session.newSession()
    finally:
        if to_frame is not None:
            RDD.toDF = to_frame  # type: ignore[method-assign]


@contextmanager
def borrowed(session: SparkSession) -> Iterator[SparkSession]:
    """Yield `own_session`; the session that was active before is so again afterwards."""
    active = SparkSession.getActiveSession()
    own = own_session(session)
    try:
        yield own
    finally:
        if active is not None and own is not session and SparkSession.getActiveSession() is own:
            # That which has last made a DataFrame of rows is the active one.
            active.createDataFrame([], "id long")
