"""Tables as jobs are given them on Spark: in files, or as DataFrames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.spark.tables.rows import SparkRows
from headgate.spark.tables.tables import check_columns, column_names, lines_of, read_columns, read_lines
from headgate.tables.lines import BROKEN
from headgate.tables.packed import size_of
from headgate.tables.places import Format, check_input, is_remote, table_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TASK_ROWS, TASK_BYTES = 100_000, 8 << 20
"""How much a task is given to read, at most."""
FEW_ROWS, FEW_BYTES = 500, 64 << 10
"""What a task reads in the time that it takes to start one: a small table is not cut finer."""


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

    def columns(self) -> list[str] | None:
        """List its columns; None for JSON lines."""
        return None if self.form is Format.JSONL else column_names(self.session, self.name, self.form)

    def lines(self, *required: str, even: bool = False) -> SparkRows:
        """Read it as one JSON object a row. Shuffles if parts are to be even and do not lie well.

        Lines of text are cut into parts of equal size as they are read. A Parquet file may be one group of
        rows, and CSV is read as a whole. What a task has made of its rows must fit into memory several times.
        """
        lines = read_lines(self.session, self.name, *required)
        if even:
            parts = self._parts()
            lie_well = self.form is Format.JSONL or parts == 1
            if not lie_well or lines.rdd.getNumPartitions() < parts:
                lines = lines.repartition(parts)
        return SparkRows(lines)

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

    def typed(self) -> SparkRows:
        """Read the columns of CSV or Parquet with their types."""
        return SparkRows(read_columns(self.session, self.name, self.form).drop(BROKEN))


@dataclass(frozen=True)
class FrameTable:
    """A DataFrame."""

    frame: DataFrame
    name: str
    form: Format = Format.PARQUET
    """Its columns have types, as those of Parquet have."""

    def columns(self) -> list[str]:
        """List its columns."""
        return self.frame.columns

    def lines(self, *required: str, even: bool = False) -> SparkRows:
        """Write rows as JSON, in the order of the frame's partitions."""
        del even
        check_columns(self.frame, self.name, *required)
        none = sf.lit(None).cast("string")
        return SparkRows(lines_of(self.frame, sf.lit(""), sf.lit(0).cast("long"), none))

    def typed(self) -> SparkRows:
        """Return its rows."""
        return SparkRows(self.frame)
