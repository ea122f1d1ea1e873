"""A filter that is a whole query: what the index matches of it, and what the evaluator is asked.

A filter that is a pattern stays one, and takes the road of patterns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from headgate.core.subscription import SPARQL, TUPLES
from headgate.errors import FilterError, SubscriptionError
from headgate.rdf.language.model import PLAIN, SUBCLASS, Edge, Pattern
from headgate.rdf.language.parse import parse_pattern
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.language.refusal import RefusedFilterError, UnsupportedFilterError, WrongWordError
from headgate.rdf.language.words import cut, kinds_of, places
from headgate.rdf.whole.evaluator import EVALUATOR
from headgate.rdf.whole.needs import needs_of
from headgate.rdf.whole.parser import parse
from headgate.rdf.whole.text import texts_of
from headgate.rdf.whole.tree import selected_of

if TYPE_CHECKING:
    from headgate.rdf.language.model import Options, Term
    from headgate.rdf.whole.text import Texts

_STAYS = "-"
CLASS_PATH = f"(a/{SUBCLASS}*|{SUBCLASS}*)"
"""What a class constraint of 5-tuples asks for."""
DECIDES = 0
"""The role of a pattern that decides: where it holds, the filter does."""
NARROWS = 1
"""The role of a pattern that is needed: where it holds, the evaluator is asked."""
EVERY = 2
"""The role of one that says nothing: the evaluator is asked of every event."""


@dataclass(frozen=True)
class Query:
    """A whole query. `members` are the patterns of which one must hold, each with its role.

    `names` are the variables that its answers have, or `graph` for a graph that it makes.
    """

    text: str
    form: str
    names: tuple[Term, ...]
    texts: Texts
    members: tuple[tuple[Pattern, int], ...]
    carried: bool = False
    """Whether the bindings of its patterns are all that it gives, so that the evaluator is never asked."""

    @property
    def verified(self) -> bool:
        """Tell whether the evaluator is ever asked whether it holds."""
        return any(role != DECIDES for _, role in self.members)

    @property
    def question(self) -> str:
        """Write what the evaluator is asked in one text."""
        roots = _STAYS if self.texts.roots is None else " ".join(self.texts.roots)
        return f"{roots}\n{self.texts.asks}"

    @property
    def unindexed(self) -> bool:
        """Tell whether the evaluator is asked of every event."""
        return any(role == EVERY for _, role in self.members)


AnyFilter: TypeAlias = "Pattern | Query"


def parse_any(text: str, dialect: str = SPARQL, *, tried: bool = True) -> AnyFilter:
    """Parse a filter: a pattern if it is one, else a whole query, which is tried on an empty event.

    >>> type(parse_any("ASK { ?x a ?y }")).__name__
    'Pattern'
    >>> query = parse_any("ASK { ?x a <urn:C> OPTIONAL { ?x <urn:p> ?z } FILTER(?z > 3) }", tried=False)
    >>> query.members
    ((Pattern(edges=(Edge(subject='?x', property='<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>', object='<urn:C>', path=''),), filters=(), form='ASK', selected=(), distinct=False), 1),)
    """  # noqa: E501 -- the value is one line
    try:
        if dialect == TUPLES:
            return of_tuples(parse_pattern(text, dialect))
        return parse_pattern(text, dialect)
    except UnsupportedFilterError as refused:
        if dialect != SPARQL:
            raise _at(text, refused) from None
        try:
            found = _parsed(text)
        except RefusedFilterError as error:
            # Of two that met a word they cannot read, the one that got further knows better what is wrong.
            further = error.number > refused.number or not isinstance(error, WrongWordError)
            raise _at(text, error if further else refused) from None
    except RefusedFilterError as refused:
        raise _at(text, refused) from None
    if tried:
        reason = EVALUATOR.refusal(found.texts.asks)
        if reason:
            raise FilterError(f"it cannot be evaluated: {reason}", text, None)
    return found


def of_tuples(pattern: Pattern) -> AnyFilter:
    """Let a class constraint of 5-tuples hold for nodes that are classes too, as in the paper's algorithm.

    >>> from headgate.rdf.language.model import ISA
    >>> of_tuples(Pattern((Edge("?x", "<urn:p>", "?y"), Edge("?x", ISA, "<urn:C>", ISA)))).text
    'ASK { ?x <urn:p> ?y . ?x (a/<http://www.w3.org/2000/01/rdf-schema#subClassOf>*|<http://www.w3.org/2000/01/rdf-schema#subClassOf>*) <urn:C> }'
    """  # noqa: E501 -- the text is one line
    if all(edge.path == PLAIN for edge in pattern.edges):
        return pattern
    plain = print_pattern(replace(pattern, edges=tuple(each for each in pattern.edges if each.path == PLAIN)))
    below = [f" . {each.subject} {CLASS_PATH} {each.object}" for each in pattern.edges if each.path != PLAIN]
    return _parsed(f"{plain[:-2]}{''.join(below)} }}")


def _at(text: str, refused: RefusedFilterError) -> FilterError:
    return FilterError(refused.reason, text, places(text)[refused.number])


def _parsed(text: str) -> Query:
    words = cut(text)
    kinds = kinds_of(words)
    parsed = parse(words, kinds)
    needs, carried = needs_of(parsed, words)
    members = tuple((pattern, _role(pattern, exact)) for pattern, exact in needs)
    if any(role == EVERY for _, role in members):
        # The others would only ask what is asked anyway.
        members = ((Pattern(()), EVERY),)
    query = parsed.query
    names = selected_of(query)
    return Query(text, query.form, names, texts_of(parsed, words, kinds), members, carried)


def _role(pattern: Pattern, exact: bool) -> int:
    if exact:
        return DECIDES
    return NARROWS if pattern.filters or any(map(_tells, pattern.edges)) else EVERY


def _tells(edge: Edge) -> bool:
    """Tell whether an edge names something, so that not every event has it."""
    return not all(term.startswith("?") for term in (edge.subject, edge.property, edge.object))


def question_of(question: str) -> tuple[str, tuple[Term, ...] | None]:
    """Take what `Query.question` wrote apart: the text, and from where it walks over the taxonomy."""
    roots, _, text = question.partition("\n")
    return text, None if roots == _STAYS else tuple(roots.split())


def check_options(query: Query, options: Options) -> None:
    """Refuse a query that an index with such options cannot have."""
    if (options.coerce or options.injective) and not query.carried:
        name = "coerce" if options.coerce else "injective"
        raise FilterError(
            f"with the option {name} a filter is a pattern of triples and conditions, and this one says more",
            query.text,
            None,
        )
    if query.unindexed and not options.unindexed:
        raise FilterError(
            "nothing in it can be indexed, so that it would be evaluated for every event: "
            "add a triple that names something and that every answer needs, or allow it by the option "
            "unindexed",
            query.text,
            None,
        )


def check_count(count: int, options: Options) -> None:
    """Refuse more queries that nothing is indexed of than the options allow."""
    if count > options.unindexed:
        raise SubscriptionError(
            f"{count:,} queries have nothing that can be indexed, and the option unindexed allows "
            f"{options.unindexed:,}"
        )


def pattern_at(found: AnyFilter, member: int) -> Pattern:
    """Return one pattern of a filter."""
    return found if isinstance(found, Pattern) else found.members[member][0]


def print_any(found: AnyFilter) -> str:
    """Write a filter."""
    return print_pattern(found) if isinstance(found, Pattern) else found.text
