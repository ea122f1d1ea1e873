"""Tables of subscriptions, nodes and edges as they are given: in files, or as DataFrames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import functions as sf

from headgate.core.values import fold
from headgate.runtime.rows import DIALECT, FILTER
from headgate.spark.tables.rows import SparkRows
from headgate.spark.tables.tables import (
    check_columns,
    column,
    column_names,
    lines_of,
    read_columns,
    read_lines,
    read_text,
)
from headgate.tables.choosing import find_dialects
from headgate.tables.filter_rows import find_fields
from headgate.tables.lines import BROKEN, VALUE
from headgate.tables.packed import size_of
from headgate.tables.places import Format, check_input, is_remote, table_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

TASK_ROWS, TASK_BYTES = 100_000, 8 << 20
"""How much a task is given to read, at most."""
FEW_ROWS, FEW_BYTES = 500, 64 << 10
"""What a task reads in the time that it takes to start one: a small table is not cut finer."""


class GivenTable(Protocol):
    """A table, wherever its rows are."""

    @property
    def name(self) -> str:
        """Return what it is called in messages."""

    @property
    def form(self) -> Format:
        """Return its format."""

    def lines(self, *wanted: str) -> DataFrame:
        """Return its rows as `read_lines` does, cut so that every core has as much to parse."""

    def dialects(self, default: str) -> set[str]:
        """List the dialects of its filters; those that name none have the default."""

    def has_any(self, names: Sequence[str]) -> bool:
        """Tell whether it has one of some columns; in JSON lines, whether a row has one of the fields."""

    def count(self) -> int:
        """Count its rows."""


@dataclass(frozen=True)
class FileTable:
    """A table in files."""

    session: SparkSession
    name: str
    """Its path."""

    @property
    def form(self) -> Format:
        """Return the format of the files."""
        return check_input(self.name)

    def lines(self, *wanted: str) -> DataFrame:
        """Cut them into parts. Shuffles, unless the lines lie well; every row keeps its place.

        Lines of text are cut into parts of equal size as they are read. A Parquet file may be one group of
        rows, and CSV is read as a whole. What a task has made of its rows must fit into memory several times.
        """
        lines, parts = read_lines(self.session, self.name, *wanted), self._parts()
        even = (self.form is Format.JSONL or parts == 1) and lines.rdd.getNumPartitions() >= parts
        return lines if even else lines.repartition(parts)

    def _parts(self) -> int:
        """Choose how many parts a table is cut into: some for each core, unless it is small or large."""
        usual = 4 * self.session.sparkContext.defaultParallelism
        if self.form is Format.PARQUET:
            size = read_columns(self.session, self.name, self.form).count()
            few, many = FEW_ROWS, TASK_ROWS
        elif is_remote(self.name):
            # Not to be had without reading it.
            return usual
        else:
            size, few, many = sum(map(size_of, table_files(self.name))), FEW_BYTES, TASK_BYTES
        return max(1, min(usual, size // few), size // many)

    def dialects(self, default: str) -> set[str]:
        """List the dialects of its filters."""
        if self.form is Format.JSONL:
            return self._of_lines(default)
        if FILTER not in map(fold, column_names(self.session, self.name, self.form)):
            return set()
        return _spoken(read_columns(self.session, self.name, self.form, typed=False), default)

    def _of_lines(self, default: str) -> set[str]:
        lines = read_text(self.session, self.name)
        if lines.where(mentions(DIALECT)).isEmpty():
            return set() if lines.where(mentions(FILTER)).isEmpty() else {default}
        work = partial(find_dialects, default=default)
        found = lines.select(sf.col(VALUE).cast("binary")).mapInArrow(work, f"{DIALECT} string")
        return {row[0] for row in found.distinct().collect()}

    def count(self) -> int:
        """Count its rows, or its lines."""
        if self.form is Format.PARQUET:
            return read_columns(self.session, self.name, self.form).count()
        return read_lines(self.session, self.name).count()

    def has_any(self, names: Sequence[str]) -> bool:
        """Tell whether it has one of some columns, or a row one of the fields."""
        if self.form is not Format.JSONL:
            there = column_names(self.session, self.name, self.form)
            return not {*map(fold, there)}.isdisjoint(names)
        likely = read_text(self.session, self.name).where(mentions(*names))
        work = partial(find_fields, names=names)
        return not likely.select(sf.col(VALUE).cast("binary")).mapInArrow(work, f"{VALUE} binary").isEmpty()


@dataclass(frozen=True)
class FrameTable:
    """A DataFrame."""

    frame: DataFrame
    name: str
    form: Format = Format.PARQUET
    """Its columns have types, as those of Parquet have."""

    def lines(self, *wanted: str) -> DataFrame:
        """Write rows as JSON, in the order of the frame's partitions."""
        check_columns(self.frame, self.name, *wanted)
        none = sf.lit(None).cast("string")
        return lines_of(self.frame, sf.lit(""), sf.lit(0).cast("long"), none)

    def dialects(self, default: str) -> set[str]:
        """List the dialects of its filters."""
        return _spoken(self.frame, default)

    def count(self) -> int:
        """Count its rows."""
        return self.frame.count()

    def has_any(self, names: Sequence[str]) -> bool:
        """Tell whether it has one of some columns."""
        return not {*map(fold, self.frame.columns)}.isdisjoint(names)


@dataclass(frozen=True)
class SparkTable:
    """A table in files, as jobs ask for it."""

    session: SparkSession
    name: str
    """Its path."""

    @property
    def form(self) -> Format:
        """Return the format of the files."""
        return check_input(self.name)

    def columns(self) -> list[str] | None:
        """List its columns; None for JSON lines."""
        return None if self.form is Format.JSONL else column_names(self.session, self.name, self.form)

    def lines(self, *required: str, even: bool = False) -> SparkRows:
        """Read it as one JSON object a row; with `even`, it may be shuffled."""
        if even:
            return SparkRows(FileTable(self.session, self.name).lines(*required))
        return SparkRows(read_lines(self.session, self.name, *required))

    def typed(self) -> SparkRows:
        """Read the columns of CSV or Parquet with their types."""
        return SparkRows(read_columns(self.session, self.name, self.form).drop(BROKEN))


def _spoken(table: DataFrame, default: str) -> set[str]:
    names = {fold(name): name for name in table.columns if name != BROKEN}
    if FILTER not in names:
        return set()
    table = table.where(column(names[FILTER]).isNotNull())
    if DIALECT not in names:
        return set() if table.isEmpty() else {default}
    said = sf.coalesce(column(names[DIALECT]).cast("string"), sf.lit(default))
    return {row[0] for row in table.select(said).distinct().collect()}


def mentions(*names: str) -> Column:
    """Tell which lines of JSON may have one of some fields: names may be written with escapes."""
    line = sf.lower(VALUE)
    hints = [line.contains(hint) for hint in ("\\u00", *(f'"{name}"' for name in names))]
    return reduce(or_, hints)
