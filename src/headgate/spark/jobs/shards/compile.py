"""Subscriptions to shards by the workers: no row goes through the driver but those of its own counts.

read_lines -> survey (in parallel) -> kept -> counts, types of the ids, repeated ids -> rejected
                                           -> place -> rows of a shard together -> build -> moved into place

Rows are compiled twice, which costs less than carrying programs about: they are long, and texts are not.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import Window
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.core.event import ID
from headgate.core.id_types import WHOLE
from headgate.runtime.shards import ShardPlacement
from headgate.spark.session.progress import watch
from headgate.tables.filter_rows import PLACE, REASON, ROW
from headgate.tables.lines import ORDER, POSITION
from headgate.tables.places import Format
from headgate.tables.shards.rows import (
    ATTRIBUTES,
    BUILT,
    HOME,
    KEYS,
    PLACED,
    SURVEYED,
    BuildSettings,
    CompileSettings,
    ShardResult,
    name_repeated,
    place_rows,
    save_built,
    staging,
    survey_rows,
    survey_settings,
    write_shard,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.protocol import Contents
    from headgate.runtime.sharding import Sharding

_GOOD, _TEXTS, _WHOLE, _KEYED = "good", "texts", "whole", "keyed"
NUMBERS_TRIED = 64
"""Numbers for each partition, of which one must lead to it: that none does has a chance of e**-64."""


def compile_shards(
    session: SparkSession,
    lines: DataFrame,
    form: Format,
    contents: Contents,
    output: Path,
    sharding: Sharding,
    *,
    refuse: Callable[[DataFrame], None],
    dialect: str,
    ranked: bool,
    source: Mapping[str, object],
    quiet: bool,
) -> ShardResult:
    """Have workers cut the rows of a table into shards and write them; `refuse` gets what is refused."""
    reading = CompileSettings(contents.writers, dialect, ranked)
    with _surveyed(lines, reading, contents, sharding) as rows:
        with watch(session, "parsing filters", quiet=quiet) as parsing:
            found = _Survey(rows, form)
            refuse(found.refused())
        with (
            watch(session, f"building {sharding.count} shards", quiet=quiet) as building,
            staging(output) as stage,
        ):
            placing = ShardPlacement(sharding, found.keyed, found.count - found.keyed)
            counts = found.key_counts() if sharding.demands(contents.name) else None
            work = partial(place_rows, placing=placing, numbered=found.numbered, counts=counts)
            placed = found.accepted().mapInArrow(work, from_arrow_schema(PLACED))
            # A shard is a partition, also one without rows.
            shards = _parted(placed, sharding.count).sortWithinPartitions(*ORDER)
            made = BuildSettings(str(stage), contents, reading, found.numbered)
            tasks = shards.mapInArrow(partial(_build_shard, building=made), from_arrow_schema(BUILT))
            done = {row[HOME]: row.asDict() for row in tasks.collect()}
            # Spark runs no tasks at all if it knows that there are no rows.
            absent = [number for number in range(sharding.count) if number not in done]
            done |= {number: write_shard([], made, number, f"{number}-none") for number in absent}
            built = [done[number] for number in range(sharding.count)]
            save_built(built, stage, output, sharding, contents, ranked=ranked, source=source)
    return ShardResult(
        found.count,
        found.rejected,
        tuple(sorted({name for row in built for name in row[ATTRIBUTES]})),
        parsing.seconds,
        building.seconds,
    )


def _parted(placed: DataFrame, count: int) -> DataFrame:
    """Have the rows of shard n in partition n, and no others."""
    if hasattr(placed, "repartitionById"):
        return placed.repartitionById(count, sf.col(HOME))
    return parted_by_hash(placed, count)


def parted_by_hash(placed: DataFrame, count: int) -> DataFrame:
    """Do the same on Spark 4.0, which parts by hash only: by numbers whose hashes lead to the partitions."""
    numbers = placed.sparkSession.range(NUMBERS_TRIED * count)
    led = numbers.groupBy(sf.pmod(sf.hash("id"), sf.lit(count)).alias(HOME)).agg(sf.min("id").alias("id"))
    leading = {row[HOME]: row["id"] for row in led.collect()}
    each = [sf.lit(leading[number]).cast("long") for number in range(count)]
    return placed.repartition(count, sf.element_at(sf.array(*each), sf.col(HOME) + 1))


def _build_shard(batches: Iterable[pa.RecordBatch], building: BuildSettings) -> Iterator[pa.RecordBatch]:
    """Build the shard whose rows are these, all of one partition, and write it; tell what leads to it.

    Attempts write to places of their own, so that one which was cut short is never taken for a whole one.
    """
    context = TaskContext.get()
    assert context is not None
    number = context.partitionId()
    row = write_shard(batches, building, number, f"{number}-{context.taskAttemptId()}")
    yield pa.RecordBatch.from_pylist([row], schema=BUILT)


@contextmanager
def _surveyed(
    lines: DataFrame, reading: CompileSettings, contents: Contents, sharding: Sharding
) -> Iterator[DataFrame]:
    """Survey rows, and keep what was found while it is asked several times."""
    finder, column = survey_settings(contents, sharding)
    work = partial(survey_rows, reading=reading, finder=finder, column=column)
    # Not in memory: Spark keeps as much there as its heap holds, and then has none left to go on.
    rows = lines.mapInArrow(work, from_arrow_schema(SURVEYED)).persist(StorageLevel.DISK_ONLY)
    try:
        yield rows
    finally:
        rows.unpersist()


class _Survey:
    """What is known of a whole table."""

    def __init__(self, rows: DataFrame, form: Format) -> None:
        self._rows = rows
        good, text = sf.col(REASON).isNull(), sf.col("id_text")
        sums = {
            _GOOD: sf.count_if(good),
            REASON: sf.count(REASON),
            _TEXTS: sf.count_if(good & text.isNotNull()),
            _WHOLE: sf.count_if(good & text.rlike(rf"^({WHOLE})\z")),
            _KEYED: sf.count_if(good & sf.col(KEYS).isNotNull()),
        }
        total = rows.agg(*(column.alias(name) for name, column in sums.items())).collect()[0]
        # CSV has text only, so it is read.
        self.numbered = not total[_TEXTS] or (form is Format.CSV and total[_WHOLE] == total[_GOOD])
        kind = "long" if self.numbered else "string"
        identity = sf.coalesce(sf.col("id_number").cast(kind), text.try_cast(kind))
        self._good = rows.where(good).withColumn(ID, identity)
        repeated = self._good.groupBy(ID).count().where(sf.col("count") > 1)
        self._again: DataFrame | None = None
        if not repeated.isEmpty():
            window = Window.partitionBy(ID).orderBy(*ORDER)
            self._again = self._good.withColumn("nth", sf.row_number().over(window)).where("nth > 1")
        again = 0 if self._again is None else self._again.count()
        self.count: int = total[_GOOD] - again
        self.rejected: int = total[REASON] + again
        self.keyed: int = (
            total[_KEYED] if self._again is None else self.accepted().where(f"{KEYS} is not null").count()
        )

    def accepted(self) -> DataFrame:
        """Return the rows that are subscriptions: of those with one id, the first of the table."""
        if self._again is None:
            return self._good
        return self._good.join(self._again.select(POSITION), POSITION, "left_anti").select(
            *self._good.columns
        )

    def refused(self) -> DataFrame:
        """Return the rejected table, in the order of the rows; those with an id that was there come last."""
        identity = sf.coalesce(sf.col("id_text"), sf.col("id_number").cast("string")).alias(ID)
        bad = (
            self._rows.where(sf.col(REASON).isNotNull()).orderBy(*ORDER).select(identity, ROW, REASON, PLACE)
        )
        if self._again is None:
            return bad
        rows = self._again.orderBy(*ORDER).select(sf.col(ID).cast("string").alias(ID), ROW)
        work = partial(name_repeated, numbered=self.numbered)
        named = rows.mapInArrow(work, f"{ID} string, {ROW} string, {REASON} string")
        return bad.union(named.withColumn(PLACE, sf.lit(None).cast("long")))

    def key_counts(self) -> dict[str, int]:
        """Count in how many filters each key is."""
        each = self.accepted().select(sf.explode(KEYS).alias(KEYS)).groupBy(KEYS).count()
        return {row[KEYS]: row["count"] for row in each.collect()}
