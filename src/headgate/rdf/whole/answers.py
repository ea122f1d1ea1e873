"""What whole queries give: rows of SELECT and ASK, graphs of CONSTRUCT."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from headgate.contents.results import ResultRows
from headgate.rdf.events.facts import Facts
from headgate.rdf.index.bindings import Bindings, prepared
from headgate.rdf.language.model import SELECT, Pattern, plain
from headgate.rdf.whole.evaluator import EVALUATOR
from headgate.rdf.whole.parser import CONSTRUCT
from headgate.rdf.whole.seen import above, seen

if TYPE_CHECKING:
    from headgate.rdf.language.model import Graph, Options, Term
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.rdf.whole.query import Query
    from headgate.rdf.whole.worker import Answer

GRAPH = "graph"
"""The one column of what a CONSTRUCT gives, whose rows are lines of N-Triples together."""


def answer(query: Query, graph: Graph, taxonomy: Taxonomy, options: Options, limit: int) -> Bindings:
    """Return at most so many answers of a query; "" stands for a variable that is not bound.

    Of a CONSTRUCT they are its triples, in the columns ?subject, ?predicate and ?object.
    """
    if query.carried:
        return _carried(query, Facts(graph, taxonomy), options, limit)
    found = _given(query, graph, taxonomy, limit)
    names: tuple[Term, ...] = tuple(found.names)
    if query.form == CONSTRUCT:
        names = ("?subject", "?predicate", "?object")
    return Bindings(names, tuple([tuple(row) for row in found.rows]), found.complete)


def _carried(query: Query, facts: Facts, options: Options, limit: int) -> Bindings:
    """Return the bindings of the patterns of a query."""
    rows: dict[tuple[Term, ...], None] = {}
    complete = True
    for pattern, _ in query.members:
        known = tuple(name for name in query.names if name in pattern.variables)
        form = Pattern(pattern.edges, pattern.filters, SELECT, known) if known else pattern
        found = prepared(form).bindings(facts, options, limit if known else 1)
        complete = complete and (found.complete or not known)
        for row in found.rows:
            terms = dict(zip(known, row, strict=False))
            rows[tuple([terms.get(name, "") for name in query.names])] = None
    return Bindings(query.names, tuple(islice(rows, limit)), complete and len(rows) <= limit)


def rows_of(query: Query, graph: Graph, taxonomy: Taxonomy, options: Options, limit: int) -> ResultRows:
    """Return the same without types and languages; of a CONSTRUCT, its graph as N-Triples in one row."""
    if query.carried:
        carried = _carried(query, Facts(graph, taxonomy), options, limit)
        titles = tuple(name[1:] for name in carried.names)
        return ResultRows(titles, [tuple(map(plain, row)) for row in carried.rows], carried.complete)
    found = _given(query, graph, taxonomy, limit)
    if query.form == CONSTRUCT:
        text = "".join([f"{' '.join(row)} .\n" for row in found.rows])
        return ResultRows((GRAPH,), [(text,)] if found.rows else [], found.complete)
    rows = [tuple([plain(term) for term in row]) for row in found.rows]
    return ResultRows(tuple(name[1:] for name in found.names), rows, found.complete)


def _given(query: Query, graph: Graph, taxonomy: Taxonomy, limit: int) -> Answer:
    roots = query.texts.roots
    whole = seen(graph, taxonomy, walked=roots is not None)
    return EVALUATOR.give(whole, query.texts.gives, above(roots, taxonomy) if roots else b"", limit)
