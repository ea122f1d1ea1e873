"""The best k of each event: how the answers of shards become one.

shards answer (key, event_id, subscription_id, score) -> window by key -> the best k, numbered from 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sf

from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.questions import RANK, SCORE
from headgate.spark.tables.event_rows import KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def with_key(rows: DataFrame) -> DataFrame:
    """Number events: the same numbers whenever the table is read, because its parts are. No shuffle."""
    return rows.withColumn(KEY, sf.monotonically_increasing_id())


def merged(found: DataFrame, k: int) -> DataFrame:
    """Take the best k of each event from what shards found. Shuffles at most k rows of an event and shard.

    Equal scores go by id. Spark compares text by its bytes, which is the order of code points.
    """
    best = Window.partitionBy(KEY).orderBy(sf.col(SCORE).desc(), sf.col(SUBSCRIPTION_ID))
    ranked = found.withColumn(RANK, sf.row_number().over(best)).where(sf.col(RANK) <= k)
    return ranked.select(EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK)
