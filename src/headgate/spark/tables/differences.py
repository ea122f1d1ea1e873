"""What differs between two answers about a table of events: who gains, who loses, and how many have what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from headgate.backtest.difference import AFTER, BEFORE, CHANGE, GAINED, LOST, NET
from headgate.backtest.effects import concerned, effects_of
from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.tables.event_rows import REASON, ROW

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.backtest.changes import Trial
    from headgate.backtest.effects import Effect
    from headgate.backtest.trial import TrialResult
    from headgate.core.event import Id


@dataclass(frozen=True)
class Differences:
    """Rows as `Differ` writes them, of all events; whoever asks for several things keeps them in memory."""

    rows: DataFrame

    @property
    def changed(self) -> DataFrame:
        """Return who would come and go: `event_id`, `subscription_id`, `change`. Shuffles what differs.

        Events may share an id, and lie in any two parts of the table: what differs is known of all of them.
        """
        sums = (
            self.rows.where(sf.col(EVENT_ID).isNotNull())
            .groupBy(EVENT_ID, SUBSCRIPTION_ID)
            .agg(sf.sum(NET).alias(NET))
        )
        times = sf.explode(sf.sequence(sf.lit(1), sf.abs(NET).cast("int")))
        change = sf.when(sf.col(NET) > 0, GAINED).otherwise(LOST).alias(CHANGE)
        return (
            sums.where(sf.col(NET) != 0).select(EVENT_ID, SUBSCRIPTION_ID, change, times.alias(NET)).drop(NET)
        )

    @property
    def counts(self) -> DataFrame:
        """Return how many matches subscriptions have: `subscription_id`, `before`, `after`. Shuffles."""
        return (
            self.rows.where(sf.col(EVENT_ID).isNull() & sf.col(SUBSCRIPTION_ID).isNotNull())
            .groupBy(SUBSCRIPTION_ID)
            .agg(*(sf.coalesce(sf.sum(name), sf.lit(0)).alias(name) for name in (BEFORE, AFTER)))
        )

    def tally(self) -> tuple[int, int]:
        """Count the events, and the rows that are none."""
        told = self.rows.where(sf.col(SUBSCRIPTION_ID).isNull())
        events, refused = told.agg(sf.sum(NET), sf.sum(BEFORE)).collect()[0]
        return events or 0, refused or 0

    def effects(self, tried: TrialResult, events: int, noise: float) -> tuple[Effect, ...]:
        """Say what the changes do to each subscription, noisiest first."""
        moved: dict[Id, dict[str, int]] = {}
        for row in self.changed.groupBy(SUBSCRIPTION_ID, CHANGE).count().collect():
            moved.setdefault(row[SUBSCRIPTION_ID], {})[row[CHANGE]] = row["count"]
        kind = "long" if tried.numbered else "string"
        told: list[Any] = [(each,) for each in concerned(tried.trial, moved)]
        names = self.rows.sparkSession.createDataFrame(told, f"{SUBSCRIPTION_ID} {kind}")
        # Only those that are concerned come to the driver.
        matches = {
            row[SUBSCRIPTION_ID]: (row[BEFORE], row[AFTER])
            for row in self.counts.join(names, SUBSCRIPTION_ID).collect()
        }
        return effects_of(tried.trial, moved, matches, events, noise)


def refused_rows(session: SparkSession, trial: Trial, events: DataFrame) -> DataFrame:
    """Return the rows that were refused, of changes and of events: `table`, `row`, `reason`."""
    rows = [(each.row, each.reason) for each in trial.refused]
    changes = session.createDataFrame(rows, f"{ROW} string, {REASON} string")
    name = "table"
    return changes.select(sf.lit("changes").alias(name), ROW, REASON).union(
        events.select(sf.lit("events").alias(name), ROW, REASON)
    )
