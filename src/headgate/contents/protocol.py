"""What the rooms that know no content ask of those that do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.planes import Cells, Planes
    from headgate.core.subscription import Subscription

EVENT_ID, SUBSCRIPTION_ID = "event_id", "subscription_id"
"""The columns of matches."""


class Clause(NamedTuple):
    """A part of a filter that holds or not by itself: a filter in the room's dialect, and what it looks at.

    `names` are the attributes, each once, folded as the room folds them.
    """

    filter: str
    names: tuple[str, ...]


class Verdict(Protocol):
    """Why a filter holds for an event or not."""

    @property
    def matches(self) -> bool:
        """Tell whether it holds."""

    def lines(self) -> list[str]:
        """Say why, clause by clause."""


class Encoded(Protocol):
    """Events in a content room's own form."""

    @property
    def cells(self) -> Cells:
        """Return the codes that planes look at."""


class Sieve(Protocol):
    """Filters of a content room that can be asked one by one; a position is an id less an offset."""

    @property
    def planes(self) -> Planes:
        """Return the filters as bit planes."""

    def encode(self, events: Iterable[Event]) -> Encoded:
        """Encode events."""

    def encode_batch(self, batch: pa.RecordBatch) -> Encoded:
        """Encode an Arrow batch of events."""

    def holds(self, encoded: Any, e: int, positions: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell of some filters whether they hold for event `e` of what `encode` gave."""


PAIRS = 1 << 25
"""Matches of events that are asked about together, in memory, at most: if all hold, these are few events."""


class Portion(NamedTuple):
    """What holds for the events from `begin` to `end`: the rows of events, rising, and the ids of filters."""

    begin: int
    end: int
    row: NDArray[np.int64]
    number: NDArray[np.int64]


class Content(Protocol):
    """Filters of one kind of content, with the answers that every content room gives."""

    @property
    def room_name(self) -> str:
        """Name the kind."""

    @property
    def ids(self) -> Ids:
        """Return the ids of what was built or opened, whatever came and went since."""

    def __len__(self) -> int:
        """Count the subscriptions."""

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted."""

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`."""

    def numbers(
        self, event: Event, count: int | None = None, at_least: int | None = None
    ) -> NDArray[np.int64]:
        """List the first `count` matches from `at_least` on, rising; for ids that are whole numbers."""

    def match_batch(self, batch: pa.RecordBatch, identities: pa.Array[Any] | None = None) -> pa.RecordBatch:
        """Match a batch of events: a column `id` and the attributes in, (event_id, subscription_id) out.

        `identities` stand for the ids. Pairs are in the order of the events.
        """

    def match_events(
        self, events: Sequence[Event], identities: pa.Array[Any] | None = None
    ) -> pa.RecordBatch:
        """Match events given as Python values, many at once."""

    def match_portions(
        self, events: pa.RecordBatch | Sequence[Event], identities: pa.Array[Any], most: int = PAIRS
    ) -> Iterator[pa.RecordBatch]:
        """Match many events in order, so few at a time that no more than `most` pairs can come of them.

        `identities` stand for their ids.
        """

    def portions(self, events: pa.RecordBatch | Sequence[Event], most: int) -> Iterator[Portion]:
        """Do the same for ids that are whole numbers, as numbers."""

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why an event matches a subscription or not."""

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter, in the room's own dialect."""

    def subscribe(self, subscription: Subscription) -> None:
        """Add a subscription."""

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription."""

    def compact(self) -> None:
        """Fold what was subscribed and unsubscribed into what was built."""

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""

    def sieve(self, first: int, size: int) -> Sieve | None:
        """Return the filters for asking one by one, if this room can: their ids are `first` and up.

        What is subscribed or unsubscribed later is not seen by it.
        """


@runtime_checkable
class Binds(Protocol):
    """Filters with variables."""

    def bindings(self, event: Event, identity: Id, limit: int = 1000) -> Any:
        """List the bindings under which a filter holds for an event, at most `limit`."""


@runtime_checkable
class Answers(Protocol):
    """Filters that return parts of an event."""

    def answer(self, event: Event, identity: Id) -> Any:
        """Return what a filter gives for an event; None if it does not hold."""


@runtime_checkable
class Informed(Protocol):
    """What sees events through a taxonomy."""

    @property
    def taxonomy(self) -> Any:
        """Return it."""


class ContentRoom(Protocol):
    """What builds and opens indexes of one kind of content."""

    @property
    def room_name(self) -> str:
        """Name the kind."""

    @property
    def dialect(self) -> str:
        """Return the dialect of what `filter` and `clauses` write."""

    @property
    def always(self) -> str:
        """Return a filter in that dialect which every event matches."""

    def build(self, subscriptions: Iterable[Subscription]) -> Content:
        """Index subscriptions."""

    def open(self, path: Path, *, verify: bool = True) -> Content:
        """Open a snapshot."""

    def clauses(self, text: str, dialect: str) -> tuple[Clause, ...]:
        """Take a filter apart: if it holds, all of its clauses do; refuses a bad filter.

        The converse is true where clauses share nothing but the event: those of records, not the edges of a
        graph pattern, which must hold for the same nodes. Each clause that is written counts, also if it is
        written twice.
        """
