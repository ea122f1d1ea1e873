"""The graph and the taxonomy as resources.

Subscriptions that name no `node` are outside the graph: they get every event that their filter matches. Those
at a node get events whose source is a node, and that find a way of valid nodes and edges to theirs.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Annotated

import msgspec

from headgate.core.event import TURTLE
from headgate.errors import HeadgateError, TaxonomyError
from headgate.runtime.operations import AddEdge, AddNode, RemoveEdge, RemoveNode
from headgate.service.api.operation import (
    ADMIN,
    READ,
    Answer,
    Call,
    Items,
    Page,
    in_json,
    operation,
    read_name,
)
from headgate.service.problems import Conflict, Problem, existing
from headgate.service.resources import EdgeBody, Name, Part
from headgate.service.storage import graph as stored
from headgate.service.storage.audit import noted
from headgate.service.tenant.contents import changed, read_taxonomy

if TYPE_CHECKING:
    from headgate.service.storage.log import Write
    from headgate.service.tenant.contents import Contents

_SIGN = "\n"


class NodePage(Items[Part], kw_only=True):
    """Some nodes, in the order of their ids."""


class EdgePage(Items[EdgeBody], kw_only=True):
    """Some edges, in the order of their ends."""


class Ends(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which edge is meant."""

    source: Name
    target: Name


class TaxonomyText(msgspec.Struct, kw_only=True):
    """What became of a taxonomy."""

    statements: int


_REFUSED = (409, 507)
_FILTER = in_json("""{"filter": "topic = '"'sport'"'"}""")


@operation(
    "PUT", "/v1/graph/nodes/{id}", ADMIN, answers={200: Part, 201: Part}, problems=_REFUSED, example=_FILTER
)
async def put_node(call: Call, body: Part) -> Answer:
    """Have a node, in the place of another of its id or not."""
    identity = body.id = read_name(call.path["id"], "node", body.id)
    node = stored.node_of(body)
    writes = [stored.put_node(body), noted(call.key.id, "put node", identity)]
    new = call.tenant.store.graph.node(identity) is None
    return await _put(call, body, AddNode(node), writes, new=new)


async def _put(
    call: Call, body: Part | EdgeBody, change: AddNode | AddEdge, writes: list[Write], *, new: bool
) -> Answer:
    if new:
        await call.tenant.change(change, writes)
    else:
        # What hangs at a node stays there while it is replaced.
        await call.tenant.rebuild(lambda contents: changed(contents, change), writes)
    return Answer(body, 201 if new else 200)


@operation("GET", "/v1/graph/nodes/{id}", READ)
async def read_node(call: Call) -> Part:
    """Read a node."""
    return _node(call)


@operation("DELETE", "/v1/graph/nodes/{id}", ADMIN, problems=(409, 507))
async def delete_node(call: Call) -> None:
    """Delete a node and its edges; refused while subscriptions hang at it."""
    identity = str(_node(call).id)
    writes = [stored.remove_node(identity), noted(call.key.id, "delete node", identity)]

    def edit(contents: Contents) -> Contents:
        there = [each.id for each in contents.subscriptions if each.node == identity]
        if there:
            raise Conflict(
                f"{len(there):,} subscriptions hang at node {identity!r}, {there[0]!r} is one: move or "
                "delete them first"
            )
        return changed(contents, RemoveNode(identity))

    await call.tenant.rebuild(edit, writes)


def _node(call: Call) -> Part:
    identity = call.path["id"]
    return existing(call.tenant.store.graph.node(identity), f"node {identity!r}")


@operation("GET", "/v1/graph/nodes", READ, example="-G -d limit=10")
async def list_nodes(call: Call, query: Page) -> NodePage:
    """List nodes in the order of their ids."""
    nodes, more = query.cut(
        await asyncio.to_thread(call.tenant.store.graph.nodes, query.after, query.limit + 1, query.search)
    )
    return NodePage(items=nodes, next=more)


@operation(
    "PUT",
    "/v1/graph/edges",
    ADMIN,
    answers={200: EdgeBody, 201: EdgeBody},
    problems=(*_REFUSED, 404),
    example=in_json('{"source": "publisher", "target": "sport"}'),
)
async def put_edge(call: Call, body: EdgeBody) -> Answer:
    """Have an edge between two nodes, in the place of another or not."""
    graph = call.tenant.store.graph
    for end in (body.source, body.target):
        existing(graph.node(end), f"node {end!r}: add it first")
    writes = [stored.put_edge(body), noted(call.key.id, "put edge", f"{body.source} → {body.target}")]
    new = graph.edge(body.source, body.target) is None
    return await _put(call, body, AddEdge(stored.edge_of(body)), writes, new=new)


@operation("GET", "/v1/graph/edges", READ, example="-G -d limit=10")
async def list_edges(call: Call, query: Page) -> EdgePage:
    """List edges in the order of their ends."""
    after = _read_cursor(query.after)
    edges, more = query.cut(
        await asyncio.to_thread(call.tenant.store.graph.edges, after, query.limit + 1, query.search), _cursor
    )
    return EdgePage(items=edges, next=more)


def _cursor(edge: EdgeBody) -> str:
    return base64.urlsafe_b64encode(f"{edge.source}{_SIGN}{edge.target}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[str, str]:
    try:
        source, _, target = base64.urlsafe_b64decode(cursor.encode()).decode().partition(_SIGN)
    except ValueError:
        raise Problem(f"after is {cursor!r}: give what `next` was in the part before", 400) from None
    return source, target


@operation(
    "DELETE",
    "/v1/graph/edges",
    ADMIN,
    problems=(404, 409, 507),
    example="-G -d source=publisher -d target=sport",
)
async def delete_edge(call: Call, query: Ends) -> None:
    """Delete the edge between two nodes."""
    edge = call.tenant.store.graph.edge(query.source, query.target)
    existing(edge, f"edge from {query.source!r} to {query.target!r}")
    writes = [
        stored.remove_edge(query.source, query.target),
        noted(call.key.id, "delete edge", f"{query.source} → {query.target}"),
    ]
    await call.tenant.change(RemoveEdge(query.source, query.target), writes)


@operation(
    "PUT",
    "/v1/taxonomy",
    ADMIN,
    body=Annotated[str, msgspec.Meta(description="Statements of RDFS, as Turtle.")],
    media=(TURTLE,),
    problems=_REFUSED,
    example="-H 'Content-Type: text/turtle' --data-binary @taxonomy.ttl",
)
async def put_taxonomy(call: Call) -> TaxonomyText:
    """Have a taxonomy for filters of RDF; the index is built again with it."""
    call.check_media(TURTLE)
    try:
        text = call.body.decode()
        taxonomy = await asyncio.to_thread(read_taxonomy, text)
    except UnicodeDecodeError as error:
        raise Problem(f"the taxonomy is not UTF-8: {error}", 400) from None
    except TaxonomyError:
        raise
    except HeadgateError as error:
        raise Problem(str(error), 422) from None
    writes = [stored.put_taxonomy(text), noted(call.key.id, "put taxonomy", f"{len(taxonomy):,} statements")]
    await call.tenant.rebuild(lambda contents: contents.with_taxonomy(taxonomy), writes)
    return TaxonomyText(statements=len(taxonomy))


@operation("GET", "/v1/taxonomy", READ, problems=(404,), answer_media=TURTLE)
async def read_taxonomy_(call: Call) -> bytes:
    """Read the taxonomy."""
    return _taxonomy(call).encode()


@operation("DELETE", "/v1/taxonomy", ADMIN, problems=(404, 409, 422, 507))
async def delete_taxonomy(call: Call) -> None:
    """Delete the taxonomy; the index is built again without it."""
    _taxonomy(call)
    writes = [stored.put_taxonomy(None), noted(call.key.id, "delete taxonomy", "")]
    await call.tenant.rebuild(lambda contents: contents.with_taxonomy(None), writes)


def _taxonomy(call: Call) -> str:
    return existing(call.tenant.store.graph.taxonomy(), "taxonomy")
