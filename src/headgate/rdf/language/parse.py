"""Filter text to the model: cut into words, find the template of their shape, fill it in.

lark is asked of a shape that was not seen before only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.subscription import SPARQL, TUPLES
from headgate.errors import FilterError, SubscriptionError
from headgate.rdf.language import grammar
from headgate.rdf.language.filling import pattern_of, terms_of
from headgate.rdf.language.grammar import Misplaced, tree_of
from headgate.rdf.language.limits import check_shape, check_text
from headgate.rdf.language.refusal import Refused, misplaced
from headgate.rdf.language.shapes import Builder
from headgate.rdf.language.tuples import TupleBuilder, bare_names
from headgate.rdf.language.words import cut, kinds_of, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.model import Expression, Pattern
    from headgate.rdf.language.shapes import Template
    from headgate.rdf.language.words import Kinds

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
