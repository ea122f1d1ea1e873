"""Events of the past on Spark, as the jobs ask for them that try something over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.spark.tables.rows import SparkRows

if TYPE_CHECKING:
    from headgate.spark.tables.events import CheckedEvents


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
