"""What is asked about changes of subscriptions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.contents.registry import content_at
from headgate.core.rooms import FILTER_SHARDS, GRAPH_SHARDS, RANKING_SHARDS
from headgate.core.snapshot import room_of
from headgate.errors import SnapshotError, TableError
from headgate.runtime.questions import check_ranks
from headgate.spark.tables.places import check_apart, check_input, check_output
from headgate.spark.tables.requests import check_events_for

if TYPE_CHECKING:
    from headgate.runtime.questions import Top

NOISE = 0.1
"""The share of events above which a subscription is noisy."""


@dataclass(frozen=True)
class Question:
    """What is asked: of which changes, against what, over which events."""

    changes: str
    snapshot: str
    events: str
    top: Top | None = None
    content_type: str | None = None
    noise: float = NOISE
    cost: bool = True

    def check(self, *outputs: str | None) -> None:
        """Refuse what cannot be done before any work: used before Spark starts, too."""
        check_input(self.changes)
        place = Path(self.snapshot)
        content_at(place)
        room = room_of(place)
        check_events_for(self.snapshot, self.events, self.content_type)
        if not 0 <= self.noise <= 1:
            raise TableError(f"noise {self.noise} is no share of the events: give one from 0 to 1")
        if self.top is not None:
            check_ranks(place, room, self.top.mode)
        if room == GRAPH_SHARDS or (self.top is not None and room in {RANKING_SHARDS, FILTER_SHARDS}):
            raise SnapshotError(
                f"snapshot {self.snapshot} is cut into shards, and {_WHOLE}: compile it in one piece for this"
            )
        for output in outputs:
            if output is not None:
                check_output(output)
        check_apart(self.changes, self.snapshot, self.events, *outputs)


_WHOLE = "who is reached through a graph, or among the best, is known of the whole only"
