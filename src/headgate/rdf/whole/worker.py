"""The evaluator process: `python -m headgate.rdf.whole.worker MEMORY`.

It answers whole queries over one event after another, by pyoxigraph. Frames are those of the parser process.

    in     [lines, above, [[kind, text, more, limit], …]]
    out    one frame for each question: true or false, an answer, or the reason of a refusal as a string

`lines` are the event's triples and `above` those of the taxonomy over it, as N-Triples, or null if no query
walks there; `more` are those that lie above the terms of one query.
"""

from __future__ import annotations

import sys
from itertools import islice
from typing import TYPE_CHECKING

import msgspec
from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    Quad,
    QueryBoolean,
    QuerySolutions,
    RdfFormat,
    Store,
    parse,
)

from headgate.rdf.events.worker import allow_cpu, serve
from headgate.rdf.language.model import literal

if TYPE_CHECKING:
    from collections.abc import Iterator

TAXONOMY_GRAPH = "urn:x-headgate:taxonomy"
"""The graph that paths over the taxonomy are looked for in."""
ASKS = 0
GIVES = 1
_GRAPH = NamedNode(TAXONOMY_GRAPH)


class Question(msgspec.Struct, array_like=True):
    """A query, whether it is asked for its answer, and of how many rows."""

    kind: int
    text: str
    more: bytes = b""
    limit: int = 0


class Event(msgspec.Struct, array_like=True):
    """An event and the queries that are asked of it."""

    lines: bytes
    above: bytes | None
    questions: list[Question]


class Answer(msgspec.Struct, array_like=True):
    """Rows of terms, "" where a variable is not bound; of CONSTRUCT, lines of three terms, and no names."""

    names: list[str]
    rows: list[list[str]]
    complete: bool


def _answers(event: Event) -> Iterator[object]:
    allow_cpu()
    store = _store(event)
    for question in event.questions:
        allow_cpu()
        yield _answered(store, question)


def _store(event: Event) -> Store:
    store = Store()
    if event.above is None and all(each.kind == ASKS for each in event.questions):
        store.load(event.lines, RdfFormat.N_TRIPLES)
        return store
    # Loading would give blank nodes other names.
    store.extend(parse(event.lines, RdfFormat.N_TRIPLES))
    if event.above is not None:
        store.extend(_over(event.lines + event.above))
    return store


def _over(lines: bytes) -> list[Quad]:
    """Put triples into the graph of the taxonomy."""
    quads = parse(lines, RdfFormat.N_TRIPLES)
    return [Quad(each.subject, each.predicate, each.object, _GRAPH) for each in quads]


def _answered(store: Store, question: Question) -> bool | str | Answer:
    more = [each for each in _over(question.more) if each not in store]
    try:
        store.extend(more)
        result = store.query(question.text)
        if question.kind == ASKS:
            return bool(result) if isinstance(result, QueryBoolean) else next(iter(result), None) is not None
        return _rows(result, question.limit)
    except (SyntaxError, ValueError, OSError, RuntimeError) as error:
        return str(error) or type(error).__name__
    finally:
        for each in more:
            store.remove(each)


def _rows(result: object, limit: int) -> Answer:
    names: list[str] = []
    rows: dict[tuple[str, ...], None] = {}
    if isinstance(result, QueryBoolean):
        return Answer(names, [[]] if result else [], True)
    if isinstance(result, QuerySolutions):
        names = [f"?{each.value}" for each in result.variables]
    for each in result:  # type: ignore[attr-defined]
        rows[tuple([_term(term) for term in each])] = None
        if len(rows) > limit:
            break
    return Answer(names, [list(each) for each in islice(rows, limit)], len(rows) <= limit)


def _term(term: object) -> str:
    if isinstance(term, Literal):
        return literal(term.value, term.datatype.value, term.language or "")
    if isinstance(term, BlankNode):
        return f"_:{term.value}"
    return "" if term is None else str(term)


if __name__ == "__main__":
    serve(int(sys.argv[1]), Event, _answers)
