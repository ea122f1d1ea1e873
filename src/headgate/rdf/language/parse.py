"""Filter text, SPARQL or 5-tuples, to a pattern or a tree: words, and the shape of them, filled in.

The grammar is asked of a shape that was not seen before only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.core.subscription import SPARQL, TUPLES, check_dialect
from headgate.core.text.cutting import RefusedFilterError
from headgate.errors import FilterError
from headgate.rdf.language.grammar import Parser
from headgate.rdf.language.model import BELOW, ISA, TYPE, XSD, Compare, Pattern, filled, parts
from headgate.rdf.language.names import terms_of
from headgate.rdf.language.refusal import MAX_VARIABLES, check_edges, check_shape, check_text, too_many
from headgate.rdf.language.rewrite import substitute
from headgate.rdf.language.templates import Step, made, pattern_of, template_of
from headgate.rdf.language.triples import Reader
from headgate.rdf.language.words import (
    BARE,
    BLANK,
    END,
    KEYWORDS,
    LITERALS,
    TRUTH,
    VARIABLE,
    A,
    cut,
    kinds_of,
    places,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.rdf.language.grammar import Shape
    from headgate.rdf.language.model import Expression, Select, Term
    from headgate.rdf.language.templates import Template
    from headgate.rdf.language.words import Kinds


_SIGNS = ("=", "!=", "<", "<=", ">", ">=")
_NAMES = {kind for kind in KEYWORDS.values() if kind not in ("PREFIX", "BASE", TRUTH)}


class TupleParser(Reader):
    """Takes tuples."""

    bare_names = True

    def __init__(self, words: Sequence[str], kinds: Kinds) -> None:
        # SPARQL's keywords are names here but for PREFIX and BASE.
        super().__init__(words, tuple([BARE if kind in _NAMES else kind for kind in kinds]))
        self._steps: list[Step] = []
        self._filters: list[Expression] = []
        self._paired: list[tuple[Term, Term]] = []

    def whole(self) -> Template:
        """Take all tuples."""
        self.declare()
        self.one()
        while not self.sees(END):
            self.one()
        return made(self.slots(), self._steps, (), self._filters, self._paired)

    def one(self) -> None:
        """Take one tuple: its edge, then the constraints of its ends."""
        self.want("(")
        subject = self.item()
        if subject.startswith('"'):
            raise RefusedFilterError("a literal cannot be the subject of a tuple", self.at - 1)
        self.want(",")
        if self.kind() in (*LITERALS, BLANK):
            raise RefusedFilterError("a property is a name or a variable", self.at)
        verb = self.item()
        self.want(",")
        end = self.item()
        self.add(Step(subject, verb, end))
        for node in (subject, end):
            if not self.took(","):
                break
            self.constraints(node)
        self.want(")")

    def item(self) -> Term:
        """Take a subject, a property, an object or what a constraint compares with."""
        if self.sees(VARIABLE, BLANK, BARE, A):
            return self.term()
        return self.literal_or_iri()

    def add(self, step: Step) -> None:
        """Add an edge."""
        self._steps.append(step)
        check_edges(len(self._steps), self.at - 1)

    def constraints(self, node: Term) -> None:
        """Take the constraints of a node."""
        self.want("{")
        if self.took("}"):
            return
        while True:
            self.constraint(node)
            if not self.took(","):
                break
        self.want("}")

    def constraint(self, node: Term) -> None:
        """Take one constraint of a node."""
        variable = self.variable()
        self._paired.append((variable, node))
        index = self.at
        sign = self.want(*_SIGNS)
        if self.kind() in (VARIABLE, BLANK):
            raise RefusedFilterError("a constraint compares with a class or a literal", self.at)
        of = self.item()
        if of.startswith('"'):
            self._filters.append(Compare(sign, variable, of))
        elif sign == "<=":
            self.add(Step(variable, of, of, ISA))
        elif sign == "=":
            self.add(Step(variable, self.constant(TYPE), of))
        elif sign == ">=":
            self.add(Step(of, of, variable, BELOW))
        else:
            raise RefusedFilterError(f"{sign} compares with a literal: a class takes <=, = or >=", index)


_TYPES = """boolean double float decimal integer dateTime string date time duration dayTimeDuration
    yearMonthDuration gYear gYearMonth gMonth gMonthDay gDay"""
_CASTS = frozenset(f"<{XSD}{name}>" for name in _TYPES.split())
_MAX_WORDS = 262_144
"""Of all shapes that are remembered; one takes some hundred bytes for each word."""


class Parsed(NamedTuple):
    """A query that is more than a pattern: its tree, its words and those that declare names."""

    query: Select
    words: tuple[str, ...]
    """With IRIs written out."""
    kinds: Kinds
    blanks: Mapping[int, Term]
    """The blank nodes that words name."""
    prologue: int


class _Known(NamedTuple):
    """A shape: of tuples a template alone, of a query its tree and a template if it is a pattern."""

    template: Template | None
    shape: Shape | None = None


class _Shapes(dict["Kinds", _Known]):
    """Shapes seen; when there are too many it starts anew."""

    words = 0

    def __setitem__(self, kinds: Kinds, known: _Known) -> None:
        self.words += len(kinds)
        if self.words > _MAX_WORDS:
            self.clear()
            self.words = len(kinds)
        super().__setitem__(kinds, known)


_shapes = {SPARQL: _Shapes(), TUPLES: _Shapes()}


def parse_filter(text: str, dialect: str = SPARQL) -> Pattern:
    """Parse a filter that is a pattern; refuse what the language lacks, with position and reason.

    >>> parse_filter("ASK { ?x <http://example.org/year> ?y FILTER(?y > 2000) }").variables
    ('?x', '?y')
    >>> parse_filter("ASK { ?x a }")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: '}' cannot stand here: expected a variable, an IRI, a literal or a blank node, at character 12: ASK { ?x a ⟪}
    """  # noqa: E501 -- the message is one line
    pattern = parse_text(text, dialect)
    if not isinstance(pattern, Pattern):
        raise FilterError("a pattern of triples and conditions is wanted, and this says more", text, None)
    return pattern


def parse_text(text: str, dialect: str = SPARQL) -> Pattern | Parsed:
    """Parse a filter: a pattern if it is one."""
    check_dialect(dialect, (SPARQL, TUPLES), "RDF events")
    check_text(text)
    words = cut(text)
    kinds = kinds_of(words)
    try:
        template, shape = _shapes[dialect].get(kinds) or _known(words, kinds, dialect)
        pattern = None if template is None else pattern_of(template, words)
        if pattern is not None:
            return pattern
        assert shape is not None, "tuples are patterns"
        return _parsed(shape, words, kinds)
    except RefusedFilterError as refused:
        raise _at(text, refused) from None


def parse_expression(text: str) -> Expression:
    """Parse what `print_expression` wrote: an expression over any variables.

    >>> parse_expression("?x > 3").sign
    '>'
    """
    check_text(text)
    words = cut(text)
    kinds = kinds_of(words)
    try:
        check_shape(kinds)
        parser = Parser(words, kinds)
        return substitute(parser.alone(), terms_of(parser.slots(), words))
    except RefusedFilterError as refused:
        raise _at(text, refused) from None


def _known(words: Sequence[str], kinds: Kinds, dialect: str) -> _Known:
    """Parse a shape, and remember it."""
    check_shape(kinds)
    if dialect == TUPLES:
        known = _Known(TupleParser(words, kinds).whole())
    else:
        shape = Parser(words, kinds).whole()
        known = _Known(template_of(shape, len(words)), shape)
    _shapes[dialect][kinds] = known
    return known


def _parsed(shape: Shape, words: Sequence[str], kinds: Kinds) -> Parsed:
    """Fill in the tree of a query, and look at what its terms decide."""
    terms = terms_of(shape.slots, words)
    for slot, index in shape.casts:
        if terms[slot] not in _CASTS:
            raise RefusedFilterError(
                f"{terms[slot]} is not a function: of IRIs, xsd:integer and such are", index
            )
    for slot, index in shape.amounts:
        if not parts(terms[slot]).lexical.isdigit():
            raise RefusedFilterError(f"{words[index]} cannot stand here: expected a whole number", index)
    for slot, others, index in shape.given:
        if terms[slot] in {terms[each] for each in others}:
            raise RefusedFilterError(
                f"BIND gives {terms[slot]} a value, and it has one already: take another name", index
            )
    bound = {terms[slot] for slot in shape.bound}
    for slot, index, why in shape.used:
        if terms[slot] not in bound:
            raise RefusedFilterError(f"{why.format(terms[slot])}, which nothing in the query binds", index)
    if len(bound) > MAX_VARIABLES:
        raise too_many(len(bound))
    written = list(words)
    blanks = {}
    for slot, index in zip(shape.slots.names, shape.slots.places, strict=True):
        if slot.startswith("<") and words[index] != "a":
            written[index] = terms[slot]
        elif slot.startswith("?:"):
            blanks[index] = terms[slot]
    return Parsed(filled(shape.query, terms), tuple(written), kinds, blanks, shape.slots.prologue)


def _at(text: str, refused: RefusedFilterError) -> FilterError:
    """Give the number of a word its place in the text."""
    return FilterError(refused.reason, text, places(text)[refused.number])
