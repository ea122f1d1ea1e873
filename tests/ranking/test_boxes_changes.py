"""Boxes that change give what boxes indexed anew give."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from headgate.core.ranks import Best
from headgate.errors import SubscriptionError
from headgate.ranking.boxes.index import BoxIndex, methods
from headgate.ranking.model import Box, Interval
from tests.ranking import reference
from tests.ranking.test_boxes import FUNCTIONS, NAMES, combinations, draw_box, draw_event
from tests.seeds import seeds

if TYPE_CHECKING:
    from headgate.core.event import Id


def change(rng: random.Random, index: BoxIndex, boxes: dict[Id, Box], names: list[str], text: bool) -> None:
    """Make one random change to an index, and to what it should be."""
    what = rng.choice(("insert", "insert", "delete", "score", "weights", "dimension"))
    if what in {"insert", "dimension"} or not boxes:
        if what == "dimension":
            names.append(f"{rng.choice('abxyz')}{len(names)}")
        number = rng.randrange(500)
        identity = f"s{number:03}" if text else number
        if identity not in boxes:
            boxes[identity] = draw_box(rng, identity, names)
            index.insert(boxes[identity])
        return
    identity = rng.choice(sorted(boxes, key=str))
    if what == "delete":
        del boxes[identity]
        index.delete(identity)
    elif what == "score":
        boxes[identity] = replace(boxes[identity], score=float(rng.randrange(-3, 4)))
        index.set_score(identity, boxes[identity].score)
    else:
        held = list(boxes[identity].intervals)
        weights = {name: rng.choice((0, 0.2, 1.5)) for name in held if rng.random() < 0.5}
        boxes[identity] = replace(boxes[identity], weights=weights if rng.random() < 0.8 else 0.7)
        index.set_weights(identity, boxes[identity].weights)


def agrees(rng: random.Random, index: BoxIndex, boxes: dict[Id, Box]) -> None:
    """Compare one answer of each mode, by any method, with the reference."""
    event, k, notion = (
        draw_event(rng, index.dimensions),
        rng.choice((1, 4, 30, 900)),
        rng.choice(("overlap", "within")),
    )
    every = list(boxes.values())
    method = rng.choice(methods("exact"))
    assert index.top(event, k, method=method, notion=notion) == reference.exact(every, event, k, notion)
    method = rng.choice(methods("relaxed"))
    factors = {name: rng.choice((0, 0.5, 3)) for name in index.dimensions if rng.random() < 0.2}
    combine = rng.choice(combinations(method))
    function = FUNCTIONS[combine]
    found = index.top(event, k, "relaxed", method=method, notion=notion, factors=factors, combine=combine)
    assert found == reference.relaxed(
        every, event, k, notion, dimensions=index.dimensions, factors=factors, combine=function
    ), (method, k, combine)


@pytest.mark.parametrize("seed", seeds(6))
@pytest.mark.parametrize("text", [False, True])
def test_random_changes(seed: int, text: bool) -> None:
    rng = random.Random(seed)
    names = list(NAMES)
    boxes: dict[Id, Box] = {}
    for number in rng.sample(range(500), rng.choice((0, 5, 100))):
        identity = f"s{number:03}" if text else number
        boxes[identity] = draw_box(rng, identity)
    index = BoxIndex.build(boxes.values())
    index.compact_after = rng.choice((None, 0, 20))
    for step in range(120):
        change(rng, index, boxes, names, text)
        if step % 3 == 0:
            agrees(rng, index, boxes)
            assert len(index) == len(boxes)
        if step % 50 == 49:
            index.compact()
            assert index.changes == 0
            agrees(rng, index, boxes)
    assert all(identity in index for identity in boxes)
    for identity in boxes:
        index.delete(identity)
    assert len(index) == 0
    assert index.top(draw_event(rng), 5) == index.top(draw_event(rng), 5, "relaxed") == []
    index.compact()
    index.insert(Box("t" if not text else 1, {}))
    assert len(index) == 1


def test_changes_are_folded_in_by_themselves() -> None:
    index = BoxIndex.build([Box(number, {"a": Interval(0, number)}) for number in range(160)])
    index.compact_after = 5
    assert index.top({"a": 3}, 1) == [Best(3, 0.0)]
    for number in range(10):
        index.set_score(number, 1.0)
    assert index.changes == 10
    index.set_score(150, 2.0)
    assert index.changes == 0
    assert index.top({"a": 3}, 3) == [Best(150, 2.0), Best(3, 1.0), Best(4, 1.0)]


def test_what_is_refused_changes_nothing() -> None:
    index = BoxIndex.build([Box("s1", {"a": Interval(0, 5)}, 1.0), Box("s2", {})])
    index.delete("s2")
    for refused, why in (
        (lambda: index.insert(Box("s1", {})), "'s1' is here already"),
        (lambda: index.insert(Box(7, {})), "ids here are text"),
        (lambda: index.insert(Box(True, {})), "not usable"),
        (lambda: index.delete("s2"), "no subscription 's2'"),
        (lambda: index.delete(7), "no subscription 7"),
        (lambda: index.set_score("s3", 1.0), "no subscription 's3'"),
        (lambda: index.set_score("s1", float("nan")), "'s1' is nan"),
        (lambda: index.set_weights("s1", {"b": 1.0}), "no interval in 'b'"),
        (lambda: index.set_weights("s1", {"a": -1.0}), "'a' of subscription 's1' is -1.0"),
        (lambda: index.set_weights("s1", float("inf")), "'s1' is inf"),
        (lambda: index.explain({}, "s2", 1), "no subscription 's2'"),
    ):
        with pytest.raises(SubscriptionError, match=why):
            refused()
    assert index.changes == 1
    assert index.top({"a": 1}, 9) == [Best("s1", 1.0)]
    assert "s2" not in index
    assert 7 not in index


def test_a_deleted_id_may_come_back() -> None:
    index = BoxIndex.build([Box(1, {"a": Interval(0, 5)}, 1.0), Box(2, {"a": Interval(0, 5)}, 1.0)])
    index.delete(1)
    index.insert(Box(1, {"a": Interval(3, 5)}, 9.0))
    assert index.top({"a": 4}, 5) == [Best(1, 9.0), Best(2, 1.0)]
    assert index.top({"a": 1}, 5) == [Best(2, 1.0)]
    index.compact()
    assert index.top({"a": 4}, 5) == [Best(1, 9.0), Best(2, 1.0)]


def test_readers_see_every_box_once_while_writers_move_them() -> None:
    """A score update is a removal and an addition: no reader may see one without the other."""
    index = BoxIndex.build([Box(number, {"a": Interval(0, 9)}, 1.0) for number in range(50)])
    index.compact_after = 40
    wanted, seen = list(range(50)), []
    stop = threading.Event()

    def write() -> None:
        rng = random.Random(1)
        while not stop.is_set():
            index.set_score(rng.randrange(50), float(rng.randrange(5)))

    def read() -> None:
        for _ in range(150):
            seen.append([best.subscription for best in index.top({"a": 3}, 100)])
            seen.append([best.subscription for best in index.top({"a": 3}, 100, "relaxed", method="scan")])

    index.top({"a": 3}, 100)
    writer = threading.Thread(target=write)
    readers = [threading.Thread(target=read) for _ in range(2)]
    for thread in (writer, *readers):
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    writer.join()
    assert len(seen) == 600
    assert all(sorted(each) == wanted for each in seen)
