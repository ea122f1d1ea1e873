"""Tables on other file systems, moved to their places by Hadoop: what Spark itself writes through."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from headgate.errors import TableError
from headgate.spark.session.session import discard
from headgate.tables.change_set import changing

if TYPE_CHECKING:
    from collections.abc import Iterable
    from contextlib import AbstractContextManager

    from pyspark.sql import SparkSession

    from headgate.tables.change_set import ChangeSet

_JVM, _JAVA_CONTEXT = "_jvm", "_jsc"


def changing_together(
    session: SparkSession, paths: Iterable[str | None]
) -> AbstractContextManager[ChangeSet]:
    """Have tables that Spark writes take their places together, on this machine and elsewhere."""
    return changing(paths, discard, HadoopFiles(session))


class HadoopFiles:
    """The file systems that Spark can reach.

    To rename is one step in HDFS. In most object stores it is a copy, and readers may find it half done.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session

    def staged(self, path: str) -> str:
        """Name a place beside a table, which readers of tables pass over."""
        above, _, name = path.rstrip("/").rpartition("/")
        staged = f"{above}/_{os.getpid()}.{name}"
        self.discard(staged)
        return staged

    def swap(self, staged: str, path: str) -> None:
        """Have a table and what was written beside it change places; what is not there leaves no trace."""
        files, one = self._open(staged)
        _, other = self._open(path)
        _, between = self._open(f"{staged}.old")
        existed = files.exists(other)
        if existed:
            _rename(files, other, between)
        if files.exists(one):
            _rename(files, one, other)
        if existed:
            _rename(files, between, one)

    def discard(self, staged: str) -> None:
        """Remove what is there, if anything is."""
        files, place = self._open(staged)
        files.delete(place, True)

    def _open(self, path: str) -> tuple[Any, Any]:
        context = self._session.sparkContext
        place = getattr(context, _JVM).org.apache.hadoop.fs.Path(path)
        return place.getFileSystem(getattr(context, _JAVA_CONTEXT).hadoopConfiguration()), place


def _rename(files: Any, one: Any, other: Any) -> None:
    if not files.rename(one, other):
        raise TableError(f"{one.toString()} cannot be renamed to {other.toString()}")
