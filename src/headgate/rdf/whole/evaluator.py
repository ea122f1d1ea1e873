"""Whole queries asked of events, in a process of their own, each within a time.

A query that takes too long or ends the process is given up, told by the reason, and the others are asked in a
new one. Each that is given up halves the time of those that follow it for the same event.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headgate.contents.results import ResultRows
from headgate.errors import EventError
from headgate.rdf.events.isolation import Isolated, LostError
from headgate.rdf.events.triples import write_lines
from headgate.rdf.events.worker import pack
from headgate.rdf.index.bindings import Bindings, Facts, prepared
from headgate.rdf.language.grammar import CONSTRUCT
from headgate.rdf.language.model import MEMBER, SELECT, SUBPROPERTY, Pattern, plain
from headgate.rdf.taxonomy.taxonomy import is_numbered
from headgate.rdf.whole.worker import ASKS, GIVES, Answer, Event, Question

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.rdf.language.model import Graph, Options, Term
    from headgate.rdf.taxonomy.taxonomy import Statement, Taxonomy
    from headgate.rdf.whole.query import Query


SECONDS = 0.5
"""For one query of one event, by the clock and then by the processor."""
TIMES = 10
"""How many times as long all queries of one event may take together; then each has the least."""
LEAST_SECONDS = 0.05
"""What every query of an event has, however much others have taken."""
MEMORY = 1 << 30
_ANSWER: msgspec.msgpack.Decoder[bool | str | Answer] = msgspec.msgpack.Decoder(bool | str | Answer)


class Seen(NamedTuple):
    """What queries see of an event: its lines, and those of the taxonomy above it if one walks there."""

    lines: bytes
    above: bytes | None


class GivenUpError(EventError):
    """A query that has no answer: it takes too long, or cannot be evaluated."""


class Evaluator(Isolated):
    """A process that evaluates queries."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        super().__init__("headgate.rdf.whole.worker", "the evaluator", memory)
        self._seconds = seconds

    def ask(self, seen: Seen, questions: Sequence[tuple[str, bytes]]) -> list[bool | str]:
        """Tell of each query whether it has an answer, or why nobody knows.

        A query comes with the lines of the taxonomy above its own terms.
        """
        asked = [Question(ASKS, text, more) for text, more in questions]
        return [each if isinstance(each, bool | str) else True for each in self._answers(seen, asked)]

    def give(self, seen: Seen, text: str, more: bytes, limit: int) -> Answer:
        """Return the answer of a query, at most so many rows of it; raises `GivenUpError`."""
        (given,) = self._answers(seen, [Question(GIVES, text, more, limit)])
        if isinstance(given, str):
            raise GivenUpError(given)
        assert isinstance(given, Answer)
        return given

    def refusal(self, text: str) -> str:
        """Say why a query cannot be evaluated, found by asking it of an event without triples."""
        (reason,) = self._answers(Seen(b"", None), [Question(ASKS, text)])
        return reason if isinstance(reason, str) else ""

    def _answers(self, seen: Seen, questions: Sequence[Question]) -> list[bool | str | Answer]:
        seconds = self._seconds

        def ask(answers: list[bool | str | Answer], alone: bool) -> None:
            """Ask what has no answer yet, and append what comes back, as far as it comes."""
            del alone
            left = list(questions[len(answers) :])
            process = self._running()
            process.send(pack(Event(seen.lines, seen.above, left)), self._seconds)
            for _ in left:
                patience = max(LEAST_SECONDS, min(seconds, until - time.monotonic()))
                answers.append(_ANSWER.decode(process.receive(patience)))

        def given_up(lost: LostError) -> str:
            nonlocal seconds
            seconds = max(seconds / 2, LEAST_SECONDS)
            return f"{lost}; send smaller events, or narrow the query"

        with self._lock:
            until = time.monotonic() + TIMES * self._seconds
            return self._gather(len(questions), ask, given_up)


EVALUATOR = Evaluator()
"""The one that all indexes of this process ask."""


def seen(graph: Graph, taxonomy: Taxonomy, *, walked: bool) -> Seen:
    """Return what queries see of an event; with what lies above its terms, if one walks there."""
    if not walked and not len(taxonomy):
        return Seen(write_lines(graph).encode(), None)
    statements = Facts(graph, taxonomy).statements
    lines = _lines(statements)
    if not walked:
        return Seen(lines, None)
    return Seen(lines, above(dict.fromkeys(term for each in statements for term in each), taxonomy))


def above(terms: Iterable[Term], taxonomy: Taxonomy) -> bytes:
    """Write the statements of the taxonomy that lead upwards from some terms."""
    ups = taxonomy.ups()
    waiting = list(terms)
    met = set(waiting)
    statements: dict[Statement, None] = {
        (term, SUBPROPERTY, MEMBER): None for term in waiting if is_numbered(term)
    }
    if statements and MEMBER not in met:
        met.add(MEMBER)
        waiting.append(MEMBER)
    while waiting:
        for each in ups.get(waiting.pop(), ()):
            statements[each] = None
            if each[2] not in met:
                met.add(each[2])
                waiting.append(each[2])
    return _lines(statements)


def _lines(statements: Iterable[Statement]) -> bytes:
    return "".join([f"{s} {p} {o} .\n" for s, p, o in statements]).encode()


GRAPH = "graph"
"""The one column of what a CONSTRUCT gives, whose rows are lines of N-Triples together."""


def answer(query: Query, graph: Graph, facts: Facts, options: Options, limit: int) -> Bindings:
    """Return at most so many answers of a query; "" stands for a variable that is not bound.

    Of a CONSTRUCT they are its triples, in the columns ?subject, ?predicate and ?object.
    """
    if query.carried:
        return _carried(query, facts, options, limit)
    roots, taxonomy = query.texts.roots, facts.taxonomy
    assert taxonomy is not None, "every index has one"
    whole = seen(graph, taxonomy, walked=roots is not None)
    given = EVALUATOR.give(whole, query.texts.gives, above(roots, taxonomy) if roots else b"", limit)
    names = ("?subject", "?predicate", "?object") if query.form == CONSTRUCT else tuple(given.names)
    return Bindings(names, tuple([tuple(row) for row in given.rows]), given.complete)


def _carried(query: Query, facts: Facts, options: Options, limit: int) -> Bindings:
    """Return the bindings of the patterns of a query."""
    rows: dict[tuple[Term, ...], None] = {}
    complete = True
    for pattern, _ in query.members:
        known = tuple(name for name in query.names if name in pattern.variables)
        form = Pattern(pattern.edges, pattern.filters, SELECT, known) if known else pattern
        bindings = prepared(form).bindings(facts, options, limit if known else 1)
        complete = complete and (bindings.complete or not known)
        for row in bindings.rows:
            terms = dict(zip(known, row, strict=False))
            rows[tuple([terms.get(name, "") for name in query.names])] = None
    return Bindings(query.names, tuple(islice(rows, limit)), complete and len(rows) <= limit)


def rows_of(query: Query, bindings: Bindings) -> ResultRows:
    """Return answers without types and languages; of a CONSTRUCT, its graph as N-Triples in one row."""
    if query.form == CONSTRUCT:
        text = "".join([f"{' '.join(row)} .\n" for row in bindings.rows])
        return ResultRows((GRAPH,), [(text,)] if bindings.rows else [], bindings.complete)
    titles = tuple(name[1:] for name in bindings.names)
    return ResultRows(titles, [tuple(map(plain, row)) for row in bindings.rows], bindings.complete)
