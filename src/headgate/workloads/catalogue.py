"""The workloads by name. Their modules are imported when one is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from headgate.workloads.columns import Ints
    from headgate.workloads.records.synthetic import Synthetic
    from headgate.workloads.settings import Generate

    Maker = Callable[[Ints, int], pa.RecordBatch]


SYNTHETIC = ("equality", "mixed", "ranges", "negations", "growth")
"""W-eq, then W-mix and its variants: those that are drawn as a specification."""

NAMES = ("advertising", *SYNTHETIC)

EXCHANGE_SELECTIVITIES = ("1/16", "1/8", "1/4", "1/2", "1")
SOCIAL_SELECTIVITIES = ("1/64", "1/16", "1/8", "1/4", "1/2", "1")
"""The part of the filters of a graph's nodes that an event matches; 1 is no filters."""

RANKING_SCORES = ("length", "random")
"""What boxes are ranked by if all of their intervals hold: the mean of their weights, or chance."""

RDF_NAMES = ("paper", "stars")
"""Graph patterns: those of the paper on G-ToPSS, and instances of classes with ranges."""

XMARK_LAWS = ("table-2", "wan")
"""How views over XMark's schema are drawn: as in Table 2 of the paper on Delta, or in its section 5.5."""


class Workload(Protocol):
    """What every workload has; a module may be one."""

    def subscriptions(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the subscriptions with the given row numbers."""

    def subscription_schema(self) -> pa.Schema:
        """Describe the columns of `subscriptions`."""

    def events(self, rows: Ints, seed: int) -> pa.RecordBatch:
        """Make the events with the given row numbers."""

    def schema(self) -> pa.Schema:
        """Describe the columns of `events`."""


def workload(name: str, total: int) -> Workload:
    """Find a workload by its name; `total` is how many subscriptions there will be."""
    if name == "advertising":
        from headgate.workloads.records import advertising

        return advertising
    return synthetic(name, total)


def synthetic(name: str, total: int) -> Synthetic:
    """Find a workload that is drawn as a specification.

    >>> synthetic("growth", 1_000_000).attributes[-1].size
    10
    """
    from headgate.workloads.records.equality import Equality
    from headgate.workloads.records.mixed import Mixed

    if name not in SYNTHETIC:
        raise HeadgateError(f"no specified workload is named {name!r}; there are {', '.join(SYNTHETIC)}")
    return Equality() if name == "equality" else Mixed(name, total)


class GeneratedTable(NamedTuple):
    """A table that can be made, whole or some rows of it."""

    make: Maker
    schema: pa.Schema
    rows: int


class WorkloadTables(NamedTuple):
    """All tables of a workload, and the text of its taxonomy if it has one."""

    tables: dict[str, GeneratedTable]
    taxonomy: str | None = None


def workload_of(given: Generate) -> WorkloadTables:
    """Find the tables that are asked for."""
    subscriptions, events = given.value("subscriptions"), given.value("events")
    name = given.workload
    if name in {"exchange", "social"}:
        return WorkloadTables(_graph(given, events))
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
    return WorkloadTables(tables, text)


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
