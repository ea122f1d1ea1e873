"""Groups of shards, asked one after the other about the same rows, and their answers put together."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf

from headgate.contents.protocol import SUBSCRIPTION_ID
from headgate.runtime.questions import RANK
from headgate.tables.event_rows import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    Work = Callable[..., Iterator[pa.RecordBatch]]


def mapped(rows: DataFrame, works: Sequence[Work], schema: StructType | str) -> DataFrame:
    """Have workers go through all rows once for each of some works. No shuffle."""
    return reduce(lambda one, more: one.union(more), [rows.mapInArrow(work, schema) for work in works])


def with_key(rows: DataFrame) -> DataFrame:
    """Number events: the same numbers whenever the table is read, because its parts are. No shuffle."""
    return rows.withColumn(KEY, sf.monotonically_increasing_id())


def best_of(found: DataFrame, k: int, value: str) -> DataFrame:
    """Take the best k of each event from what groups found. Shuffles at most k rows of an event and group.

    `value` is the column that they are ranked by; equal ones go by id. Spark compares text by its bytes,
    which is the order of code points.
    """
    best = Window.partitionBy(KEY).orderBy(sf.col(value).desc(), sf.col(SUBSCRIPTION_ID))
    ranked = found.withColumn(RANK, sf.row_number().over(best)).where(sf.col(RANK) <= k)
    return ranked.drop(KEY)
