"""The graph to look at: a part of it, what hangs at its nodes, and the way of an event through it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.errors import EventError
from headgate.graph.trace import hung_at, names_at, trace
from headgate.service.api.asking import Cursor  # noqa: TC001 -- msgspec reads it
from headgate.service.api.explaining import asked_event, plain
from headgate.service.api.operation import READ, Answer, Call, Page, in_json, operation
from headgate.service.problems import NotFound, Problem
from headgate.service.resources import EdgeBody, Part

if TYPE_CHECKING:
    from headgate.contents.protocol import Verdict
    from headgate.core.event import Event
    from headgate.graph.changes.view import View
    from headgate.graph.trace import EdgeTrace, NodeTrace
    from headgate.service.api.events import KeptEvent
    from headgate.service.tenant.tenant import Tenant

Some = Annotated[int, msgspec.Meta(ge=1, le=2_000)]
_MISS = "nearest_miss"


class HungPart(Part, kw_only=True, omit_defaults=True):
    """A node, and how many subscriptions hang at it. Fields that have their default are left out."""

    subscriptions: int


class GraphQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which part of the graph is wanted."""

    node: str | None = None
    """Around which node; without it, what follows the nodes that no edge leads to."""
    hops: Annotated[int, msgspec.Meta(ge=0, le=20)] = 2
    """How far from the node."""
    most: Some = 200
    """Nodes at most."""


class GraphPart(msgspec.Struct, kw_only=True):
    """A part of the graph: nodes in the order in which they are found, and all edges between these."""

    nodes: list[HungPart]
    edges: list[EdgeBody]
    all_nodes: int
    all_edges: int
    """Of the whole graph."""
    cut: str | None
    """Why it is not the whole graph."""


@operation(
    "GET",
    "/v1/graph",
    "Read the graph, or a part of it, to look at: nodes with what hangs at them, and the edges between.",
    READ,
    {200: GraphPart},
    query=GraphQuery,
    problems=(400, 404),
    example="-G -d node=sport -d hops=2",
)
async def read_graph(call: Call) -> Answer:
    """Read a part of the graph."""
    return Answer(await asyncio.to_thread(_part, call.tenant, call.query(GraphQuery)))


def _part(tenant: Tenant, query: GraphQuery) -> GraphPart:
    graph = tenant.store.graph
    all_nodes, all_edges = graph.counts()
    if query.node is not None and graph.node(query.node) is None:
        raise NotFound(f"there is no node {query.node!r}")
    if query.node is not None:
        found = _around(tenant, query.node, query.hops, query.most)
    elif all_nodes <= query.most:
        found = dict.fromkeys(str(each.id) for each in graph.nodes())
    else:
        found = _ahead(tenant, query.most)
    by_id = {each.id: each for each in graph.nodes_of(found)}
    view = _view(tenant)
    nodes = [_hung(by_id[each], view) for each in found if each in by_id]
    edges = [each for each in graph.edges_of(found) if each.target in by_id]
    cut = None
    if len(nodes) < all_nodes:
        where = f"around {query.node!r}, {query.hops} hops far" if query.node is not None else "at its start"
        cut = f"{len(nodes):,} of {all_nodes:,} nodes, those {where}"
    return GraphPart(nodes=nodes, edges=edges, all_nodes=all_nodes, all_edges=all_edges, cut=cut)


def _around(tenant: Tenant, node: str, hops: int, most: int) -> dict[str, None]:
    """Find nodes around one, whichever way edges lead, the nearest first."""
    graph, found = tenant.store.graph, {node: None}
    frontier = [node]
    for _ in range(hops):
        ends = [each.target for each in graph.edges_of(frontier)]
        ends += [each.source for each in graph.edges_of(frontier, back=True)]
        frontier = [each for each in dict.fromkeys(ends) if each not in found][: most - len(found)]
        found.update(dict.fromkeys(frontier))
        if not frontier:
            break
    return found


def _ahead(tenant: Tenant, most: int) -> dict[str, None]:
    """Find nodes from those on that no edge leads to; all have one if there are only circles."""
    graph = tenant.store.graph
    # Not as many as may be shown: what follows them is to be seen as well.
    begin = graph.roots(max(1, most // 4)) or graph.nodes(most=1)
    frontier = [str(each.id) for each in begin]
    found = dict.fromkeys(frontier)
    while frontier and len(found) < most:
        ends = dict.fromkeys(each.target for each in graph.edges_of(frontier))
        frontier = [each for each in ends if each not in found][: most - len(found)]
        found.update(dict.fromkeys(frontier))
    rest = (str(each.id) for each in graph.nodes(most=most))
    return dict.fromkeys([*found, *(each for each in rest if each not in found)][:most])


def _view(tenant: Tenant) -> View | None:
    routed = tenant.index.routed
    return None if routed is None else routed.graph.view


def _hung(part: Part, view: View | None) -> HungPart:
    assert part.id is not None
    vertex = -1 if view is None else view.find(part.id)
    count = 0 if view is None or vertex < 0 else len(hung_at(view, vertex))
    return HungPart(**msgspec.structs.asdict(part), subscriptions=count)


class HungPage(msgspec.Struct, kw_only=True):
    """Some of the subscriptions that hang at a node, in the order of their ids."""

    items: list[str]
    next: str | None


@operation(
    "GET",
    "/v1/graph/nodes/{id}/subscriptions",
    "List the ids of the subscriptions that hang at a node and have not expired.",
    READ,
    {200: HungPage},
    query=Page,
    problems=(400, 404),
    example="-G -d limit=10",
)
async def list_node_subscriptions(call: Call) -> Answer:
    """List what hangs at a node."""
    identity, query = call.path["id"], call.query(Page)
    most = query.most()
    if call.tenant.store.graph.node(identity) is None:
        raise NotFound(f"there is no node {identity!r}")
    view = _view(call.tenant)
    names = [] if view is None else await asyncio.to_thread(names_at, view, identity)
    wanted = (query.search or "").casefold()
    found = [each for each in map(str, names) if each > query.after and wanted in each.casefold()]
    return Answer(HungPage(items=found[:most], next=found[most - 1] if len(found) > most else None))


# The way of an event


class TraceBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which event."""

    event: dict[str, Any] | None = None
    cursor: Cursor | None = None
    """The event that is kept at a cursor."""
    event_id: str | None = None
    """The newest event that is kept of an id."""
    most: Some = 200
    """Nodes that are listed at most."""


class Why(msgspec.Struct, kw_only=True):
    """Why an event was stopped."""

    filter: str
    failed: list[dict[str, Any]]
    """The clauses that would have to hold, with the event's values; of records the fewest."""
    lines: list[str]
    """For people."""


class TracedNode(msgspec.Struct, omit_defaults=True, kw_only=True):
    """A node that the event came to."""

    id: str
    state: Literal["entered", "passed", "stopped"]
    subscriptions: int
    """How many hang there."""
    served: int
    """How many of these get the event."""
    why: Why | None = None


class TracedEdge(msgspec.Struct, omit_defaults=True, kw_only=True):
    """An edge from a node that the event passed."""

    source: str
    target: str
    state: Literal["passed", "stopped"]
    why: Why | None = None


class TraceAnswer(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The way of an event through the graph, as it is now: nodes in the order in which it came to them."""

    event_id: str
    source: str | None
    cursor: int | None = None
    nodes: list[TracedNode]
    edges: list[TracedEdge]
    passed: int
    """Nodes that it passed, also those that are not listed."""
    served: int
    """Subscriptions at nodes that get it."""
    note: str | None = None
    """Why it is not in the graph, or why not all of its way is listed."""


@operation(
    "POST",
    "/v1/graph/trace",
    "Follow an event through the graph: nodes and edges that it passes, and what fails where it is stopped.",
    READ,
    {200: TraceAnswer},
    body=TraceBody,
    problems=(400, 404),
    example=in_json('{"event": {"source": "publisher", "topic": "sport"}}'),
)
async def trace_event(call: Call) -> Answer:
    """Follow an event."""
    said = call.said(TraceBody)
    event, kept = await asyncio.to_thread(asked_event, call, said.event, said.cursor, said.event_id)
    return Answer(await asyncio.to_thread(_trace, call.tenant, event, kept, said.most))


def _trace(tenant: Tenant, event: Event, kept: KeptEvent | None, most: int) -> TraceAnswer:
    view = _view(tenant)
    source = None if event.source is None else str(event.source)
    found = TraceAnswer(
        event_id=str(event.id),
        source=source,
        cursor=None if kept is None else kept.cursor,
        nodes=[],
        edges=[],
        passed=0,
        served=0,
    )
    if view is None:
        found.note = "there is no graph: only subscriptions that hang at no node can get it"
        return found
    if event.source is None or view.find(event.source) < 0:
        what = "it has no source" if source is None else f"its source {source!r} is no node of the graph"
        found.note = f"{what}: it reaches no node, and nobody who hangs at one"
        return found
    try:
        way = trace(view, event, most)
    except EventError as error:
        raise Problem(f"the event cannot be followed: {error}", 422) from None
    found.nodes, found.edges = [_node(each) for each in way.nodes], [_edge(each) for each in way.edges]
    found.passed, found.served = way.passed, way.served
    if way.cut:
        found.note = f"its way is longer: the first {len(way.nodes):,} nodes are listed"
    return found


def _node(found: NodeTrace) -> TracedNode:
    state: Any = found.state
    return TracedNode(
        id=str(found.id),
        state=state,
        subscriptions=found.subscriptions,
        served=found.served,
        why=_why(found.verdict),
    )


def _edge(found: EdgeTrace) -> TracedEdge:
    state: Any = found.state
    return TracedEdge(
        source=str(found.source), target=str(found.target), state=state, why=_why(found.verdict)
    )


def _why(verdict: Verdict | None) -> Why | None:
    if verdict is None:
        return None
    about = plain(verdict)
    fields: dict[str, Any] = about if isinstance(about, dict) else {}
    failed = fields.get(_MISS) or [
        clause
        for part in fields.values()
        if isinstance(part, list)
        for clause in part
        if isinstance(clause, dict) and clause.get("held", True) is not True
    ]
    return Why(filter=str(fields.get("filter", "")), failed=failed, lines=verdict.lines())
