"""Views of every kind of content that feed each other, and documents for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate import Dissemination, Event, Settings, Subscription
from headgate.plan.placement import Link

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

KINDS = ("xpath", "sparql", "sql", "sql key")


class World(NamedTuple):
    """Views and documents."""

    kind: str
    dialect: str
    carries: str | None
    subscriptions: list[Subscription]
    documents: list[Event]

    def plan(self, settings: Settings | None = None, links: Sequence[Link] | None = None) -> Dissemination:
        """Plan who feeds whom."""
        return Dissemination.build(
            self.subscriptions,
            self.documents[:5],
            settings or Settings(fan_out=3),
            links=links,
            carries=self.carries,
        )

    def links(self, rng: random.Random) -> list[Link]:
        """Draw links between all sites, near and far, so that joins run elsewhere than at their views."""
        names = [str(each.id) for each in self.subscriptions]
        return [
            Link(one, other, rng.choice([0.1, 500.0]), rng.choice([1.0, 1e6]))
            for one in names
            for other in names
            if one != other
        ]


def world_of(kind: str, rng: random.Random, views: int, documents: int) -> World:
    """Draw a world; about a fifth of the views is there twice."""
    dialect, _, carries = kind.partition(" ")
    draw = {"xpath": _xpath, "sparql": _sparql, "sql": _sql}[dialect]
    texts: list[str] = []
    while len(texts) < views:
        texts.append(rng.choice(texts) if texts and rng.random() < 0.2 else draw(rng))
    make = {"xpath": _xml, "sparql": _rdf, "sql": _record}[dialect]
    given = [Subscription(f"v{number}", text, dialect) for number, text in enumerate(texts)]
    return World(kind, dialect, carries or None, given, [make(rng, n) for n in range(documents)])


def _xpath(rng: random.Random) -> str:
    parts = []
    for name in rng.sample("bcd", rng.choice([1, 1, 2, 2, 3])):
        test = rng.choice(["", "", f" = '{rng.randint(0, 2)}'"])
        parts.append(f"[{name}{{val}}{test}]")
    return f"//{rng.choice('aaae')}{{id}}" + "".join(sorted(parts))


def _xml(rng: random.Random, number: int) -> Event:
    parts = []
    for _ in range(rng.randint(1, 3)):
        inner = "".join(f"<{name}>{rng.randint(0, 2)}</{name}>" for name in "bbccd" if rng.random() < 0.7)
        parts.append(f"<{(name := rng.choice('aaae'))}>{inner}</{name}>")
    return Event(f"d{number}", f"<x>{''.join(parts)}</x>", content_type="xml")


_PREFIX = "PREFIX : <http://t.test/> "


def _sparql(rng: random.Random) -> str:
    names = sorted(rng.sample("abcd", rng.choice([1, 1, 2, 2, 3])))
    triples = " ; ".join(f":{name} ?{name}" for name in names)
    test = f" FILTER(?{names[0]} > {rng.randint(0, 2)})" if rng.random() < 0.4 else ""
    return f"{_PREFIX}SELECT * {{ ?p {triples}{test} }}"


def _rdf(rng: random.Random, number: int) -> Event:
    lines = [
        f"{subject} :{name} {rng.randint(0, 3)} ."
        for subject in (":s", "_:b")
        for name in "abcd"
        if rng.random() < 0.6
    ]
    text = "@prefix : <http://t.test/> . " + " ".join(lines)
    return Event(f"d{number}", text, content_type="turtle")


def _sql(rng: random.Random) -> str:
    clauses = [
        f"x >= {rng.randint(0, 3)}",
        f"y = '{rng.choice('uvw')}'",
        f"z < {rng.randint(2, 5)}",
        "w IS NOT NULL",
    ]
    return " AND ".join(rng.sample(clauses, rng.choice([1, 1, 2, 2, 3])))


def _record(rng: random.Random, number: int) -> Event:
    data: dict[str, Any] = {
        "id": f"d{number}",
        "x": rng.randint(0, 5),
        "y": rng.choice("uvw"),
        "z": rng.randint(0, 6),
    }
    if rng.random() < 0.5:
        data["w"] = 1
    return Event(f"d{number}", data)
