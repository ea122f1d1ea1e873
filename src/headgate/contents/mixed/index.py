"""Filters of several kinds: one index for each kind, asked as one.

        event ──► its content type ──┬──► records ──┐
                                     ├──► RDF       ├──► matches, merged
                                     └──► XML     ──┘

A subscription is in one of the indexes; one that every event matches is in all of them. Whoever asks sees one
content, as `contents/protocol.py` describes it, so graphs and rankings know of no mixture.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents import protocol
from headgate.contents.mixed.kind import ALWAYS, read_dialect, seen_by, with_dialect
from headgate.contents.portions import Asks, Portion, once
from headgate.contents.results import NOTHING, Gives
from headgate.core.arguments import check_like
from headgate.core.event import CONTENT_TYPE, DATA, JSON, media_type
from headgate.core.ids import Ids
from headgate.core.omission import RenamedOmissions
from headgate.core.snapshot import write_snapshot
from headgate.core.subscription import MIXED, Subscription
from headgate.core.text.wording import Worded
from headgate.core.values import find_name
from headgate.errors import SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from headgate.contents.kind import Kind
    from headgate.contents.mixed.kind import MixedKind
    from headgate.contents.protocol import Content, ContentRoom, Verdict
    from headgate.contents.results import ResultRows
    from headgate.core.arrays import Ints
    from headgate.core.event import Event, Id
    from headgate.core.omission import Omission
    from headgate.errors import EventError

    Column = pa.Array[Any]

# The overloads of Arrow's functions are about types that are known before; these are not.
_compute: Any = pc


class Member(NamedTuple):
    """The filters of one kind."""

    kind: Kind
    room: ContentRoom
    content: Content


@dataclass(frozen=True)
class OtherKind(Worded):
    """Why a filter does not hold for an event: it looks at another kind of content."""

    title: str
    content_type: str
    matches: bool = False

    def lines(self) -> list[str]:
        """Say it for people."""
        return [f"no match: the filter looks at {self.title}, and the event is {self.content_type}"]


class _Group(NamedTuple):
    """Events of one content type among others: their rows, and the events themselves, or their batch."""

    content_type: str
    rows: Column
    events: Any


class MixedIndex(Asks):
    """Filters of several kinds: match, and subscribe and unsubscribe while others match.

    >>> from headgate.contents.registry import kind_of
    >>> from headgate import Event, Subscription
    >>> room = kind_of("records+xml").room()
    >>> index = room.build([Subscription("s1", "age > 30"), Subscription("s2", "//a", "xpath")])
    >>> index.match(Event("e1", {"age": 35})), index.match(Event("e2", "<a/>", content_type="xml"))
    (['s1'], ['s2'])
    >>> index.filter("s2")
    'xpath: //a'
    """

    def __init__(self, kind: MixedKind, members: Iterable[Member]) -> None:
        self.kind = kind
        self.members = tuple(members)
        self._writing = threading.RLock()
        self._numbered = next((each.content.ids.numbered for each in self.members if len(each.content)), None)
        self._merged_ids: tuple[list[Ids], Ids] | None = None

    @property
    def room_name(self) -> str:
        """Name the kinds."""
        return self.kind.name

    # What is here

    def __len__(self) -> int:
        """Count the subscriptions."""
        repeated = len(self._always) * (len(self.members) - 1)
        return sum(len(member.content) for member in self.members) - repeated

    @cached_property
    def _always(self) -> set[Id]:
        """The ids that are in every index: few, and found once."""
        first, *others = (
            each.content.ids.to_arrow() for each in sorted(self.members, key=lambda m: len(m.content))
        )
        for other in others:
            if not len(first) or not len(other):
                return set()
            first = first.filter(_compute.is_in(first, value_set=other))
        return {each for each in first.to_pylist() if each is not None}

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a subscription of this id."""
        return any(identity in member.content for member in self.members)

    @property
    def ids(self) -> Ids:
        """Return the ids, in order."""
        parts = [member.content.ids for member in self.members if len(member.content)]
        if len(parts) < 2:
            return parts[0] if parts else Ids.of(())
        kept = self._merged_ids
        if kept is None or any(one is not other for one, other in zip(kept[0], parts, strict=False)):
            whole = _compute.unique(pa.concat_arrays([each.to_arrow() for each in parts]))
            kept = self._merged_ids = parts, Ids.from_arrow(whole.sort())
        return kept[1]

    @property
    def attributes(self) -> tuple[str, ...]:
        """List the attributes that filters name."""
        names = {name for member in self.members for name in getattr(member.content, "attributes", ())}
        return tuple(sorted(names))

    @property
    def taxonomy(self) -> Any:
        """Return the taxonomy of those that have one; None if none does."""
        taxonomies = (getattr(member.content, "taxonomy", None) for member in self.members)
        return next((each for each in taxonomies if each is not None), None)

    def member_of(self, identity: Id) -> Member:
        """Return the filters among which a subscription is; refuses an id that is not here."""
        self._check_type(identity)
        for member in self.members:
            if identity in member.content:
                return member
        raise SubscriptionError(f"there is no subscription {identity!r} here")

    def _check_type(self, identity: Id) -> None:
        if self._numbered is not None:
            check_like(identity, numbered=self._numbered)

    def filter(self, identity: Id) -> str:
        """Return the text of a subscription's filter, with its dialect."""
        member = self.member_of(identity)
        if identity in self._always:
            return ALWAYS
        return with_dialect(member.content.filter(identity), member.room.dialect)

    # Asking about one event

    def _asked(self, event: Event) -> list[tuple[Content, Event]]:
        """List the filters of the event's kinds, with the event as each of them sees it."""
        some = map(self.members.__getitem__, self.kind.places_of(event.content_type, event.id))
        return [(each.content, seen_by(each.kind, event)) for each in some]

    def match(self, event: Event) -> list[Id]:
        """List the ids of the matching subscriptions, sorted."""
        asked = self._asked(event)
        if len(asked) == 1:
            return asked[0][0].match(asked[0][1])
        ids: set[Any] = {each for index, seen in asked for each in index.match(seen)}
        return sorted(ids)

    def next(self, event: Event, at_least: Id) -> Id | None:
        """Find the first matching id that is at least `at_least`."""
        firsts: list[Any] = [index.next(seen, at_least) for index, seen in self._asked(event)]
        return min((each for each in firsts if each is not None), default=None)

    def numbers(self, event: Event, count: int | None = None, at_least: int | None = None) -> Ints:
        """List the first `count` matches from `at_least` on, rising; for ids that are whole numbers."""
        numbers = [index.numbers(seen, count, at_least) for index, seen in self._asked(event)]
        return numbers[0] if len(numbers) == 1 else np.unique(np.concatenate(numbers))[:count]

    def explain(self, event: Event, identity: Id) -> Verdict:
        """Say why an event matches a subscription or not."""
        asked = self._asked(event)
        member = self.member_of(identity)
        for index, seen in asked:
            if identity in index:
                return index.explain(seen, identity)
        return OtherKind(member.kind.title, event.content_type)

    def bindings(self, event: Event, identity: Id, limit: int = 1000) -> Any:
        """List the bindings under which a filter holds; none for events of another kind."""
        member, seen = self._member_and_event(event, identity)
        if not isinstance(member.content, protocol.Binds):
            raise SubscriptionError("this filter binds no variables: those of RDF do")
        return member.kind.no_result() if seen is None else member.content.bindings(seen, identity, limit)

    def answer(self, event: Event, identity: Id) -> Any:
        """Return what a filter gives for an event; None if it does not hold."""
        member, seen = self._member_and_event(event, identity)
        if not isinstance(member.content, protocol.Answers):
            raise SubscriptionError("this filter returns no nodes: those of XML do")
        return member.kind.no_result() if seen is None else member.content.answer(seen, identity)

    def answers(self, event: Event, refused: dict[Id, str]) -> dict[Id, Any]:
        """Return what all filters give that hold; of those that give too much, the reason in `refused`."""
        answers: dict[Id, Any] = {}
        for index, seen in self._asked(event):
            if isinstance(index, protocol.Answers):
                answers |= index.answers(seen, refused)
        return answers

    def results(self, event: Event, ids: Sequence[Id], limit: int) -> list[ResultRows | EventError | None]:
        """Return what some filters give for an event; nothing if it is of another kind."""
        results: list[ResultRows | EventError | None] = [NOTHING if each in self else None for each in ids]
        left = list(range(len(ids)))
        for index, seen in self._asked(event):
            here = [row for row in left if ids[row] in index]
            left = [row for row in left if ids[row] not in index]
            if isinstance(index, Gives) and here:
                answers = index.results(seen, [ids[row] for row in here], limit)
                for row, answer in zip(here, answers, strict=True):
                    results[row] = answer
        return results

    def _member_and_event(self, event: Event, identity: Id) -> tuple[Member, Event | None]:
        """Return the filters among which a subscription is, and the event as they see it, if they do."""
        asked, member = self._asked(event), self.member_of(identity)
        return member, next((seen for index, seen in asked if index is member.content), None)

    # Asking about many

    @property
    def numbered(self) -> bool:
        """Tell whether ids are whole numbers rather than text."""
        return bool(self._numbered)

    def ask(
        self, events: pa.RecordBatch | Sequence[Event], ids: Column, most: int = protocol.PAIRS
    ) -> Iterator[Portion]:
        """Match events in order, so few at a time that no more than `most` pairs can come of them.

        A row with a content type in `datacontenttype` and text in `data` is a document; all others are
        records.
        """
        find = _batch_groups if isinstance(events, pa.RecordBatch) else _event_groups
        for begin, end in self._steps(len(events), most):
            own = ids.slice(begin, end - begin)
            groups = once(protocol.slice_of(events, begin, end), find)
            asked = [
                (group, [self.members[number] for number in self._places(group, own)]) for group in groups
            ]
            if len(asked) == 1 and len(asked[0][1]) == 1:
                ((group, (member,)),) = asked
                for portion in member.content.ask(group.events, own, most):
                    yield portion.moved(begin)
            else:
                yield self._merged(asked, own)._replace(begin=0, end=end - begin).moved(begin)

    def _places(self, group: _Group, identities: Column) -> Sequence[int]:
        first: Any = identities[group.rows[0].as_py()].as_py()
        return self.kind.places_of(group.content_type, first)

    def _merged(self, asked: Sequence[tuple[_Group, Sequence[Member]]], ids: Column) -> Portion:
        """Put the matches of groups into the order of the events; an event may be in several of them."""
        kind: pa.DataType = pa.int64() if self._numbered else pa.string()
        rows: list[Ints] = [np.zeros(0, np.int64)]
        columns: list[Column] = [pa.array([], kind)]
        with RenamedOmissions(partial(_renamed, ids)):
            for group, members in asked:
                at = np.asarray(group.rows)
                for each in members:
                    for portion in each.content.ask(_all_seen_by(each.kind, group.events), group.rows):
                        rows.append(at[portion.rows])
                        columns.append(portion.ids.cast(kind))
        row, matched = np.concatenate(rows), pa.concat_arrays(columns)
        if any(len(members) > 1 for _, members in asked):
            pairs = pa.table([row, matched], names=[protocol.EVENT_ID, protocol.SUBSCRIPTION_ID])
            # What every event matches is in each of the indexes.
            pairs = pairs.group_by([protocol.EVENT_ID, protocol.SUBSCRIPTION_ID]).aggregate([])
            pairs = pairs.sort_by([(protocol.EVENT_ID, "ascending"), (protocol.SUBSCRIPTION_ID, "ascending")])
            return Portion.of(pairs[protocol.EVENT_ID].to_numpy(), _flat(pairs[protocol.SUBSCRIPTION_ID]))
        order = np.argsort(row, kind="stable")
        return Portion.of(row[order], matched.take(order), ordered=False)

    def check_costs(self, events: pa.RecordBatch | Sequence[Event]) -> protocol.CheckCosts:
        """Match some events again, and count what is checked; filters that came lately are left out."""
        find = _batch_groups if isinstance(events, pa.RecordBatch) else _event_groups
        tables = []
        for group in once(events, find):
            for number in self.kind.places_of(group.content_type, ""):
                content = self.members[number].content
                if isinstance(content, protocol.Measures):
                    costs = content.check_costs(_all_seen_by(self.members[number].kind, group.events))
                    columns = [costs.ids.to_arrow(), pa.array(costs.candidates), pa.array(costs.work)]
                    # What is in this index no more may be in another.
                    here = pa.array(costs.candidates >= 0)
                    tables.append(pa.table(columns, names=[*protocol.CheckCosts._fields]).filter(here))
        if not tables:
            return protocol.CheckCosts(Ids.of(()), np.zeros(0, np.int64), np.zeros(0, np.int64))
        # Of one kind there may be events of several content types.
        first, *counts = protocol.CheckCosts._fields
        whole = pa.concat_tables(tables).group_by(first).aggregate([(name, "sum") for name in counts])
        whole = whole.sort_by(first)
        candidates, work = (np.asarray(whole[f"{name}_sum"], np.int64) for name in counts)
        return protocol.CheckCosts(Ids.from_arrow(_flat(whole[first])), candidates, work)

    def filter_planes(self, first: int, size: int) -> None:
        """Have none: not all kinds have one."""
        del first, size

    # Changing

    def prepare(self, subscription: Subscription) -> list[tuple[int, Any]]:
        """Compile a filter for `subscribe`: gives the places of its kinds, and what each made of it."""
        if subscription.filter == ALWAYS and subscription.dialect == MIXED:
            filters = {
                place: (each.room.always, each.room.dialect) for place, each in enumerate(self.members)
            }
        else:
            text, dialect = read_dialect(subscription.filter, subscription.dialect)
            filters = {self.kind.place_of(dialect): (text, dialect)}
        return [
            (place, self.members[place].content.prepare(Subscription(subscription.id, *own)))
            for place, own in filters.items()
        ]

    def subscribe(self, subscription: Subscription, prepared: Any = None) -> None:
        """Add a subscription; refuses a bad filter, and an id that is here, of whatever kind."""
        identity, prepared = subscription.id, prepared or self.prepare(subscription)
        with self._writing:
            self._check_type(identity)
            if identity in self:
                raise SubscriptionError(f"id {identity!r} is subscribed already: unsubscribe it first")
            for place, compiled in prepared:
                self.members[place].content.subscribe(subscription, compiled)
            if len(prepared) > 1:
                self._always.add(identity)
            self._numbered = isinstance(identity, int)

    def unsubscribe(self, identity: Id) -> None:
        """Remove a subscription; refuses an id that is not here."""
        with self._writing:
            self.member_of(identity)
            for member in self.members:
                if identity in member.content:
                    member.content.unsubscribe(identity)
            self._always.discard(identity)

    def compact(self) -> None:
        """Fold what was subscribed and unsubscribed into what was built."""
        for member in self.members:
            member.content.compact()

    def save(self, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot: one for each kind inside it; `source` says what it was built from."""
        with self._writing:
            write_snapshot(
                path,
                self.kind.name,
                {},
                counts={"subscriptions": len(self)},
                about={"source": dict(source or {})},
                inside={member.kind.name: member.content.save for member in self.members},
            )


def _flat(column: pa.ChunkedArray[Any]) -> Column:
    whole: Any = column.combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _all_seen_by(kind: Kind, events: Any) -> Any:
    return events if isinstance(events, pa.RecordBatch) else [seen_by(kind, each) for each in events]


def _renamed(identities: Column, omission: Omission) -> Omission:
    return omission._replace(event=identities[int(omission.event or 0)].as_py())


def _event_groups(events: Sequence[Event]) -> list[_Group]:
    """Part events by content type, in the order in which the types come."""
    return [*_groups([event.content_type for event in events], events)]


def _batch_groups(batch: pa.RecordBatch) -> list[_Group]:
    """Part the rows of a batch by content type; those that are no documents are records."""
    names = batch.schema.names
    places = [find_name((name,), names) for name in (CONTENT_TYPE, DATA)]
    types = [JSON] * batch.num_rows
    if None not in places:
        columns = (batch.column(column).to_pylist() for column in places if column is not None)
        types = [_type(named, data) for named, data in zip(*columns, strict=True)]
    return [*_groups(types, batch)]


def _type(named: object, data: object) -> str:
    content_type = media_type(named) if isinstance(named, str) else None
    return content_type if content_type is not None and isinstance(data, str | bytes) else JSON


def _groups(types: Sequence[str], events: Any) -> Iterator[_Group]:
    distinct = dict.fromkeys(types)
    if len(distinct) == 1:
        yield _Group(types[0], pa.array(np.arange(len(types))), events)
        return
    coded = np.array([*map({each: code for code, each in enumerate(distinct)}.__getitem__, types)], np.int64)
    for code, each in enumerate(distinct):
        rows = np.flatnonzero(coded == code)
        yield _Group(each, pa.array(rows), protocol.take_of(events, rows))
