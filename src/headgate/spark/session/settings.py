"""Settings that answers depend on: jobs have them in sessions of their own, and change none of a caller's."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark import RDD
from pyspark.sql import SparkSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


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
    given = session.conf.getAll
    odd = [name for name in given if name.startswith(_PLAIN) and name not in wanted]
    if not odd and all(session.conf.get(name, None) == value for name, value in wanted.items()):
        return session
    own = _new_session(session)
    there = own.conf.getAll
    for name in there:
        # Those that Spark was started with.
        if name.startswith(_PLAIN) and name not in wanted and own.conf.isModifiable(name):
            own.conf.unset(name)
    for name, value in given.items():
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
