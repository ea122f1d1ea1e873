"""Rows of a DataFrame as jobs ask for them: workers go through them in Arrow."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema, from_arrow_type

from headgate.contents.protocol import RANK, SUBSCRIPTION_ID
from headgate.core.event import ID, TIME
from headgate.core.values import fold
from headgate.records.expressions.parse import spark_text
from headgate.spark.tables.comparing import attribute_paths
from headgate.spark.tables.tables import column as named
from headgate.spark.tables.tables import write_table
from headgate.tables.event_rows import KEY
from headgate.tables.frames.reading import keep_lines
from headgate.tables.lines import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

    from headgate.core.values import Path
    from headgate.jobs.runner import Work
    from headgate.records.language.model import Expression


def mapped(rows: DataFrame, works: Sequence[Work], schema: StructType | str) -> DataFrame:
    """Have workers go through all rows once for each of some works. No shuffle."""
    done = [rows.mapInArrow(partial(run_part, work=work), schema) for work in works]
    return reduce(lambda one, more: one.union(more), done)


def run_part(
    batches: Iterator[pa.RecordBatch], work: Work, *, numbered: bool = False
) -> Iterator[pa.RecordBatch]:
    """Go through a part, in a worker."""
    _freeze(len(sys.modules))
    if not numbered:
        return work(batches)
    context = TaskContext.get()
    return work(batches, part=0 if context is None else context.partitionId())


@lru_cache(maxsize=1)
def _freeze(modules: int) -> None:
    """Leave what is loaded out of the collection of garbage that pyspark makes after every task.

    With all of our modules that took 0.1 s. It was made just before: what is there now is no garbage.
    """
    del modules
    gc.freeze()


def with_key(rows: DataFrame) -> DataFrame:
    """Number events: the same numbers whenever the table is read, because its parts are. No shuffle."""
    return rows.withColumn(KEY, sf.monotonically_increasing_id())


def best_of(matches: DataFrame, k: int, value: str) -> DataFrame:
    """Take the best k of each event from what groups found. Shuffles at most k rows of an event and group.

    `value` is the column that they are ranked by; equal ones go by id. Spark compares text by its bytes,
    which is the order of code points.
    """
    best = Window.partitionBy(KEY).orderBy(sf.col(value).desc(), sf.col(SUBSCRIPTION_ID))
    ranked = matches.withColumn(RANK, sf.row_number().over(best)).where(sf.col(RANK) <= k)
    return ranked.drop(KEY)


@dataclass(frozen=True)
class SparkRows:
    """Rows of a DataFrame; a part is a partition."""

    frame: DataFrame

    def map(self, work: Work, schema: pa.Schema, *, numbered: bool = False) -> SparkRows:
        """Have workers go through each partition. No shuffle."""
        done = partial(run_part, work=work, numbered=numbered)
        return SparkRows(self.frame.mapInArrow(done, from_arrow_schema(schema)))

    def filtered(self, work: Work) -> SparkRows:
        """Have workers leave out some rows of each partition. No shuffle."""
        # `mapInArrow` stumbles over dots and backticks in the names of columns.
        whole = self.frame.select(sf.struct(*map(named, self.frame.columns)).alias(_WHOLE))
        done = whole.mapInArrow(partial(_unpacking, work), whole.schema)
        return SparkRows(done.select(f"{_WHOLE}.*"))

    def parsed(self, title: str) -> SparkRows:
        """Let Spark parse the lines that are events; it infers one type for each attribute."""
        del title
        kept = self.frame.mapInArrow(keep_lines, f"{VALUE} binary").select(sf.col(VALUE).cast("string"))
        table = self.frame.sparkSession.read.json(kept)
        # Without any event there is nothing to infer from.
        return SparkRows(table if table.columns else table.select(sf.lit("").alias(ID)))

    def where(self, sql: str, tree: Expression, title: str) -> SparkRows:
        """Return the rows for which a filter holds."""
        del tree, title
        timed = any(fold(name) == TIME for name in self.names)
        return SparkRows(self.frame.where(spark_text(sql, timed=timed)))

    @property
    def names(self) -> list[str]:
        """List the columns."""
        return self.frame.columns

    def attributes(self, mark: str = "") -> list[Path]:
        """List the columns by path, nested ones included."""
        return attribute_paths(self.frame.schema, mark)

    def select(self, *columns: str) -> SparkRows:
        """Return some columns. No shuffle."""
        return SparkRows(self.frame.select(*map(named, columns)))

    def having(self, column: str) -> SparkRows:
        """Return the rows whose column is not NULL. No shuffle."""
        return SparkRows(self.frame.where(named(column).isNotNull()))

    def lacking(self, column: str) -> SparkRows:
        """Return the rows whose column is NULL. No shuffle."""
        return SparkRows(self.frame.where(named(column).isNull()))

    def then(self, others: SparkRows) -> SparkRows:
        """Return these rows, and others after them. No shuffle."""
        return SparkRows(self.frame.union(others.frame))

    def sorted(self, *columns: str) -> SparkRows:
        """Sort all rows. Shuffles."""
        return SparkRows(self.frame.orderBy(*map(_order, columns)))

    def parted(self, column: str, count: int, *order: str) -> SparkRows:
        """Have the rows of number n in partition n, in an order, and no others. Shuffles."""
        if hasattr(self.frame, "repartitionById"):
            parts = self.frame.repartitionById(count, sf.col(column))
        else:
            parts = parted_by_hash(self.frame, column, count)
        return SparkRows(parts.sortWithinPartitions(*order))

    def gathered(self, *columns: str) -> SparkRows:
        """Have rows that are equal in some columns in one partition. Shuffles."""
        return SparkRows(self.frame.repartition(*map(named, columns)))

    def firsts(self, column: str, *order: str) -> tuple[SparkRows, SparkRows]:
        """Tell the first of the rows with one value from the others. Shuffles values, and repeated ones."""
        frame = self.frame
        if frame.groupBy(column).count().where("count > 1").isEmpty():
            return self, SparkRows(frame.where(sf.lit(False)))
        window = Window.partitionBy(column).orderBy(*order)
        nth = sf.row_number().over(window)
        again = frame.withColumn("_nth", nth).where("_nth > 1").drop("_nth")
        first = frame.join(again.select(order[-1]), order[-1], "left_anti").select(*frame.columns)
        return SparkRows(first), SparkRows(again)

    def counted(self, column: str) -> SparkRows:
        """Count the rows of each value. Shuffles."""
        return SparkRows(self.frame.groupBy(column).count())

    def summed(self, column: str, *sums: str) -> SparkRows:
        """Sum up columns of the rows of each value. Shuffles sums."""
        totals = [sf.sum(name).alias(name) for name in sums]
        return SparkRows(self.frame.groupBy(column).agg(*totals))

    def coalesced(self, name: str, kind: pa.DataType, *columns: str) -> SparkRows:
        """Add a column: of each row the first of some others that is not NULL, of a type. No shuffle."""
        values = [named(each).cast(from_arrow_type(kind)) for each in columns]
        return SparkRows(self.frame.withColumn(name, sf.coalesce(*values)))

    def count(self) -> int:
        """Count all rows."""
        return self.frame.count()

    def head(self, count: int) -> pa.Table:
        """Return the first rows."""
        return self.frame.limit(count).toArrow()

    def collect(self) -> pa.Table:
        """Return all rows."""
        return self.frame.toArrow()

    @contextmanager
    def kept(self) -> Iterator[SparkRows]:
        """Compute them once. Not in memory: Spark keeps there what its heap holds, and has none left."""
        frame = self.frame.persist(StorageLevel.DISK_ONLY)
        try:
            yield SparkRows(frame)
        finally:
            frame.unpersist()

    def write(self, path: str) -> None:
        """Write a table."""
        write_table(self.frame, path)


def _order(name: str) -> Column:
    return sf.desc(name[1:]) if name.startswith("-") else sf.asc(name)


_WHOLE = "whole"


def _unpacking(work: Work, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    columns: Iterator[Any] = (batch.column(0) for batch in batches)
    structs = map(pa.RecordBatch.from_struct_array, columns)
    for rows in work(structs):
        yield pa.RecordBatch.from_arrays([rows.to_struct_array()], names=[_WHOLE])


NUMBERS_TRIED = 64
"""Numbers for each partition, of which one must lead to it: that none does has a chance of e**-64."""


def parted_by_hash(frame: DataFrame, column: str, count: int) -> DataFrame:
    """Part rows on Spark 4.0, which parts by hash only: by numbers whose hashes lead to the partitions."""
    numbers = frame.sparkSession.range(NUMBERS_TRIED * count)
    led = numbers.groupBy(sf.pmod(sf.hash("id"), sf.lit(count)).alias(column)).agg(sf.min("id").alias("id"))
    leading = {row[column]: row["id"] for row in led.collect()}
    each = [sf.lit(leading[number]).cast("long") for number in range(count)]
    return frame.repartition(count, sf.element_at(sf.array(*each), sf.col(column) + 1))
