"""The taxonomy: which class lies below which, which property below which, and what is an instance of what.

Its closure is what lies above each class and each property, as flat arrays:

    terms            classes, properties and instances, a line each, sorted by their bytes
    class_up         ancestors of the term at place t: class_up[class_start[t]:class_start[t + 1]], rising;
                     every term is an ancestor of itself, whether it is a class or not
    property_up      the same for rdfs:subPropertyOf
    type_of          the classes that the taxonomy lists for the instance at place t, rising; no ancestors

Classes on a cycle are ancestors of each other, so they all have the same ancestors.
"""

from __future__ import annotations

import contextlib
import re
import threading
from bisect import bisect_left
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from headgate.core.arguments import listed, told
from headgate.errors import TaxonomyError
from headgate.rdf.events.reading import Reader, make_graph
from headgate.rdf.events.screening import Limits
from headgate.rdf.language.model import (
    DOMAIN,
    MEMBER,
    RANGE,
    RDF,
    RDFS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Graph,
    is_iri,
    is_literal,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints, Ints32
    from headgate.rdf.language.model import Term


LIMIT = 20_000_000
"""How many pairs of a term and its ancestor there may be: a chain of n classes has n * (n + 1) / 2."""

_STATEMENTS = "give a list of them, of three terms each"


class Closure(NamedTuple):
    """The taxonomy at one version. An array of starts is one longer than there are terms."""

    terms: bytes
    class_start: Ints
    class_up: Ints32
    property_start: Ints
    property_up: Ints32
    type_start: Ints
    type_of: Ints32


def build_closure(
    classes: Iterable[tuple[Term, Term]],
    properties: Iterable[tuple[Term, Term]],
    types: Iterable[tuple[Term, Term]],
) -> Closure:
    """Close pairs of a term and the one above it; `types` are pairs of an instance and its class.

    >>> closure = build_closure([("<urn:Man>", "<urn:Human>")], [], [("<urn:Socrates>", "<urn:Man>")])
    >>> closure.terms.split()
    [b'<urn:Human>', b'<urn:Man>', b'<urn:Socrates>']
    >>> closure.class_start.tolist(), closure.class_up.tolist(), closure.type_of.tolist()
    ([0, 1, 3, 4], [0, 0, 1, 2], [1])
    """
    pairs = [sorted(set(each)) for each in (classes, properties, types)]
    terms = sorted({term for each in pairs for pair in each for term in pair})
    number_of = {term: t for t, term in enumerate(terms)}
    numbered = [[(number_of[low], number_of[high]) for low, high in each] for each in pairs]
    above_classes = _above(len(terms), numbered[0])
    above_properties = _above(len(terms), numbered[1])
    listed: list[list[int]] = [[] for _ in terms]
    for instance, of in numbered[2]:
        listed[instance].append(of)
    return Closure(
        "\n".join(terms).encode(),
        *_rows(above_classes),
        *_rows(above_properties),
        *_rows(listed),
    )


def _above(count: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """List what lies above each number, itself included, rising; those on a cycle share one list."""
    parents: dict[int, list[int]] = {}
    for low, high in pairs:
        parents.setdefault(low, []).append(high)
        parents.setdefault(high, [])
    above = [[t] for t in range(count)]
    size = count
    for component in _components(parents):
        over = {parent for member in component for parent in parents[member]}.difference(component)
        shared = sorted(set(component).union(*(above[parent] for parent in over)))
        size += len(component) * (len(shared) - 1)
        if size > LIMIT:
            raise TaxonomyError(
                f"the taxonomy has more than {LIMIT:,} pairs of a class and its ancestor:"
                f" leave out what the filters do not name"
            )
        for member in component:
            above[member] = shared
    return above


def _components(parents: Mapping[int, list[int]]) -> list[list[int]]:
    """List the strongly connected components, each behind those above it (Tarjan 1972, without recursion)."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    waiting: dict[int, None] = {}
    components: list[list[int]] = []
    for root in parents:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        waiting[root] = None
        walk = [(root, iter(parents[root]))]
        while walk:
            vertex, rest = walk[-1]
            for parent in rest:
                if parent not in order:
                    order[parent] = lowest[parent] = len(order)
                    waiting[parent] = None
                    walk.append((parent, iter(parents[parent])))
                    break
                if parent in waiting:
                    lowest[vertex] = min(lowest[vertex], order[parent])
            else:
                walk.pop()
                if walk:
                    below = walk[-1][0]
                    lowest[below] = min(lowest[below], lowest[vertex])
                if lowest[vertex] == order[vertex]:
                    component: list[int] = []
                    while vertex in waiting:
                        component.append(waiting.popitem()[0])
                    components.append(component)
    return components


def _rows(rows: list[list[int]]) -> tuple[Ints, Ints32]:
    """Lay lists into one array, with the starts."""
    start = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=start[1:])
    return start, np.fromiter(chain.from_iterable(rows), np.int32, int(start[-1]))


Statement: TypeAlias = "tuple[Term, Term, Term]"

VOCABULARY = Limits(size=256 << 20, triples=5_000_000, terms=1 << 30, memory=4 << 30)
"""What a vocabulary may ask for: its owner loads it, and it is read once."""
OWL = "http://www.w3.org/2002/07/owl#"
_VOCABULARIES = (f"<{RDF}", f"<{RDFS}", f"<{OWL}")
"""A type from these says what a term is in a vocabulary (a class, a property): that is no instance of use."""


class Taxonomy:
    """Statements of a class below a class, a property below a property, and an instance of a class.

    A class may lie below several. Any number of threads may ask while others change it: an answer is about
    one version. Cycles are allowed; all of a cycle are ancestors of each other.

    >>> taxonomy = Taxonomy.of([("<urn:Man>", SUBCLASS, "<urn:Human>"), ("<urn:Plato>", TYPE, "<urn:Man>")])
    >>> sorted(taxonomy.ancestors("<urn:Man>")), taxonomy.types("<urn:Plato>")
    (['<urn:Human>', '<urn:Man>'], frozenset({'<urn:Man>'}))
    >>> taxonomy.add(("<urn:Human>", SUBCLASS, "<urn:Mortal>"))
    >>> sorted(taxonomy.ancestors("<urn:Man>")), taxonomy.version
    (['<urn:Human>', '<urn:Man>', '<urn:Mortal>'], 1)
    """

    def __init__(self, *, schema: bool = False) -> None:
        self.schema = schema
        """Whether rdfs:domain and rdfs:range are part of it, and give types to what has a property."""
        self._lock = threading.Lock()
        self._held: dict[Statement, None] = {}
        self._version = 0
        self._made: _Made | None = None
        self.ignored = 0
        """How many statements were left out because of their property: labels, comments and so on."""
        self.unnamed = 0
        """How many were left out because a class, property or instance is a blank node or a literal."""

    @classmethod
    def of(cls, statements: Iterable[Statement], *, schema: bool = False) -> Taxonomy:
        """Make a taxonomy of statements; those that say nothing about one are counted and left out."""
        taxonomy = cls(schema=schema)
        for statement in listed(statements, "statements", TaxonomyError, _STATEMENTS):
            if taxonomy._counts(statement):
                taxonomy._held[statement] = None
        return taxonomy

    @classmethod
    def read(
        cls, data: str | bytes, content_type: str, reader: Reader | None = None, *, schema: bool = False
    ) -> Taxonomy:
        """Read a vocabulary in one of the RDF formats; it may be much larger than an event."""
        _check_vocabulary(data, content_type)
        if reader is not None:
            return cls.of(reader.read(data, content_type).statements(), schema=schema)
        with contextlib.closing(Reader(limits=VOCABULARY)) as large:
            return cls.of(large.read(data, content_type).statements(), schema=schema)

    @property
    def version(self) -> int:
        """Return a number that rises with every change."""
        return self._version

    def __len__(self) -> int:
        """Count the statements."""
        return len(self._held)

    def statements(self) -> list[Statement]:
        """List the statements, sorted."""
        with self._lock:
            return sorted(self._held)

    def add(self, statement: Statement) -> None:
        """Add a statement; nothing changes if it is there."""
        why = _unfit(statement, self.schema)
        if why:
            raise TaxonomyError(f"{' '.join(statement)} cannot be part of a taxonomy: {why}")
        with self._lock:
            if statement not in self._held:
                self._held[statement] = None
                self._version += 1

    def remove(self, statement: Statement) -> None:
        """Remove a statement."""
        _check(statement)
        with self._lock:
            if statement not in self._held:
                raise TaxonomyError(f"{' '.join(statement)} is not in the taxonomy")
            del self._held[statement]
            self._version += 1

    def ancestors(self, term: Term) -> frozenset[Term]:
        """List a class and all above it; a class that the taxonomy does not know is alone."""
        _check_term(term)
        made = self._now()
        return made.row(made.closure.class_start, made.closure.class_up, term) or frozenset((term,))

    def property_ancestors(self, term: Term) -> frozenset[Term]:
        """List a property and all above it."""
        _check_term(term)
        made = self._now()
        return made.row(made.closure.property_start, made.closure.property_up, term) or frozenset((term,))

    def types(self, term: Term) -> frozenset[Term]:
        """List the classes that the taxonomy gives an instance, without their ancestors."""
        _check_term(term)
        made = self._now()
        return made.row(made.closure.type_start, made.closure.type_of, term)

    @property
    def schemas(self) -> dict[Term, tuple[tuple[Term, ...], tuple[Term, ...]]]:
        """Return the domains and the ranges of properties that have some."""
        return self._now().schemas if self.schema else {}

    def ups(self) -> dict[Term, list[Statement]]:
        """Return the statements that lead upwards, by the term from which they do."""
        return self._now().ups

    def closure(self) -> Closure:
        """Return all of it as flat arrays; what is returned does not change any more."""
        return self._now().closure

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the statements as arrays, for a snapshot."""
        graph = make_graph(self.statements())
        return {
            "taxonomy_terms": np.frombuffer(graph.text, np.uint8),
            "taxonomy_triples": graph.triples,
            "taxonomy_schema": np.array([self.schema], np.uint8),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Taxonomy:
        """Make a taxonomy of what `to_arrays` gave."""
        graph = Graph(arrays["taxonomy_terms"].tobytes(), np.asarray(arrays["taxonomy_triples"], np.int32))
        return cls.of(graph.statements(), schema=bool(arrays["taxonomy_schema"][0]))

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as the statements."""
        return partial(Taxonomy.of, schema=self.schema), (self.statements(),)

    def _counts(self, statement: Statement) -> bool:
        """Tell whether a statement belongs here, and count it if not."""
        why = _unfit(statement, self.schema)
        if why == _UNNAMED:
            self.unnamed += 1
        elif why:
            self.ignored += 1
        return not why

    def _now(self) -> _Made:
        """Return the closure of this version, made by whoever asks first."""
        made = self._made
        if made is not None and made.version == self._version:
            return made
        with self._lock:
            if self._made is None or self._made.version != self._version:
                self._made = _make(self._version, self._held)
            return self._made


class _Made(NamedTuple):
    version: int
    closure: Closure
    terms: list[Term]
    schemas: dict[Term, tuple[tuple[Term, ...], tuple[Term, ...]]]
    ups: dict[Term, list[Statement]]

    def row(self, start: Ints, items: Ints32, term: Term) -> frozenset[Term]:
        """Read the row of a term."""
        t = bisect_left(self.terms, term)
        if t == len(self.terms) or self.terms[t] != term:
            return frozenset()
        return frozenset(self.terms[item] for item in items[start[t] : start[t + 1]].tolist())


def _make(version: int, held: Iterable[Statement]) -> _Made:
    pairs: dict[Term, list[tuple[Term, Term]]] = {
        relation: [] for relation in (SUBCLASS, SUBPROPERTY, TYPE, DOMAIN, RANGE)
    }
    ups: dict[Term, list[Statement]] = {}
    for low, relation, high in held:
        pairs[relation].append((low, high))
        if relation in (SUBCLASS, SUBPROPERTY):
            ups.setdefault(low, []).append((low, relation, high))
    closure = build_closure(pairs[SUBCLASS], pairs[SUBPROPERTY], pairs[TYPE])
    schemas = {
        name: (_highs(pairs[DOMAIN], name), _highs(pairs[RANGE], name))
        for name in dict.fromkeys(low for low, _ in pairs[DOMAIN] + pairs[RANGE])
    }
    terms = closure.terms.decode().split("\n") if closure.terms else []
    return _Made(version, closure, terms, schemas, ups)


def _highs(pairs: Iterable[tuple[Term, Term]], name: Term) -> tuple[Term, ...]:
    return tuple(high for low, high in pairs if low == name)


_UNNAMED = "a class, a property and an instance are IRIs"


def _check_vocabulary(data: object, content_type: object) -> None:
    if not isinstance(data, str | bytes) or not isinstance(content_type, str):
        raise TaxonomyError(
            f"a vocabulary is {told(data)} and its content type {content_type!r}: give text or bytes, and "
            "the name of a format of RDF"
        )


def _check_term(term: object) -> None:
    if not isinstance(term, str):
        raise TaxonomyError(f"{term!r} is not a term: give an IRI in angle brackets, as text")


def _check(statement: object) -> None:
    """Refuse what is no statement."""
    if (
        not isinstance(statement, tuple)
        or len(statement) != 3
        or not all(isinstance(term, str) for term in statement)
    ):
        raise TaxonomyError(f"{statement!r} is not a statement: give a tuple of three terms, as text")


def _unfit(statement: Statement, schema: bool) -> str:
    """Say why a statement is no part of a taxonomy, or nothing."""
    _check(statement)
    low, relation, high = statement
    if relation not in {SUBCLASS, SUBPROPERTY, TYPE, *((DOMAIN, RANGE) if schema else ())}:
        more = ", rdfs:domain, rdfs:range" if schema else ""
        return f"the property is one of rdfs:subClassOf, rdfs:subPropertyOf, rdf:type{more}"
    if not is_iri(low) or not is_iri(high):
        return _UNNAMED
    if relation == TYPE and high.startswith(_VOCABULARIES):
        return "a type of RDF, RDFS or OWL says what a term is in a vocabulary, and makes no instance"
    return ""


_NUMBERED = re.compile(rf"<{re.escape(RDF)}_[1-9][0-9]*>")
_BEGIN = f"<{RDF}_"
CONTAINERS = _BEGIN.encode()
"""What stands in the text of an event that may have containers."""


def is_numbered(term: Term) -> bool:
    """Tell whether a property is one of a container's.

    >>> is_numbered(f"<{RDF}_12>"), is_numbered(f"<{RDF}_0>"), is_numbered(f"<{RDF}type>")
    (True, False, False)
    """
    return term.startswith(_BEGIN) and _NUMBERED.fullmatch(term) is not None


def own_order(statements: Iterable[Statement]) -> Iterator[Statement]:
    """List what an event itself says, or implies, of classes and properties below others."""
    met: set[Term] = set()
    for each in statements:
        if each[1] in (SUBCLASS, SUBPROPERTY):
            yield each
        for term in each:
            # Hardly any does: the rest is not called for each term.
            if term.startswith(_BEGIN) and term not in met and is_numbered(term):
                met.add(term)
                yield term, SUBPROPERTY, MEMBER


def entailed(graph: Graph, taxonomy: Taxonomy | None) -> Graph:
    """Add the types that follow from domains and ranges; the graph itself if there are none.

    A property gives what those above it give, too, by the taxonomy and by what the event says.
    """
    if taxonomy is None or not taxonomy.schemas:
        return graph
    statements = graph.statements()
    own: dict[Term, list[Term]] = {}
    for low, relation, high in own_order(statements):
        if relation == SUBPROPERTY:
            own.setdefault(low, []).append(high)
    ups = partial(reached, own=own, above=taxonomy.property_ancestors)
    given = {
        term: [taxonomy.schemas[up] for up in ups(term) if up in taxonomy.schemas]
        for term in {p for _, p, _ in statements}
    }
    if not any(given.values()):
        return graph
    statements_of = dict.fromkeys(statements)
    for subject, property_, end in statements:
        for domains, ranges in given[property_]:
            statements_of.update(((subject, TYPE, each), None) for each in domains)
            if not is_literal(end):
                statements_of.update(((end, TYPE, each), None) for each in ranges)
    return make_graph(statements_of)


def reached(
    term: Term, own: Mapping[Term, Iterable[Term]], above: Callable[[Term], Iterable[Term]]
) -> frozenset[Term]:
    """List a term and all that lies above it, by what an event says itself and by what else is said."""
    terms = {term}
    waiting = [term]
    while waiting:
        one = waiting.pop()
        higher = {*own.get(one, ()), *above(one)} - terms
        waiting += higher
        terms |= higher
    return frozenset(terms)
