"""A filter that is a whole query: what the index matches of it, and what the evaluator is asked.

A filter that is a pattern stays one, and takes the road of patterns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from headgate.core.subscription import SPARQL, TUPLES
from headgate.errors import FilterError, SubscriptionError
from headgate.rdf.language import model
from headgate.rdf.language import words as kinds_of_words
from headgate.rdf.language.grammar import CONSTRUCT
from headgate.rdf.language.parse import parse_text
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.language.words import ARGUMENTS
from headgate.rdf.whole.evaluator import EVALUATOR
from headgate.rdf.whole.needs import needs_of, walks
from headgate.rdf.whole.worker import TAXONOMY_GRAPH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.language.model import Options, Path, Term, Triple
    from headgate.rdf.language.parse import Parsed


class Texts(NamedTuple):
    """`asks` tells whether there is an answer, `gives` what it is.

    `roots` are the terms from which paths over the taxonomy may begin, None if there is no such path.
    """

    asks: str
    gives: str
    roots: tuple[Term, ...] | None


def texts_of(parsed: Parsed) -> Texts:
    """Write the texts of a query."""
    return _Writer(parsed).texts()


class _Writer:
    def __init__(self, parsed: Parsed) -> None:
        self._query = parsed.query
        self._kinds = parsed.kinds
        self._words = list(parsed.words)
        self._begin = parsed.prologue
        self._blanks = parsed.blanks
        self._used = {
            word[1:]
            for word, kind in zip(parsed.words, parsed.kinds, strict=True)
            if kind == kinds_of_words.VARIABLE
        }
        self._named: dict[Term, str] = {}

    def texts(self) -> Texts:
        """Write them."""
        query = self._query
        blocks = [part for part in model.nodes_within(query) if isinstance(part, model.Block)]
        walking = [each for block in blocks for each in block.triples if walks(each.path)]
        if walking:
            self._rewrite(blocks)
        body = self._range(query.body, len(self._words))
        whole = self._range(self._begin, len(self._words))
        asks = f"ASK {body}" if query.form == CONSTRUCT else whole
        gives = whole
        if query.form == model.ASK:
            names = "" if query.aggregates else " ".join(model.selected_of(query))
            gives = f"SELECT {names} {body}" if names else asks
        roots = tuple(
            dict.fromkeys(end for each in walking for end in (each.subject, each.object) if model.is_iri(end))
        )
        return Texts(asks, gives, roots if walking else None)

    def _range(self, begin: int, end: int) -> str:
        """Join words; a language or a datatype stands close to its string, parentheses to what is in them.

        The evaluator's parser does not take blanks around those of some functions.
        """
        parts: list[str] = []
        for index in range(begin, end):
            word = self._words[index]
            if not word:
                continue
            close = self._kinds[index] in (kinds_of_words.LANGUAGE, "^^") or (
                index > begin and self._kinds[index - 1] == "^^"
            )
            before = parts[-1].strip() if parts else ""
            close = close or word in (")", ",") or before == "("
            close = close or (word == "(" and before.upper() in ARGUMENTS)
            parts.append(word if close or not parts else f" {word}")
        return "".join(parts)

    def _rewrite(self, blocks: Sequence[model.Block]) -> None:
        for index, blank in self._blanks.items():
            if index >= self._query.body:
                self._words[index] = self._name(blank)
        for query in model.nodes_within(self._query):
            if isinstance(query, model.Select) and query.star >= 0:
                self._words[query.star] = " ".join(model.selected_of(query)) or "*"
        for block in blocks:
            if any(walks(each.path) for each in block.triples):
                lines = [self._triple(each) for each in block.triples]
                self._words[block.begin : block.end] = [" ".join(lines)] + [""] * (
                    block.end - block.begin - 1
                )

    def _triple(self, triple: Triple) -> str:
        subject, path, end = triple
        written = f"{self._name(subject)} {self._path(path)} {self._name(end)} ."
        return f"GRAPH <{TAXONOMY_GRAPH}> {{ {written} }}" if walks(path) else written

    def _name(self, term: Term) -> str:
        """Write a term; a blank node as a variable that the query does not use."""
        if not term.startswith("?:"):
            return term
        name = self._named.get(term)
        if name is None:
            number = len(self._named)
            while f"blank{number}" in self._used:
                number += 1
            self._used.add(f"blank{number}")
            name = self._named[term] = f"?blank{number}"
        return name

    def _path(self, path: Path) -> str:
        if isinstance(path, str):
            return self._name(path)
        if isinstance(path, model.Inverse):
            return f"^({self._path(path.path)})"
        if isinstance(path, model.Chain):
            return "(" + "/".join(map(self._path, path.steps)) + ")"
        if isinstance(path, model.Choice):
            return "(" + "|".join(map(self._path, path.options)) + ")"
        if isinstance(path, model.Repeat):
            return f"({self._path(path.path)}){path.sign}"
        return "!(" + "|".join((*path.forward, *(f"^{each}" for each in path.back))) + ")"


_STAYS = "-"
CLASS_PATH = f"(a/{model.SUBCLASS}*|{model.SUBCLASS}*)"
"""What a class constraint of 5-tuples asks for."""


@dataclass(frozen=True)
class Query:
    """A whole query. `members` are the patterns of which one must hold, each with its role.

    `names` are the variables that its answers have, or `graph` for a graph that it makes.
    """

    text: str
    form: str
    names: tuple[Term, ...]
    texts: Texts
    members: tuple[tuple[model.Pattern, int], ...]
    carried: bool = False
    """Whether the bindings of its patterns are all that it gives, so that the evaluator is never asked."""

    @property
    def verified(self) -> bool:
        """Tell whether the evaluator is ever asked whether it holds."""
        return any(role != model.DECIDES for _, role in self.members)

    @property
    def question(self) -> str:
        """Write what the evaluator is asked in one text."""
        roots = _STAYS if self.texts.roots is None else " ".join(self.texts.roots)
        return f"{roots}\n{self.texts.asks}"

    @property
    def unindexed(self) -> bool:
        """Tell whether the evaluator is asked of every event."""
        return any(role == model.EVERY for _, role in self.members)


AnyFilter: TypeAlias = "model.Pattern | Query"


def parse_any(text: str, dialect: str = SPARQL, *, tried: bool = True) -> AnyFilter:
    """Parse a filter: a pattern if it is one, else a whole query, which is tried on an empty event.

    >>> type(parse_any("ASK { ?x a ?y }")).__name__
    'Pattern'
    >>> query = parse_any("ASK { ?x a <urn:C> OPTIONAL { ?x <urn:p> ?z } FILTER(?z > 3) }", tried=False)
    >>> query.members
    ((Pattern(edges=(Edge(subject='?x', property='<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>', object='<urn:C>', path=''),), filters=(), form='ASK', selected=(), distinct=False), 1),)
    """  # noqa: E501 -- the value is one line
    parsed = parse_text(text, dialect)
    if isinstance(parsed, model.Pattern):
        return of_tuples(parsed) if dialect == TUPLES else parsed
    query = _query(text, parsed)
    if tried:
        reason = EVALUATOR.refusal(query.texts.asks)
        if reason:
            raise FilterError(f"it cannot be evaluated: {reason}", text, None)
    return query


def of_tuples(pattern: model.Pattern) -> AnyFilter:
    """Let a class constraint of 5-tuples hold for nodes that are classes too, as in the paper's algorithm.

    >>> from headgate.rdf.language.model import ISA, Edge, Pattern
    >>> of_tuples(Pattern((Edge("?x", "<urn:p>", "?y"), Edge("?x", ISA, "<urn:C>", ISA)))).text
    'ASK { ?x <urn:p> ?y . ?x (a/<http://www.w3.org/2000/01/rdf-schema#subClassOf>*|<http://www.w3.org/2000/01/rdf-schema#subClassOf>*) <urn:C> }'
    """  # noqa: E501 -- the text is one line
    if all(edge.path == model.PLAIN for edge in pattern.edges):
        return pattern
    plain = print_pattern(
        replace(pattern, edges=tuple(each for each in pattern.edges if each.path == model.PLAIN))
    )
    below = [
        f" . {each.subject} {CLASS_PATH} {each.object}" for each in pattern.edges if each.path != model.PLAIN
    ]
    return parse_any(f"{plain[:-2]}{''.join(below)} }}", tried=False)


def _query(text: str, parsed: Parsed) -> Query:
    query = parsed.query
    needs, carried = needs_of(query, parsed.words)
    members = tuple((pattern, _role(pattern, exact)) for pattern, exact in needs)
    if any(role == model.EVERY for _, role in members):
        # The others would only ask what is asked anyway.
        members = ((model.Pattern(()), model.EVERY),)
    return Query(text, query.form, model.selected_of(query), texts_of(parsed), members, carried)


def _role(pattern: model.Pattern, exact: bool) -> int:
    if exact:
        return model.DECIDES
    return model.NARROWS if pattern.filters or any(map(_tells, pattern.edges)) else model.EVERY


def _tells(edge: model.Edge) -> bool:
    """Tell whether an edge names something, so that not every event has it."""
    return not all(term.startswith("?") for term in edge[:3])


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


def print_any(filter_: AnyFilter) -> str:
    """Write a filter."""
    return print_pattern(filter_) if isinstance(filter_, model.Pattern) else filter_.text
