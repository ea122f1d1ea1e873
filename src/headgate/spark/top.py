"""The best k of each event: what is asked for, and how the answers of shards become one.

shards answer (key, event_id, subscription_id, score) -> window by key -> the best k, numbered from 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import Window
from pyspark.sql import functions as sf

from headgate.core.ranks import check_k, read_factors
from headgate.errors import TableError
from headgate.records.index import EVENT_ID, SUBSCRIPTION_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

EXACT, RELAXED = MODES = ("exact", "relaxed")
SCORE, RANK = "score", "rank"
KEY = "event_key"
"""An event's number while shards are asked: two events may have one id, and each has its own best."""


class Top(NamedTuple):
    """How many are wanted of each event, and what makes one better than another."""

    k: int
    mode: str = EXACT
    factors: tuple[tuple[str, float], ...] = ()
    """What the weights of attributes are multiplied by, if it is not 1; relaxed only."""

    @classmethod
    def of(cls, k: int, mode: str = EXACT, factors: Mapping[str, float] | None = None) -> Top:
        """Refuse what cannot be asked for.

        >>> Top.of(3, "relaxed", {"age": 0}).factors
        (('age', 0.0),)
        """
        check_k(k)
        if mode not in MODES:
            raise TableError(f"there is no mode {mode!r}: use {' or '.join(map(repr, MODES))}")
        if factors and mode != RELAXED:
            raise TableError("factors weigh clauses that hold, and exact matching weighs none: use relaxed")
        return cls(k, mode, tuple(read_factors(factors).items()))

    @property
    def weighing(self) -> dict[str, float] | None:
        """Return the factors as indexes want them: none where nothing is weighed."""
        return dict(self.factors) if self.mode == RELAXED else None


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
