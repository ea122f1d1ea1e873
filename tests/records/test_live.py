"""A running index: subscribe and unsubscribe, while others match."""

from __future__ import annotations

import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.errors import SubscriptionError
from headgate.records.index.index import RecordIndex
from tests.records.changes import after, assert_same, batch_of, pairs, rebuilt
from tests.records.crowd import check, holding, scaled, walk
from tests.records.random_filters import random_event, random_filter
from tests.seeds import JIT, examples, share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.core.event import Id

seeds = st.randoms(use_true_random=False)


class Driver:
    """Makes random changes to an index and to a model of it."""

    def __init__(self, rng: random.Random, *, text: bool, rows: Sequence[dict[str, object]]) -> None:
        self.rng = rng
        self.text = text
        self.rows = rows
        self.events = [Event.from_row(row) for row in rows]
        self.model: dict[Id, str] = {}
        self.index = RecordIndex.build([])

    def name(self, number: int) -> Id:
        return f"s{number * 7919 % 1000:03}" if self.text else number * 7919 % 1000 - 500

    def subscribe(self) -> None:
        identity = self.name(self.rng.randrange(40))
        text = random_filter(self.rng, wild=True)
        if identity in self.model:
            with pytest.raises(SubscriptionError, match="is subscribed already"):
                self.index.subscribe(Subscription(identity, text))
        else:
            self.index.subscribe(Subscription(identity, text))
            self.model[identity] = text

    def unsubscribe(self) -> None:
        identity = self.name(self.rng.randrange(40))
        if self.model.pop(identity, None) is None:
            with pytest.raises(SubscriptionError):
                self.index.unsubscribe(identity)
        else:
            self.index.unsubscribe(identity)

    def wanted(self, event: Event) -> list[Id]:
        ids = list(self.model)
        return sorted(ids[n] for n in holding([*self.model.values()], event))

    def match(self) -> None:
        event = self.rng.choice(self.events)
        assert self.index.match(event) == self.wanted(event)

    def next(self) -> None:
        event, at_least = self.rng.choice(self.events), self.name(self.rng.randrange(40))
        later = [identity for identity in self.wanted(event) if identity >= at_least]  # type: ignore[operator]
        assert not self.model or self.index.next(event, at_least) == (later[0] if later else None)

    def match_batch(self) -> None:
        found = pairs(self.index.match_batch(batch_of(self.rows)))
        wanted = [
            (row["id"], each)
            for row, event in zip(self.rows, self.events, strict=True)
            for each in self.wanted(event)
        ]
        assert len(found) == len(wanted)
        assert set(found) == set(wanted)

    def look_up(self) -> None:
        assert len(self.index) == len(self.model)
        for identity, text in self.model.items():
            assert identity in self.index
            assert self.index.filter(identity) == text

    def compact(self) -> None:
        self.index.compact()
        check(self.index)
        assert_same(self.index, self.model, self.rows)

    def reopen(self, path: Path) -> None:
        self.index.save(path)
        self.index = RecordIndex.open(path)
        check(self.index)
        assert_same(self.index, self.model, self.rows)


@pytest.mark.parametrize("text", [False, True])
@examples(scaled(5, 3))
@given(rng=seeds)
def test_any_changes_in_any_order(
    text: bool, rng: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    driver = Driver(rng, text=text, rows=[random_event(rng, number) for number in range(4)])
    works: list[Callable[[], None]] = [driver.subscribe] * 8 + [driver.unsubscribe] * 5 + [driver.match] * 3
    works += [driver.next, driver.match_batch, driver.look_up]
    for step in range(80):
        draw = rng.random()
        if draw < 0.03:
            driver.compact()
        elif draw < 0.05:
            driver.reopen(tmp_path_factory.mktemp("live") / f"s{step}")
        else:
            rng.choice(works)()
    driver.compact()


class Pool(NamedTuple):
    """Filters, events, and truth[e, f]: whether filter f holds for event e."""

    texts: list[str]
    rows: list[dict[str, object]]
    events: list[Event]
    truth: NDArray[np.bool_]


FAMILIES: list[Callable[[random.Random], str]] = [
    lambda rng: random_filter(rng, wild=True),
    lambda rng: f"i = {rng.randrange(-3, 101)} AND s = '{rng.choice(['a', 'ab', 'news'])}'",
    lambda rng: f"i BETWEEN {rng.randrange(-3, 5)} AND {rng.randrange(3, 101)} AND f > {rng.randrange(8)}",
    lambda rng: f"i != {rng.randrange(-3, 8)} AND s NOT IN ('{rng.choice(['a', 'newt'])}', 'x')",
    lambda rng: f"i IN ({', '.join(str(rng.randrange(-3, 101)) for _ in range(rng.randrange(1, 30)))})",
    lambda rng: f"array_contains(tags, '{rng.choice(['', 'a', 'news', 'zoë'])}') AND i > {rng.randrange(9)}",
    lambda rng: f"s LIKE '%{rng.choice(['a', 'ew', 'spo', 'news'])}%' OR user.age = {rng.randrange(9)}",
    lambda rng: " AND ".join(
        f"({n} = {rng.randrange(9)} OR i > {rng.randrange(4)})" for n in ("f", "b", "whole", "Big", "s")
    ),
]


@lru_cache(maxsize=2)
def make_pool(filters: int, events: int, seed: int = 1) -> Pool:
    rng = random.Random(seed)
    texts = [rng.choice(FAMILIES)(rng) for _ in range(filters)]
    rows = [random_event(rng, number) for number in range(events)]
    found = RecordIndex.build(Subscription(n, text) for n, text in enumerate(texts)).match_batch(
        batch_of(rows)
    )
    truth = np.zeros((events, filters), bool)
    truth[found.column(0).to_numpy(), found.column(1).to_numpy()] = True
    pool = Pool(texts, rows, [Event.from_row(row) for row in rows], truth)
    for number in rng.sample(range(events), min(8, events)):
        assert holding(texts, pool.events[number]) == np.flatnonzero(truth[number]).tolist()
    return pool


class Crowd:
    """An index of filters of a pool, changed at random; owner[i] is the filter of id i, -1 for none."""

    def __init__(self, pool: Pool, ids: int, *, text: bool) -> None:
        self.pool = pool
        self.owner = np.full(ids, -1)
        self.names: list[Id] = [f"s{n:06}" for n in range(ids)] if text else [n * 3 - ids for n in range(ids)]
        self.index = RecordIndex.build([])
        self.index.compact_after = None

    def wanted(self, event: int) -> list[Id]:
        there = np.flatnonzero(self.owner >= 0)
        return [self.names[n] for n in there[self.pool.truth[event, self.owner[there]]].tolist()]

    def flip(self, number: int, text: int) -> None:
        if self.owner[number] < 0:
            self.index.subscribe(Subscription(self.names[number], self.pool.texts[text]))
            self.owner[number] = text
        else:
            self.index.unsubscribe(self.names[number])
            self.owner[number] = -1

    def match(self, event: int) -> None:
        assert self.index.match(self.pool.events[event]) == self.wanted(event)

    def compare(self) -> None:
        """Compare with an index built at once, on all events."""
        model = {
            self.names[n]: self.pool.texts[self.owner[n]] for n in np.flatnonzero(self.owner >= 0).tolist()
        }
        fresh = rebuilt(model)
        check(self.index)
        batch = batch_of(self.pool.rows)
        found = self.index.match_batch(batch)
        assert found.equals(fresh.match_batch(batch))
        assert list(self.index.ids) == list(fresh.ids)
        wanted = [(e, each) for e in range(len(self.pool.rows)) for each in self.wanted(e)]
        assert pairs(found) == wanted
        for event in range(0, len(self.pool.events), 16):
            first = self.names[0]
            assert walk(self.index, self.pool.events[event], first, after) == self.wanted(event)


def run_operations(count: int, pool: Pool, ids: int, every: int, *, text: bool, seed: int = 3) -> None:
    rng = random.Random(seed)
    crowd = Crowd(pool, ids, text=text)
    for step in range(count):
        draw = rng.random()
        if draw < 0.7:
            crowd.flip(rng.randrange(ids), rng.randrange(len(pool.texts)))
        elif draw < 0.97:
            crowd.match(rng.randrange(len(pool.events)))
        else:
            event, at = rng.randrange(len(pool.events)), rng.randrange(ids)
            later = [each for each in crowd.wanted(event) if each >= crowd.names[at]]  # type: ignore[operator]
            if len(crowd.index):
                assert crowd.index.next(pool.events[event], crowd.names[at]) == (later[0] if later else None)
        if step % every == every - 1:
            crowd.index.compact()
            crowd.compare()
    crowd.index.compact()
    crowd.compare()


@pytest.mark.parametrize("text", [False, True])
def test_many_operations(text: bool) -> None:
    pool = make_pool(scaled(800, 80), scaled(60, 16))
    every = share(scaled(2_000, 125))
    run_operations(share(scaled(10_000, 500)), pool, scaled(800, 60), every, text=text)


@pytest.mark.nightly
@pytest.mark.skipif(not JIT, reason="takes hours")
@pytest.mark.parametrize("text", [False, True])
def test_a_million_operations(text: bool) -> None:
    run_operations(500_000, make_pool(2_000, 200), 3_000, 10_000, text=text)


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_switches")
@pytest.mark.parametrize("text", [False, True])
def test_readers_during_changes_and_compactions(text: bool) -> None:
    pool = make_pool(scaled(200, 40), 12, seed=5)
    names: list[Id] = [f"s{n:04}" if text else n for n in range(4 * len(pool.texts))]
    count = len(pool.texts)
    # Every fourth id stays, the next comes and goes, the others are never there.
    staying = {n: n // 4 for n in range(0, 4 * count, 4)}
    index = RecordIndex.build(Subscription(names[n], pool.texts[f]) for n, f in staying.items())
    index.compact_after = None
    always = [{names[n] for n, f in staying.items() if pool.truth[e, f]} for e in range(12)]
    may = [always[e] | {names[4 * f + 1] for f in np.flatnonzero(pool.truth[e]).tolist()} for e in range(12)]
    batch = batch_of(pool.rows)
    done = threading.Event()

    def sound(event: int, found: list[Id]) -> None:
        assert found == sorted(set(found))
        assert always[event] <= set(found) <= may[event]

    def read(number: int) -> int:
        rng = random.Random(number)
        rounds = 0
        while not done.is_set() or rounds < 5:
            event = rng.randrange(12)
            sound(event, index.match(pool.events[event]))
            if number % 2:
                by_event: list[list[Id]] = [[] for _ in range(12)]
                for e, identity in pairs(index.match_batch(batch)):
                    assert isinstance(e, int)
                    assert isinstance(identity, str | int)
                    by_event[e].append(identity)
                for e in range(12):
                    assert len(by_event[e]) == len(set(by_event[e]))
                    sound(e, sorted(by_event[e]))
            else:
                # Walks see each change at once, so what comes and goes may be missed, never what stays.
                sound(event, walk(index, pool.events[event], names[0], after))
            rounds += 1
        return rounds

    def write() -> None:
        rng = random.Random(99)
        there: set[int] = set()
        try:
            for step in range(share(scaled(1_500, 150))):
                number = rng.randrange(count)
                if number in there:
                    index.unsubscribe(names[4 * number + 1])
                else:
                    index.subscribe(Subscription(names[4 * number + 1], pool.texts[number]))
                there ^= {number}
                if step % share(scaled(150, 30)) == 0:
                    index.compact()
        finally:
            done.set()

    with ThreadPoolExecutor(5) as threads:
        readers = [threads.submit(read, number) for number in range(4)]
        threads.submit(write).result()
        assert all(reader.result() >= 5 for reader in readers)


@pytest.mark.usefixtures("quick_switches")
def test_writers_during_compactions() -> None:
    """Several threads change their own subscriptions while another compacts without pause."""
    index = RecordIndex.build(Subscription(n, "a = 1") for n in range(0, 1000, 10))
    rounds = share(scaled(400, 60))
    done = threading.Event()

    def write(own: int) -> dict[Id, str]:
        rng = random.Random(own)
        there: dict[Id, str] = {}
        for _ in range(rounds):
            identity = 10 * rng.randrange(100) + own
            if identity in there:
                index.unsubscribe(identity)
                del there[identity]
            else:
                there[identity] = f"a {rng.choice(['=', '!=', '>'])} {rng.randrange(3)}"
                index.subscribe(Subscription(identity, there[identity]))
            assert (identity in index) is (identity in there)
        return there

    def compact() -> int:
        times = 0
        while not done.is_set():
            index.compact()
            times += 1
        return times

    with ThreadPoolExecutor(4) as threads:
        compaction = threads.submit(compact)
        writers = [threads.submit(write, own) for own in range(1, 4)]
        model: dict[Id, str] = dict.fromkeys(range(0, 1000, 10), "a = 1")
        try:
            for writer in writers:
                model.update(writer.result())
        finally:
            done.set()
        assert compaction.result() > 0
    for _ in range(2):
        assert list(index.ids) == sorted(model)
        for value in (0, 1, 2, None):
            event = Event("e", {"a": value})
            wanted = sorted(identity for identity, text in model.items() if holding([text], event))
            assert index.match(event) == wanted
        index.compact()
