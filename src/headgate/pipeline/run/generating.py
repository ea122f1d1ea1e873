"""The tables that `[generate]` makes: the same rows as `headgate generate` with the same options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.workloads.catalogue import NAMES, workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.pipeline.file.settings import Generate

    Maker = Callable[[NDArray[np.int64], int], pa.RecordBatch]

_COUNTS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(NAMES, (100_000, 20_000)),
    "exchange": (0, 1_000),
    "social": (0, 1_000),
    "ranking": (1_000_000, 1_000),
    "paper": (30_000, 1_000),
    "stars": (30_000, 1_000),
    "xmark": (100_000, 200),
}
"""How many subscriptions and events are made of each workload if nothing is said."""
_PERSONS, _FOLLOWING = 1_000_000, 10_000_000


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
    subscriptions, events = _counts(given)
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
        from headgate.workloads.xml.xmark import XMark

        least, most = given.kilobytes
        made = XMark(unique=given.unique, sizes=(1_000 * least, 1_000 * most))
        made = made.settled(subscriptions, given.seed)
    else:
        made = workload(name, subscriptions)
    tables = {
        "subscriptions": GeneratedTable(made.subscriptions, made.subscription_schema(), subscriptions),
        "events": GeneratedTable(made.events, made.schema(), events),
    }
    return Workload(tables, text)


def _counts(given: Generate) -> tuple[int, int]:
    subscriptions, events = _COUNTS[given.workload]
    return (
        subscriptions if given.subscriptions is None else given.subscriptions,
        events if given.events is None else given.events,
    )


def _graph(given: Generate, events: int) -> dict[str, GeneratedTable]:
    made: Any
    if given.workload == "exchange":
        from headgate.workloads.graphs.exchange import Exchange

        made = Exchange(given.scale, given.selectivity or "1/4", given.vocabulary)
    else:
        from headgate.workloads.graphs.social import Social

        nodes = _PERSONS if given.nodes is None else given.nodes
        edges = _FOLLOWING if given.edges is None else given.edges
        made = Social(nodes, edges, given.selectivity or "1/16")
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
