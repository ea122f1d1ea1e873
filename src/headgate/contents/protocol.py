"""What the rooms that know no content ask of those that do: to match, and to compile tables of filters.

text ──► FilterWriter.add ──► bytes ──► Contents.file ──► CompiledFilters.take ──► index
on a worker                    on the driver, or on the worker of a shard
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

from headgate.core.rooms import CLAUSES, FILTERS
from headgate.core.snapshot import is_snapshot, manifest_of, room_of
from headgate.core.versions.current import resolved

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.contents.portions import Portion
    from headgate.core.arrays import Bools, Ints, Ints32
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.planes import Cells, Planes
    from headgate.core.subscription import Subscription
    from headgate.core.values import Path as Attribute


Keys: TypeAlias = "frozenset[str] | None"
"""What a filter demands of events: one that matches has one of these. None if it is open."""


EVENT_ID, SUBSCRIPTION_ID, SCORE, RANK = "event_id", "subscription_id", "score", "rank"
"""The columns of matches, and of the best."""


EVERY_EVENT = "every event"
"""Said of a filter that nothing leads to: it is looked at for each event."""


@dataclass(frozen=True)
class Costs:
    """What a filter takes of an index.

    access      how events come to its parts: by a `value`, a `range`, an `element` of an array, `letters` of
                a text, a `pair` of these, or by `none`
    indexed     what of it leads there: an attribute, or a range, elements or letters of one; if it is
                checked for every event, what would, but for the rest of it
    verified    what is checked for the events that come, because what leads there does not decide it
    computed    what is computed for it, once for each event
    shared      how many of these other filters have as well; None if no other was looked at
    every_event whether it is checked for every event
    """

    access: tuple[str, ...]
    indexed: tuple[str, ...]
    verified: tuple[str, ...]
    computed: tuple[str, ...]
    shared: int | None
    every_event: bool

    def lines(self, indexed_by: str, indexed: Sequence[str], verified: Sequence[str]) -> list[str]:
        """Say it for people, with the predicates that are indexed and those that are verified.

        >>> costs = Costs(("value",), ("a",), ("b * 2",), ("b * 2",), 0, every_event=False)
        >>> costs.lines("a", ["a = 1"], ["b * 2 > 5"])
        ['indexed by a: a = 1', 'verified: b * 2 > 5', 'computed once an event: b * 2']
        """
        listed = ", ".join(indexed)
        if self.every_event:
            part = f"only in part, {listed}" if listed else "by nothing"
            lines = [f"indexed {part}: it is checked for every event"]
        else:
            lines = [f"indexed by {indexed_by}: {listed}"] if listed else []
        lines += [f"verified: {', '.join(verified)}"] if verified else []
        return lines + ([f"computed once an event: {', '.join(self.computed)}"] if self.computed else [])

    def unled(self) -> Costs:
        """Return what it takes where no index leads to the filter: all of it is verified.

        >>> Costs(("range",), ("range of a",), ("a", "b"), (), 0, every_event=False).unled().verified
        ('a', 'b')
        """
        names = (each.removeprefix("range of ") for each in (*self.indexed, *self.verified))
        return replace(self, access=("none",), indexed=(), verified=tuple(dict.fromkeys(names)))


class Access(NamedTuple):
    """How events come to a filter: by what, and how many of some events; and what is odd about the filter."""

    by: str
    reached: int | None = None
    note: str | None = None
    costs: Costs | None = None


class Clause(NamedTuple):
    """A part of a filter that holds or not by itself: a filter in the room's dialect, and what it looks at.

    `names` are the attributes, each once, folded as the room folds them.
    """

    filter: str
    names: tuple[str, ...]


class ClauseColumns(NamedTuple):
    """Filters that were taken apart together: their places, and their clauses, one filter after another.

    All have as many clauses; `names` are the attributes that each clause looks at.
    """

    rows: Ints
    names: tuple[tuple[str, ...], ...]
    texts: TextPool


class CodedClauses(Protocol):
    """Clauses that are sets of codes: an event has one code on each line.

    coded[c]             whether clause c is such a clause
    line, low, high      its intervals are those from start[c] up to start[c + 1]: an event's code on that
                         line is between both ends, which are in
    part                 of an interval: 0, 1 …, rising in a clause, which holds if an interval of each of its
                         parts does; in a part they are by line, then rising, and those of a line disjoint
    """

    coded: Bools
    start: Ints
    part: Ints32
    line: Ints32
    low: Ints32
    high: Ints32

    @property
    def coder(self) -> EventCoder:
        """Return what finds the codes of events."""


class EventCoder(Protocol):
    """What finds the codes of events on lines."""

    @property
    def lines(self) -> int:
        """Count the lines."""

    def codes(self, event: Event) -> Ints32:
        """Return the code of an event on each line."""

    def many_codes(self, events: pa.RecordBatch | Sequence[Event]) -> Ints32:
        """Return the codes of many events, one row each."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays, for a snapshot."""


class Verdict(Protocol):
    """Why a filter holds for an event or not."""

    @property
    def matches(self) -> bool:
        """Tell whether it holds."""

    def lines(self) -> list[str]:
        """Say why, clause by clause."""


@runtime_checkable
class TellsIndex(Protocol):
    """A verdict that says also what the index does for the filter."""

    def alone(self) -> Verdict:
        """Return it without that."""


def alone(verdict: Verdict) -> Verdict:
    """Return why a filter holds, without what the index does: for one that is a part of something larger."""
    return verdict.alone() if isinstance(verdict, TellsIndex) else verdict


class Encoded(Protocol):
    """Events in a content room's own form."""

    @property
    def cells(self) -> Cells:
        """Return the codes that planes look at."""


class FilterPlanes(Protocol):
    """Filters of a content room that can be asked one by one; a position is an id less an offset."""

    @property
    def planes(self) -> Planes:
        """Return the filters as bit planes."""

    def encode(self, events: Iterable[Event]) -> Encoded:
        """Encode events."""

    def encode_batch(self, batch: pa.RecordBatch) -> Encoded:
        """Encode an Arrow batch of events."""

    def holds(self, encoded: Any, e: int, positions: Ints) -> Bools:
        """Tell of some filters whether they hold for event `e` of what `encode` gave."""


PAIRS = 1 << 25
"""Matches of events that are asked about together, in memory, at most: if all hold, these are few events."""


def take_of(events: Any, rows: Ints) -> Any:
    """Pick events by their rows."""
    return events.take(rows) if hasattr(events, "take") else [events[row] for row in rows.tolist()]


def slice_of(events: Any, begin: int, end: int) -> Any:
    """Take events from one to another; all of them are the same ones, not a copy."""
    return events if begin == 0 and end >= len(events) else events[begin:end]


class CheckCosts(NamedTuple):
    """What it took to check filters for some events, by filter: `ids` are theirs.

    `candidates` counts the events for which a filter had to be checked, `work` what that took: words of the
    index that were read, letters that were searched, steps of joins. A filter that is there no more has -1.
    """

    ids: Ids
    candidates: Ints
    work: Ints


class Content(Protocol):
    """Filters of a kind of content, or of several as one, with the answers that every content room gives."""

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

    def numbers(self, event: Event, count: int | None = None, at_least: int | None = None) -> Ints:
        """List the first `count` matches from `at_least` on, rising; for ids that are whole numbers."""

    @property
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text."""

    def ask(
        self, events: pa.RecordBatch | Sequence[Event], ids: pa.Array[Any], most: int = PAIRS
    ) -> Iterator[Portion]:
        """Match events in order, so few at a time that no more than `most` pairs can come of them.

        They are told of by their `ids`. A batch has a column `id`, and attributes or documents.
        """

    def match_batch(
        self, events: pa.RecordBatch | Sequence[Event], identities: pa.Array[Any] | None = None
    ) -> pa.RecordBatch:
        """Match events: (event_id, subscription_id) out, in their order; `identities` stand for their ids."""

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why an event matches a subscription or not."""

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter, in the room's own dialect."""

    def prepare(self, subscription: Subscription) -> Any:
        """Compile a filter for `subscribe`, or refuse it; nothing is changed."""

    def subscribe(self, subscription: Subscription, prepared: Any = None) -> None:
        """Add a subscription; `prepared` is what `prepare` gave of it, if it was asked."""

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription."""

    def compact(self) -> None:
        """Fold what was subscribed and unsubscribed into what was built."""

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""

    def filter_planes(self, first: int, size: int) -> FilterPlanes | None:
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

    def answers(self, event: Event, refused: dict[Id, str]) -> dict[Id, Any]:
        """Return what all filters give that hold; of those that give too much, the reason in `refused`."""


@runtime_checkable
class FindsFirst(Protocol):
    """Filters of which the first matches of many events are found without the others."""

    def first_numbers(self, events: pa.RecordBatch | Sequence[Event], count: int) -> tuple[Ints, Ints]:
        """List the first `count` matches of each event, where ids are whole numbers.

        Returns places of events, rising, and the matches, rising for each.
        """


@runtime_checkable
class TellsAccess(Protocol):
    """Filters among which others may come."""

    def access(self, texts: Sequence[str], events: Sequence[Event] = ()) -> list[Access]:
        """Say by what events come to filters among those that are here, and how many of some events do."""


@runtime_checkable
class Measures(Protocol):
    """Filters that can tell what it takes to check them."""

    def check_costs(self, events: pa.RecordBatch | Sequence[Event]) -> CheckCosts:
        """Match some events again, and count what is checked; filters that came lately are left out."""


@runtime_checkable
class TaxonomyAware(Protocol):
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


@runtime_checkable
class CodesClauses(Protocol):
    """A room whose clauses may be sets of codes, and whose filters may be taken apart together."""

    def clause_columns(self, texts: TextPool) -> list[ClauseColumns]:
        """Take apart filters in the room's own dialect that are alike; the others are left out."""

    def compiled_clauses(self, texts: TextPool) -> CompiledFilters:
        """Compile clauses in the room's own dialect."""

    def coded_clauses(self, compiled: Any) -> CodedClauses:
        """Find the codes of clauses that were compiled."""

    def event_coder(self, arrays: Mapping[str, NDArray[Any]]) -> EventCoder:
        """Read what `EventCoder.to_arrays` gave."""


class FilterWriter(Protocol):
    """Compiles filters one after another; what it has made goes to the driver as bytes."""

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it in the kind's own dialect; refuses a bad one."""

    def to_bytes(self) -> bytes:
        """Return all that was added."""


class Writers(Protocol):
    """What workers are given: small, and sent to them with every task."""

    @property
    def dialect(self) -> str:
        """Return the kind's own dialect."""

    def writer(self, *, checked: bool = True) -> FilterWriter:
        """Begin; `checked` is for filters as people wrote them, and not for clauses of these."""

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter in the kind's own dialect apart."""


class CompiledFilters(Protocol):
    """Compiled filters, by number."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """List the attributes that they name; patterns over documents name none."""

    def take(self, order: Ints) -> CompiledFilters:
        """Pick filters."""

    def with_filter(self, text: str) -> CompiledFilters:
        """Append a filter in the kind's own dialect."""

    def index(self, ids: Ids, texts: TextPool) -> Content:
        """Index them, in the order of their ids."""


class Finder(Protocol):
    """Finds what filters demand of events. Small, and sent to workers."""

    @property
    def demands(self) -> bool:
        """Tell whether an event must have all keys of a filter, so that one of them is enough to route by."""

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of filters as a writer has written them."""

    def of_compiled(self, compiled_filters: Any) -> list[Keys]:
        """Find the keys of filters that were filed."""


class SnapshotCounts(NamedTuple):
    """What a snapshot holds besides subscriptions; one of shards, what they hold together."""

    counts: dict[str, int]
    sentence: str


class Contents(ContentRoom, Protocol):
    """A room, as the driver sees it while a table is compiled."""

    @property
    def writers(self) -> Writers:
        """Return what workers need."""

    def file(self, parts: Sequence[memoryview]) -> tuple[CompiledFilters, Ints]:
        """Lay what writers made one behind another; returns it, and how many filters each part has."""

    def finder(self, path: Attribute | None) -> Finder:
        """Return what finds the keys of filters: of rows, the values of the attribute `path`."""

    def counts(self, snapshot: Path) -> SnapshotCounts | None:
        """Count what a snapshot holds; none if its attributes say it."""


def about_filters(path: Path, content: str) -> Mapping[str, Any]:
    """Return what a snapshot notes about the filters of a kind, wherever they are; nothing without any."""
    clauses = resolved(path) / CLAUSES
    places = filters_in(clauses if is_snapshot(clauses) else path, content)
    return manifest_of(places[0])["about"] if places else {}


def filters_in(snapshot: Path, content: str) -> list[Path]:
    """List the snapshots of a kind's filters in one: itself, that inside, or those in its shards."""
    snapshot = resolved(snapshot)
    if room_of(snapshot) == content:
        return [snapshot]
    if is_snapshot(snapshot / content):
        return [snapshot / content]
    shards = [path for path in sorted(snapshot.glob("shard-*")) if is_snapshot(path)]
    return [each for path in shards or [snapshot / FILTERS] for each in filters_in(path, content)]
