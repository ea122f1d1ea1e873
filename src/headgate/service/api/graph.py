"""The graph and the taxonomy as resources.

Subscriptions that name no `node` are outside the graph: they get every event that their filter matches. Those
at a node get events whose source is a node, and that find a way of valid nodes and edges to theirs.
"""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import msgspec

from headgate.core.event import TURTLE
from headgate.errors import HeadgateError, TaxonomyError
from headgate.runtime.operations import AddEdge, AddNode, RemoveEdge, RemoveNode
from headgate.service.api.operation import ADMIN, READ, Answer, Call, Page, in_json, operation
from headgate.service.api.subscriptions import name_of
from headgate.service.problems import Conflict, NotFound, Problem
from headgate.service.resources import EdgeBody, Name, Part
from headgate.service.storage import graph as stored
from headgate.service.storage.audit import noted
from headgate.service.tenant.edits import changed, read_taxonomy

if TYPE_CHECKING:
    from headgate.service.tenant.contents import Contents

_SIGN = "\n"


class NodePage(msgspec.Struct, kw_only=True):
    """Some nodes, in the order of their ids."""

    items: list[Part]
    next: str | None


class EdgePage(msgspec.Struct, kw_only=True):
    """Some edges, in the order of their ends."""

    items: list[EdgeBody]
    next: str | None


class Ends(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which edge is meant."""

    source: Name
    target: Name


class TaxonomyText(msgspec.Struct, kw_only=True):
    """What became of a taxonomy."""

    statements: int


_REFUSED = (400, 403, 409, 422, 507)
_FILTER = in_json("""{"filter": "topic = '"'sport'"'"}""")


@operation(
    "PUT",
    "/v1/graph/nodes/{id}",
    "Have a node, in the place of another of its id or not.",
    ADMIN,
    {200: Part, 201: Part},
    body=Part,
    problems=_REFUSED,
    example=_FILTER,
)
async def put_node(call: Call) -> Answer:
    """Have a node."""
    identity = name_of(call.path["id"])
    said = call.said(Part)
    if said.id is not None and said.id != identity:
        raise Problem(f"the body has the id {said.id!r}, and the path {identity!r}: leave `id` out", 422)
    said.id = identity
    node = stored.node_of(said)
    writes = [stored.put_node(said), noted(call.key.id, "put node", identity)]
    new = call.tenant.store.graph.node(identity) is None
    change = AddNode(node)
    if new:
        await call.tenant.change(change, writes)
    else:
        # What hangs at a node stays there while it is replaced.
        await call.tenant.rebuild(lambda contents: changed(contents, change), writes)
    return Answer(said, 201 if new else 200)


@operation("GET", "/v1/graph/nodes/{id}", "Read a node.", READ, {200: Part}, problems=(404,))
async def read_node(call: Call) -> Answer:
    """Read a node."""
    return Answer(_node(call))


@operation(
    "DELETE",
    "/v1/graph/nodes/{id}",
    "Delete a node and its edges; refused while subscriptions hang at it.",
    ADMIN,
    {204: None},
    problems=(404, 409, 507),
)
async def delete_node(call: Call) -> Answer:
    """Delete a node."""
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
    return Answer(None, 204)


def _node(call: Call) -> Part:
    found = call.tenant.store.graph.node(call.path["id"])
    if found is None:
        raise NotFound(f"there is no node {call.path['id']!r}")
    return found


@operation(
    "GET",
    "/v1/graph/nodes",
    "List nodes in the order of their ids.",
    READ,
    {200: NodePage},
    query=Page,
    problems=(400,),
    example="-G -d limit=10",
)
async def list_nodes(call: Call) -> Answer:
    """List nodes."""
    query = call.query(Page)
    most = query.most()
    found = await asyncio.to_thread(call.tenant.store.graph.nodes, query.after, most + 1, query.search)
    more = found[most - 1].id if len(found) > most else None
    return Answer(NodePage(items=found[:most], next=more))


@operation(
    "PUT",
    "/v1/graph/edges",
    "Have an edge between two nodes, in the place of another or not.",
    ADMIN,
    {200: EdgeBody, 201: EdgeBody},
    body=EdgeBody,
    problems=(*_REFUSED, 404),
    example=in_json('{"source": "publisher", "target": "sport"}'),
)
async def put_edge(call: Call) -> Answer:
    """Have an edge."""
    said = call.said(EdgeBody)
    graph = call.tenant.store.graph
    for end in (said.source, said.target):
        if graph.node(end) is None:
            raise NotFound(f"there is no node {end!r}: add it first")
    change = AddEdge(stored.edge_of(said))
    writes = [stored.put_edge(said), noted(call.key.id, "put edge", f"{said.source} → {said.target}")]
    new = graph.edge(said.source, said.target) is None
    if new:
        await call.tenant.change(change, writes)
    else:
        await call.tenant.rebuild(lambda contents: changed(contents, change), writes)
    return Answer(said, 201 if new else 200)


@operation(
    "GET",
    "/v1/graph/edges",
    "List edges in the order of their ends.",
    READ,
    {200: EdgePage},
    query=Page,
    problems=(400,),
    example="-G -d limit=10",
)
async def list_edges(call: Call) -> Answer:
    """List edges."""
    query = call.query(Page)
    most = query.most()
    found = await asyncio.to_thread(
        call.tenant.store.graph.edges, _read_cursor(query.after), most + 1, query.search
    )
    more = _cursor(found[most - 1]) if len(found) > most else None
    return Answer(EdgePage(items=found[:most], next=more))


def _cursor(edge: EdgeBody) -> str:
    return base64.urlsafe_b64encode(f"{edge.source}{_SIGN}{edge.target}".encode()).decode()


def _read_cursor(given: str) -> tuple[str, str]:
    try:
        source, _, target = base64.urlsafe_b64decode(given.encode()).decode().partition(_SIGN)
    except ValueError:
        raise Problem(f"after is {given!r}: give what `next` was in the part before", 400) from None
    return source, target


@operation(
    "DELETE",
    "/v1/graph/edges",
    "Delete the edge between two nodes.",
    ADMIN,
    {204: None},
    query=Ends,
    problems=(400, 404, 409, 507),
    example="-G -d source=publisher -d target=sport",
)
async def delete_edge(call: Call) -> Answer:
    """Delete an edge."""
    ends = call.query(Ends)
    if call.tenant.store.graph.edge(ends.source, ends.target) is None:
        raise NotFound(f"there is no edge from {ends.source!r} to {ends.target!r}")
    writes = [
        stored.remove_edge(ends.source, ends.target),
        noted(call.key.id, "delete edge", f"{ends.source} → {ends.target}"),
    ]
    await call.tenant.change(RemoveEdge(ends.source, ends.target), writes)
    return Answer(None, 204)


@operation(
    "PUT",
    "/v1/taxonomy",
    "Have a taxonomy for filters of RDF; the index is built again with it.",
    ADMIN,
    {200: TaxonomyText},
    body=Annotated[str, msgspec.Meta(description="Statements of RDFS, as Turtle.")],
    media=(TURTLE,),
    problems=_REFUSED,
    example="-H 'Content-Type: text/turtle' --data-binary @taxonomy.ttl",
)
async def put_taxonomy(call: Call) -> Answer:
    """Have a taxonomy."""
    media = call.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media != TURTLE:
        raise Problem(f"the content type is {media!r}: send {TURTLE}", 415)
    try:
        text = call.body.decode()
        taxonomy = await asyncio.to_thread(read_taxonomy, text)
    except UnicodeDecodeError as error:
        raise Problem(f"the taxonomy is not UTF-8: {error}", 400) from None
    except TaxonomyError:
        raise
    except HeadgateError as error:
        raise Problem(str(error), 422) from None

    def edit(contents: Contents) -> Contents:
        return contents._replace(settings=replace(contents.settings, taxonomy=taxonomy))

    writes = [stored.put_taxonomy(text), noted(call.key.id, "put taxonomy", f"{len(taxonomy):,} statements")]
    await call.tenant.rebuild(edit, writes)
    return Answer(TaxonomyText(statements=len(taxonomy)))


@operation(
    "GET",
    "/v1/taxonomy",
    "Read the taxonomy.",
    READ,
    {200: str},
    problems=(404,),
    answer_media=TURTLE,
)
async def read_taxonomy_(call: Call) -> Answer:
    """Read the taxonomy."""
    return Answer(_taxonomy(call).encode(), media_type=TURTLE)


@operation(
    "DELETE",
    "/v1/taxonomy",
    "Delete the taxonomy; the index is built again without it.",
    ADMIN,
    {204: None},
    problems=(404, 409, 422, 507),
)
async def delete_taxonomy(call: Call) -> Answer:
    """Delete the taxonomy."""
    _taxonomy(call)

    def edit(contents: Contents) -> Contents:
        return contents._replace(settings=replace(contents.settings, taxonomy=None))

    await call.tenant.rebuild(edit, [stored.put_taxonomy(None), noted(call.key.id, "delete taxonomy", "")])
    return Answer(None, 204)


def _taxonomy(call: Call) -> str:
    found = call.tenant.store.graph.taxonomy()
    if found is None:
        raise NotFound("there is no taxonomy")
    return found
