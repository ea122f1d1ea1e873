"""Random graphs of several shapes, with filters that hold now and then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate import Edge, Event, Node, Subscription
from headgate.records.language.parse import parse_filter
from headgate.records.reference import evaluate

if TYPE_CHECKING:
    import random

SHAPES = ("dag", "cycles", "ring", "sparse", "bow-tie")
TOPICS = ("news", "sport", "art", "food")


@dataclass
class Drawn:
    """A graph as users give it."""

    nodes: list[Node]
    edges: list[Edge]
    subscriptions: list[Subscription]


def draw_filter(rng: random.Random) -> str | None:
    """Draw a filter: most are made for planes, some are lists, patterns, or too long for them."""
    which = rng.randrange(12)
    topic, number = rng.choice(TOPICS), rng.randrange(10)
    if which < 4:
        return None
    if which < 8:
        return f"age >= {number} OR topic = '{topic}'" if which % 2 else f"age < {number + 3}"
    return (
        f"topic LIKE '{topic[0]}%'",
        f"array_contains(tags, '{topic}')",
        f"NOT array_contains(tags, '{topic}') AND age != {number}",
        " OR ".join(f"(age = {n} AND topic = '{TOPICS[n % 4]}')" for n in range(rng.randrange(3, 8))),
    )[which - 8]


def draw_event(rng: random.Random, source: str, number: int = 0) -> Event:
    """Draw an event; attributes may be missing."""
    data: dict[str, object] = {}
    if rng.random() < 0.9:
        data["age"] = rng.randrange(12)
    if rng.random() < 0.9:
        data["topic"] = rng.choice(TOPICS)
    if rng.random() < 0.8:
        data["tags"] = rng.choices(TOPICS, k=rng.randrange(3))
    return Event(f"e{number}", data, source=source)


def draw_graph(rng: random.Random, shape: str, count: int, *, filters: bool = True) -> Drawn:
    """Draw a graph of a shape; unreachable parts, self loops and isolated nodes come by themselves."""

    def some() -> str | None:
        return draw_filter(rng) if filters else None

    nodes = [
        Node(
            f"n{i:03}",
            some(),
            subscription=f"s{i:03}" if rng.random() < 0.6 else None,
            kind=rng.choice(("a", "b")),
            score=rng.randrange(5),
            cost=rng.choice((0.0, 0.0, 0.5)),
        )
        for i in range(count)
    ]
    pairs = {_pair(rng, shape, count) for _ in range(rng.randrange(1, 3 * count))} if count > 1 else set()
    if shape == "ring":
        pairs |= {(i, (i + 1) % count) for i in range(count)}
    edges = [
        Edge(f"n{a:03}", f"n{b:03}", some() if rng.random() < 0.3 else None, cost=rng.choice((1.0, 0.25)))
        for a, b in sorted(pairs)
    ]
    subscriptions = [
        Subscription(
            f"t{i:03}", some() or "TRUE", node=rng.choice(nodes).id if nodes else None, score=rng.randrange(5)
        )
        for i in range(rng.randrange(4) if nodes else 0)
    ]
    return Drawn(nodes, edges, subscriptions)


def _pair(rng: random.Random, shape: str, count: int) -> tuple[int, int]:
    a, b = rng.randrange(count), rng.randrange(count)
    if shape == "dag":
        return (min(a, b), max(a, b)) if a != b else (0, count - 1)
    if shape == "sparse":
        return a, min(count - 1, a + rng.randrange(3))
    if shape == "bow-tie":
        middle = count // 3
        return rng.randrange(0, middle + 1), rng.randrange(middle, count)
    return a, b


def holds(event: Event, text: str) -> bool:
    """Tell whether a filter holds, by the reference of the record room."""
    return evaluate(parse_filter(text), event.attributes) is True


def valid_text(event: Event, text: str, dialect: str) -> bool:
    """Tell the same, as the references ask it."""
    assert dialect == "sql"
    return holds(event, text)
