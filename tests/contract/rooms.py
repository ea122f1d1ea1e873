"""The content rooms, as their common tests see them. A room joins by adding itself to `ROOMS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from msgspec import structs

from headgate.contents.mixed.kind import read_dialect, with_dialect
from headgate.contents.registry import kind_of
from headgate.core.rooms import MIXED_SIGN
from headgate.core.subscription import MIXED
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language.model import Edge, Pattern
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.language.rewrite import substitute
from headgate.records.index.index import RecordIndex
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.model import Pattern as Tree
from headgate.xml.language.parse import parse_filter as parse_tree
from headgate.xml.language.printing import print_pattern as print_tree
from tests.rdf.random_patterns import random_graph, random_pattern
from tests.records.random_filters import SCHEMA, random_event, random_filter
from tests.xml.random_patterns import random_document
from tests.xml.random_patterns import random_pattern as random_tree

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from headgate.contents.protocol import ContentRoom


@dataclass(frozen=True)
class Room:
    """A room's class, and how to draw filters and events for it.

    `both` writes the conjunction of two filters. `whole`: a filter holds if all of its clauses do. `names`
    are some that clauses look at.
    """

    name: str
    index: ContentRoom
    draw_filter: Callable[[random.Random], str]
    draw_row: Callable[[random.Random, int], dict[str, object]]
    schema: pa.Schema
    both: Callable[[str, str], str]
    whole: bool
    names: tuple[str, ...]


class WithoutPlanes(RecordIndex):
    """Records that are asked by `match` and `next` only."""

    def filter_planes(self, first: int, size: int) -> None:
        """Have none."""
        del first, size


def draw_document(rng: random.Random, number: int) -> dict[str, object]:
    """Draw a row whose text is RDF."""
    lines = [f"{s} {p} {o} .\n" for s, p, o in random_graph(rng).statements()]
    return {"id": number, "data": "".join(lines), "datacontenttype": "nt"}


def both_patterns(one: str, other: str) -> str:
    """Put two patterns side by side that share no variable."""
    left, right = parse_filter(one), parse_filter(other)
    fresh = {name: f"{name}_2" for name in right.variables}
    edges = tuple(
        Edge(
            fresh.get(edge.subject, edge.subject),
            fresh.get(edge.property, edge.property),
            fresh.get(edge.object, edge.object),
            edge.path,
        )
        for edge in right.edges
    )
    filters = tuple(substitute(each, fresh) for each in right.filters)
    return print_pattern(Pattern(left.edges + edges, left.filters + filters))


def draw_xml(rng: random.Random, number: int) -> dict[str, object]:
    """Draw a row whose text is XML."""
    return {"id": number, "data": random_document(rng), "datacontenttype": "application/xml"}


def both_trees(one: str, other: str) -> str:
    """Put two patterns side by side; what they return does not matter."""
    left, right = parse_tree(one).nodes, parse_tree(other).nodes
    count = len(left)
    moved = [each if each.parent < 0 else structs.replace(each, parent=each.parent + count) for each in right]
    return print_tree(Tree(tuple(structs.replace(node, returns=()) for node in (*left, *moved))))


DOCUMENTS: list[pa.Field[Any]] = [
    pa.field("id", pa.int64()),
    pa.field("data", pa.string()),
    pa.field("datacontenttype", pa.string()),
]

ROOMS = [
    Room(
        name="records",
        index=RecordIndex,
        draw_filter=lambda rng: random_filter(rng, wild=True),
        draw_row=random_event,
        schema=SCHEMA,
        both=lambda one, other: f"({one}) AND ({other})",
        whole=True,
        names=tuple(SCHEMA.names),
    ),
    Room(
        name="rdf",
        index=RdfIndex,
        draw_filter=lambda rng: print_pattern(random_pattern(rng)),
        draw_row=draw_document,
        schema=pa.schema(DOCUMENTS),
        both=both_patterns,
        whole=False,
        names=("http://example.org/p0", "http://example.org/p1", "?x", "?y", "?z"),
    ),
    Room(
        name="xml",
        index=XmlIndex,
        draw_filter=lambda rng: print_tree(random_tree(rng)),
        draw_row=draw_xml,
        schema=pa.schema(DOCUMENTS),
        both=both_trees,
        whole=False,
        names=("a", "b", "@x", "text()", "*"),
    ),
]


def draw_mixed(rng: random.Random) -> str:
    """Draw a filter of any of the kinds."""
    room = rng.choice(ROOMS[:3])
    return with_dialect(room.draw_filter(rng), room.index.dialect)


def both_mixed(one: str, other: str) -> str:
    """Write the conjunction of two filters; of two kinds nothing is both, and it is the first with itself."""
    (left, dialect), (right, another) = (read_dialect(each, MIXED) for each in (one, other))
    both = next(room.both for room in ROOMS if room.index.dialect == dialect)
    return with_dialect(both(left, right if dialect == another else left), dialect)


ROOMS.append(
    Room(
        name=MIXED_SIGN.join(room.name for room in ROOMS),
        index=kind_of(MIXED_SIGN.join(room.name for room in ROOMS)).room(),
        draw_filter=draw_mixed,
        draw_row=lambda rng, number: rng.choice(ROOMS[:3]).draw_row(rng, number),
        schema=pa.unify_schemas([SCHEMA, pa.schema(DOCUMENTS)]),
        both=both_mixed,
        whole=False,
        names=("i", "s", "?x", "a", "@x"),
    )
)
every_kind = pytest.mark.parametrize("room", ROOMS[:3], ids=lambda room: room.name)
"""Of one kind each: where several of them, which the contract over all surfaces has, would cost too much."""
every_room = pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
