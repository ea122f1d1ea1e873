"""Matches as numbers: by places of a base where there are such, and the same by ids."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec.json import encode

from headgate.core.event import Event
from headgate.core.subscription import Subscription
from headgate.errors import EventError
from headgate.graph.model import Node
from headgate.runtime.operations import UPSERT, Put, Unsubscribe
from headgate.service.resources import RankBody
from headgate.service.storage.log import Block
from headgate.service.tenant.contents import Contents
from headgate.service.tenant.index import Index
from headgate.service.tenant.names import Matches, Names
from headgate.service.tenant.past import Comparison
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Sequence


def expected(indexes: Index, names: Names, events: Sequence[Event]) -> list[list[int]]:
    found = [indexes.match([event])[0] for event in events]
    return [[] if isinstance(each, EventError) else names.numbers_of(each) for each in found]


@pytest.mark.parametrize("seed", seeds(64))
def test_numbers_are_those_of_ids_while_subscriptions_change(seed: int) -> None:
    rng = random.Random(seed)
    names = Names()
    names.consumers.update({"a": 1, "b": 2})
    texts = [f"x > {n}" for n in range(5)] + ["y = 'v'", "x < 3 AND y = 'w'", "x IS NULL", "data.x = 2"]
    subscriptions = [Subscription(f"s{n}", rng.choice(texts)) for n in range(40)]
    order = rng.sample(range(40), 40)
    for number, at in enumerate(order):
        names.add(number, f"s{at}", "a")
    indexes, last = Index.build(Contents(subscriptions)), 40
    for step in range(12):
        events = [
            Event.record(
                f"e{e}", {"x": rng.choice([None, 0, 2, 9]), "y": rng.choice("vwz"), "data": {"x": 2}}
            )
            for e in range(rng.choice([1, 7, 8, 30]))
        ]
        refused = rng.randrange(len(events)) if step % 3 == 2 else None
        if refused is not None:
            events[refused] = Event.record("bad", {"x": 2**70})
        found = indexes.match_numbers(events, names)
        assert found.lists() == expected(indexes, names, events)
        assert list(found.refused) == ([] if refused is None else [refused])
        assert found.numbers.dtype == found.ends.dtype == np.uint32
        identity = f"s{rng.randrange(45)}"
        if rng.random() < 0.3 and identity in indexes:
            indexes.apply(Unsubscribe(identity))
            names.remove(identity)
        elif rng.random() < 0.5:
            indexes.apply(Put(UPSERT, Subscription(identity, rng.choice(texts))))
            names.add(last, identity, "b")
            last += 1
        else:
            indexes.engines[0].index.compact()


def test_some_of_matches() -> None:
    found = Matches.of([[3, 1], EventError("bad"), [], [7]])
    assert found.lists() == [[3, 1], [], [], [7]]
    some = found.some([1, 3])
    assert (some.lists(), list(some.refused)) == ([[], [7]], [0])
    assert found.ends.tolist() == [2, 2, 2, 3]
    assert Matches.of([]).ends.tolist() == []


@pytest.mark.parametrize("count", [1, 8])
def test_a_source_meets_its_node_whatever_its_type(count: int) -> None:
    index = Index.build(Contents([Subscription("s", "x > 1", node="7")], [Node("7")]))
    event = Event("e", {"x": 2}, source=7)
    assert index.match([event] * count) == [["s"]] * count
    assert [best.subscription for best in index.top(event, RankBody(k=1))] == ["s"]


def test_an_event_that_one_index_refuses_matches_nothing_there() -> None:
    texts = [
        encode({"specversion": "1.0", "id": f"e{n}", "source": "s", "type": "t", "data": {"x": n}})
        for n in range(3)
    ]
    empty = np.zeros(0, np.uint32)
    ends = np.zeros(3, np.uint32)
    block = Block(1, 5, texts, ends, empty, empty, empty, ends)
    before: list[list[str] | EventError] = [["a"], EventError("no"), ["a"]]
    after: list[list[str] | EventError] = [["a"], ["a", "b"], EventError("no")]
    log: Any = SimpleNamespace(read=lambda *_: [block])
    found = Comparison(first=1, end=3, most=9, patience=9.0)
    found.run(log, lambda _: before, lambda _: after)
    assert (found.events, found.refused_events) == (3, 2)
    tallies = {name: [it.before, it.after, it.gained, it.lost] for name, it in found.tallies.items()}
    assert tallies == {"a": [2, 2, 1, 1], "b": [0, 1, 1, 0]}
