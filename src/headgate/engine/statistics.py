"""Statistics of subscriptions: how often each matches, when it did last, and what it costs to check it.

    counted      events, matches, the last match, and events for which a filter was too much: all of them
    estimated    for how many events a filter was a candidate, and what it took to check it: some events are
                 matched once more for that, and each stands for those between (`counters.Sample`)

What is found goes to a list as it is, and is counted when the list is long, or when somebody looks. That is
what makes it cheap: numbers of filters are counted by the million, and no id is looked up for it.
"""

from __future__ import annotations

import threading
import time
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.live import LiveState
from headgate.contents.protocol import take_of
from headgate.core.ids import Ids
from headgate.core.omission import RenamedOmissions, within
from headgate.engine.answers import ask
from headgate.engine.counters import Counters, Sample, merged, schema_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headgate.contents.live import FrozenBase
    from headgate.contents.portions import Portion
    from headgate.contents.protocol import CheckCosts
    from headgate.core.arrays import Ints
    from headgate.core.event import Event, Id
    from headgate.core.omission import Omission
    from headgate.engine.backend import Backend, Events
    from headgate.engine.question import Question

    Column = pa.Array[Any]

PENDING = 1 << 20
"""Matches that wait to be counted, at most."""

_compute: Any = pc


class _Chunk(NamedTuple):
    """Matches that wait: `numbers` are places among the ids of a base, or without one the ids themselves.

    `rows` are places among `events`.
    """

    base: FrozenBase | None
    events: Column
    rows: Any
    numbers: Any
    moment: int
    cut: int
    """How many changes of subscriptions there had been."""

    def named(self, at: Ints) -> Column:
        """Return the ids of the events of some matches, as text."""
        return self.events.take(self.rows[at]).cast(pa.string())


class _One(NamedTuple):
    """The matches of an event that was asked about by itself, which wait."""

    event: Id | None
    found: list[Any]
    moment: int
    cut: int


class Statistics:
    """Counters of the subscriptions of an engine, or of shards. Any number of threads may count and look.

    >>> from headgate import Engine
    >>> engine = Engine.build([{"id": "s1", "filter": "age > 30"}, {"id": "s2", "filter": "age > 90"}])
    >>> statistics = engine.statistics()
    >>> engine.match({"id": "e1", "age": 35})
    ['s1']
    >>> statistics.table().select(["subscription_id", "events", "matches", "last_event"]).to_pylist()[0]
    {'subscription_id': 's1', 'events': 1, 'matches': 1, 'last_event': 'e1'}

    Of many that are added up, such as those of the parts of a stream, all may go on with the same `samples`.
    """

    def __init__(self, ids: Iterable[Ids], samples: dict[int, Sample] | None = None) -> None:
        self.events = 0
        """Events that were asked about."""
        self.begun = time.time()
        """When counting began, in seconds since 1970."""
        self._parts = [Counters(each) for each in ids]
        self._late: dict[Any, list[Any]] = {}
        """Of subscriptions that came later: since, matches, moment, event, exceeded."""
        self._waiting: list[_Chunk] = []
        self._ones: list[_One] = []
        self._pairs = 0
        self._moment = 0
        self._changes = 0
        self._cuts: dict[Any, int] = {}
        """Subscriptions that were changed while matches waited: older ones are not of theirs."""
        self._samples = {} if samples is None else samples
        # Events since the last measuring are left to whoever measures next.
        self._scaled = samples is None
        self._lock = threading.RLock()

    # Counting

    def match(
        self, backend: Backend, event: Event, ask: Callable[[], list[Any]], *, ranked: bool = False
    ) -> list[Any]:
        """Ask about one event, and count the answer: ids, or if it is ranked what has a `subscription`."""
        left_out: list[Omission] = []
        with RenamedOmissions(_noted(left_out)):
            answer = ask()
        # A copy: the answer is the caller's.
        ids = [getattr(each, "subscription", each) for each in answer] if ranked else answer[:]
        with self._lock:
            self.events += 1
            if ids:
                self._ones.append(_One(event.id, ids, self._now(), self._changes))
                self._wait(len(ids))
        self.exceed(left_out)
        self.measure(backend, [event])
        return answer

    def ask(
        self,
        backend: Backend,
        events: Events,
        ids: Column,
        question: Question,
        most: int,
        threads: int = 1,
    ) -> Iterator[Portion]:
        """Ask about many events, in portions, and count the answers."""
        self.count(len(events))
        left_out: list[Omission] = []
        answers = self.counting(ask(backend, events, ids, question, most, threads), ids)
        yield from within(lambda: RenamedOmissions(_noted(left_out)), answers)
        self.measure(backend, events)
        self.exceed(left_out)

    def count(self, events: int) -> None:
        """Count events that are asked about."""
        with self._lock:
            self.events += events

    def counting(self, answers: Iterable[Portion], names: Column) -> Iterator[Portion]:
        """Count answers as they go by; `names` are the ids of the events."""
        for portion in answers:
            self.add(portion, names)
            yield portion

    def add(self, portion: Portion, names: Column) -> None:
        """Count matches; `names` are the ids of the events."""
        if not len(portion.rows):
            return
        state = portion.state
        chunk: tuple[FrozenBase | None, Any] = (None, portion.ids)
        if isinstance(state, LiveState) and state.in_order(portion.places):
            chunk = (state.base, portion.places)
        base, numbers = chunk
        with self._lock:
            self._add(_Chunk(base, names, portion.rows, numbers, self._now(), self._changes))

    def _now(self) -> int:
        """Return the time in microseconds, which always rises: what was last is known by it."""
        self._moment = max(self._moment + 1, int(time.time() * 1e6))
        return self._moment

    def _add(self, chunk: _Chunk) -> None:
        self._waiting += [*_joined(self._ones), chunk]
        self._ones = []
        self._wait(len(chunk.numbers))

    def _wait(self, pairs: int) -> None:
        self._pairs += pairs
        if self._pairs >= PENDING or len(self._ones) >= PENDING >> 4:
            self._settle()

    def exceed(self, left_out: Iterable[Omission]) -> None:
        """Count events for which filters were too much, each pair once; those of a graph have no owner."""
        with self._lock:
            for identity, _ in dict.fromkeys((each.subscription, each.event) for each in left_out):
                if identity is None:
                    continue
                part, number = self._find(identity)
                if part is None:
                    self._late_one(identity)[4] += 1
                else:
                    part.exceeded[number] += 1

    def measure(self, backend: Backend, events: Events) -> None:
        """Have some of the events checked once more, if it is time to."""
        with self._lock:
            sample = self._samples.setdefault(id(backend), Sample())
            rows, weight = sample.choose(len(events))
        if not len(rows):
            return
        costs = backend.check_costs(take_of(events, rows))
        if costs is not None:
            with self._lock:
                self._cost(costs, weight, sample)

    def _cost(self, costs: CheckCosts, weight: float, sample: Sample) -> None:
        known = np.flatnonzero(costs.candidates >= 0)
        for part in self._parts:
            rows = places = known
            if part.ids is not costs.ids:
                # It was compacted since: look the ids up.
                if part.ids.numbered is not costs.ids.numbered:
                    continue
                here = _compute.index_in(costs.ids.to_arrow().take(known), value_set=part.names)
                rows = known[np.asarray(here.is_valid())]
                places = np.asarray(here.drop_null(), np.int64)
            part.sample = sample
            before = np.maximum(part.candidates[places], 0)
            part.candidates[places] = before + weight * costs.candidates[rows]
            part.work[places] += weight * costs.work[rows]

    # Changes

    def begin(self, identity: Id, *, gone: bool = False) -> None:
        """Count anew for a subscription that has come, or has gone."""
        with self._lock:
            self._changes += 1
            self._cuts[identity] = self._changes
            part, number = self._find(identity)
            if part is not None:
                part.begin(number, self.events, gone=gone)
            elif gone:
                self._late.pop(identity, None)
            else:
                self._late.pop(identity, None)
                self._late_one(identity)

    # Looking

    def table(self) -> pa.Table:
        """Return what was counted until now, by subscription in the order of ids.

        Columns: subscription_id; events that were asked about since it is there; matches; last_match, by the
        clock, and last_event; candidates and work, estimated, NULL if nothing was measured; exceeded.
        """
        with self._lock:
            self._settle()
            tables = [part.table(self.events, scaled=self._scaled) for part in self._parts if len(part.ids)]
            if self._late:
                tables.append(self._late_table())
        if not tables:
            return schema_of(numbered=False).empty_table()
        return merged(tables)

    def _late_table(self) -> pa.Table:
        part = Counters(Ids.of(self._late))
        since, matches, moment, event, exceeded = zip(*map(self._late.__getitem__, part.ids), strict=True)
        part.since[:], part.matches[:], part.moment[:], part.exceeded[:] = since, matches, moment, exceeded
        part.event = pa.array(event, pa.string())
        return part.table(self.events, scaled=False)

    def _find(self, identity: Id) -> tuple[Counters | None, int]:
        for part in self._parts:
            number = part.ids.find(identity)
            if number >= 0:
                return part, number
        return None, -1

    def _late_one(self, identity: Any) -> list[Any]:
        return self._late.setdefault(identity, [self.events, 0, 0, None, 0])

    def _settle(self) -> None:
        """Count what waits."""
        waiting = [*self._waiting, *_joined(self._ones)]
        self._waiting, self._ones, self._pairs = [], [], 0
        by_base: dict[int, list[_Chunk]] = {}
        for chunk in waiting:
            by_base.setdefault(id(chunk.base) if chunk.base is not None else 0, []).append(chunk)
        for chunks in by_base.values():
            self._settle_some(chunks)
        self._cuts = {}

    def _settle_some(self, chunks: list[_Chunk]) -> None:
        base = chunks[0].base
        if base is None:
            kind = next((pa.string() for each in chunks if _is_text(each.numbers)), pa.int64())
            whole = pa.concat_arrays([pa.array(each.numbers, kind) for each in chunks]).dictionary_encode()
            names, numbers = whole.dictionary, np.asarray(whole.indices)
        else:
            names, numbers = base.id_array, np.concatenate([each.numbers for each in chunks])
        ends = np.cumsum([len(each.numbers) for each in chunks])
        at = np.arange(len(numbers))
        if self._cuts:
            cut = self._cuts_of(names)
            kept = np.repeat([each.cut for each in chunks], np.diff(ends, prepend=0)) >= cut[numbers]
            at, numbers = at[kept], numbers[kept]
        counts = np.bincount(numbers, minlength=len(names))
        last = np.zeros(len(names), np.int64)
        # Of those with the same number the last one stays.
        last[numbers] = at
        places = np.flatnonzero(counts)
        counts, last = counts[places], last[places]
        home = np.searchsorted(ends, last, side="right")
        moments = np.array([each.moment for each in chunks], np.int64)[home]
        events = _events_of(chunks, ends, home, last)
        part = next((each for each in self._parts if base is not None and each.ids is base.ids), None)
        if part is not None:
            part.add(places, counts, moments, events)
        else:
            self._add_by_id(names.take(places), counts, moments, events)

    def _cuts_of(self, names: Column) -> Ints:
        """Return for each id how many changes there had been when it was changed last."""
        cut = np.zeros(len(names), np.int64)
        changed = pa.array(list(self._cuts), names.type)
        here = _compute.index_in(changed, value_set=names)
        cuts = np.array(list(self._cuts.values()), np.int64)[np.asarray(here.is_valid())]
        cut[np.asarray(here.drop_null(), np.int64)] = cuts
        return cut

    def _add_by_id(self, names: Column, counts: Ints, moments: Ints, events: Column) -> None:
        """Add matches of some ids, each once."""
        left = np.ones(len(names), np.bool_)
        for part in self._parts:
            if not len(part.ids) or part.ids.numbered is not pa.types.is_integer(names.type):
                continue
            here = _compute.index_in(names, value_set=part.names)
            there = np.asarray(here.is_valid()) & left
            if there.any():
                mask = pa.array(there)
                part.add(
                    np.asarray(here.filter(mask), np.int64),
                    counts[there],
                    moments[there],
                    events.filter(mask),
                )
                left &= ~there
        rest = pa.array(left)
        for identity, count, moment, event in zip(
            names.filter(rest).to_pylist(),
            counts[left].tolist(),
            moments[left].tolist(),
            events.filter(rest).to_pylist(),
            strict=True,
        ):
            one = self._late_one(identity)
            one[1] += count
            if moment > one[2]:
                one[2:4] = moment, event


def _is_text(numbers: Any) -> bool:
    if isinstance(numbers, list):
        return isinstance(numbers[0], str)
    return not pa.types.is_integer(numbers.type)


def _joined(ones: list[_One]) -> Iterator[_Chunk]:
    """Put events together that were asked about one by one, as long as no subscription changed."""
    for _, group in groupby(ones, key=attrgetter("cut")):
        some = list(group)
        events = pa.array([None if one.event is None else str(one.event) for one in some], pa.string())
        rows = np.repeat(np.arange(len(some)), [len(one.found) for one in some])
        numbers = [identity for one in some for identity in one.found]
        yield _Chunk(None, events, rows, numbers, some[-1].moment, some[-1].cut)


def _events_of(chunks: list[_Chunk], ends: Ints, home: Ints, last: Ints) -> Column:
    """Return the ids of the events at some places of chunks one behind another, as text."""
    order = np.argsort(home, kind="stable")
    begins = np.searchsorted(home[order], np.arange(len(chunks) + 1))
    first = np.concatenate([np.zeros(1, np.int64), ends])
    parts: list[Column] = [pa.array([], pa.string())]
    for number, chunk in enumerate(chunks):
        some = last[order[begins[number] : begins[number + 1]]]
        if len(some):
            parts.append(chunk.named(some - first[number]))
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    return pa.concat_arrays(parts).take(back)


def _noted(left_out: list[Omission]) -> Callable[[Omission], Omission]:
    """Note what is told of filters that are left out, and tell it on."""

    def note(omission: Omission) -> Omission:
        left_out.append(omission)
        return omission

    return note
