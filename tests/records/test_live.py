"""A running index: subscribe, unsubscribe and compact, while others match."""

from __future__ import annotations

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate import Event, FilterError, RecordIndex, Subscription, SubscriptionError
from headgate.records import live
from headgate.records.index import CHUNK
from tests.records.crowd import COMMON, JIT, RARE, check, holding, index_of, scaled, shares, walk
from tests.records.random_filters import SCHEMA, random_event, random_filter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.records.live import Moment, State
    from headgate.records.weights import Weigh

seeds = st.randoms(use_true_random=False)
PATIENCE = 60.0
"""Seconds after which a thread that should have ended has failed."""


def pairs(found: pa.RecordBatch) -> list[tuple[object, object]]:
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def batch_of(rows: Sequence[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def after(identity: Id) -> Id:
    return identity + 1 if isinstance(identity, int) else identity + "\0"


def rebuilt(model: dict[Id, str]) -> RecordIndex:
    return RecordIndex.build(Subscription(identity, text) for identity, text in model.items())


def assert_same(index: RecordIndex, model: dict[Id, str], rows: Sequence[dict[str, object]]) -> None:
    """Compare with an index built at once of what is there."""
    fresh = rebuilt(model)
    assert len(index) == len(fresh) == len(model)
    assert list(index.ids) == sorted(model)
    batch = batch_of(rows)
    # With a tail, the ids of an event come in no order.
    assert sorted(map(repr, pairs(index.match_batch(batch)))) == sorted(
        map(repr, pairs(fresh.match_batch(batch)))
    )
    first: Id = -(2**63) if all(isinstance(identity, int) for identity in model) else ""
    for row in rows:
        event = Event.from_row(row)
        found = index.match(event)
        assert found == fresh.match(event)
        assert walk(index, event, first, after) == found


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
@settings(max_examples=scaled(5, 3), deadline=None)
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
    run_operations(scaled(10_000, 500), pool, scaled(800, 60), scaled(2_000, 125), text=text)


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
            for step in range(scaled(1_500, 150)):
                number = rng.randrange(count)
                if number in there:
                    index.unsubscribe(names[4 * number + 1])
                else:
                    index.subscribe(Subscription(names[4 * number + 1], pool.texts[number]))
                there ^= {number}
                if step % scaled(150, 30) == 0:
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
    rounds = scaled(400, 60)
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


class Slow:
    """A compaction that waits, before or after it builds, until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
        self.waiting, self.go_on = threading.Event(), threading.Event()
        self.before = before
        monkeypatch.setattr("headgate.records.index.compact", self)

    def __call__(self, moment: Moment, weigh: Weigh) -> State:
        if self.before:
            self._wait()
        built = live.compact(moment, weigh)
        if not self.before:
            self._wait()
        return built

    def _wait(self) -> None:
        self.waiting.set()
        assert self.go_on.wait(PATIENCE)


def started(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def ended(thread: threading.Thread) -> bool:
    thread.join(PATIENCE)
    return not thread.is_alive()


@pytest.mark.parametrize("before", [False, True])
def test_changes_during_a_compaction_are_kept(before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model: dict[Id, str] = {n: f"i = {n}" for n in range(10)}
    index = rebuilt(model)
    index.subscribe(Subscription(20, "i > 1"))
    index.subscribe(Subscription(21, "i > 2"))
    index.unsubscribe(3)
    slow = Slow(monkeypatch, before=before)
    thread = started(index.compact)
    assert slow.waiting.wait(PATIENCE)
    index.unsubscribe(4)
    index.unsubscribe(20)
    index.subscribe(Subscription(30, "i = 7"))
    index.subscribe(Subscription(31, "i = 7"))
    index.unsubscribe(31)
    index.unsubscribe(5)
    index.subscribe(Subscription(5, "i = 100"))
    index.unsubscribe(21)
    index.subscribe(Subscription(21, "i < 0"))
    index.unsubscribe(21)
    index.subscribe(Subscription(21, "i < 1"))
    model = {n: f"i = {n}" for n in range(10) if n not in {3, 4, 5}}
    model |= {30: "i = 7", 5: "i = 100", 21: "i < 1"}
    rows = [{"id": n, "i": value} for n, value in enumerate([*range(-2, 11), 100, None])]
    assert_same(index, model, rows)
    slow.go_on.set()
    assert ended(thread)
    assert_same(index, model, rows)
    for identity in (30, 5, 21, 0):
        index.unsubscribe(identity)
        del model[identity]
        assert_same(index, model, rows)
    index.compact()
    assert_same(index, model, rows)


def test_two_compactions_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    index = RecordIndex.build(Subscription(n, "a = 1") for n in range(5))
    slow = Slow(monkeypatch, before=False)
    first = started(index.compact)
    assert slow.waiting.wait(PATIENCE)
    second = started(index.compact)
    index.subscribe(Subscription(7, "a = 1"))
    slow.go_on.set()
    assert ended(first)
    assert ended(second)
    assert index.match(Event("e", {"a": 1})) == [0, 1, 2, 3, 4, 7]


def test_saving_during_a_compaction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(f"{__name__}.PATIENCE", 10.0)
    index = RecordIndex.build(Subscription(n, "a = 1") for n in range(5))
    slow = Slow(monkeypatch, before=False)
    compaction = started(index.compact)
    assert slow.waiting.wait(PATIENCE)
    index.subscribe(Subscription(7, "a = 1"))
    index.unsubscribe(2)
    saving = started(lambda: index.save(tmp_path / "s"))
    # Long enough for the saving thread to ask for all that it needs.
    time.sleep(0.2)
    slow.go_on.set()
    assert ended(compaction)
    assert ended(saving)
    for found in (index, RecordIndex.open(tmp_path / "s")):
        assert found.match(Event("e", {"a": 1})) == [0, 1, 3, 4, 7]


def test_a_failed_compaction_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index = RecordIndex.build(Subscription(n, "a = 1") for n in range(3))
    index.subscribe(Subscription(7, "a = 1"))

    def fail(_moment: Moment, _weigh: Weigh) -> State:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("headgate.records.index.compact", fail)
        with pytest.raises(MemoryError):
            index.compact()
    index.subscribe(Subscription(8, "a = 1"))
    assert index.match(Event("e", {"a": 1})) == [0, 1, 2, 7, 8]
    index.compact()
    assert index.match(Event("e", {"a": 1})) == [0, 1, 2, 7, 8]


def test_an_addition_that_fails_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    index = RecordIndex.build([Subscription(1, "a = 1")])
    index.subscribe(Subscription(2, "a = 1"))
    with monkeypatch.context() as patch:
        patch.setattr(index._state.tail, "add", Failing())  # noqa: SLF001
        with pytest.raises(MemoryError):
            index.subscribe(Subscription(3, "a = 1"))
    event = Event("e", {"a": 1})
    assert len(index) == 2
    assert 3 not in index
    assert index.match(event) == list(index.ids) == [1, 2]
    index.subscribe(Subscription(4, "a = 1"))
    assert index.match(event) == [1, 2, 4]
    index.subscribe(Subscription(3, "a = 2"))
    assert index.match(event) == [1, 2, 4]
    index.unsubscribe(4)
    for _ in range(2):
        assert index.match(event) == [1, 2]
        assert list(index.ids) == [1, 2, 3]
        index.compact()


class Failing:
    def __call__(self, _program: object) -> int:
        raise MemoryError("no room")


def await_base(index: RecordIndex, size: int) -> None:
    """Wait until the compaction that runs aside is in place."""
    deadline = time.monotonic() + PATIENCE
    while len(index._state.base.ids) < size:  # noqa: SLF001
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_compaction_happens_by_itself() -> None:
    index = RecordIndex.build([])
    index.compact_after = 50
    for n in range(51):
        index.subscribe(Subscription(n, f"a >= {n}"))
    await_base(index, 51)
    assert index.match(Event("e", {"a": 20})) == [*range(21)]
    # A quarter of the base is more than 5.
    index.compact_after = 5
    for n in range(51, 61):
        index.subscribe(Subscription(n, f"a >= {n}"))
    assert len(index._state.base.ids) == 51  # noqa: SLF001
    index.compact_after = None
    for n in range(61, 100):
        index.subscribe(Subscription(n, f"a >= {n}"))
    assert len(index._state.base.ids) == 51  # noqa: SLF001
    assert index.match(Event("e", {"a": 80})) == [*range(81)]


def test_a_compaction_aside_that_fails_is_told_at_the_next_change(monkeypatch: pytest.MonkeyPatch) -> None:
    index = RecordIndex.build([])
    index.compact_after = 3
    failed = threading.Event()

    def fail(_moment: Moment, _weigh: Weigh) -> State:
        failed.set()
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("headgate.records.index.compact", fail)
        for n in range(4):
            index.subscribe(Subscription(n, "a = 1"))
        assert failed.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while index._failure is None:  # noqa: SLF001
            assert time.monotonic() < deadline
        with pytest.raises(MemoryError, match="no room"):
            index.unsubscribe(0)
        assert index.match(Event("e", {"a": 1})) == [0, 1, 2, 3]
        index.unsubscribe(0)
    index.subscribe(Subscription(9, "a = 1"))
    index.compact()
    assert index.match(Event("e", {"a": 1})) == [1, 2, 3, 9]


STEADY = [
    *(f"i = {n}" for n in range(20)),
    *(f"s = 'w{n}' AND i > {n}" for n in range(20)),
    *(f"s IN ('w{n}', 'w{n + 1}', '{n}') AND f != {n}" for n in range(20)),
    *(f"i BETWEEN {n} AND {m}" for n in range(8) for m in range(n, 16, 3)),
    *(f"s BETWEEN 'w{n}' AND 'w{n + 5}' OR s < 'b'" for n in range(10)),
    *(f"i != {n} AND s NOT IN ('w{n}', 'x')" for n in range(20)),
    *(f"(i = {n} OR s = 'w{n}') AND (f > {n} OR b)" for n in range(20)),
    *(" AND ".join(f"(x{k} = {n} OR y{k} > {n})" for k in range(8)) for n in range(6)),
    *(f"array_contains(tags, 'w{n}') AND NOT array_contains(ints, {n})" for n in range(10)),
    *(f"arrays_overlap(ints, array({n}, {n + 1}, 40))" for n in range(10)),
    *(f"s LIKE '%w{n}%' AND s NOT LIKE 'abc%' OR whole LIKE '{n}_'" for n in range(10)),
    *(f"f > {n} AND f < {n + 1}" for n in range(10)),
    *(f"whole = {n} OR whole = '{n}.5' OR real > {n}e0" for n in range(10)),
    *(f"t >= DATE '2024-01-{n:02}' AND day < '2024-02-{n:02}'" for n in range(1, 9)),
    "i IN (1, 2.5, 7)",
    "i IS NULL AND s IS NOT NULL",
    "i <=> NULL OR NOT (s <=> 'w1')",
    "b = TRUE OR yes = FALSE",
    "NOT array_contains(tags, 'a') AND NOT array_contains(tags, 5)",
    "i <= 9223372036854775807 AND f >= -1e300",
    "TRUE",
    "FALSE",
    "i = NULL",
]


@pytest.mark.parametrize("from_tail", [False, True])
def test_compaction_again_and_again_keeps_answers_and_sizes(from_tail: bool) -> None:
    rng = random.Random(6)
    rows = [random_event(rng, number) for number in range(scaled(120, 25))]
    for row in rows[::2]:
        row.update(i=rng.randrange(20), s=f"w{rng.randrange(22)}", tags=[f"w{rng.randrange(12)}"])
    model: dict[Id, str] = {**dict(enumerate(STEADY))}
    index = RecordIndex.build([]) if from_tail else rebuilt(model)
    index.compact_after = None
    if from_tail:
        for identity, text in model.items():
            index.subscribe(Subscription(identity, text))
    sizes = []
    wanted = [holding(STEADY, Event.from_row(row)) for row in rows]
    for _ in range(5):
        index.compact()
        check(index)
        assert [index.match(Event.from_row(row)) for row in rows] == wanted
        built = index.built
        sizes.append(
            {
                **{name: array.size for name, array in built.arrays._asdict().items()},
                **{name: array.size for name, array in built.lines._asdict().items()},
                "texts": built.texts.size,
                "attributes": len(built.attributes),
            }
        )
    assert sizes == [sizes[0]] * 5
    assert [index.filter(identity) for identity in index.ids] == STEADY
    assert_same(index, model, rows[: scaled(40, 5)])


def test_compaction_of_random_filters_again_and_again() -> None:
    rng = random.Random(7)
    texts = [random_filter(rng, wild=True) for _ in range(scaled(400, 60))]
    rows = [random_event(rng, number) for number in range(scaled(60, 10))]
    index = rebuilt({**dict(enumerate(texts))})
    wanted = [holding(texts, Event.from_row(row)) for row in rows]
    sizes = []
    for _ in range(4):
        index.compact()
        check(index)
        assert [index.match(Event.from_row(row)) for row in rows] == wanted
        sizes.append(len(index.built.arrays.stream))
    assert sizes[1:] == [sizes[1]] * 3


def test_compaction_takes_out_what_nobody_names(tmp_path: Path) -> None:
    index = RecordIndex.build(Subscription(n, f"x{n} = 'w{n}' AND s LIKE '%{n}'") for n in range(50))
    for n in range(1, 50):
        index.unsubscribe(n)
    index.compact()
    check(index)
    assert index.attributes == ["s", "x0"]
    assert index.built.texts.texts() == ["w0"]
    assert len(index.built.arrays.glob_attribute) == 1
    index.unsubscribe(0)
    index.save(tmp_path / "s")
    assert len(RecordIndex.open(tmp_path / "s")) == 0
    assert index.attributes == []


def test_an_emptied_index_takes_ids_of_either_type() -> None:
    event = Event("e", {"a": 1})
    index = RecordIndex.build([])
    for ids in ([1, 2], ["a", "b"], [3], ["c"]):
        for identity in ids:
            index.subscribe(Subscription(identity, "a = 1"))
        assert index.match(event) == ids
        index.compact()
        assert index.match(event) == ids
        assert index.next(event, ids[0]) == ids[0]
        for identity in ids:
            index.unsubscribe(identity)
        index.compact()
        assert index.match(event) == []
        assert index.next(event, ids[0]) is None
        assert index.match_batch(batch_of([{"id": 1, "i": 1}])).num_rows == 0


REFUSED: list[tuple[Subscription, type[Exception], str]] = [
    (Subscription(1, "a = 2"), SubscriptionError, "id 1 is subscribed already: unsubscribe it first"),
    (Subscription(8, "a = 2"), SubscriptionError, "id 8 is subscribed already: unsubscribe it first"),
    (
        Subscription("x", "a = 2"),
        SubscriptionError,
        "id 'x' is not one of these: ids here are a whole number",
    ),
    (Subscription(2**63, "a = 2"), SubscriptionError, "does not fit into 64 bits"),
    (Subscription(True, "a = 2"), SubscriptionError, "id True is not usable"),
    (Subscription(5, "a = "), FilterError, ""),
    (Subscription(5, ""), FilterError, ""),
    (Subscription(5, "a = 1 AND AND"), FilterError, ""),
]
GONE: list[tuple[Id, str]] = [
    (5, "there is no subscription 5 here"),
    (2, "there is no subscription 2 here"),
    (9, "there is no subscription 9 here"),
    ("1", "id '1' is not one of these: ids here are a whole number"),
    (2**70, "there is no subscription"),
    (True, "True"),
]


@pytest.mark.parametrize("compacted", [False, True])
def test_what_is_refused_changes_nothing(compacted: bool) -> None:
    index = RecordIndex.build(Subscription(n, "a = 1") for n in range(4))
    index.subscribe(Subscription(8, "a = 1"))
    index.subscribe(Subscription(9, "a = 1"))
    index.unsubscribe(2)
    index.unsubscribe(9)
    if compacted:
        index.compact()
    event = Event("e", {"a": 1})
    for subscription, error, message in REFUSED:
        with pytest.raises(error) as caught:
            index.subscribe(subscription)
        assert message in str(caught.value)
        assert index.match(event) == [0, 1, 3, 8]
    for identity, message in GONE:
        with pytest.raises(SubscriptionError) as caught:
            index.unsubscribe(identity)
        assert message in str(caught.value)
        assert index.match(event) == [0, 1, 3, 8]
    assert len(index) == 4
    index.compact()
    assert list(index.ids) == [0, 1, 3, 8]
    index.subscribe(Subscription(2, "a = 1"))
    index.subscribe(Subscription(9, "a = 2"))
    assert index.match(event) == [0, 1, 2, 3, 8]


def test_text_ids_of_any_kind() -> None:
    names: list[Id] = ["", "A", "a", "a\0", "é", "日本", "\uffff", "🎈", "\U0010ffff", "10", "9"]
    event = Event("e", {"a": 1})
    for late in range(0, len(names) + 1, 3):
        index = RecordIndex.build(Subscription(name, "a = 1") for name in names[:late])
        for name in names[late:]:
            index.subscribe(Subscription(name, "a = 1"))
        for _ in range(2):
            assert index.match(event) == sorted(names)
            assert walk(index, event, "", after) == sorted(names)
            assert sorted(each for _, each in pairs(index.match_events([event]))) == sorted(names)  # type: ignore[type-var]
            index.compact()


@pytest.mark.skipif(not JIT, reason="of compiled kernels")
def test_others_go_on_while_a_kernel_runs() -> None:
    """One call of a kernel that checks much and finds nothing leaves the lock of the interpreter alone."""
    texts = [f"a = 1 AND b = {n}" for n in range(20_000)]
    index = index_of(texts, shares(RARE, b=COMMON))
    batch = pa.RecordBatch.from_pylist([{"id": n, "a": 1, "b": -1} for n in range(CHUNK)])
    index.match_batch(batch.slice(0, 1))
    took: list[float] = []

    def match() -> None:
        begin = time.perf_counter()
        assert index.match_batch(batch).num_rows == 0
        took.append(time.perf_counter() - begin)

    thread = started(match)
    longest, before = 0.0, time.perf_counter()
    while thread.is_alive():
        now = time.perf_counter()
        longest, before = max(longest, now - before), now
    assert took[0] > 0.05
    assert longest < took[0] / 2
