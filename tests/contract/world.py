"""Small worlds from seeds: tables of subscriptions, of a graph, of events and of changes.

The worlds of several seeds are one: their rows are in the same tables, so that a surface is asked once for
all of them. Whose row it is, its id tells. Every table has rows that are refused, with the reasons.
"""

from __future__ import annotations

import json
import math
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.rooms import RECORDS
from tests.contract.refusals import bad_changes, bad_edges, bad_events, bad_nodes, bad_subscriptions
from tests.contract.rooms import ROOMS
from tests.contract.telling import CONTENTS, DIALECTS, MIXED, Thing, Wish

if TYPE_CHECKING:
    from headgate.core.event import Id
    from headgate.engine.question import Top
    from tests.contract.refusals import Bad
    from tests.contract.rooms import Room
    from tests.spark.files import Row

SUBSCRIPTIONS, LATER, THINGS, OWN = 10, 4, 9, 4
NODES = ("pub", "mid0", "mid1", "mid2", "end", "back", "leaf0", "leaf1", "idle")
PATHS = (
    ("pub", "mid0"),
    ("pub", "mid1"),
    ("pub", "mid2"),
    ("mid0", "end"),
    ("mid1", "end"),
    ("end", "back"),
    ("back", "mid0"),
    ("mid1", "leaf0"),
    ("mid2", "leaf1"),
)
PLACES = ("pub", "pub", "mid0", "mid1", "mid1", "mid2", "end", "back", "leaf0", "idle")
SCORES = (0.0, 1.0, 1.0, 1.0, 2.5, 7.25)
COSTS = (0.0, 0.25, 0.5, 1.0)
ODD: list[Row] = [
    {"age": "40", "price": "2.5"},
    {"age": 31.5, "price": 7},
    {"age": True, "topic": 17},
    {"age": [40], "price": {"of": 1}, "tags": "red"},
    {"topic": ["art"], "age": "young", "tags": [1, "red", None]},
]
ROOM_OF: dict[str, Room] = {room.name: room for room in ROOMS}


class Question(NamedTuple):
    """What is asked about all events: every match or the best, of the first subscriptions or the changed."""

    top: Top | None = None
    changed: bool = False


@dataclass
class World:
    """Tables of one content, or of all of them mixed."""

    content: str
    graph: bool
    ranked: bool
    numbered: bool
    """Whether ids are whole numbers; else they are text."""
    seeds: tuple[int, ...]
    subscriptions: list[Row] = field(default_factory=list)
    nodes: list[Row] = field(default_factory=list)
    edges: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    changes: list[Row] = field(default_factory=list)
    bad_subscriptions: list[Bad] = field(default_factory=list)
    bad_nodes: list[Bad] = field(default_factory=list)
    bad_edges: list[Bad] = field(default_factory=list)
    bad_events: list[Bad] = field(default_factory=list)
    bad_changes: list[Bad] = field(default_factory=list)
    repeated: list[Row] = field(default_factory=list)
    """Events with an id that an earlier one has: some surfaces take them, and some refuse them."""
    odd: list[Row] = field(default_factory=list)
    """Records whose attributes have other types than elsewhere, which columns cannot have."""

    @property
    def name(self) -> str:
        """Name the world, for folders and failures."""
        return (
            f"{self.content}-{'graph' if self.graph else 'plain'}-{'ranked' if self.ranked else 'unranked'}"
        )

    def changed(self) -> list[Row]:
        """List the subscriptions after all changes."""
        here = {row["id"]: row for row in self.subscriptions}
        for change in self.changes:
            row = {name: value for name, value in change.items() if name != "op"}
            if change["op"] == "subscribe":
                here[row["id"]] = row
            elif change["op"] == "unsubscribe":
                del here[row["id"]]
            else:
                here[row["id"]] = {**here[row["id"]], **row}
        return list(here.values())

    def at(self, question: Question) -> list[Row]:
        """List the subscriptions that a question is about."""
        return self.changed() if question.changed else self.subscriptions

    def count(self, subscriptions: list[Row]) -> int:
        """Count subscriptions, with those that only nodes name."""
        return len(subscriptions) + sum("subscription" in row for row in self.nodes)

    def leads_on(self, event: Row) -> bool:
        """Tell whether an edge leaves the node where an event enters the graph."""
        return any(edge["source"] == event["source"] for edge in self.edges)

    def seed_of(self, identity: object) -> int | None:
        """Say which seed an id of an event or a subscription is of."""
        text = str(identity)
        number = int(text) // 1000 if self.numbered and text.isdigit() else text[1:].partition("-")[0]
        return int(number) if str(number).isdigit() else None


def draw_world(
    content: str, seeds: tuple[int, ...], *, graph: bool, ranked: bool, numbered: bool = False
) -> World:
    """Draw the world of some seeds. Many scores are equal, so that ties are broken by id."""
    world = World(content, graph, ranked, numbered, seeds)
    for seed in seeds:
        _Drawing(world, seed).add()
    first = seeds[0]
    known, gone = world.subscriptions[0]["id"], world.changes[-1]["id"]
    node = _Drawing(world, first).node("mid0")
    world.bad_subscriptions += bad_subscriptions(world, known, node)
    if graph:
        world.bad_nodes += bad_nodes(world, node)
        world.bad_edges += bad_edges(world, node)
    world.bad_events += bad_events(world, node)
    still = world.changed()[0]["id"]
    world.bad_changes += bad_changes(world, still, gone, node)
    return world


class _Drawing:
    """Draws the part of one seed."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._seed = seed
        self._rng = random.Random(f"{world.content} {world.graph} {world.ranked} {seed}")

    def add(self) -> None:
        """Add all rows of the seed."""
        world = self._world
        if world.graph:
            self._add_graph()
        world.subscriptions += [self._subscription(number) for number in range(SUBSCRIPTIONS)]
        world.events += [self._event(number) for number in range(THINGS + OWN)]
        again = self._event(THINGS)
        world.repeated.append({**again, "id": world.events[-1]["id"]})
        if world.content == RECORDS:
            odd = {**world.events[-OWN - 1], **self._rng.choice(ODD), "id": self._id("e", THINGS + OWN)}
            world.odd.append({**odd, "new": {"nested": self._seed}})
        self._add_changes()

    def _id(self, letter: str, number: int) -> Id:
        return self._seed * 1000 + number if self._world.numbered else f"{letter}{self._seed}-{number:02}"

    def node(self, name: str) -> Id:
        """Return the id of a node."""
        return self._seed * 1000 + NODES.index(name) if self._world.numbered else f"{name}-{self._seed}"

    def _content(self) -> str:
        """Choose the content of a filter or an event, if there are several."""
        return self._rng.choice(CONTENTS) if self._world.content == MIXED else self._world.content

    def _filter(self, content: str) -> tuple[str, Wish | None]:
        """Draw a filter that all contents can say, or one of the room's own."""
        if self._rng.random() < 0.3:
            return ROOM_OF[content].draw_filter(self._rng), None
        wish = Wish.draw(self._rng)
        return wish.text(content), wish

    def _own(self) -> Row:
        """Draw the filter of a node or an edge."""
        content = self._content()
        return {"filter": Wish.draw(self._rng).text(content), "dialect": DIALECTS[content]}

    def _subscription(self, number: int) -> Row:
        world, rng = self._world, self._rng
        content = self._content()
        text, wish = self._filter(content)
        row: Row = {"id": self._id("s", number), "filter": text, "dialect": DIALECTS[content]}
        if world.graph:
            row["node"] = self.node(rng.choice(PLACES))
        if world.graph or world.ranked:
            row["score"] = rng.choice(SCORES)
        weights = wish.weights(content, rng) if wish is not None else None
        if world.ranked:
            row["weights"] = weights
        return row

    def _add_graph(self) -> None:
        world, rng = self._world, self._rng
        for name in NODES:
            row: Row = {"id": self.node(name), "cost": rng.choice(COSTS)}
            if name.startswith("mid") and rng.random() < 0.5:
                row |= self._own()
            if name.startswith("leaf"):
                row |= {"subscription": self._id("n", 90 + int(name[-1])), "score": rng.choice(SCORES)}
            world.nodes.append(row)
        for source, target in PATHS:
            row = {"source": self.node(source), "target": self.node(target), "cost": rng.choice(COSTS)}
            if source != "pub" and rng.random() < 0.3:
                row |= self._own()
            world.edges.append(row)

    def _event(self, number: int) -> Row:
        world, rng = self._world, self._rng
        content = self._content()
        told = number < THINGS
        row = Thing.draw(rng).row(content) if told else _plain(ROOM_OF[content].draw_row(rng, number))
        row |= {"id": self._id("e", number)}
        if world.graph:
            row["source"] = self.node(rng.choice(("pub", "pub", "pub", "mid1", "end", "idle")))
        return row

    def _add_changes(self) -> None:
        """Add a change of each kind: new ones, one that comes back with another filter, one that ends."""
        world = self._world
        later = [self._subscription(SUBSCRIPTIONS + number) for number in range(LATER)]
        world.changes += [{"op": "subscribe", **row} for row in later]
        back, ends = self._id("s", 2), self._id("s", 3)
        world.changes += [{"op": "unsubscribe", "id": back}]
        world.changes += [{"op": "subscribe", **self._subscription(2)}]
        if world.graph or world.ranked:
            world.changes += [{"op": "score", "id": self._id("s", 4), "score": 3.5}]
        if world.ranked:
            world.changes += [{"op": "weights", "id": self._id("s", 5), "weights": None}]
        world.changes += [{"op": "unsubscribe", "id": ends}]


def _plain(row: Row) -> Row:
    """Leave out what JSON cannot say, and what is NULL."""
    said = {name: _plain(value) if isinstance(value, dict) else value for name, value in row.items()}
    return {name: value for name, value in said.items() if value is not None and _sayable(value)}


def _sayable(value: Any) -> bool:
    if isinstance(value, list):
        return all(_sayable(each) for each in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int | dict | None)


LOUD = {name.casefold(): name for name in ("Source", "Data", "DataContentType")}


def loud(row: Row) -> Row:
    """Write names with other capitals, which mean the same."""
    return {LOUD.get(name, name): value for name, value in row.items()}


def line(row: Row) -> str:
    """Write a row as a line of JSON."""
    return json.dumps(row, ensure_ascii=False)
