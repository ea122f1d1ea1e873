"""The tables that `[generate]` makes: the same rows as `headgate generate` with the same options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.workloads.catalogue import workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.workloads.settings import Generate

    Maker = Callable[[NDArray[np.int64], int], pa.RecordBatch]


class GeneratedTable(NamedTuple):
    """A table that can be made, whole or some rows of it."""

    make: Maker
    schema: pa.Schema
    rows: int


class Workload(NamedTuple):
    """All tables of a workload, and the text of its taxonomy if it has one."""

    tables: dict[str, GeneratedTable]
    taxonomy: str | None = None


def workload_of(given: Generate) -> Workload:
    """Find the tables that are asked for."""
    subscriptions, events = given.value("subscriptions"), given.value("events")
    name = given.workload
    if name in {"exchange", "social"}:
        return Workload(_graph(given, events))
    made: Any
    text = None
    if name == "ranking":
        made = _ranking(given)
    elif name in {"paper", "stars"}:
        made = _patterns(given)
        text = made.taxonomy_text(given.seed)
    elif name == "xmark":
        from headgate.workloads.xml.xmark import LAWS, XMark

        least, most = given.kilobytes
        made = XMark(unique=given.unique, sizes=(1_000 * least, 1_000 * most), law=LAWS[given.law])
        made = made.settled(subscriptions, given.seed)
    else:
        made = workload(name, subscriptions)
    tables = {
        "subscriptions": GeneratedTable(made.subscriptions, made.subscription_schema(), subscriptions),
        "events": GeneratedTable(made.events, made.schema(), events),
    }
    return Workload(tables, text)


def _graph(given: Generate, events: int) -> dict[str, GeneratedTable]:
    made: Any
    if given.workload == "exchange":
        from headgate.workloads.graphs.exchange import Exchange

        made = Exchange(given.scale, given.value("selectivity"), given.vocabulary)
    else:
        from headgate.workloads.graphs.social import Social

        made = Social(given.value("nodes"), given.value("edges"), given.value("selectivity"))
    return {
        "nodes": GeneratedTable(made.nodes, made.node_schema(), made.node_count),
        "edges": GeneratedTable(made.edges, made.edge_schema(), made.edge_count),
        "events": GeneratedTable(made.events, made.schema(), events),
    }


def _ranking(given: Generate) -> Any:
    from headgate.workloads.ranking import TABLE_1, Ranking, Sparse

    law = TABLE_1._replace(skew_length=given.skew_length)
    if given.attributes is not None:
        presence = 1.0 if given.presence is None else given.presence
        return Sparse(given.attributes, presence=presence, scores=given.scores, law=law)
    return Ranking(1 if given.dimensions is None else given.dimensions, given.scores, law)


def _patterns(given: Generate) -> Any:
    from headgate.workloads.rdf.stars import Stars
    from headgate.workloads.rdf.triples import Paper

    if given.workload == "stars":
        return Stars()
    asked = {"ratio": given.match_ratio, "overlap": given.overlap, "constrained": given.constrained or None}
    chosen: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    return Paper(**chosen)
