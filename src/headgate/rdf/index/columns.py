"""Many compiled filters in columns: built into an index, read back from one, sent between machines.

edges[edge_start[f]:edge_start[f + 1]]      (s, p, o): places in `terms`, or -1 less the slot
ranges …                                    slot, line and flags; the ends stand in `ends`
words …                                     the other checks, without END; texts and expressions by place
slots[f]                                    how many slots there are

A whole query may have several patterns, its members; all other filters have one. So what is said of f
here is said of members, and filter f has those from member_start[f] on, each with its role. What the
evaluator is asked stands in `asks`, one for each filter that it verifies, in their order.
"""

from __future__ import annotations

from array import array
from itertools import pairwise
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.columns import joined_starts, merged, picked
from headgate.core.interning import TextPool
from headgate.rdf.index.compile import FIRST_TERMS, Pool, Pools, compile_pattern
from headgate.rdf.index.laying import EXPRESSION_WORD, TERM_WORD, TEXT_WORD, recode, roles_of
from headgate.rdf.language.model import DECIDES, TYPE, Pattern
from headgate.rdf.whole.query import Query, check_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.contents.protocol import Keys
    from headgate.core.arrays import Bools, Floats64, Ints, Ints32
    from headgate.rdf.index.compile import CompiledPattern
    from headgate.rdf.language.model import Graph, Options
    from headgate.rdf.whole.query import AnyFilter


class Columns(NamedTuple):
    """Compiled filters; the pools hold distinct texts."""

    slots: NDArray[np.int8]
    edge_start: Ints
    edges: Ints32
    range_start: Ints
    ranges: NDArray[np.int8]
    ends: Floats64
    word_start: Ints
    words: Ints32
    terms: TextPool
    texts: TextPool
    expressions: TextPool
    member_start: Ints
    roles: NDArray[np.int8]
    asks: TextPool

    @property
    def size(self) -> int:
        """Count the filters."""
        return len(self.member_start) - 1

    @property
    def members(self) -> int:
        """Count their patterns."""
        return len(self.slots)


class Writer:
    """Compiles filters one after another into columns."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.pools = Pools(Pool(FIRST_TERMS), Pool(), Pool())
        # Numbers, not lists of tuples, which the garbage collector would go through again and again.
        self._slots, self._ranges = array("b"), array("b")
        self._edge_start, self._range_start, self._word_start = (
            array("q", [0]),
            array("q", [0]),
            array("q", [0]),
        )
        self._edges, self._words = array("i"), array("i")
        self._ends = array("d")
        self._member_start, self._roles = array("q", [0]), array("b")
        self._asks: list[str] = []

    def add(self, filter_: AnyFilter) -> list[CompiledPattern]:
        """Compile a filter and append it; returns its patterns."""
        if isinstance(filter_, Query):
            check_options(filter_, self._options)
        compiled = [self._add_member(pattern) for pattern, _ in filter_.members]
        self._roles.extend(role for _, role in filter_.members)
        self._member_start.append(len(self._roles))
        if isinstance(filter_, Query) and filter_.verified:
            self._asks.append(filter_.question)
        return compiled

    def _add_member(self, pattern: Pattern) -> CompiledPattern:
        compiled = compile_pattern(pattern, self._options, self.pools)
        slots = 0
        for edge in compiled.edges:
            self._edges.extend(edge)
            slots = min(slots, *edge)
        self._slots.append(-slots)
        self._edge_start.append(len(self._edges) // 3)
        for slot, line, low, high, flags in compiled.ranges:
            self._ranges.extend((slot, line, flags))
            self._ends.extend((low, high))
        self._range_start.append(len(self._ranges) // 3)
        self._words.extend(compiled.words)
        self._word_start.append(len(self._words))
        return compiled

    def columns(self) -> Columns:
        """Return what was added."""
        texts = [each.decode(errors="surrogatepass") for each in self.pools.texts.texts]
        return Columns(
            np.array(self._slots, np.int8),
            np.array(self._edge_start, np.int64),
            np.array(self._edges, np.int32).reshape(-1, 3),
            np.array(self._range_start, np.int64),
            np.array(self._ranges, np.int8).reshape(-1, 3),
            np.array(self._ends, np.float64).reshape(-1, 2),
            np.array(self._word_start, np.int64),
            np.array(self._words, np.int32),
            TextPool.build(self.pools.terms.texts),
            TextPool.build(texts),
            TextPool.build(self.pools.expressions.texts),
            np.array(self._member_start, np.int64),
            np.array(self._roles, np.int8),
            TextPool.build(self._asks),
        )


def compile_all(patterns: Iterable[AnyFilter], options: Options) -> Columns:
    """Compile filters."""
    writer = Writer(options)
    for pattern in patterns:
        writer.add(pattern)
    return writer.columns()


_POOLS = (attrgetter("terms"), attrgetter("texts"), attrgetter("expressions"))


def concatenate(parts: Sequence[Columns]) -> Columns:
    """Put the filters of several columns one behind another, with one dictionary."""
    if len(parts) == 1:
        return parts[0]
    pools = tuple(merged([pool(each) for each in parts]) for pool in _POOLS)
    edges, words = [], []
    for n, each in enumerate(parts):
        terms, texts, expressions = (pool[1][n] for pool in pools)
        edges.append(np.where(each.edges >= 0, terms[np.maximum(each.edges, 0)], each.edges))
        moved = each.words.copy()
        recode(moved, terms, texts, expressions)
        words.append(moved)
    return Columns(
        np.concatenate([each.slots for each in parts]),
        joined_starts([each.edge_start for each in parts]),
        np.concatenate(edges).astype(np.int32).reshape(-1, 3),
        joined_starts([each.range_start for each in parts]),
        np.concatenate([each.ranges for each in parts]).reshape(-1, 3),
        np.concatenate([each.ends for each in parts]).reshape(-1, 2),
        joined_starts([each.word_start for each in parts]),
        np.concatenate(words),
        pools[0][0],
        pools[1][0],
        pools[2][0],
        joined_starts([each.member_start for each in parts]),
        np.concatenate([each.roles for each in parts]),
        TextPool.build([text for each in parts for text in each.asks.texts()]),
    )


def take(columns: Columns, order: Ints) -> Columns:
    """Pick filters, with what they name and nothing else."""
    member_start, members = picked(columns.member_start, order)
    asks = columns.asks
    if asks.size:
        verified = verified_of(columns.member_start, columns.roles)
        question = np.cumsum(verified) - 1
        asks = asks.take(question[order][verified[order]])
    taken = _taken(columns, members)
    return taken._replace(member_start=member_start, roles=columns.roles[members], asks=asks)


def verified_of(member_start: Ints, roles: NDArray[np.int8]) -> Bools:
    """Tell which filters the evaluator verifies: those with a member that does not decide."""
    undecided = np.concatenate([np.zeros(1, np.int64), np.cumsum(roles != DECIDES)])
    return undecided[member_start[1:]] > undecided[member_start[:-1]]


def _taken(columns: Columns, order: Ints) -> Columns:
    """Pick members."""
    parts: dict[str, Any] = {}
    for name, start in (("edges", "edge_start"), ("ranges", "range_start"), ("words", "word_start")):
        parts[start], at = picked(getattr(columns, start), order)
        parts[name] = getattr(columns, name)[at]
        if name == "ranges":
            parts["ends"] = columns.ends[at]
    return _trimmed(columns._replace(slots=columns.slots[order], **parts))


def _trimmed(columns: Columns) -> Columns:
    """Leave out terms, texts and expressions that no filter names."""
    pools = (columns.terms, columns.texts, columns.expressions)
    used = [np.zeros(pool.size, np.bool_) for pool in pools]
    used[0][: len(FIRST_TERMS)] = True
    used[0][columns.edges[columns.edges >= 0]] = True
    roles = roles_of(columns.words)
    for marks, role in zip(used, (TERM_WORD, TEXT_WORD, EXPRESSION_WORD), strict=True):
        marks[columns.words[roles == role]] = True
    if all(each.all() for each in used):
        return columns
    places = [(np.cumsum(each) - 1).astype(np.int32) for each in used]
    words = columns.words.copy()
    recode(words, *places)
    edges = np.where(columns.edges >= 0, places[0][np.maximum(columns.edges, 0)], columns.edges)
    kept = [
        TextPool.from_arrow(pool.to_arrow().filter(pa.array(each)))
        for pool, each in zip(pools, used, strict=True)
    ]
    return columns._replace(
        edges=edges.astype(np.int32), words=words, terms=kept[0], texts=kept[1], expressions=kept[2]
    )


def class_key(term: str) -> str:
    """Return the key of a class that something is an instance of."""
    return f"a {term}"


def rdf_keys(columns: Columns, listed: frozenset[str]) -> list[Keys]:
    """List the properties and classes that patterns demand; not of edges that go by the taxonomy.

    >>> from headgate.rdf.index.columns import compile_all
    >>> from headgate.rdf.language.model import Options
    >>> from headgate.rdf.language.parse import parse_filter
    >>> pattern = parse_filter("ASK { ?x a <urn:Art> ; <urn:by> ?who ; a/rdfs:subClassOf* <urn:Thing> }")
    >>> [sorted(keys) for keys in rdf_keys(compile_all([pattern], Options()), frozenset())]
    [['<urn:by>', 'a <urn:Art>']]
    """
    members = member_keys(columns, listed)
    if columns.members == columns.size:
        return members
    # Of a whole query any pattern may hold: an event has what they share.
    return [
        frozenset.intersection(*(each or frozenset() for each in members[begin:end])) or None
        for begin, end in pairwise(columns.member_start.tolist())
    ]


def member_keys(columns: Columns, listed: frozenset[str]) -> list[Keys]:
    """List the same of each pattern of filters."""
    terms = columns.terms.texts()
    keys: list[Keys] = []
    starts, edges = columns.edge_start.tolist(), columns.edges.tolist()
    for begin, end in pairwise(starts):
        used: set[str] = set()
        for _, relation, target in edges[begin:end]:
            if relation < 0 or not terms[relation].startswith("<"):
                continue
            if terms[relation] != TYPE:
                used.add(terms[relation])
            elif target >= 0 and terms[target] not in listed:
                used.add(class_key(terms[target]))
        keys.append(frozenset(used) or None)
    return keys


def graph_keys(graph: Graph) -> Iterator[str]:
    """List the properties of a graph, and the classes that something is an instance of."""
    terms = graph.terms()
    for relation in np.unique(graph.triples[:, 1]).tolist():
        yield terms[relation]
        if terms[relation] == TYPE:
            of = graph.triples[graph.triples[:, 1] == relation, 2]
            yield from (class_key(terms[target]) for target in np.unique(of).tolist())
