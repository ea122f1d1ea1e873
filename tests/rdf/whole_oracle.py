"""pyoxigraph over a whole event as the oracle of whole queries.

What the index matches of a query follows our own definition, which departs from pyoxigraph where `habits`
says. So a difference is explained if the two differ in one of the patterns that the index takes out of the
query, and in no other case.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import pyoxigraph as ox

from headgate import Event, Omissions, Subscription
from headgate.core.event import N_TRIPLES
from headgate.errors import FilterError
from headgate.rdf.index.bindings import Facts
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import SUBCLASS, SUBPROPERTY, Options, Pattern
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.query import Query, parse_any
from tests.rdf.oracle import judge
from tests.rdf.random_patterns import random_graph, random_taxonomy
from tests.rdf.random_queries import RandomQueries

if TYPE_CHECKING:
    import random

    from headgate.rdf.language.model import Graph
    from headgate.rdf.whole.query import AnyFilter

QUERIES = 20
EVENTS = 10
ALLOWED = Options(unindexed=1_000)
_EXPECTED = (
    "binds",
    "it has one already",
    "a literal is neither a class nor a property",
    "64 triple patterns",
)
"""Of queries that are drawn blindly: conditions on what nothing binds, and names that are given twice."""


class Drawn(NamedTuple):
    """A query as it was written, and as it was parsed."""

    text: str
    parsed: AnyFilter


def draw(rng: random.Random, count: int, *, taxonomy: bool = False) -> list[Drawn]:
    """Draw queries that are accepted."""
    source = RandomQueries(rng, taxonomy=taxonomy)
    found: list[Drawn] = []
    while len(found) < count:
        text = source.query()
        try:
            found.append(Drawn(text, parse_any(text)))
        except FilterError as error:
            if not any(each in str(error) for each in _EXPECTED):
                raise
    return found


def store_of(graph: Graph, taxonomy: Taxonomy) -> ox.Store:
    """Put an event and what lies above its terms into one graph."""
    statements = list(Facts(graph, taxonomy).statements)
    reached = {term for each in statements for term in each}
    known = [each for each in taxonomy.statements() if each[1] in (SUBCLASS, SUBPROPERTY)]
    size = -1
    while size != len(reached):
        size = len(reached)
        reached |= {high for low, _, high in known if low in reached}
    statements += [each for each in known if each[0] in reached]
    lines = "".join(f"{s} {p} {o} .\n" for s, p, o in statements)
    store = ox.Store()
    store.extend(ox.parse(lines.encode(), ox.RdfFormat.N_TRIPLES))
    return store


def holds(store: ox.Store, drawn: Drawn) -> bool:
    """Ask pyoxigraph whether a query has an answer."""
    form, _, body = drawn.text.partition(" WHERE ")
    found = store.query(f"ASK {body}" if form.startswith("CONSTRUCT") else drawn.text)
    return bool(found) if isinstance(found, ox.QueryBoolean) else next(iter(found), None) is not None


def explained(drawn: Drawn, graph: Graph, taxonomy: Taxonomy) -> bool:
    """Tell whether our definition and pyoxigraph differ in a pattern of a query."""
    parsed = drawn.parsed
    patterns = [parsed] if isinstance(parsed, Pattern) else [each for each, _ in parsed.members]
    return any(not judge(each, graph, taxonomy).agreed for each in patterns)


def compare(rng: random.Random, *, taxonomy: bool = False) -> Counter[str]:
    """Compare some queries over some events, in base and tail; counts what came of it, and lists mistakes."""
    count: Counter[str] = Counter()
    queries = draw(rng, QUERIES, taxonomy=taxonomy)
    known = Taxonomy.of(random_taxonomy(rng) if taxonomy else [])
    given = [Subscription(number, each.text, "sparql") for number, each in enumerate(queries)]
    index = RdfIndex.build(given[: QUERIES // 2], taxonomy=known, options=ALLOWED)
    for each in given[QUERIES // 2 :]:
        index.subscribe(each)
    for number in range(EVENTS):
        graph = random_graph(rng)
        with Omissions() as left_out:
            found = set(index.match(Event(str(number), graph, content_type=N_TRIPLES)))
        assert not list(left_out)
        store = store_of(graph, known)
        for place, drawn in enumerate(queries):
            theirs = holds(store, drawn)
            count["pairs"] += 1
            count["matches"] += theirs
            if isinstance(drawn.parsed, Query):
                count["verified" if drawn.parsed.verified else "decided"] += 1
                count["every event"] += drawn.parsed.unindexed
            if (place in found) is theirs:
                continue
            assert explained(drawn, graph, known), (
                drawn.text,
                graph.statements(),
                known.statements(),
                theirs,
            )
            count["explained"] += 1
    return count
