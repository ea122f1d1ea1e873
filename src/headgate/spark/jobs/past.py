"""Events of the past on Spark, as the jobs ask for them that try something over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark.tables.rows import SparkRows

if TYPE_CHECKING:
    from headgate.backtest.difference import Differ
    from headgate.contents.kind import Feeds
    from headgate.spark.jobs.events import EventTable
    from headgate.spark.tables.events import CheckedEvents


@dataclass(frozen=True)
class SparkPast:
    """Events that were judged, and how they are compared."""

    table: EventTable

    @property
    def form(self) -> str:
        """Return how workers get them."""
        return self.table.form

    @property
    def count(self) -> int:
        """Count them."""
        return self.table.judged.count

    @property
    def rejected(self) -> int:
        """Count the rows that are none."""
        return self.table.judged.rejected

    @property
    def id_type(self) -> str:
        """Return the type of their ids."""
        return self.table.judged.id_type

    @property
    def feeds(self) -> Feeds | None:
        """Return what was read of RSS feeds, if there were any."""
        return self.table.feeds

    @property
    def refused(self) -> SparkRows:
        """List the rows that are none."""
        return SparkRows(self.table.judged.refused)

    @property
    def rows(self) -> SparkRows:
        """Return them as workers get them."""
        return SparkRows(self.table.rows)

    def compared(self, differ: Differ) -> SparkRows:
        """Have workers compare them. No shuffle."""
        return self.rows.map(differ.of_batches, differ.schema)

    def forget(self) -> None:
        """Free what was kept."""
        self.table.judged.forget()


@dataclass(frozen=True)
class SparkRecords:
    """Records that were judged; Spark SQL says which match."""

    judged: CheckedEvents

    @property
    def count(self) -> int:
        """Count them."""
        return self.judged.count

    @property
    def rejected(self) -> int:
        """Count the rows that are none."""
        return self.judged.rejected

    @property
    def rows(self) -> SparkRows:
        """Return lines of JSON, or all columns."""
        return SparkRows(self.judged.events)

    def forget(self) -> None:
        """Free what was kept."""
        self.judged.forget()
