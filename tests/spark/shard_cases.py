"""Subscriptions and events of every content, with tenants, ranks and a graph."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate import Edge, Engine, Event, Node, Subscription, Taxonomy
from headgate.core.subscription import SPARQL, SQL, XPATH
from headgate.rdf.events.triples import write_lines
from headgate.rdf.language.printing import print_pattern as print_rdf
from headgate.xml.language.printing import print_pattern as print_xml
from tests.rdf.random_patterns import random_graph, random_pattern, random_taxonomy
from tests.xml.random_patterns import random_document
from tests.xml.random_patterns import random_pattern as random_tree

if TYPE_CHECKING:
    from tests.spark.files import Row

COUNTRIES = ["CH", "DE", "FR", "IT", "17", "x"]
SOURCES = ("pub", "n0", "n1", "idle")


@dataclass(frozen=True)
class Case:
    """Tables of one content, and engines that answer for them."""

    content: str
    subscriptions: list[Subscription]
    nodes: list[Node]
    edges: list[Edge]
    events: list[Row]
    taxonomy: Taxonomy | None

    def rows(self, *, graph: bool, ranked: bool) -> list[Row]:
        """List the subscriptions as rows; some have a tenant."""
        found = []
        for number, each in enumerate(self.subscriptions):
            row: Row = {"id": each.id, "filter": each.filter, "dialect": each.dialect}
            row |= {"score": each.score, "weights": each.weights} if ranked else {}
            row |= {"node": each.node} if graph else {}
            row |= {"tenant": f"t{number % 5}"} if number % 4 else {}
            found.append(row)
        return found

    def engine(self, kind: str) -> Engine:
        """Build the same in this process."""
        graph = kind == "graph"
        given = [
            Subscription(
                each.id,
                each.filter,
                each.dialect,
                node=each.node if graph else None,
                score=0.0 if kind == "plain" else each.score,
                weights=None if kind == "plain" else each.weights,
            )
            for each in self.subscriptions
        ]
        more: dict[str, Any] = {"nodes": self.nodes, "edges": self.edges} if graph else {}
        return Engine.build(given, ranked=kind != "plain", taxonomy=self.taxonomy, **more)

    def asked(self) -> list[Event]:
        """List the events."""
        return [Event.from_row(row) for row in self.events]


def _record_filter(rng: random.Random) -> str:
    names = ", ".join(f"'{each}'" for each in rng.sample(COUNTRIES, rng.choice([1, 1, 2])))
    first = rng.choice(
        [f"country IN ({names})", f"country IN ({names})", "country = 17", "country LIKE 'C%'"]
    )
    rest = [f"age > {rng.randrange(60)}", "member", f"price <= {rng.randrange(5)}.5"]
    parts = [*([first] if rng.random() < 0.85 else []), *rng.sample(rest, rng.choice([0, 1, 1, 2]))]
    return " AND ".join(parts) if parts else "age IS NOT NULL"


def _record(rng: random.Random, number: int) -> Row:
    country: object = rng.choice([*COUNTRIES, None, 17, 17.0, True, ["CH"], " 17 "])
    row: Row = {"id": number, "source": rng.choice(SOURCES), "country": country}
    row |= {"age": rng.choice([None, 20, 40, 70]), "price": rng.random() * 5, "member": rng.random() < 0.5}
    if rng.random() < 0.1:
        del row["country"]
    return row


def draw_case(content: str, seed: int, subscriptions: int = 60, events: int = 60) -> Case:
    """Draw a case. Many scores are equal, so that ties are broken by id."""
    rng = random.Random(seed)
    dialect = {"records": SQL, "rdf": SPARQL, "xml": XPATH}[content]

    def draw() -> str:
        if content == "records":
            return _record_filter(rng)
        return print_rdf(random_pattern(rng)) if content == "rdf" else print_xml(random_tree(rng))

    def event(number: int) -> Row:
        if content == "records":
            return _record(rng, number)
        data = (write_lines(random_graph(rng)) or "# nothing\n") if content == "rdf" else random_document(rng)
        kind = "nt" if content == "rdf" else "xml"
        return {"id": number, "source": rng.choice(SOURCES), "data": data, "datacontenttype": kind}

    hung = ("n0", "n1", "n2", "pub")
    subs = [
        Subscription(
            f"s{number:03}",
            draw(),
            dialect,
            node=rng.choice(hung),
            score=float(rng.randrange(3)),
            weights=None,
        )
        for number in range(subscriptions)
    ]
    nodes = [Node("pub"), Node("idle"), Node("n0"), Node("n1", draw(), dialect=dialect), Node("n2")]
    nodes += [
        Node(f"leaf{number}", draw(), subscription=f"node{number}", dialect=dialect) for number in range(6)
    ]
    edges = [Edge("pub", "n0", cost=0.5), Edge("pub", "n1"), Edge("n0", "n2"), Edge("n1", "n2", cost=0.25)]
    edges += [Edge(rng.choice(["n0", "n1", "n2"]), f"leaf{number}") for number in range(6)]
    taxonomy = Taxonomy.of(random_taxonomy(rng)) if content == "rdf" else None
    return Case(content, subs, nodes, edges, [event(number) for number in range(events)], taxonomy)
