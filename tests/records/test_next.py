"""`next`: the same matches as `match`, one at a time, and no more work than that takes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate import Event, Subscription
from headgate.records import reference
from headgate.records.index import live
from headgate.records.index.index import RecordIndex
from headgate.records.index.live import Cursor
from tests.records.crowd import COMMON, MIDDLING, RARE, index_of, scaled, shares, tree_of, walk
from tests.records.random_filters import random_event, random_filter
from tests.seeds import examples, share

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.records.index.build import Weigh

seeds = st.randoms(use_true_random=False)


def live_index(rng: random.Random, name: type[int] | type[str]) -> tuple[RecordIndex, dict[Id, str]]:
    """Draw an index with a base, a tail, and some removed of both; ids are even numbers."""

    def identity(number: int) -> Id:
        return 2 * number if name is int else f"s{2 * number:04}"

    order = rng.sample(range(40), 40)
    texts: dict[Id, str] = {identity(n): random_filter(rng, wild=True) for n in order}
    given = list(texts)
    base, tail = given[:25], given[25:]
    index = RecordIndex.build(Subscription(each, texts[each]) for each in base)
    for each in tail:
        index.subscribe(Subscription(each, texts[each]))
    for each in [*rng.sample(base, 6), *rng.sample(tail, 4)]:
        index.unsubscribe(each)
        del texts[each]
    return index, texts


@pytest.mark.parametrize("name", [int, str])
@examples(scaled(12, 8))
@given(rng=seeds)
def test_any_order_of_asking(name: type[int] | type[str], rng: random.Random) -> None:
    index, texts = live_index(rng, name)
    events = [Event.from_row(random_event(rng, number)) for number in range(3)]
    wanted = {
        id(event): sorted(
            each for each, text in texts.items() if reference.matches(tree_of(text), event.attributes)
        )
        for event in events
    }
    for _ in range(60):
        event = rng.choice(events)
        number = rng.randrange(-2, 84)
        at_least: Id = number if name is int else f"s{max(number, 0):04}"
        later = [match for match in wanted[id(event)] if match >= at_least]  # type: ignore[operator]
        assert index.next(event, at_least) == (later[0] if later else None)
    for event in events:
        first: Id = -1 if name is int else ""
        step = (lambda match: match + 1) if name is int else (lambda match: match + "\0")
        assert walk(index, event, first, step) == wanted[id(event)] == index.match(event)


@pytest.mark.parametrize("weigh", [shares(RARE), shares(0.02), shares(MIDDLING), shares(COMMON), None])
def test_walks_under_any_weights(weigh: Weigh | None) -> None:
    rng = random.Random(8)
    texts = [random_filter(rng, wild=True) for _ in range(scaled(400, 80))]
    texts += [f"array_contains(tags, '{word}') OR i = {n}" for n in range(9) for word in ("a", "ab", "news")]
    index = index_of(texts, weigh)
    for number in range(share(scaled(40, 10))):
        event = Event.from_row(random_event(rng, number))
        found = index.match(event)
        assert walk(index, event, 0, lambda match: int(match) + 1) == found
        for match in rng.sample(found, min(4, len(found))):
            assert index.next(event, match) == match
            assert index.next(event, match) == match
        for at_least in reversed([*range(0, len(texts) + 2, 7)]):
            assert index.next(event, at_least) == min((n for n in found if int(n) >= at_least), default=None)


def test_clusters_beyond_the_window_of_a_match_are_not_passed() -> None:
    texts = [f"k{n % 4} = 1 AND x != {n}" for n in range(400)]
    index = index_of(texts, shares(RARE, x=COMMON))
    cursor = Cursor(index._state.base, Event("e", {**{f"k{n}": 1 for n in range(4)}, "x": 0}))  # noqa: SLF001
    clusters = cursor._clusters  # noqa: SLF001
    begin = clusters[:, 0].copy()
    assert len(begin) == 4
    assert cursor.take(0, 1, 8).tolist() == [1]
    entry = int((clusters[:, 1] - begin).max()) // 100
    # Two filters of each cluster have been looked at.
    assert (cursor._clusters[:, 0] - begin).max() <= 2 * entry  # noqa: SLF001
    assert cursor.take(2, 1, 8).tolist() == [2]
    assert cursor.take(200, 1, 8).tolist() == [200]
    assert (cursor._clusters[:, 0] - begin).max() <= 52 * entry  # noqa: SLF001
    assert [cursor.next(number) for number in (399, 400, 399, 0)] == [399, -1, 399, 1]


def test_unkeyed_filters_beyond_the_window_of_a_match_are_not_passed() -> None:
    index = index_of([f"a != {n}" for n in range(500)], shares(COMMON))
    cursor = Cursor(index._state.base, Event("e", {"a": 0}))  # noqa: SLF001
    assert cursor.take(0, 1, 8).tolist() == [1]
    assert cursor._unkeyed == 8  # noqa: SLF001
    assert cursor.take(300, 1, 8).tolist() == [300]
    assert cursor._unkeyed == 308  # noqa: SLF001
    assert cursor.next(1) == 1


def test_the_walk_goes_on_where_it_was() -> None:
    index = index_of(["a = 1"] * 300, shares())
    event = Event("e", {"a": 1})
    cursor = index._state.base.cursor(event)  # noqa: SLF001
    places = []
    for number in range(300):
        assert index.next(event, number) == number
        assert index._state.base.cursor(event) is cursor  # noqa: SLF001
        places.append(int(cursor._clusters[0, 0]))  # noqa: SLF001
    assert places == sorted(places)
    other = Event("e", {"a": 1})
    assert index.next(other, 7) == 7
    assert index.next(event, 299) == 299


def test_removed_while_walking() -> None:
    index = RecordIndex.build(Subscription(n, "a = 1") for n in range(0, 20, 2))
    event = Event("e", {"a": 1})
    assert index.next(event, 0) == 0
    index.unsubscribe(0)
    index.unsubscribe(2)
    assert index.next(event, 0) == 4
    index.subscribe(Subscription(3, "a = 1"))
    assert index.next(event, 0) == 3
    assert index.next(event, 4) == 4
    index.subscribe(Subscription(2, "a != 2"))
    assert [index.next(event, at) for at in (0, 3, 1)] == [2, 3, 2]
    index.unsubscribe(3)
    index.compact()
    assert walk(index, event, 0, lambda match: int(match) + 1) == [2, *range(4, 20, 2)]


def test_ids_at_the_ends() -> None:
    ends = [-(2**63), -1, 0, 2**63 - 1]
    for late in range(5):
        index = RecordIndex.build(Subscription(each, "a = 1") for each in ends[:late])
        for each in ends[late:]:
            index.subscribe(Subscription(each, "a = 1"))
        event = Event("e", {"a": 1})
        assert [index.next(event, each) for each in ends] == ends
        assert index.next(event, 1) == 2**63 - 1
        assert index.next(Event("e", {"a": 2}), -(2**63)) is None


def test_windows_without_a_match_come_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WINDOW", 64)
    monkeypatch.setattr(live, "LONGEST", 64)
    last = 6_000
    index = RecordIndex.build(Subscription(n, f"a = {n % 2} OR b = {n}") for n in range(last))
    base, event = index._state.base, Event("e", {"a": 7, "b": last - 1})  # noqa: SLF001
    assert base.cursor(event).take(0, 3, 64).tolist() == [last - 1]
    found, counts = base._first(base.encode([event]), 1, 3)  # noqa: SLF001
    assert found[0, : counts[0]].tolist() == [last - 1]
