"""The workload of the paper on G-ToPSS (Petrovic, Liu and Jacobsen, WWW 2005, Table 1).

An event is a graph of 35 nodes and 90 edges, and a filter a graph of 5 nodes and up to 6 edges. There are
`publications` different events. The filters:

    ratio x publications    are subgraphs of an event, each as often as another: `ratio` of all match an event
    of the others, overlap  are subgraphs of one of `unsent` graphs that are never sent: they share edges
    the rest                are graphs of their own

In the part `starred` of the filters `stars` nodes are variables. With `constrained`, each third node of a
path is a whole number, and a variable in its place has a bound: the node that it replaces is within it.

A graph of k nodes and m edges is a path through its nodes and m - k + 1 edges between random pairs of
them. Edges are different triples, and join different nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.rdf.language.model import XSD
from headgate.records.programs.programs import starts
from headgate.workloads.columns import Key, choose, digits, either, glue, integers, joined, uniform
from headgate.workloads.rdf.publications import BASE, RdfWorkload, Triples
from headgate.workloads.records.synthetic import distinct

if TYPE_CHECKING:
    from headgate.workloads.columns import Bools, Ints, Texts
    from headgate.workloads.rdf.publications import Statement


EVERY_THIRD = 3
"""With values, each third node of a path is a literal: a number that is a multiple of this."""


class Universe(NamedTuple):
    """What names are drawn from."""

    nodes: int
    labels: int
    values: bool
    """Whether some nodes are whole numbers; these are objects only, and none is next to another."""


class Graphs(NamedTuple):
    """Graphs of one size: a row each. Ends of edges are columns of `nodes`."""

    nodes: Ints
    source: Ints
    label: Ints
    target: Ints
    real: Bools
    """Which edges there are; a subgraph may have fewer than it could."""

    def take(self, rows: Ints) -> Graphs:
        """Return some of the rows."""
        nodes, source, label, target, real = self
        return Graphs(nodes[rows], source[rows], label[rows], target[rows], real[rows])


def draw_graphs(universe: Universe, size: tuple[int, int], key: Key) -> Graphs:
    """Draw a graph of `size`, nodes and edges, for each row of the key."""
    count, edges = size
    nodes = distinct(_column(key, "nodes"), count, universe.nodes)
    if universe.values:
        # A number is a literal's if it is a multiple of three; numbers stay different.
        third = np.arange(count) % EVERY_THIRD == EVERY_THIRD - 1
        nodes = nodes * EVERY_THIRD + np.where(third, 0, 1)
    source, label, target = (np.empty((len(key.rows), edges), np.int64) for _ in range(3))
    for i in range(edges):
        if i < count - 1:
            source[:, i], target[:, i] = i, i + 1
            label[:, i] = integers(_column(key, "label"), 0, universe.labels, i)
            _orient(universe, source, target, i)
            continue
        open_, turn = np.arange(len(key.rows)), 0
        while len(open_):
            own = key._replace(rows=key.rows[open_])
            ends = distinct(_column(own, f"ends {i} {turn}"), 2, count)
            source[open_, i], target[open_, i] = ends[:, 0], ends[:, 1]
            label[open_, i] = integers(_column(own, f"label {turn}"), 0, universe.labels, i)
            _orient(universe, source, target, i)
            same = (source[open_, :i] == source[open_, i, None]) & (
                target[open_, :i] == target[open_, i, None]
            )
            again = (same & (label[open_, :i] == label[open_, i, None])).any(axis=1)
            open_, turn = open_[again], turn + 1
    return Graphs(nodes, source, label, target, np.ones_like(source, np.bool_))


def _orient(universe: Universe, source: Ints, target: Ints, i: int) -> None:
    """Turn edges from a literal around; of two literals one gives way to the node before it on the path."""
    if not universe.values:
        return
    literal = EVERY_THIRD - 1
    both = (source[:, i] % EVERY_THIRD == literal) & (target[:, i] % EVERY_THIRD == literal)
    source[:, i] -= both
    turned = source[:, i] % EVERY_THIRD == literal
    source[turned, i], target[turned, i] = target[turned, i], source[turned, i]


def draw_subgraphs(graphs: Graphs, size: tuple[int, int], key: Key) -> Graphs:
    """Draw a connected subgraph of the graph in the same row: so many nodes, and up to so many edges.

    It starts with a random edge, grows by random edges to nodes it does not have, and then takes random edges
    between the nodes it has.
    """
    count, edges = size
    chosen = np.full((len(graphs.nodes), edges), -1, np.int64)
    inside = np.zeros(graphs.nodes.shape, np.bool_)
    used = ~graphs.real
    for i in range(edges):
        at_source = np.take_along_axis(inside, graphs.source, axis=1)
        at_target = np.take_along_axis(inside, graphs.target, axis=1)
        free = (at_source ^ at_target) if i < count - 1 else (at_source & at_target)
        free = (np.ones_like(used) if i == 0 else free) & ~used
        ranks = np.cumsum(free, axis=1, dtype=np.int32)
        wanted = np.floor(uniform(_column(key, "subgraph"), i) * ranks[:, -1]).astype(np.int32)
        edge = np.argmax(ranks > wanted[:, None], axis=1)
        (some,) = np.nonzero(ranks[:, -1])
        chosen[some, i] = edge[some]
        used[some, edge[some]] = True
        inside[some, graphs.source[some, edge[some]]] = True
        inside[some, graphs.target[some, edge[some]]] = True
    real = chosen >= 0
    position = np.cumsum(inside, axis=1) - 1
    at = np.maximum(chosen, 0)
    source, label, target = (
        np.take_along_axis(each, at, axis=1) for each in (graphs.source, graphs.label, graphs.target)
    )
    return Graphs(
        graphs.nodes[inside].reshape(len(graphs.nodes), count),
        np.take_along_axis(position, source, axis=1),
        label,
        np.take_along_axis(position, target, axis=1),
        real,
    )


def _column(key: Key, column: str) -> Key:
    return key._replace(column=f"{key.column} {column}")


_FILTERS, _EVENTS = "rdf filters", "rdf events"
_SIGNS = (">=", "<=")
_SLACK = 0.1
"""A bound is as far from the value that it allows as this part of all values, at most."""


class Filters(NamedTuple):
    """Filters as arrays: edges of all filters behind each other, then bounds of all filters.

    A node below 0 is a variable: -1 the first of its filter, -2 the second.
    """

    start: Ints
    subject: Ints
    label: Ints
    object: Ints
    bound_row: Ints
    bound_variable: Ints
    bound_sign: Ints
    bound_value: Ints


@dataclass(frozen=True)
class Paper(RdfWorkload):
    """The paper's filters and events.

    >>> Paper(subscription=(3, 3)).filters(np.arange(1), seed=1)[0].as_py()
    'PREFIX : <http://example.org/> ASK { ?v1 :p10 ?v2 . ?v2 :p0 :n1358 . ?v2 :p4 :n1358 }'
    """

    publication: tuple[int, int] = (35, 90)
    """Nodes and edges of an event."""
    subscription: tuple[int, int] = (5, 6)
    """Nodes of a filter, and edges at most."""
    ratio: float = 0.001
    overlap: float = 0.5
    starred: float = 0.9
    stars: int = 2
    constrained: bool = False
    publications: int = 50
    unsent: int = 10
    nodes: int = 10_000
    """How many names there are for nodes."""
    labels: int = 15
    """How many properties there are."""

    def __post_init__(self) -> None:
        """Refuse what cannot be drawn."""
        for what, (nodes, edges) in (("publication", self.publication), ("subscription", self.subscription)):
            if not 2 <= nodes <= edges + 1 <= nodes * (nodes - 1) * self.labels // 2:
                raise HeadgateError(
                    f"a {what} of {nodes} nodes and {edges} edges: give 2 nodes or more, so many edges less "
                    "one at least, and properties enough to tell them apart"
                )
        if not self.subscription[0] <= self.publication[0] <= self.nodes:
            raise HeadgateError(
                f"{self.subscription[0]} nodes of {self.publication[0]} of {self.nodes}: "
                "a subscription has no more than a publication, which has no more than there are"
            )
        if not 0 <= self.stars <= self.subscription[0]:
            raise HeadgateError(f"{self.stars} stars of {self.subscription[0]} nodes: give as many at most")
        if min(self.publications, self.unsent) < 1:
            raise HeadgateError("there must be a publication and an unsent graph at least")
        if not all(0 <= part <= 1 for part in (self.ratio, self.overlap, self.starred)):
            raise HeadgateError("ratio, overlap and starred are parts, from 0 to 1")
        if self.ratio * self.publications > 1:
            raise HeadgateError(
                f"{self.ratio:g} of the subscriptions cannot match each of {self.publications} publications "
                "and no other: lower one of them"
            )

    @property
    def universe(self) -> Universe:
        """Say what names are drawn from."""
        return Universe(self.nodes, self.labels, self.constrained)

    def texts(self, rows: Ints, seed: int) -> Texts:
        """Write the filters of some rows."""
        drawn = self.draw(rows, seed)
        subject, object_ = (self._names(nodes) for nodes in (drawn.subject, drawn.object))
        edges = glue(subject, " :p", digits(drawn.label), " ", object_)
        signs, values = choose(_SIGNS, drawn.bound_sign), digits(drawn.bound_value)
        bounds = glue("FILTER(?v", digits(drawn.bound_variable), " ", signs, " ", values, ")")
        row = np.concatenate((np.repeat(np.arange(len(rows)), np.diff(drawn.start)), drawn.bound_row))
        order = np.argsort(row, kind="stable")
        parts: Texts = pa.concat_arrays([edges, bounds]).take(pa.array(order, pa.int64()))
        inner = joined(starts(np.bincount(row, minlength=len(rows))), parts, " . ")
        return glue(f"PREFIX : <{BASE}> ASK {{ ", inner, " }")

    def triples(self, rows: Ints, seed: int) -> Triples:
        """Draw the events with the given row numbers; there are `publications` different ones."""
        graphs = self.graphs_of(seed).take(rows % self.publications)
        size = graphs.source.shape[1]
        source, target = (
            np.take_along_axis(graphs.nodes, ends, axis=1).ravel() for ends in (graphs.source, graphs.target)
        )
        subject, object_ = (self._written(nodes) for nodes in (source, target))
        label = glue(f"<{BASE}p", digits(graphs.label.ravel()), ">")
        return Triples(np.arange(len(rows) + 1) * size, subject, label, object_)

    def taxonomy(self, seed: int) -> list[Statement]:  # noqa: ARG002 - as others have one
        """Return nothing: the paper's experiments have no classes."""
        return []

    def graphs_of(self, seed: int) -> Graphs:
        """Draw the publications, and behind them the graphs that are never sent."""
        return _pool(self.universe, self.publication, self.publications + self.unsent, seed)

    def kinds(self, rows: Ints, seed: int) -> Ints:
        """Tell which publication a filter is a subgraph of: a number of `graphs_of`, or -1 for none."""
        rows = np.asarray(rows, np.int64)
        matching = self.ratio * self.publications
        where = uniform(Key(seed, _FILTERS, "kind", rows))
        own = integers(Key(seed, _FILTERS, "publication", rows), 0, self.publications)
        other = self.publications + integers(Key(seed, _FILTERS, "unsent", rows), 0, self.unsent)
        overlapping = where < matching + (1 - matching) * self.overlap
        return np.where(where < matching, own, np.where(overlapping, other, -1))

    def draw(self, rows: Ints, seed: int) -> Filters:
        """Draw the filters of some rows."""
        rows = np.asarray(rows, np.int64)
        key = Key(seed, _FILTERS, "", rows)
        kind = self.kinds(rows, seed)
        (within,) = np.nonzero(kind >= 0)
        (alone,) = np.nonzero(kind < 0)
        parts = (
            draw_subgraphs(
                self.graphs_of(seed).take(kind[within]), self.subscription, key._replace(rows=rows[within])
            ),
            draw_graphs(self.universe, self.subscription, key._replace(rows=rows[alone])),
        )
        back = np.argsort(np.concatenate((within, alone)))
        nodes, source, label, target, real = (
            np.concatenate(columns)[back] for columns in zip(*parts, strict=True)
        )
        chosen = distinct(key._replace(column="stars"), self.stars, self.subscription[0])
        chosen[uniform(key._replace(column="starred")) >= self.starred] = -1
        replaced = np.take_along_axis(nodes, np.maximum(chosen, 0), axis=1)
        ends = [np.take_along_axis(nodes, each, axis=1) for each in (source, target)]
        for star in range(self.stars):
            for node, each in zip(ends, (source, target), strict=True):
                node[each == chosen[:, star, None]] = -1 - star
        row, variable, sign, value = self._bounds(replaced, chosen >= 0, key)
        return Filters(
            starts(real.sum(axis=1)), ends[0][real], label[real], ends[1][real], row, variable, sign, value
        )

    def _bounds(self, replaced: Ints, real: Bools, key: Key) -> tuple[Ints, Ints, Ints, Ints]:
        """Draw a bound for each variable that stands for a number."""
        if not self.constrained:
            nothing = np.zeros(0, np.int64)
            return nothing, nothing, nothing, nothing
        row, variable = np.nonzero(real & (replaced % EVERY_THIRD == 0))
        own = key._replace(column="bound", rows=key.rows[row] * self.stars + variable)
        sign = integers(own, 0, 2)
        slack = integers(own, 0, max(1, round(_SLACK * self.nodes)), 1)
        value = replaced[row, variable] // EVERY_THIRD + np.where(sign == 0, -slack, slack)
        return row, variable + 1, sign, value

    def _is_value(self, nodes: Ints) -> Bools:
        return (
            (nodes >= 0) & (nodes % EVERY_THIRD == 0) if self.constrained else np.zeros(len(nodes), np.bool_)
        )

    def _names(self, nodes: Ints) -> Texts:
        """Write nodes and variables as filters do."""
        values = self._is_value(nodes)
        prefix = choose(("?v", ":n", ""), np.where(nodes < 0, 0, np.where(values, 2, 1)))
        return glue(
            prefix, digits(np.where(nodes < 0, -nodes, np.where(values, nodes // EVERY_THIRD, nodes)))
        )

    def _written(self, nodes: Ints) -> Texts:
        """Write nodes as events do."""
        quoted = glue('"', digits(nodes // EVERY_THIRD), f'"^^<{XSD}integer>')
        return either(self._is_value(nodes), quoted, glue(f"<{BASE}n", digits(nodes), ">"))


@lru_cache(maxsize=16)
def _pool(universe: Universe, size: tuple[int, int], count: int, seed: int) -> Graphs:
    return draw_graphs(universe, size, Key(seed, _EVENTS, "", np.arange(count)))
