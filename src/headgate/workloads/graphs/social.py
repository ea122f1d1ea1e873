"""A social network: persons who publish, pass on and read, with a filter on what interests each of them.

    nodes    "person-0000042"; the subscription is the person's own id
    edges    from a person to each follower
    events   posts of any person, with four attributes

Everyone has a follower and follows someone. Other edges are drawn by the ranks of both ends, as in Chung and
Lu, "Connected components in random graphs with given expected degree sequences", 2002: a person is drawn as
often as (rank + 1) ** -exponent says, by one rank to be followed and by another to follow.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.workloads.catalogue import SOCIAL_SELECTIVITIES
from headgate.workloads.columns import Key, bits, integers, numbered, uniform
from headgate.workloads.graphs.graphs import NODE_SCHEMA, GraphWorkload, Structure, fill
from headgate.workloads.graphs.targeting import targeting
from headgate.workloads.records.specification import Attribute

if TYPE_CHECKING:
    from headgate.workloads.columns import Bools, Ints, Texts
    from headgate.workloads.records.specification import Specification


_ATTRIBUTES = (
    Attribute("form", True, 6),
    Attribute("hour", False, 24),
    Attribute("language", True, 40),
    Attribute("topic", True, 100),
)
_FOLLOWED, _FOLLOWS = 0.75, 0.6
"""Exponents by rank; the tails of degrees then have the exponents 1 + 1 / 0.75 and 1 + 1 / 0.6."""
_SPARSE = 8
"""At most one in so many of the possible edges exists, so that drawing another one seldom fails."""


class Social(GraphWorkload):
    """A network of so many nodes and edges, with filters of one selectivity."""

    table = "social"
    attributes = _ATTRIBUTES

    def __init__(self, nodes: int = 1_000_000, edges: int = 10_000_000, selectivity: str = "1/16") -> None:
        """Refuse what cannot be drawn."""
        if not 2 <= nodes < 2**31:
            raise HeadgateError(f"nodes {nodes}: a social network has from 2 up to 2**31 of them")
        most = nodes * (nodes - 1) // _SPARSE
        if not 2 * nodes <= edges <= most:
            raise HeadgateError(f"edges {edges}: {nodes} nodes have from {2 * nodes} to {most} of them")
        if selectivity not in SOCIAL_SELECTIVITIES:
            known = ", ".join(SOCIAL_SELECTIVITIES)
            raise HeadgateError(f"the social network has no selectivity {selectivity!r}; there are {known}")
        self._nodes, self._edges, self.selectivity = nodes, edges, selectivity

    @property
    def node_count(self) -> int:
        """Count the nodes."""
        return self._nodes

    @property
    def edge_count(self) -> int:
        """Count the edges."""
        return self._edges

    def structure(self, seed: int) -> Structure:
        """Draw the graph, or return the one that was drawn for this seed; there is one kind, 0."""
        return _structure(self._nodes, self._edges, seed)

    def ids(self, places: Ints) -> Texts:
        """Write the ids of nodes."""
        return numbered("person-", places, 7)

    def nodes(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the nodes with the given row numbers."""
        rows = np.asarray(rows, np.int64)
        ids = self.ids(rows)
        columns: list[pa.Array[Any]] = [
            ids,
            pa.repeat(pa.scalar("person"), len(rows)),
            self.filters(rows, seed),
            ids,
            pa.array(np.round(uniform(Key(seed, "social nodes", "score", rows)), 6)),
            pa.array(np.zeros(len(rows))),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=NODE_SCHEMA)

    def has_filter(self, rows: Ints) -> Bools:
        """Tell which nodes have a filter: all, unless everything is selected."""
        return np.full(len(rows), self.selectivity != "1")

    def specification(self, rows: Ints, seed: int) -> Specification:
        """Draw the filters of nodes, each of which must have one."""
        rows = np.asarray(rows, np.int64)
        self.refuse_without(rows)
        key = Key(seed, "social filters", "", rows)
        return targeting(self.attributes, float(Fraction(self.selectivity)), key)

    def sources(self, rows: Ints, seed: int) -> Ints:
        """Draw the persons who publish the events with the given row numbers, all as likely."""
        return integers(Key(seed, "social events", "source", rows), 0, self._nodes)


@lru_cache(maxsize=2)
def _structure(nodes: int, edges: int, seed: int) -> Structure:
    # A rank is given at random, or the first rows would be the popular ones.
    followed, follows = (
        np.argsort(bits(Key(seed, "social", column, np.arange(nodes)))) for column in ("followed", "follows")
    )

    def draw(wanted: int, turn: int) -> Ints:
        key = Key(seed, "social", f"edges {turn}", np.arange(wanted))
        source = followed[_ranks(key, nodes, _FOLLOWED, 0)]
        target = follows[_ranks(key, nodes, _FOLLOWS, 1)]
        return np.where(source == target, -1, source * nodes + target)

    everyone = np.arange(nodes)
    key = Key(seed, "social", "given", everyone)
    target = follows[_ranks(key, nodes, _FOLLOWS, 0)]
    source = followed[_ranks(key, nodes, _FOLLOWED, 1)]
    target[target == everyone] = (everyone[target == everyone] + 1) % nodes
    source[source == everyone] = (everyone[source == everyone] + 1) % nodes
    given = np.concatenate((everyone * nodes + target, source * nodes + everyone))
    return Structure.frozen(np.zeros(nodes, np.int64), *np.divmod(fill(given, edges, draw), nodes))


def _ranks(key: Key, nodes: int, exponent: float, draw: int) -> Ints:
    """Draw ranks by a power law, from its integral: a table of a million ranks is slow to search."""
    power = 1 - exponent
    points = 1 + uniform(key, draw) * ((nodes + 1) ** power - 1)
    points **= 1 / power
    ranks: Ints = points.astype(np.int64) - 1
    return np.minimum(ranks, nodes - 1)
