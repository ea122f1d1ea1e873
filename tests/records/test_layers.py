"""Late filters in layers: the answers of the reference, whatever is a layer by now, and readers meanwhile."""

from __future__ import annotations

import itertools
import random
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.errors import EventError
from headgate.records import reference
from headgate.records.events.columns import EventColumns
from headgate.records.index.build import by_filters
from headgate.records.index.index import RecordIndex
from headgate.records.programs.binding import compile_filter
from headgate.records.tail import layers
from headgate.records.tail.layers import Layer, Layers, Loose
from tests.records.crowd import scaled, tree_of, walk
from tests.records.programs import spelled
from tests.records.random_filters import random_event, random_filter
from tests.records.test_live import Driver, make_pool, run_operations
from tests.seeds import examples, share

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.tail.layers import LateView

seeds = st.randoms(use_true_random=False)


def late_of(texts: Sequence[str], short: int) -> Layers:
    late = Layers(by_filters, short=short)
    for number, text in enumerate(texts):
        assert late.add(compile_filter(text)) == number
    assert len(late) == len(texts)
    return late


def right(texts: Sequence[str], event: Event, removed: NDArray[np.uint8]) -> list[int]:
    return [
        number
        for number, text in enumerate(texts)
        if not removed[number] and reference.matches(tree_of(text), event.attributes)
    ]


def by_events(view: LateView, events: Sequence[Event], removed: NDArray[np.uint8]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in events]
    for part in view.match_many(events, removed):
        for event, place in zip(part.events.tolist(), part.filters.tolist(), strict=True):
            found[event].append(place)
    return found


def by_columns(view: LateView, events: Sequence[Event], removed: NDArray[np.uint8]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in events]
    for part in view.match_many(EventColumns(events), removed):
        for event, place in zip(part.events.tolist(), part.filters.tolist(), strict=True):
            found[event].append(place)
    return found


@examples(scaled(20, 5))
@given(rng=seeds, short=st.integers(1, 12))
def test_layers_agree_with_the_reference(rng: random.Random, short: int) -> None:
    """Some are layers, some are sealed, some are still added to; some were removed."""
    texts = [random_filter(rng, wild=True) for _ in range(30)]
    events = [Event.from_row(random_event(rng, number)) for number in range(4)]
    late = Layers(by_filters, short=short)
    removed = np.array([rng.random() < 0.2 for _ in texts], np.uint8)
    for number, text in enumerate(texts):
        late.add(compile_filter(text))
        if rng.random() < 0.2:
            late.settle()
        if rng.random() < 0.1:
            late.note(layers.ASKED)
        if rng.random() < 0.2:
            event, view = rng.choice(events), late.view()
            wanted = right(texts[: number + 1], event, removed)
            assert view.match_one(event, removed).tolist() == wanted
    for _ in range(2):
        view = late.view()
        assert [part.first for part in view.parts] == np.cumsum(
            [0, *(part.filters for part in view.parts[:-1])]
        ).tolist()
        wanted_of = [right(texts, event, removed) for event in events]
        assert by_columns(view, events, removed) == wanted_of
        assert by_events(view, events, removed) == wanted_of
        late.settle()
        late.note(layers.ASKED)
        late.settle()
    keep = removed[: rng.randrange(len(texts) + 1)] == 0
    kept = [text for text, here in zip(texts, keep, strict=False) if here]
    assert spelled(late.programs(keep)) == [
        found for text in kept for found in spelled(late_of([text], 1).programs(np.ones(1, bool)))
    ]


def test_few_layers_each_much_larger_than_the_next() -> None:
    late = Layers(by_filters, short=4)
    for number in range(400):
        late.add(compile_filter(f"a = {number}"))
        late.settle()
    *frozen, last = late.view().parts
    sizes = [part.filters for part in frozen]
    assert all(isinstance(part, Layer) for part in frozen)
    assert isinstance(last, Loose)
    assert sum(sizes) + last.filters == 400
    assert last.filters <= 4
    assert all(large > layers.RATIO * small for large, small in itertools.pairwise(sizes))
    assert len(sizes) <= 4


def test_what_is_asked_often_becomes_one_layer() -> None:
    late = Layers(by_filters, short=40)
    sizes = []
    for number in range(60):
        late.add(compile_filter(f"a = {number}"))
        if number in {40, 42, 50}:
            late.settle()
            # All but the last event leaves it as it is.
            late.note(layers.ASKED - 1)
            sizes.append([part.filters for part in late.view().parts])
            late.note(1)
            late.settle()
            sizes.append([part.filters for part in late.view().parts])
    assert sizes == [[40, 1], [40, 1, 0], [40, 1, 2], [40, 3, 0], [40, 3, 8], [51, 0]]
    view = late.view()
    assert [part.filters for part in view.parts] == [51, 9]
    late.note(layers.ASKED)
    late.settle()
    assert [part.filters for part in late.view().parts] == [51, 9, 0]
    late.note(60 * layers.MERGED)
    late.settle()
    assert [part.filters for part in late.view().parts] == [60, 0]
    late.note(10**9)
    late.settle()
    assert [part.filters for part in late.view().parts] == [60, 0]
    assert late.view().match_one(Event(0, {"a": 59}), np.zeros(60, np.uint8)).tolist() == [59]


def test_views_stand_still_while_layers_come() -> None:
    late = Layers(by_filters, short=5)
    views = [late.view()]
    for number in range(60):
        late.add(compile_filter(f"a >= {number % 7}" if number % 2 else f"b = {number % 3}"))
        if number % 4 == 0:
            late.settle()
        views.append(late.view())
    event = Event(0, {"a": 9, "b": 1})
    for count, view in enumerate(views):
        wanted = [number for number in range(count) if number % 2 or number % 3 == 1]
        assert view.match_one(event, np.zeros(60, np.uint8)).tolist() == wanted


class Broken:
    def __call__(self, *_: object) -> Any:
        raise MemoryError("no room")


def test_a_layer_that_fails_is_told_before_the_next_addition(monkeypatch: pytest.MonkeyPatch) -> None:
    late = late_of(["a = 1", "a = 2"], 2)
    with monkeypatch.context() as patch:
        patch.setattr("headgate.records.index.build.build", Broken())
        late.add(compile_filter("a = 1"))
        late.settle()
        with pytest.raises(MemoryError, match="no room"):
            late.admit(compile_filter("a = 1"))
    view = late.view()
    assert [part.filters for part in view.parts] == [2, 1]
    assert view.match_one(Event(0, {"a": 1}), np.zeros(3, np.uint8)).tolist() == [0, 2]
    for _ in range(3):
        late.add(compile_filter("a = 1"))
        late.settle()
    parts = late.view().parts
    assert [type(part) for part in parts[:-1]] == [Layer] * (len(parts) - 1)
    assert late.view().match_one(Event(0, {"a": 1}), np.zeros(6, np.uint8)).tolist() == [0, 2, 3, 4, 5]


def test_layers_refuse_what_tails_refuse() -> None:
    """A column of a type that no filter can look into is refused by layers and tails alike."""
    late = late_of(["a = 1", "b IS NULL", "a = 2"], 2)
    late.settle()
    columns = EventColumns([Event(0, {"a": 1}), Event(1, {"a": 2})])
    columns.refuse_foreign = _refuse  # type: ignore[method-assign]
    with pytest.raises(EventError, match="a"):
        late.view().match_many(columns, np.zeros(3, np.uint8))


def _refuse(path: Path) -> None:
    raise EventError(".".join(path))


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tails of an index become layers soon."""
    monkeypatch.setattr(layers, "SHORT", 3)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("text", [False, True])
def test_an_index_with_layers_goes_through_any_changes(
    text: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for seed in range(share(scaled(32, 2))):
        rng = random.Random(seed)
        driver = Driver(rng, text=text, rows=[random_event(rng, number) for number in range(3)])
        works = [driver.subscribe] * 8 + [driver.unsubscribe] * 4 + [driver.match] * 2
        works += [driver.next] * 2 + [driver.match_batch, driver.look_up, driver.index.settle]
        for step in range(60):
            draw = rng.random()
            if draw < 0.02:
                driver.compact()
            elif draw < 0.03:
                driver.reopen(tmp_path_factory.mktemp("layers") / f"s{step}")
            else:
                rng.choice(works)()
        driver.compact()


@pytest.mark.usefixtures("short")
def test_many_operations_with_layers() -> None:
    pool = make_pool(scaled(800, 80), scaled(60, 16))
    run_operations(share(scaled(4_000, 300)), pool, scaled(800, 60), share(scaled(2_000, 125)), text=False)


@pytest.fixture
def quick_switches() -> Iterator[None]:
    """Let threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_switches")
def test_readers_while_layers_are_built() -> None:
    total, groups = scaled(1_200, 120), 10
    programs = [compile_filter(f"k = 'v{n % groups}'" if n % 5 else "k IS NOT NULL") for n in range(total)]
    late = Layers(by_filters, short=16)
    removed = np.zeros(total, np.uint8)
    done = threading.Event()

    def expected(count: int, group: int) -> list[int]:
        return [n for n in range(count) if n % 5 == 0 or n % groups == group]

    def write() -> None:
        try:
            for each in programs:
                late.add(each)
        finally:
            done.set()

    def read(group: int) -> int:
        event = Event("e", {"k": f"v{group}"})
        rounds = 0
        while not done.is_set() or rounds < 5:
            view = late.view()
            wanted = expected(view.filters, group)
            assert view.match_one(event, removed).tolist() == wanted
            assert by_columns(view, [event], removed) == [wanted]
            rounds += 1
        return rounds

    with ThreadPoolExecutor(4) as threads:
        readers = [threads.submit(read, group) for group in range(3)]
        threads.submit(write).result()
        assert all(reader.result() >= 5 for reader in readers)
    late.settle()
    assert any(isinstance(part, Layer) for part in late.view().parts)


def test_next_asks_late_filters_once_for_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    index = RecordIndex.build(Subscription(2 * n, "a = 1") for n in range(20))
    index.compact_after = None
    for n in range(20):
        index.subscribe(Subscription(2 * n + 1, "a = 1" if n % 2 else "a = 2"))
    asked = []
    plain = Loose.match_one

    def counting(part: Loose, attributes: Any, removed: NDArray[np.uint8]) -> Any:
        asked.append(part)
        return plain(part, attributes, removed)

    monkeypatch.setattr(Loose, "match_one", counting)
    event = Event("e", {"a": 1})
    wanted = sorted([*range(0, 40, 2), *range(3, 40, 4)])
    assert walk(index, event, 0, lambda match: int(match) + 1) == wanted
    assert len(asked) == 1
    # What is removed meanwhile is passed over, though it was found before.
    index.unsubscribe(7)
    assert index.next(event, 7) == 8
    assert index.numbers(event, 3, 6).tolist() == [6, 8, 10]
    assert len(asked) == 1
    # What came meanwhile is asked.
    index.subscribe(Subscription(7, "a = 1"))
    assert index.next(event, 7) == 7
    assert index.numbers(event).tolist() == wanted
    assert len(asked) == 2
    assert index.next(Event("e", {"a": 2}), 0) == 1
    assert len(asked) == 3
