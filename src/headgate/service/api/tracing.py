"""The graph to look at: a part of it, what hangs at its nodes, and the way of an event through it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.errors import EventError
from headgate.graph.explain import hung_at, names_at, trace
from headgate.service.api.asking import asked_event, plain
from headgate.service.api.operation import READ, Call, Items, Page, in_json, operation
from headgate.service.problems import Problem, existing
from headgate.service.resources import Cursor, EdgeBody, Part

if TYPE_CHECKING:
    from headgate.client.asking import KeptEvent
    from headgate.contents.protocol import Verdict
    from headgate.core.event import Event
    from headgate.graph.changes.view import View
    from headgate.graph.explain import EdgeTrace, NodeTrace
    from headgate.service.storage.graph import Graph
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


@operation("GET", "/v1/graph", READ, problems=(404,), example="-G -d node=sport -d hops=2")
async def read_graph(call: Call, query: GraphQuery) -> GraphPart:
    """Read the graph, or a part of it, to look at: nodes with what hangs at them, and the edges between."""
    return await asyncio.to_thread(_part, call.tenant, query)


def _part(tenant: Tenant, query: GraphQuery) -> GraphPart:
    graph = tenant.store.graph
    all_nodes, all_edges = graph.counts()
    if query.node is not None:
        existing(graph.node(query.node), f"node {query.node!r}")
        ids = _around(graph, [query.node], query.hops, query.most, back=True)
    elif all_nodes <= query.most:
        ids = dict.fromkeys(str(each.id) for each in graph.nodes())
    else:
        ids = _ahead(graph, query.most)
    by_id = {each.id: each for each in graph.nodes_of(ids)}
    view = _view(tenant)
    nodes = [_hung(by_id[each], view) for each in ids if each in by_id]
    edges = [each for each in graph.edges_of(ids) if each.target in by_id]
    cut = None
    if len(nodes) < all_nodes:
        where = f"around {query.node!r}, {query.hops} hops far" if query.node is not None else "at its start"
        cut = f"{len(nodes):,} of {all_nodes:,} nodes, those {where}"
    return GraphPart(nodes=nodes, edges=edges, all_nodes=all_nodes, all_edges=all_edges, cut=cut)


def _around(graph: Graph, nodes: list[str], hops: int, most: int, *, back: bool) -> dict[str, None]:
    """Find nodes around some, the nearest first, and `back` against the edges, too."""
    ids, frontier = dict.fromkeys(nodes), nodes
    for _ in range(hops):
        ends = [each.target for each in graph.edges_of(frontier)]
        if back:
            ends += [each.source for each in graph.edges_of(frontier, back=True)]
        frontier = [each for each in dict.fromkeys(ends) if each not in ids][: most - len(ids)]
        ids.update(dict.fromkeys(frontier))
        if not frontier:
            break
    return ids


def _ahead(graph: Graph, most: int) -> dict[str, None]:
    """Find nodes from those on that no edge leads to; all have one if there are only circles."""
    # Not as many as may be shown: what follows them is to be seen as well.
    begin = graph.roots(max(1, most // 4)) or graph.nodes(most=1)
    ids = _around(graph, [str(each.id) for each in begin], most, most, back=False)
    rest = (str(each.id) for each in graph.nodes(most=most))
    return dict.fromkeys([*ids, *(each for each in rest if each not in ids)][:most])


def _view(tenant: Tenant) -> View | None:
    routed = tenant.index.routed
    return None if routed is None else routed.graph.view


def _hung(part: Part, view: View | None) -> HungPart:
    assert part.id is not None
    vertex = -1 if view is None else view.find(part.id)
    count = 0 if view is None or vertex < 0 else len(hung_at(view, vertex))
    return HungPart(**msgspec.structs.asdict(part), subscriptions=count)


class HungPage(Items[str], kw_only=True):
    """Some of the subscriptions that hang at a node, in the order of their ids."""


@operation("GET", "/v1/graph/nodes/{id}/subscriptions", READ, example="-G -d limit=10")
async def list_node_subscriptions(call: Call, query: Page) -> HungPage:
    """List the ids of the subscriptions that hang at a node and have not expired."""
    identity = call.path["id"]
    existing(call.tenant.store.graph.node(identity), f"node {identity!r}")
    view = _view(call.tenant)
    names = [] if view is None else await asyncio.to_thread(names_at, view, identity)
    wanted = (query.search or "").casefold()
    ids = [each for each in map(str, names) if each > query.after and wanted in each.casefold()]
    items, more = query.cut(ids, str)
    return HungPage(items=items, next=more)


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
    READ,
    problems=(404,),
    example=in_json('{"event": {"source": "publisher", "topic": "sport"}}'),
)
async def trace_event(call: Call, body: TraceBody) -> TraceAnswer:
    """Follow an event through the graph: nodes and edges it passes, and what fails where it is stopped."""
    event, kept = await asyncio.to_thread(asked_event, call, body.event, body.cursor, body.event_id)
    return await asyncio.to_thread(_trace, call.tenant, event, kept, body.most)


def _trace(tenant: Tenant, event: Event, kept: KeptEvent | None, most: int) -> TraceAnswer:
    view = _view(tenant)
    source = None if event.source is None else str(event.source)
    answer = TraceAnswer(
        event_id=str(event.id),
        source=source,
        cursor=None if kept is None else kept.cursor,
        nodes=[],
        edges=[],
        passed=0,
        served=0,
    )
    if view is None:
        answer.note = "there is no graph: only subscriptions that hang at no node can get it"
        return answer
    if event.source is None or view.find(event.source) < 0:
        what = "it has no source" if source is None else f"its source {source!r} is no node of the graph"
        answer.note = f"{what}: it reaches no node, and nobody who hangs at one"
        return answer
    try:
        way = trace(view, event, most)
    except EventError as error:
        raise Problem(f"the event cannot be followed: {error}", 422) from None
    answer.nodes, answer.edges = [_node(each) for each in way.nodes], [_edge(each) for each in way.edges]
    answer.passed, answer.served = way.passed, way.served
    if way.cut:
        answer.note = f"its way is longer: the first {len(way.nodes):,} nodes are listed"
    return answer


def _node(traced: NodeTrace) -> TracedNode:
    state: Any = traced.state
    return TracedNode(
        id=str(traced.id),
        state=state,
        subscriptions=traced.subscriptions,
        served=traced.served,
        why=_why(traced.verdict),
    )


def _edge(traced: EdgeTrace) -> TracedEdge:
    state: Any = traced.state
    return TracedEdge(
        source=str(traced.source), target=str(traced.target), state=state, why=_why(traced.verdict)
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
