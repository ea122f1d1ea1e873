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
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from headgate.rdf.language.words import AGGREGATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headgate.core.arrays import Ints32


Term: TypeAlias = str

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
TYPE = f"<{RDF}type>"
SUBCLASS = f"<{RDFS}subClassOf>"
"""`rdfs:subClassOf`, as statements of a `Taxonomy` name it."""
SUBPROPERTY = f"<{RDFS}subPropertyOf>"
MEMBER = f"<{RDFS}member>"
DOMAIN = f"<{RDFS}domain>"
RANGE = f"<{RDFS}range>"
FIRST, REST, NIL = (f"<{RDF}{name}>" for name in ("first", "rest", "nil"))

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
    triples: Ints32

    def terms(self) -> list[Term]:
        """List the terms."""
        return self.text.decode().split("\n") if self.text else []

    def statements(self) -> list[tuple[Term, Term, Term]]:
        """List the triples as terms."""
        terms = self.terms()
        return [(terms[s], terms[p], terms[o]) for s, p, o in self.triples.tolist()]


class Edge(NamedTuple):
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


def within(expression: Expression) -> Iterator[Expression]:
    """List an expression and all that it is made of, but for what EXISTS asks for."""
    yield expression
    match expression:
        case Compare(_, left, right):
            yield from within(left)
            yield from within(right)
        case Member(item, options):
            for each in (item, *options):
                yield from within(each)
        case Call(_, inner) | And(inner) | Or(inner):
            for each in inner:
                yield from within(each)
        case Not(part):
            yield from within(part)


DECIDES = 0
"""The role of a pattern that decides: where it holds, the filter does."""
NARROWS = 1
"""The role of a pattern that is needed: where it holds, the evaluator is asked."""
EVERY = 2
"""The role of one that says nothing: the evaluator is asked of every event."""


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

    @property
    def members(self) -> tuple[tuple[Pattern, int], ...]:
        """List the patterns of which one must hold, each with its role: it decides by itself."""
        return ((self, DECIDES),)

    @cached_property
    def variables(self) -> tuple[Term, ...]:
        """List the variables of the edges, in the order in which they are written."""
        names = dict.fromkeys(term for edge in self.edges for term in edge[:3] if term.startswith("?"))
        return tuple(names)


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
    terms = []
    for edge in pattern.edges:
        if edge.path in {PLAIN, ISA}:
            terms.append(edge.subject)
        if edge.path == PLAIN or (edge.path == ISA and is_variable(edge.object)):
            terms.append(edge.object)
    return list(dict.fromkeys(terms))


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


def _escape(match_: re.Match[str]) -> str:
    letter = _LETTERS.get(match_[0])
    return f"\\{letter}" if letter else f"\\u{ord(match_[0]):04X}"


def _unescape(match_: re.Match[str]) -> str:
    return _MEANT.get(match_[1]) or chr(int(match_[1][1:], 16))


T = TypeVar("T")


class Inverse(NamedTuple):
    """`^path`."""

    path: Path


class Chain(NamedTuple):
    """`one/other/…`."""

    steps: tuple[Path, ...]


class Choice(NamedTuple):
    """`one|other|…`."""

    options: tuple[Path, ...]


class Repeat(NamedTuple):
    """`path*`, `path+` or `path?`."""

    path: Path
    sign: str


class Negated(NamedTuple):
    """`!(one|^other)`: properties that it does not follow, and those that it does not go back by."""

    forward: tuple[Term, ...]
    back: tuple[Term, ...]

    @property
    def ways(self) -> tuple[bool, bool]:
        """Tell whether it leads forward, and back."""
        return bool(self.forward) or not self.back, bool(self.back)


Path: TypeAlias = "Term | Inverse | Chain | Choice | Repeat | Negated"


class Triple(NamedTuple):
    """A triple pattern; `path` is a term where it is a property or a variable."""

    subject: Term
    path: Path
    object: Term


class Block(NamedTuple):
    """Triple patterns that stand together, and the numbers of their first word and of the one behind."""

    triples: tuple[Triple, ...]
    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class Exists(Call):
    """EXISTS; NOT EXISTS is the Not of it. It is an expression that no index knows."""

    group: Group


class Filter(NamedTuple):
    """FILTER."""

    condition: Expression


class Optional(NamedTuple):
    """OPTIONAL."""

    group: Group


class Either(NamedTuple):
    """Groups that UNION joins."""

    groups: tuple[Group, ...]


class Minus(NamedTuple):
    """MINUS."""

    group: Group


class Bind(NamedTuple):
    """BIND."""

    expression: Expression
    variable: Term


class Values(NamedTuple):
    """VALUES: a row has a term for each variable, None for UNDEF."""

    variables: tuple[Term, ...]
    rows: tuple[tuple[Term | None, ...], ...]


class Group(NamedTuple):
    """What stands between braces."""

    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Select:
    """A query, or one within another.

    `selected` are the variables that it gives, None for all, and `star` the number of that word. `computed`
    are those of them that an expression gives. `group_by` are the variables of GROUP BY, None without one.
    """

    form: str
    group: Group
    body: int
    """The number of the first word of the group."""
    modifier: str = ""
    """DISTINCT, REDUCED or nothing."""
    selected: tuple[Term, ...] | None = None
    star: int = -1
    computed: frozenset[Term] = frozenset()
    expressions: tuple[Expression, ...] = ()
    group_by: tuple[Term, ...] | None = None
    having: tuple[Expression, ...] = ()
    limit: Term | None = None
    offset: Term | None = None
    values: Values | None = None
    others: tuple[Expression, ...] = ()
    """Those of GROUP BY and ORDER BY."""

    @property
    def aggregates(self) -> bool:
        """Tell whether answers are made of several solutions."""
        return self.group_by is not None or any(
            isinstance(each, Call) and each.name in AGGREGATES
            for whole in (*self.expressions, *self.having, *self.others)
            for each in within(whole)
        )


Part: TypeAlias = "Block | Filter | Optional | Either | Minus | Bind | Values | Group | Select"


def visible(group: Group) -> dict[Term, None]:
    """List the variables that a group gives, in the order in which they are written.

    >>> list(visible(Group((Block((Triple("?x", "<urn:p>", "?:b0"),), 0, 3),))))
    ['?x']
    """
    names: dict[Term, None] = {}
    for part in group.parts:
        if isinstance(part, Block):
            for triple in part.triples:
                names.update(
                    (term, None)
                    for term in triple
                    if isinstance(term, str) and term[0] == "?" and not term.startswith("?:")
                )
        elif isinstance(part, Optional):
            names |= visible(part.group)
        elif isinstance(part, Either):
            for each in part.groups:
                names |= visible(each)
        elif isinstance(part, Bind):
            names[part.variable] = None
        elif isinstance(part, Values):
            names |= dict.fromkeys(part.variables)
        elif isinstance(part, Group):
            names |= visible(part)
        elif isinstance(part, Select):
            names |= dict.fromkeys(selected_of(part))
    return names


def selected_of(query: Select) -> tuple[Term, ...]:
    """List the variables that a query gives."""
    if query.selected is not None:
        return query.selected
    names = visible(query.group)
    if query.values is not None:
        names |= dict.fromkeys(query.values.variables)
    return tuple(names)


def nodes_within(tree: object) -> Iterator[object]:
    """List a tree and all that it is made of, groups that EXISTS asks for among it, each before its parts."""
    yield tree
    parts = tree if isinstance(tree, tuple) else ()
    if is_dataclass(tree):
        parts = tuple(getattr(tree, each.name) for each in fields(tree))
    for part in parts:
        yield from nodes_within(part)


def filled(tree: T, terms: Mapping[Term, Term]) -> T:
    """Put terms into the slots of a tree."""
    node: Any = tree
    if isinstance(node, str):
        node = terms.get(node, node)
    elif isinstance(node, frozenset):
        node = frozenset(terms[each] for each in node)
    elif isinstance(node, tuple):
        parts = [filled(each, terms) for each in node]
        node = type(node)(*parts) if hasattr(node, "_fields") else tuple(parts)
    elif is_dataclass(node):
        node = type(tree)(*[filled(getattr(node, each.name), terms) for each in fields(node)])
    return node  # type: ignore[no-any-return]  # it is of the type that went in
