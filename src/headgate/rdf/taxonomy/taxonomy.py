"""The taxonomy: which class lies below which, which property below which, and what is an instance of what."""

from __future__ import annotations

import contextlib
import threading
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from headgate.errors import TaxonomyError
from headgate.rdf.events.reading import Reader, make_graph
from headgate.rdf.events.screening import Limits
from headgate.rdf.language.model import RDF, RDFS, SUBCLASS, SUBPROPERTY, TYPE, Graph
from headgate.rdf.language.terms import is_iri
from headgate.rdf.taxonomy.closure import Closure, build_closure

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

    from headgate.rdf.language.model import Term

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

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[Statement, None] = {}
        self._version = 0
        self._made: _Made | None = None
        self.ignored = 0
        """How many statements were left out because of their property: labels, comments and so on."""
        self.unnamed = 0
        """How many were left out because a class, property or instance is a blank node or a literal."""

    @classmethod
    def of(cls, statements: Iterable[Statement]) -> Taxonomy:
        """Make a taxonomy of statements; those that say nothing about one are counted and left out."""
        taxonomy = cls()
        for statement in statements:
            if taxonomy._counts(statement):
                taxonomy._held[statement] = None
        return taxonomy

    @classmethod
    def read(cls, data: str | bytes, content_type: str, reader: Reader | None = None) -> Taxonomy:
        """Read a vocabulary in one of the RDF formats; it may be much larger than an event."""
        if reader is not None:
            return cls.of(reader.read(data, content_type).statements())
        with contextlib.closing(Reader(limits=VOCABULARY)) as large:
            return cls.of(large.read(data, content_type).statements())

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
        why = _unfit(statement)
        if why:
            raise TaxonomyError(f"{' '.join(statement)} cannot be part of a taxonomy: {why}")
        with self._lock:
            if statement not in self._held:
                self._held[statement] = None
                self._version += 1

    def remove(self, statement: Statement) -> None:
        """Remove a statement."""
        with self._lock:
            if statement not in self._held:
                raise TaxonomyError(f"{' '.join(statement)} is not in the taxonomy")
            del self._held[statement]
            self._version += 1

    def ancestors(self, term: Term) -> frozenset[Term]:
        """List a class and all above it; a class that the taxonomy does not know is alone."""
        made = self._now()
        return made.row(made.closure.class_start, made.closure.class_up, term) or frozenset((term,))

    def property_ancestors(self, term: Term) -> frozenset[Term]:
        """List a property and all above it."""
        made = self._now()
        return made.row(made.closure.property_start, made.closure.property_up, term) or frozenset((term,))

    def types(self, term: Term) -> frozenset[Term]:
        """List the classes that the taxonomy gives an instance, without their ancestors."""
        made = self._now()
        return made.row(made.closure.type_start, made.closure.type_of, term)

    def closure(self) -> Closure:
        """Return all of it as flat arrays; what is returned does not change any more."""
        return self._now().closure

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the statements as arrays, for a snapshot."""
        graph = make_graph(self.statements())
        return {"taxonomy_terms": np.frombuffer(graph.text, np.uint8), "taxonomy_triples": graph.triples}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Taxonomy:
        """Make a taxonomy of what `to_arrays` gave."""
        graph = Graph(arrays["taxonomy_terms"].tobytes(), np.asarray(arrays["taxonomy_triples"], np.int32))
        return cls.of(graph.statements())

    def __reduce__(self) -> tuple[object, ...]:
        """Go to another process as the statements."""
        return Taxonomy.of, (self.statements(),)

    def _counts(self, statement: Statement) -> bool:
        """Tell whether a statement belongs here, and count it if not."""
        why = _unfit(statement)
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

    def row(self, start: NDArray[np.int64], items: NDArray[np.int32], term: Term) -> frozenset[Term]:
        """Read the row of a term."""
        t = bisect_left(self.terms, term)
        if t == len(self.terms) or self.terms[t] != term:
            return frozenset()
        return frozenset(self.terms[item] for item in items[start[t] : start[t + 1]].tolist())


def _make(version: int, held: Iterable[Statement]) -> _Made:
    pairs: dict[Term, list[tuple[Term, Term]]] = {SUBCLASS: [], SUBPROPERTY: [], TYPE: []}
    for low, relation, high in held:
        pairs[relation].append((low, high))
    closure = build_closure(pairs[SUBCLASS], pairs[SUBPROPERTY], pairs[TYPE])
    return _Made(version, closure, closure.terms.decode().split("\n") if closure.terms else [])


_UNNAMED = "a class, a property and an instance are IRIs"


def _unfit(statement: Statement) -> str:
    """Say why a statement is no part of a taxonomy, or nothing."""
    low, relation, high = statement
    if relation not in {SUBCLASS, SUBPROPERTY, TYPE}:
        return "the property is one of rdfs:subClassOf, rdfs:subPropertyOf, rdf:type"
    if not is_iri(low) or not is_iri(high):
        return _UNNAMED
    if relation == TYPE and high.startswith(_VOCABULARIES):
        return "a type of RDF, RDFS or OWL says what a term is in a vocabulary, and makes no instance"
    return ""
