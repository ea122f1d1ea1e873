r"""Events and filters of the room, as frozen values.

A term is a text as N-Triples writes it, so that one comparison of texts is RDF's term equality:

    <http://example.org/x>          an IRI
    "news"                          a string; never written with ^^xsd:string
    "nouvelles"@fr                  a string with a language, which is in lower case
    "7"^^<http://…#integer>         any other literal
    _:b0                            a blank node, of events only
    ?x                              a variable, of filters only
    ?:b0                            a blank node of a filter, which is a variable that nobody can name

Between the quotes stand the escapes \" \\ \n \r \t and so on, as `literal` writes them: no term
holds a line's end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Term: TypeAlias = str

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = f"<{RDF}type>"
SUBCLASS = f"<{RDFS}subClassOf>"
SUBPROPERTY = f"<{RDFS}subPropertyOf>"
MEMBER = f"<{RDFS}member>"
DOMAIN = f"<{RDFS}domain>"
RANGE = f"<{RDFS}range>"

PLAIN = ""
ISA = "a/rdfs:subClassOf*"
BELOW = "rdfs:subClassOf*"
BELOW_PROPERTY = "rdfs:subPropertyOf*"
PATHS = (PLAIN, ISA, BELOW, BELOW_PROPERTY)

ASK = "ASK"
SELECT = "SELECT"


class Graph(NamedTuple):
    """The triples of an event: `triples[i]` are the places of subject, property and object among the terms.

    `text` holds the distinct terms, a line each, without an end of line behind the last. Triples are
    distinct.
    """

    text: bytes
    triples: NDArray[np.int32]

    def terms(self) -> list[Term]:
        """List the terms."""
        return self.text.decode().split("\n") if self.text else []

    def statements(self) -> list[tuple[Term, Term, Term]]:
        """List the triples as terms."""
        terms = self.terms()
        return [(terms[s], terms[p], terms[o]) for s, p, o in self.triples.tolist()]


@dataclass(frozen=True, slots=True)
class Edge:
    """One triple pattern. With a path, `property` is the text of the path and nothing else.

    ISA: the subject has a type that is the object or below it. BELOW, BELOW_PROPERTY: the subject is the
    object, or below it, in the taxonomy of classes or of properties.
    """

    subject: Term
    property: Term
    object: Term
    path: str = PLAIN


@dataclass(frozen=True, slots=True)
class Compare:
    """`left sign right`, with one of = != < <= > >=."""

    sign: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Member:
    """`item IN (options)`; NOT IN is the Not of it."""

    item: Expression
    options: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Call:
    """A function by its name in capitals.

    ISIRI, ISLITERAL, LANG, DATATYPE, STR, LCASE, STRSTARTS, STRENDS, CONTAINS, REGEX.
    """

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class And:
    """All hold."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One holds, or more."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part is false; an error stays an error."""

    part: Expression


Expression: TypeAlias = "Term | Compare | Member | Call | And | Or | Not"
"""A term by itself counts by its effective boolean value where a truth value is wanted."""


@dataclass(frozen=True)
class Pattern:
    """A filter: it holds if the variables can be given terms such that all edges and all filters hold.

    `selected` are the variables that a SELECT names, all that have names for `SELECT *`, none for ASK.
    """

    edges: tuple[Edge, ...]
    filters: tuple[Expression, ...] = ()
    form: str = ASK
    selected: tuple[Term, ...] = ()
    distinct: bool = False

    @cached_property
    def variables(self) -> tuple[Term, ...]:
        """List the variables of the edges, in the order in which they are written."""
        found = dict.fromkeys(
            term
            for edge in self.edges
            for term in (edge.subject, edge.property, edge.object)
            if term.startswith("?")
        )
        return tuple(found)


UNINDEXED = 1_000
"""How many queries that nothing can be indexed of are taken where they are allowed."""


@dataclass(frozen=True, slots=True)
class Options:
    """What departs from SPARQL, for all filters of an index.

    `coerce`: a string that is compared with a number, a time or a truth value is read as one if it can be.
    `injective`: different nodes of a pattern stand for different nodes, different edges for different
    triples. `unindexed`: how many queries are taken that nothing can be indexed of, so that they are
    evaluated for every event.
    """

    coerce: bool = False
    injective: bool = False
    unindexed: int = 0


SPARQL = Options()
"""The standard, without departures."""


STRING = f"{XSD}string"
LANG_STRING = f"{RDF}langString"


class Parts(NamedTuple):
    """A literal: the text between the quotes without escapes, the IRI of its datatype, its language or ""."""

    lexical: str
    datatype: str
    language: str


def is_variable(term: Term) -> bool:
    """Tell whether a term is a variable of a filter."""
    return term.startswith("?")


def is_literal(term: Term) -> bool:
    """Tell whether a term is a literal."""
    return term.startswith('"')


def is_iri(term: Term) -> bool:
    """Tell whether a term is an IRI."""
    return term.startswith("<")


def is_blank(term: Term) -> bool:
    """Tell whether a term is a blank node of an event."""
    return term.startswith("_")


def nodes(pattern: Pattern) -> list[Term]:
    """List what `injective` keeps apart: subjects and objects of plain edges, and those of ISA edges.

    A class that an ISA edge names is none of the event's nodes; a variable in its place is one.
    """
    found = []
    for edge in pattern.edges:
        if edge.path in {PLAIN, ISA}:
            found.append(edge.subject)
        if edge.path == PLAIN or (edge.path == ISA and is_variable(edge.object)):
            found.append(edge.object)
    return list(dict.fromkeys(found))


def iri(value: str) -> Term:
    """Write an IRI.

    >>> iri("http://example.org/x")
    '<http://example.org/x>'
    """
    return f"<{value}>"


def literal(lexical: str, datatype: str = STRING, language: str = "") -> Term:
    r"""Write a literal; one text for each literal, as N-Triples has it in its canonical form.

    >>> literal('say "hi"\n'), literal("chat", language="FR")
    ('"say \\"hi\\"\\n"', '"chat"@fr')
    """
    escaped = _ESCAPED.sub(_escape, lexical)
    if language:
        return f'"{escaped}"@{language.lower()}'
    return f'"{escaped}"' if datatype == STRING else f'"{escaped}"^^<{datatype}>'


def parts(term: Term) -> Parts:
    r"""Take a literal apart.

    >>> parts('"a\\nb"@fr')
    Parts(lexical='a\nb', datatype='http://www.w3.org/1999/02/22-rdf-syntax-ns#langString', language='fr')
    """
    end = term.rindex('"')
    lexical, behind = term[1:end], term[end + 1 :]
    if "\\" in lexical:
        lexical = _ESCAPE.sub(_unescape, lexical)
    if not behind:
        return Parts(lexical, STRING, "")
    return Parts(lexical, LANG_STRING, behind[1:]) if behind[0] == "@" else Parts(lexical, behind[3:-1], "")


def plain(term: Term) -> str:
    """Return what a term says, without brackets, quotes, language or datatype.

    >>> plain("<http://example.org/x>"), plain('"7"^^<http://www.w3.org/2001/XMLSchema#integer>')
    ('http://example.org/x', '7')
    """
    return parts(term).lexical if is_literal(term) else term.strip("<>")


_ESCAPED = re.compile(r'[\x00-\x1f"\\\x7f\ufffe\uffff]')
_ESCAPE = re.compile(r"\\(u[0-9A-F]{4}|.)", re.DOTALL)
_LETTERS = {"\b": "b", "\t": "t", "\n": "n", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}
_MEANT = {letter: sign for sign, letter in _LETTERS.items()}


def _escape(found: re.Match[str]) -> str:
    letter = _LETTERS.get(found[0])
    return f"\\{letter}" if letter else f"\\u{ord(found[0]):04X}"


def _unescape(found: re.Match[str]) -> str:
    return _MEANT.get(found[1]) or chr(int(found[1][1:], 16))
