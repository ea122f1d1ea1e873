"""The graph: drawn in layers, with the way of an event through it, live; admins change it here."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

from headgate.console.templates import packed
from headgate.console.view import View, page, place_of
from headgate.core.subscription import SQL, dialects
from headgate.errors import HeadgateError
from headgate.service.api.operation import ADMIN, READ
from headgate.service.problems import Conflict, NotFound, Problem
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from headgate.service.api.tracing import GraphPart, TraceAnswer

DRAWN = 120
"""Nodes that are drawn at most: layers of more cannot be read, and take a browser long."""
_EDGES = 240
"""Edges that are drawn at most."""
_FOUND = 50
NEWEST = "newest"
_NUMBERS = ("score", "cost")
_BLANK_NODE: dict[str, Any] = dict.fromkeys(("kind", "filter", "cost", "subscriptions"))
_BLANK_EDGE: dict[str, Any] = dict.fromkeys(("filter", "cost"))


@page("GET", "/console/graph")
async def graph(view: View) -> Response:
    """Show the graph, or the part of it around a node or an event's way."""
    search = view.query.get("search", "").strip()
    asked_part = {"node": view.query.get("node") or None, "hops": view.number("hops", 2), "most": DRAWN}
    part = await view.ask("read_graph", query=asked_part)
    copy = view.asked[-1]
    nodes = None
    if search:
        after = view.query.get("after", "")
        nodes = await view.ask("list_nodes", query={"search": search, "after": after, "limit": _FOUND})
    if not part.all_nodes:
        return view.shown("graph_empty.html.j2", copy=copy, form={}, dialects=dialects())
    way, missing = None, ""
    if view.query.get("event"):
        way, missing = await _way(view)
        copy = view.asked[-1]
    seen = await asyncio.to_thread(_seen, view, part, way, whole=asked_part["node"] is None)
    return view.shown(
        "graph.html.j2",
        copy=copy,
        part=part,
        found=nodes,
        search=search,
        node=asked_part["node"],
        hops=asked_part["hops"],
        way=way,
        missing=missing,
        follows=view.query.get("event") == NEWEST,
        **seen,
    )


@page("GET", "/console/graph/way")
async def newest_way(view: View) -> Response:
    """Give the parts of the page that change with the newest event; nothing while that is the one known."""
    if view.query.get("known") == str(view.tenant.position):
        return Response(status_code=204)
    node = view.query.get("node") or None
    part = await view.ask("read_graph", query={"node": node, "hops": view.number("hops", 2), "most": DRAWN})
    way, missing = await _way(view, NEWEST)
    seen = await asyncio.to_thread(_seen, view, part, way, whole=node is None)
    about = {"part": part, "way": way, "missing": missing, "node": node}
    return view.part("graph_way.html.j2", follows=True, **about, **seen)


async def _way(view: View, which: str | None = None) -> tuple[TraceAnswer | None, str]:
    """Follow the event that is asked for; returns its way, or why there is none."""
    wanted = which or view.query.get("event", "")
    if wanted == NEWEST:
        if not view.tenant.position:
            return None, "no event was published yet: the first one is followed as soon as it comes"
        cursor = view.tenant.position
    else:
        cursor = view.number("event")
    try:
        return await view.ask("trace_event", body={"cursor": cursor, "most": DRAWN}), ""
    except NotFound:
        return None, f"there is no event at cursor {cursor}: it was never there, or is not kept any more"


def _seen(view: View, part: GraphPart, way: TraceAnswer | None, *, whole: bool) -> dict[str, Any]:
    """Say which nodes and edges are shown, and what became of the event at each."""
    at = {} if way is None else {each.id: each for each in way.nodes}
    over = {} if way is None else {(each.source, each.target): each for each in way.edges}
    cut, nodes, edges = part.cut, list[Any](part.nodes), part.edges
    if cut is not None and at and whole:
        # Of a graph that is too large to be drawn, the part that the event has seen.
        stored, near = view.tenant.store.graph, [*at, *(end for pair in over for end in pair)]
        shown = list(dict.fromkeys(near))[:DRAWN]
        nodes = stored.nodes_of(shown)
        edges = [each for each in stored.edges_of(at) if (each.source, each.target) in over]
        edges = [each for each in edges if each.target in shown]
        cut = f"{len(nodes):,} of {part.all_nodes:,} nodes, those that the event came near"
    rows = [_BLANK_NODE | msgspec.to_builtins(each) for each in nodes]
    for row in rows:
        traced = at.get(row["id"])
        row["state"], row["served"] = ("", 0) if traced is None else (traced.state, traced.served)
        if traced is not None:
            row["subscriptions"] = traced.subscriptions
    links = [_BLANK_EDGE | msgspec.to_builtins(each) for each in edges]
    for link in links:
        ends = link["source"], link["target"]
        link["state"] = over[ends].state if ends in over else ""
    if len(links) > _EDGES:
        cut = f"{cut or 'all nodes'}, and {_EDGES:,} of the {len(links):,} edges between them"
    chosen = view.query.get("node") or (way.source if way is not None else None)
    drawing = {
        "nodes": rows,
        "edges": links[:_EDGES],
        "chosen": chosen,
        "place": place_of("graph", "nodes", ""),
    }
    stops: list[Any] = [] if way is None else [*way.nodes, *way.edges]
    stops = [each for each in stops if each.why is not None]
    return {"rows": rows, "links": links[:_EDGES], "cut": cut, "drawing": packed(drawing), "stops": stops}


# One node, one edge


@page("GET", "/console/graph/new-node")
async def new_node(view: View) -> Response:
    """Show the form of a node that is not there yet."""
    check_scope(view.key, ADMIN)
    return _form(view, "graph_new_node.html.j2", None, {"id": view.query.get("id", ""), "dialect": SQL})


@page("GET", "/console/graph/new-edge")
async def new_edge(view: View) -> Response:
    """Show the form of an edge that is not there yet."""
    check_scope(view.key, ADMIN)
    ends = {name: view.query.get(name, "") for name in ("source", "target")}
    return _edge_form(view, False, {**ends, "dialect": SQL})


@page("GET", "/console/graph/nodes/{id}")
async def node(view: View, refused: HeadgateError | None = None) -> Response:
    """Show a node: what it says, its edges, and what hangs at it."""
    identity = view.path["id"]
    node = await view.ask("read_node", {"id": identity})
    copy = view.asked[-1]
    some = {"after": view.query.get("after", ""), "limit": _FOUND}
    hung = await view.ask("list_node_subscriptions", {"id": identity}, some)
    edges = await asyncio.to_thread(view.tenant.store.graph.ends_at, identity)
    way = None
    if view.query.get("event"):
        way, _ = await _way(view)
    here = None if way is None else next((each for each in way.nodes if each.id == identity), None)
    return view.shown(
        "graph_node.html.j2",
        error=refused,
        copy=copy,
        found=node,
        hung=hung,
        arriving=[each for each in edges if each.target == identity][:DRAWN],
        leaving=[each for each in edges if each.source == identity][:DRAWN],
        count=len(edges),
        way=way,
        here=here,
        form=dict(view.form) if refused else _fields(node),
        refused=refused,
        dialects=dialects(),
    )


@page("GET", "/console/graph/edge")
async def edge(view: View) -> Response:
    """Show an edge, to change it."""
    check_scope(view.key, READ)
    source, target = view.query.get("source", ""), view.query.get("target", "")
    stored = view.tenant.store.graph.edge(source, target)
    if stored is None:
        raise NotFound(f"there is no edge from {source!r} to {target!r}")
    return _edge_form(view, True, _fields(stored))


@page("POST", "/console/graph/nodes")
async def add_node(view: View) -> Response:
    """Add a node."""
    check_scope(view.key, ADMIN)
    identity = view.form.get("id", "").strip()
    try:
        if not identity:
            raise Problem("a node has an id: the source of events, or a name of your own", 422)
        if view.tenant.store.graph.node(identity) is not None:
            raise Conflict(f"node {identity!r} is there already: change it on its page, or choose another id")
        await view.ask("put_node", {"id": identity}, body=_said(view, ("kind",)))
    except HeadgateError as error:
        return _form(view, "graph_new_node.html.j2", error, dict(view.form))
    back = (f"what was before node {identity}", [("delete_node", {"id": identity}, None)])
    return view.went(place_of("graph", "nodes", identity), f"node {identity} is there", back=back)


@page("POST", "/console/graph/nodes/{id}")
async def change_node(view: View) -> Response:
    """Have another filter, kind, score or cost at a node."""
    identity = view.path["id"]
    before = await view.ask("read_node", {"id": identity})
    try:
        await view.ask("put_node", {"id": identity}, body=_said(view, ("kind",)))
    except HeadgateError as error:
        return await node(view, error)
    back = (f"node {identity} as it was", [("put_node", {"id": identity}, before)])
    return view.went(place_of("graph", "nodes", identity), f"node {identity} is changed", back=back)


@page("POST", "/console/graph/nodes/{id}/delete")
async def delete_node(view: View) -> Response:
    """Delete a node and its edges."""
    identity = view.path["id"]
    before = await view.ask("read_node", {"id": identity})
    edges = await asyncio.to_thread(view.tenant.store.graph.ends_at, identity)
    await view.ask("delete_node", {"id": identity})
    parts = [("put_node", {"id": identity}, before), *(("put_edge", {}, each) for each in edges)]
    told = f"node {identity} and its {len(edges)} edges are deleted"
    return view.went(place_of("graph"), told, back=(f"node {identity} with its edges", parts))


@page("POST", "/console/graph/edges")
async def put_edge(view: View) -> Response:
    """Have an edge, in the place of another or not."""
    check_scope(view.key, ADMIN)
    source, target = (view.form.get(name, "").strip() for name in ("source", "target"))
    known = view.form.get("known") == "yes"
    before = view.tenant.store.graph.edge(source, target)
    try:
        if before is not None and not known:
            raise Conflict(f"there is an edge from {source!r} to {target!r} already: change that one")
        await view.ask("put_edge", body={"source": source, "target": target, **_said(view, ())})
    except HeadgateError as error:
        return _edge_form(view, known, dict(view.form), error)
    what, path = f"the edge from {source} to {target}", place_of("graph", "nodes", source)
    if before is None:
        return view.went(path, f"{what} is there")
    return view.went(path, f"{what} is changed", back=(f"{what} as it was", [("put_edge", {}, before)]))


@page("POST", "/console/graph/delete-edge")
async def delete_edge(view: View) -> Response:
    """Delete an edge."""
    check_scope(view.key, ADMIN)
    ends = {name: view.form.get(name, "") for name in ("source", "target")}
    before = view.tenant.store.graph.edge(ends["source"], ends["target"])
    await view.ask("delete_edge", query=ends)
    what = f"the edge from {ends['source']} to {ends['target']}"
    path = place_of("graph", "nodes", ends["source"])
    return view.went(path, f"{what} is deleted", back=(what, [("put_edge", {}, before)]))


# Forms


def _edge_form(view: View, known: bool, form: dict[str, Any], error: HeadgateError | None = None) -> Response:
    names = [each.id for each in view.tenant.store.graph.nodes(most=DRAWN)]
    return _form(view, "graph_edge.html.j2", error, form, known=known, names=names)


def _form(
    view: View, template: str, error: HeadgateError | None, form: dict[str, Any], **more: Any
) -> Response:
    copy = view.asked[-1] if view.asked else None
    return view.shown(template, copy=copy, error=error, form=form, dialects=dialects(), **more)


def _fields(stored: Any) -> dict[str, Any]:
    """Return what is stored as the fields of a form."""
    values = msgspec.to_builtins(stored)
    return {"dialect": SQL} | {name: value for name, value in values.items() if value is not None}


def _said(view: View, texts: tuple[str, ...]) -> dict[str, Any]:
    """Read the fields that nodes and edges have in common, and more texts."""
    fields: dict[str, Any] = {}
    if view.form.get("filter", "").strip():
        fields["filter"], dialect = view.form["filter"], view.form.get("dialect", SQL)
        fields |= {} if dialect == SQL else {"dialect": dialect}
    for name in texts:
        if view.form.get(name, "").strip():
            fields[name] = view.form[name].strip()
    for name in _NUMBERS:
        if (number := view.typed_number(name)) is not None:
            fields[name] = number
    return fields
