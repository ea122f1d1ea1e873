"""Compaction: what comes out, what comes in meanwhile, and what fails."""

from __future__ import annotations

import random
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.errors import FilterError, SubscriptionError
from headgate.records.index.index import CHUNK, RecordIndex, compact
from tests.records.changes import PATIENCE, after, assert_same, batch_of, pairs, rebuilt
from tests.records.crowd import COMMON, RARE, check, holding, index_of, scaled, shares, walk
from tests.records.random_filters import random_event, random_filter
from tests.seeds import JIT, share

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headgate.contents.live import Moment
    from headgate.core.event import Id
    from headgate.records.index.build import Weigh
    from headgate.records.index.live import State

seeds = st.randoms(use_true_random=False)


class Slow:
    """A compaction that waits, before or after it builds, until it is told to go on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
        self.waiting, self.go_on = threading.Event(), threading.Event()
        self.before = before
        monkeypatch.setattr("headgate.records.index.index.compact", self)

    def __call__(self, moment: Moment[State], weigh: Weigh) -> State:
        if self.before:
            self._wait()
        built = compact(moment, weigh)
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

    def fail(_moment: Moment[State], _weigh: Weigh) -> State:
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("headgate.records.index.index.compact", fail)
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

    def fail(_moment: Moment[State], _weigh: Weigh) -> State:
        failed.set()
        raise MemoryError("no room")

    with monkeypatch.context() as patch:
        patch.setattr("headgate.records.index.index.compact", fail)
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
    rows = [random_event(rng, number) for number in range(share(scaled(120, 25)))]
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
    rows = [random_event(rng, number) for number in range(share(scaled(60, 10)))]
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
        "id 'x' has the wrong type: ids here are whole numbers",
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
    ("1", "id '1' has the wrong type: ids here are whole numbers"),
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
            assert sorted(each for _, each in pairs(index.match_batch([event]))) == sorted(names)  # type: ignore[type-var]
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
