"""A draft made so: the requests of the API that do it, and those that take it back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.console.draft import body_of
from headgate.console.session import ABSENT
from headgate.errors import HeadgateError
from headgate.service.resources import EdgeBody, Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.console.draft import Planned
    from headgate.console.view import View
    from headgate.graph.model import Edge, Node
    from headgate.service.storage.store import Store


class Ask(NamedTuple):
    """A request of the API, as a session keeps it: operation, path, body, query, headers."""

    operation: str
    path: dict[str, str]
    body: Any = None
    query: dict[str, str] | None = None
    headers: dict[str, str] | None = None
    back: tuple[Ask, ...] = ()
    """What takes it back."""

    @property
    def what(self) -> str:
        """Say what it is about."""
        about = self.path.get("id") or " to ".join((self.query or {}).values())
        if not about and isinstance(self.body, EdgeBody):
            about = f"{self.body.source} to {self.body.target}"
        return f"{self.operation.replace('_', ' ')} {about}"


_ORDER = ("put_node", "put_edge", "replace_subscription", "delete_subscription", "delete_edge", "delete_node")


def in_order(asks: Iterable[Ask]) -> list[Ask]:
    """Order requests so that each finds what it needs: ends before edges, nodes after what hangs there."""
    return sorted(asks, key=lambda each: _ORDER.index(each.operation))


def requests_of(planned: Planned, store: Store, revisions: dict[str, int]) -> list[Ask]:
    """List the requests that make a plan so; `revisions` are those of subscriptions when it was tried."""
    return in_order([*_of_subscriptions(planned, store, revisions), *_of_graph(planned, store)])


def _of_subscriptions(planned: Planned, store: Store, revisions: dict[str, int]) -> list[Ask]:
    found = []
    after = {str(each.id): each for each in planned.after.subscriptions}
    for identity in planned.ops:
        stored, path = store.subscriptions.get(identity), {"id": identity}
        before = None if stored is None else stored.said
        wanted = after.get(identity)
        headers = {"If-Match": f'"{revisions[identity]}"'} if identity in revisions else ABSENT
        if wanted is not None:
            back = Ask("replace_subscription", path, before) if before else Ask("delete_subscription", path)
            body = body_of(planned.rows.get(identity, {}), wanted, before)
            found.append(Ask("replace_subscription", path, body, None, headers, (back,)))
        elif before is not None:
            again = Ask("replace_subscription", path, before)
            found.append(Ask("delete_subscription", path, None, None, headers, (again,)))
    return found


def _of_graph(planned: Planned, store: Store) -> list[Ask]:
    found = []
    old = {each.id: each for each in planned.before.nodes}
    new = {each.id: each for each in planned.after.nodes}
    for identity in dict.fromkeys([*old, *new]):
        if old.get(identity) == new.get(identity):
            continue
        path, stored = {"id": str(identity)}, store.graph.node(str(identity))
        again = () if stored is None else (Ask("put_node", path, stored),)
        if identity in new:
            undo = again or (Ask("delete_node", path),)
            found.append(Ask("put_node", path, _part(new[identity], stored), back=undo))
        else:
            edges = tuple(Ask("put_edge", {}, each) for each in store.graph.ends_at(str(identity)))
            found.append(Ask("delete_node", path, back=(*again, *edges)))
    old_edges = {(each.source, each.target): each for each in planned.before.edges}
    new_edges = {(each.source, each.target): each for each in planned.after.edges}
    for ends in dict.fromkeys([*old_edges, *new_edges]):
        if old_edges.get(ends) == new_edges.get(ends) or not {*ends} <= {*new}:
            continue
        query, known = {"source": str(ends[0]), "target": str(ends[1])}, store.graph.edge(*map(str, ends))
        before = () if known is None else (Ask("put_edge", {}, known),)
        if ends in new_edges:
            undone = before or (Ask("delete_edge", {}, None, query),)
            found.append(Ask("put_edge", {}, _edge(new_edges[ends]), back=undone))
        else:
            found.append(Ask("delete_edge", {}, None, query, back=before))
    return found


def _part(node: Node, stored: Part | None) -> Part:
    kind, cost, score = node.kind or None, node.cost or None, node.score or None
    if stored is not None:
        return msgspec.structs.replace(stored, filter=node.filter, dialect=node.dialect)
    return Part(filter=node.filter, dialect=node.dialect, kind=kind, score=score, cost=cost)


def _edge(edge: Edge) -> EdgeBody:
    return EdgeBody(
        source=str(edge.source),
        target=str(edge.target),
        filter=edge.filter,
        dialect=edge.dialect,
        cost=edge.cost,
    )


class Made(NamedTuple):
    """What became of requests."""

    done: int
    refused: list[str]
    """What was refused, and why."""
    back: list[Ask]
    """What takes the others back."""


def _as_made(back: Ask, made: Any) -> Ask:
    """Have a request that takes something back be refused where others have changed it since."""
    if back.operation not in {"replace_subscription", "delete_subscription"}:
        return back
    known = ABSENT if made is None else {"If-Match": f'"{made.revision}"'}
    return back._replace(headers=known)


async def make(view: View, asks: Iterable[Ask]) -> Made:
    """Ask one after the other; what is refused does not keep the rest from being made."""
    done = 0
    refused: list[str] = []
    back: list[Ask] = []
    for ask in asks:
        try:
            found = await view.ask(ask.operation, ask.path, ask.query, ask.body, ask.headers)
        except HeadgateError as error:
            refused.append(f"{ask.what}: {error}")
            continue
        done += 1
        back += [_as_made(each, found) for each in ask.back]
    return Made(done, refused, in_order(back))
