"""Filter text, SPARQL or 5-tuples, to the model: words, and the template of their shape, filled in.

lark is asked of a shape that was not seen before only.
"""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from headgate.core.subscription import SPARQL, TUPLES
from headgate.errors import FilterError, SubscriptionError
from headgate.rdf.language import grammar, words
from headgate.rdf.language.grammar import MisplacedWordError, tree_of
from headgate.rdf.language.model import (
    BELOW,
    BELOW_PROPERTY,
    ISA,
    PLAIN,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Edge,
    Pattern,
    parts,
)
from headgate.rdf.language.names import Names, UnreadableTermError, tagged, typed
from headgate.rdf.language.refusal import (
    BAD_FLAGS,
    BAD_PATH,
    BAD_REGEX,
    MAX_VARIABLES,
    RefusedFilterError,
    UnsupportedFilterError,
    check_shape,
    check_text,
    misplaced,
)
from headgate.rdf.language.searches import search_of
from headgate.rdf.language.shapes import CHAIN, FRESH, REPEATED, SIGNS, VALUES, Builder, Step, compared
from headgate.rdf.language.words import cut, kinds_of, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.grammar import Node
    from headgate.rdf.language.model import Expression, Term
    from headgate.rdf.language.shapes import Template
    from headgate.rdf.language.words import Kinds


_REPEATED = {SUBCLASS: BELOW, SUBPROPERTY: BELOW_PROPERTY}
_MAX_PROLOGUES = 32
_prologues: dict[tuple[str, ...], Names] = {}


def pattern_of(template: Template, words: Sequence[str]) -> Pattern:
    """Fill in the template of a filter; raises `RefusedFilterError` for what the words' values forbid."""
    terms = terms_of(template, words)
    edges = tuple(
        [
            Edge(terms[step[0]], terms[step[1]], terms[step[2]])
            if step[3] == PLAIN
            else _on_path(step, terms, template)
            for step in template.steps
        ]
    )
    bound = {terms[slot] for slot in template.binding}
    for slot, number, reason in template.needing:
        if terms[slot] not in bound:
            raise RefusedFilterError(reason.format(_written(terms[slot])), number)
    if len(bound) > MAX_VARIABLES:
        raise RefusedFilterError(
            f"the filter has {len(bound)} variables and at most {MAX_VARIABLES} are taken", 0
        )
    for constraint, node in template.paired:
        if terms[constraint] != terms[node]:
            raise RefusedFilterError(
                f"this constrains {terms[constraint]} and stands with {_written(terms[node])}",
                template.places[constraint],
            )
    for slot in template.languages:
        _check_language(terms[slot], template.places[slot])
    for pattern, flags in template.regexes:
        _check_regex(terms, pattern, flags, template)
    filters = tuple([make(terms) for make in template.filters])
    if template.selected == ():
        return Pattern(edges, filters)
    return Pattern(edges, filters, template.form, _selected(template, terms, edges), template.distinct)


def terms_of(template: Template, words: Sequence[str]) -> list[Term]:
    """List the terms of a text, by slot."""
    key = tuple(words[: template.prologue])
    names = _prologues.get(key)
    if names is None:
        names = _declared(template, words)
        if len(_prologues) >= _MAX_PROLOGUES:
            _prologues.clear()
        _prologues[key] = names
    try:
        terms = [names[words[place]] for place in template.places]
    except UnreadableTermError:
        raise _first(names, template, words) from None
    for text, language, datatype in template.joins:
        try:
            joined = (
                tagged(terms[text], words[language]) if datatype < 0 else typed(terms[text], terms[datatype])
            )
        except UnreadableTermError as error:
            raise RefusedFilterError(str(error), template.places[text]) from None
        terms.append(joined)
    if template.extra:
        _add_extra(template, terms)
    return terms


def _declared(template: Template, words: Sequence[str]) -> Names:
    names = Names()
    for prefix, iri in template.declarations:
        try:
            names.declare(words[prefix] if prefix >= 0 else None, words[iri])
        except UnreadableTermError as error:
            raise RefusedFilterError(str(error), iri) from None
    return names


def _first(names: Names, template: Template, words: Sequence[str]) -> RefusedFilterError:
    """Find the first word that stands for no term."""
    for place in template.places:
        try:
            names[words[place]]
        except UnreadableTermError as error:
            return RefusedFilterError(str(error), place)
    raise AssertionError("one of the words was unreadable just now")


def _add_extra(template: Template, terms: list[Term]) -> None:
    """Append the terms that no word writes; blank nodes get the first names that the text does not use."""
    used = set(terms)
    number = 0
    for term in template.extra:
        if term != FRESH:
            terms.append(term)
            continue
        while f"?:b{number}" in used:
            number += 1
        terms.append(f"?:b{number}")
        number += 1


def _on_path(step: Step, terms: Sequence[Term], template: Template) -> Edge:
    subject, last, end, path, first = step
    if path == CHAIN:
        if terms[first] != TYPE or terms[last] != SUBCLASS:
            raise UnsupportedFilterError(BAD_PATH, template.places[first])
        path = ISA
    elif path == REPEATED:
        if terms[last] not in _REPEATED:
            raise UnsupportedFilterError(BAD_PATH, template.places[last])
        path = _REPEATED[terms[last]]
    return Edge(terms[subject], path, terms[end], path)


def _check_language(text: Term, number: int) -> None:
    """Refuse a language in capitals: terms have theirs in lower case, so it would never be found."""
    language = parts(text).lexical
    if language != language.lower():
        raise RefusedFilterError(f'languages are compared in lower case: write "{language.lower()}"', number)


def _check_regex(terms: Sequence[Term], pattern: int, flags: int, template: Template) -> None:
    """Refuse a regular expression that is not known, and flags that are not."""
    written = parts(terms[flags]).lexical if flags >= 0 else ""
    if written not in {"", "i"}:
        raise UnsupportedFilterError(BAD_FLAGS, template.places[flags])
    if search_of(parts(terms[pattern]).lexical, written) is None:
        raise UnsupportedFilterError(BAD_REGEX, template.places[pattern])


def _selected(template: Template, terms: Sequence[Term], edges: tuple[Edge, ...]) -> tuple[Term, ...]:
    if template.selected is None:
        return tuple(each for each in Pattern(edges).variables if not each.startswith("?:"))
    found = [terms[slot] for slot in template.selected]
    for place, term in enumerate(found):
        if term in found[:place]:
            raise RefusedFilterError(f"SELECT names {term} twice", template.places[template.selected[place]])
    return tuple(found)


def _written(variable: Term) -> str:
    """Write a variable as the filter does."""
    return f"_{variable[1:]}" if variable.startswith("?:") else variable


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
            raise RefusedFilterError("a literal cannot be the subject of a tuple", subject.number)
        if verb.name in (*VALUES, words.BLANK):
            raise RefusedFilterError("a property is a name or a variable", verb.number)
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
            raise RefusedFilterError("a constraint compares with a class or a literal", value.number)
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
            raise RefusedFilterError(
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
    try:
        return parse_pattern(text, dialect)
    except RefusedFilterError as refused:
        raise _at(text, refused) from None


def parse_pattern(text: str, dialect: str = SPARQL) -> Pattern:
    """Parse a filter; raises `RefusedFilterError`, and `UnsupportedFilterError` for what is no pattern."""
    if dialect not in (SPARQL, TUPLES):
        raise SubscriptionError(
            f"dialect {dialect!r} is for records: filters of RDF events are {SPARQL!r} or {TUPLES!r}",
            names_it=False,
        )
    check_text(text)
    words = cut(text)
    if dialect == SPARQL:
        return pattern_of(_template(words, kinds_of(words), grammar.QUERY), words)
    return pattern_of(_template(words, bare_names(kinds_of(words)), grammar.TUPLES), words)


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
    except RefusedFilterError as refused:
        raise _at(text, refused) from None


def expression_of(words: list[str]) -> Expression:
    """Read the words of an expression; raises `RefusedFilterError` for what patterns do not know."""
    template = _template(words, kinds_of(words), grammar.EXPRESSION)
    terms = terms_of(template, words)
    for pattern, flags in template.regexes:
        _check_regex(terms, pattern, flags, template)
    return template.filters[0](terms)


def _template(words: Sequence[str], kinds: Kinds, start: str) -> Template:
    """Find the template of a shape, or make it."""
    known = _shapes[start]
    template = known.get(kinds)
    if template is None:
        check_shape(kinds)
        try:
            tree = tree_of(kinds, start)
        except MisplacedWordError as error:
            reason = misplaced(words, kinds, error.number, error.expected, tuples=start == grammar.TUPLES)
            raise UnsupportedFilterError(reason, error.number) from None
        if start == grammar.QUERY:
            template = Builder(kinds).query(tree)
        elif start == grammar.TUPLES:
            template = TupleBuilder(kinds).tuples(tree)
        else:
            template = Builder(kinds).alone(tree)
        known[kinds] = template
    return template


def _at(text: str, refused: RefusedFilterError) -> FilterError:
    """Give the number of a word its place in the text."""
    return FilterError(refused.reason, text, places(text)[refused.number])
