"""Engines that workers make for themselves, without a file: of one filter, or of a snapshot with changes.

What they are made of is sent to them, so that they can be asked whenever a DataFrame is.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.contents.registry import room_at, room_of_content
from headgate.core.subscription import Subscription
from headgate.engine.filters import PlainFilters
from headgate.runtime.engines import ShardEngines
from headgate.runtime.shards import shard_places
from headgate.runtime.targets import opened_as

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headgate.backtest.one_filter import Pattern
    from headgate.runtime.operations import Change
    from headgate.runtime.targets import Target

NAME = "the filter"
"""What one filter is called where it would have an id."""


# Compared by identity: a taxonomy cannot be compared otherwise, and a task is sent one filter.
@dataclass(frozen=True, eq=False)
class FilterEngine:
    """An engine of one filter."""

    pattern: Pattern
    place: str = NAME

    def open(self) -> ShardEngines:
        """Index the filter."""
        text, content, wanted = self.pattern
        room = room_of_content(content, wanted)
        return ShardEngines.of(PlainFilters(room.build([Subscription(NAME, text, wanted.dialect)]), room))


@dataclass(frozen=True)
class FewEngine:
    """An engine of some subscriptions, that understands them as a snapshot does."""

    place: str
    digest: str
    subscriptions: bytes

    @classmethod
    def of(cls, target: Target, subscriptions: Sequence[Subscription]) -> FewEngine | None:
        """Make one ready to be sent; None if there are no subscriptions."""
        return cls(target.place, target.digest, pickle.dumps(subscriptions)) if subscriptions else None

    def open(self) -> ShardEngines:
        """Index the subscriptions."""
        return opened_as(self.place, self.digest, self._build)

    def _build(self, place: Path) -> ShardEngines:
        room = room_at(shard_places(place)[0])
        # The driver wrote it, as all of a task.
        given: list[Subscription] = pickle.loads(self.subscriptions)
        return ShardEngines.of(PlainFilters(room.build(given), room))


@dataclass(frozen=True)
class ChangedEngine:
    """A snapshot in one piece, with changes that it takes."""

    place: str
    digest: str
    changes: bytes

    @classmethod
    def of(cls, target: Target, changes: Sequence[Change]) -> ChangedEngine:
        """Make one ready to be sent."""
        return cls(target.place, target.digest, pickle.dumps(list(changes)))

    def open(self) -> ShardEngines:
        """Open the snapshot, and do the changes."""
        engines = opened_as(self.place, self.digest, lambda place: ShardEngines.open(place, verify=False))
        for change in pickle.loads(self.changes):
            engines.apply(change)
        return engines
