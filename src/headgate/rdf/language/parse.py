"""Filter text, SPARQL or 5-tuples, to the model: words, the template of their shape, filled in.

lark is asked of a shape that was not seen before only.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from headgate.core.subscription import SPARQL, TUPLES
from headgate.errors import FilterError, SubscriptionError
from headgate.rdf.language import grammar, words
from headgate.rdf.language.filling import pattern_of, terms_of
from headgate.rdf.language.grammar import Misplaced, tree_of
from headgate.rdf.language.limits import check_shape, check_text
from headgate.rdf.language.making import SIGNS, compared
from headgate.rdf.language.model import BELOW, ISA, TYPE
from headgate.rdf.language.refusal import Refused, misplaced
from headgate.rdf.language.shapes import VALUES, Builder, Step
from headgate.rdf.language.words import cut, kinds_of, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.grammar import Node
    from headgate.rdf.language.model import Expression, Pattern
    from headgate.rdf.language.shapes import Template
    from headgate.rdf.language.words import Kinds


_VARIABLES = (words.VARIABLE, words.BLANK)
_KEPT = {"_PREFIX", "_BASE"}
_BARE = {kind for kind in words.KEYWORDS.values() if kind not in (*_KEPT, words.TRUTH)}


def bare_names(kinds: Kinds) -> Kinds:
    """Make names of SPARQL's keywords, which this notation lacks but for PREFIX and BASE."""
    return tuple([words.BARE if kind in _BARE else kind for kind in kinds])


class TupleBuilder(Builder):
    """Walks the tree of a shape of tuples."""

    def tuples(self, tree: Node) -> Template:
        """Walk tuples."""
        prologue, *found = tree.parts
        self.declare(prologue)
        for each in found:
            self.one(each)
        return self.template()

    def one(self, tree: Node) -> None:
        """Walk one tuple: its edge, then the constraints of its ends."""
        subject, verb, end, *sets = tree.parts
        if subject.name in VALUES:
            raise Refused("a literal cannot be the subject of a tuple", subject.number)
        if verb.name in (*VALUES, words.BLANK):
            raise Refused("a property is a name or a variable", verb.number)
        slots = [self.node(subject), self.node(end)]
        self.add(Step(slots[0], self.node(verb), slots[1]), subject)
        for slot, constraints in zip(slots, sets, strict=False):
            for each in constraints.parts:
                self.constraint(slot, *each.parts)

    def constraint(self, node: int, variable: Node, sign: Node, value: Node) -> None:
        """Walk one constraint of a node."""
        slot = self.node(variable)
        self.paired.append((slot, node))
        if value.name in _VARIABLES:
            raise Refused("a constraint compares with a class or a literal", value.number)
        of = self.node(value)
        if value.name in VALUES:
            self.filters.append(compared(SIGNS[sign.name], itemgetter(slot), itemgetter(of)))
        elif sign.name == "LE":
            self.add(Step(slot, of, of, ISA), variable)
        elif sign.name == "EQ":
            self.add(Step(slot, self.more(TYPE), of), variable)
        elif sign.name == "GE":
            self.add(Step(of, of, slot, BELOW), variable)
        else:
            raise Refused(
                f"{SIGNS[sign.name]} compares with a literal: a class takes <=, = or >=", sign.number
            )


_MAX_WORDS = 262_144
"""Of all shapes that are remembered; a template takes some hundred bytes for each word."""


class _Shapes(dict["Kinds", "Template"]):
    """The templates of shapes seen; when there are too many it starts anew."""

    words = 0

    def __setitem__(self, kinds: Kinds, template: Template) -> None:
        self.words += len(kinds)
        if self.words > _MAX_WORDS:
            self.clear()
            self.words = len(kinds)
        super().__setitem__(kinds, template)


_shapes = {grammar.QUERY: _Shapes(), grammar.TUPLES: _Shapes(), grammar.EXPRESSION: _Shapes()}


def parse_filter(text: str, dialect: str = SPARQL) -> Pattern:
    """Parse a filter; refuse what the language lacks, with position and reason.

    >>> parse_filter("ASK { ?x <http://example.org/year> ?y FILTER(?y > 2000) }").variables
    ('?x', '?y')
    >>> parse_filter("ASK { ?x a ?y OPTIONAL { ?x ?p ?z } }")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: OPTIONAL is not supported: a filter says what must be there, at character 15: ASK { ?x a ?y ⟪OPTIONAL { ?x ?p ?z …
    """  # noqa: E501 -- the message is one line
    if dialect not in (SPARQL, TUPLES):
        raise SubscriptionError(
            f"dialect {dialect!r} is for records: filters of RDF events are {SPARQL!r} or {TUPLES!r}"
        )
    check_text(text)
    words = cut(text)
    try:
        if dialect == SPARQL:
            return pattern_of(_template(words, kinds_of(words), grammar.QUERY), words)
        return pattern_of(_template(words, bare_names(kinds_of(words)), grammar.TUPLES), words)
    except Refused as refused:
        raise _at(text, refused) from None


def parse_expression(text: str) -> Expression:
    """Parse what `print_expression` wrote: an expression over any variables.

    >>> parse_expression("?x > 3").sign
    '>'
    """
    check_text(text)
    words = cut(text)
    try:
        template = _template(words, kinds_of(words), grammar.EXPRESSION)
        return template.filters[0](terms_of(template, words))
    except Refused as refused:
        raise _at(text, refused) from None


def _template(words: Sequence[str], kinds: Kinds, start: str) -> Template:
    """Find the template of a shape, or make it."""
    known = _shapes[start]
    template = known.get(kinds)
    if template is None:
        check_shape(kinds)
        try:
            tree = tree_of(kinds, start)
        except Misplaced as error:
            reason = misplaced(words, kinds, error.number, error.expected, tuples=start == grammar.TUPLES)
            raise Refused(reason, error.number) from None
        if start == grammar.QUERY:
            template = Builder(kinds).query(tree)
        elif start == grammar.TUPLES:
            template = TupleBuilder(kinds).tuples(tree)
        else:
            template = Builder(kinds).alone(tree)
        known[kinds] = template
    return template


def _at(text: str, refused: Refused) -> FilterError:
    """Give the number of a word its place in the text."""
    return FilterError(refused.reason, text, places(text)[refused.number])
