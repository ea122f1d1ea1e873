"""The texts that the evaluator is asked: whole by themselves, with the taxonomy where paths walk over it.

Names are written out, as no prologue goes with them. A path over rdfs:subClassOf or rdfs:subPropertyOf is
looked for in a graph of its own, which holds the event and what lies above its terms; all else sees the event
alone. Triples that stand with such a path are written one by one, and blank nodes as variables, because a
blank node may not stand in two graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.language import words as kinds_of_words
from headgate.rdf.language.model import ASK, is_iri
from headgate.rdf.whole.expressions import ARGUMENTS
from headgate.rdf.whole.needs import walks
from headgate.rdf.whole.parser import CONSTRUCT
from headgate.rdf.whole.tree import (
    Bind,
    Block,
    Chain,
    Choice,
    Either,
    Filter,
    Group,
    Inverse,
    Minus,
    Optional,
    Repeat,
    Select,
    selected_of,
)
from headgate.rdf.whole.worker import TAXONOMY_GRAPH

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.rdf.language.model import Term
    from headgate.rdf.language.words import Kinds
    from headgate.rdf.whole.parser import Parsed
    from headgate.rdf.whole.tree import Expression, Path, Triple


class Texts(NamedTuple):
    """`asks` tells whether there is an answer, `gives` what it is.

    `roots` are the terms from which paths over the taxonomy may begin, None if there is no such path.
    """

    asks: str
    gives: str
    roots: tuple[Term, ...] | None


def texts_of(parsed: Parsed, words: Sequence[str], kinds: Kinds) -> Texts:
    """Write the texts of a query."""
    return _Writer(parsed, words, kinds).texts()


class _Writer:
    def __init__(self, parsed: Parsed, words: Sequence[str], kinds: Kinds) -> None:
        self._query = parsed.query
        self._kinds = kinds
        self._words = [
            term if term is not None and term[0] == "<" and word != "a" else word
            for word, term in zip(words, parsed.terms, strict=True)
        ]
        self._begin = parsed.prologue
        self._terms = parsed.terms
        self._used = {
            word[1:] for word, kind in zip(words, kinds, strict=True) if kind == kinds_of_words.VARIABLE
        }
        self._named: dict[Term, str] = {}

    def texts(self) -> Texts:
        """Write them."""
        query = self._query
        blocks = list(_blocks(query))
        walking = [each for block in blocks for each in block.triples if walks(each.path)]
        if walking:
            self._rewrite(blocks)
        body = self._range(query.body, len(self._words))
        whole = self._range(self._begin, len(self._words))
        asks = f"ASK {body}" if query.form == CONSTRUCT else whole
        gives = whole
        if query.form == ASK:
            names = "" if query.aggregates else " ".join(selected_of(query))
            gives = f"SELECT {names} {body}" if names else asks
        roots = tuple(
            dict.fromkeys(end for each in walking for end in (each.subject, each.object) if is_iri(end))
        )
        return Texts(asks, gives, roots if walking else None)

    def _range(self, begin: int, end: int) -> str:
        """Join words; a language or a datatype stands close to its string, parentheses to what is in them.

        The evaluator's parser does not take blanks around those of some functions.
        """
        found: list[str] = []
        for place in range(begin, end):
            word = self._words[place]
            if not word:
                continue
            close = self._kinds[place] in (kinds_of_words.LANGUAGE, "_TYPED") or (
                place > begin and self._kinds[place - 1] == "_TYPED"
            )
            before = found[-1].strip() if found else ""
            close = close or word in (")", ",") or before == "("
            close = close or (word == "(" and before.upper() in ARGUMENTS)
            found.append(word if close or not found else f" {word}")
        return "".join(found)

    def _rewrite(self, blocks: Sequence[Block]) -> None:
        for place in range(self._query.body, len(self._words)):
            if self._kinds[place] == kinds_of_words.BLANK:
                self._words[place] = self._name(str(self._terms[place]))
        for query in _queries(self._query):
            if query.star >= 0:
                self._words[query.star] = " ".join(selected_of(query)) or "*"
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
        found = self._named.get(term)
        if found is None:
            number = len(self._named)
            while f"blank{number}" in self._used:
                number += 1
            self._used.add(f"blank{number}")
            found = self._named[term] = f"?blank{number}"
        return found

    def _path(self, path: Path) -> str:
        if isinstance(path, str):
            return self._name(path)
        if isinstance(path, Inverse):
            return f"^({self._path(path.path)})"
        if isinstance(path, Chain):
            return "(" + "/".join(map(self._path, path.steps)) + ")"
        if isinstance(path, Choice):
            return "(" + "|".join(map(self._path, path.options)) + ")"
        if isinstance(path, Repeat):
            return f"({self._path(path.path)}){path.sign}"
        return "!(" + "|".join((*path.forward, *(f"^{each}" for each in path.back))) + ")"


def _queries(query: Select) -> Iterator[Select]:
    """List a query and those within it."""
    yield query
    for part in _parts(query):
        if isinstance(part, Select):
            yield part


def _blocks(query: Select) -> Iterator[Block]:
    """List all triples that stand in a query."""
    for part in _parts(query):
        if isinstance(part, Block):
            yield part


def _parts(query: Select) -> Iterator[Block | Select]:
    expressions = (*query.expressions, *query.having, *query.others)
    yield from _inside(query.group)
    yield from _asked(expressions)


def _asked(expressions: Sequence[Expression]) -> Iterator[Block | Select]:
    for expression in expressions:
        for group in expression.groups:
            yield from _inside(group)


def _inside(group: Group) -> Iterator[Block | Select]:
    for part in group.parts:
        if isinstance(part, Block):
            yield part
        elif isinstance(part, Select):
            yield part
            yield from _parts(part)
        elif isinstance(part, Group):
            yield from _inside(part)
        elif isinstance(part, Optional | Minus):
            yield from _inside(part.group)
        elif isinstance(part, Either):
            for each in part.groups:
                yield from _inside(each)
        elif isinstance(part, Filter):
            yield from _asked((part.condition,))
        elif isinstance(part, Bind):
            yield from _asked((part.expression,))
