"""The graph and the taxonomy as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headgate.core.subscription import SQL
from headgate.runtime.rows import read_edge, read_node
from headgate.service.resources import EdgeBody, Part
from headgate.service.storage.database import Table, keep, one, searching, together

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.graph.model import Edge, Node
    from headgate.service.storage.log import Write

TAXONOMY = "taxonomy"
_TEXT = "CAST(body AS TEXT)"
_PART = msgspec.json.Decoder(Part)
_EDGE = msgspec.json.Decoder(EdgeBody)


class Graph(Table):
    """The stored nodes and edges."""

    def node(self, identity: str) -> Part | None:
        """Find a node."""
        row = self._database.row("SELECT body FROM nodes WHERE id = ?", identity)
        return None if row is None else _PART.decode(row[0])

    def nodes(self, after: str = "", most: int = -1, search: str | None = None) -> list[Part]:
        """List nodes in the order of their ids, after one."""
        test, more = searching(_TEXT, search)
        query = f"SELECT body FROM nodes WHERE id > ? {test} ORDER BY id LIMIT ?"
        return [_PART.decode(body) for (body,) in self._database.rows(query, after, *more, most)]

    def edge(self, source: str, target: str) -> EdgeBody | None:
        """Find an edge."""
        query = "SELECT body FROM edges WHERE source = ? AND target = ?"
        row = self._database.row(query, source, target)
        return None if row is None else _EDGE.decode(row[0])

    def edges(
        self, after: tuple[str, str] = ("", ""), most: int = -1, search: str | None = None
    ) -> list[EdgeBody]:
        """List edges in the order of their ends, after one."""
        test, more = searching(_TEXT, search)
        query = (
            f"SELECT body FROM edges WHERE (source, target) > (?, ?) {test} ORDER BY source, target LIMIT ?"
        )
        return [_EDGE.decode(body) for (body,) in self._database.rows(query, *after, *more, most)]

    def ends_at(self, identity: str) -> list[EdgeBody]:
        """List the edges from a node and to it."""
        query = "SELECT body FROM edges WHERE source = ?1 OR target = ?1"
        return [_EDGE.decode(body) for (body,) in self._database.rows(query, identity)]

    def counts(self) -> tuple[int, int]:
        """Count nodes and edges."""
        row = self._database.row("SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM edges)")
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def roots(self, most: int) -> list[Part]:
        """List nodes that no edge leads to, in the order of their ids."""
        query = "SELECT body FROM nodes WHERE id NOT IN (SELECT target FROM edges) ORDER BY id LIMIT ?"
        return [_PART.decode(body) for (body,) in self._database.rows(query, most)]

    def nodes_of(self, ids: Iterable[str]) -> list[Part]:
        """List the nodes of some ids, in their order."""
        query = "SELECT body FROM nodes WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id"
        return [_PART.decode(body) for (body,) in self._database.rows(query, _list(ids))]

    def edges_of(self, ids: Iterable[str], *, back: bool = False) -> list[EdgeBody]:
        """List the edges that leave some nodes, or lead to them, in the order of their ends."""
        end = "target" if back else "source"
        test = f"{end} IN (SELECT value FROM json_each(?))"
        query = f"SELECT body FROM edges WHERE {test} ORDER BY source, target"
        return [_EDGE.decode(body) for (body,) in self._database.rows(query, _list(ids))]

    def taxonomy(self) -> str | None:
        """Return the taxonomy, as Turtle."""
        text: str | None = self._database.setting(TAXONOMY)
        return text


def node_of(part: Part) -> Node:
    """Return a node as an engine takes it."""
    return read_node(msgspec.to_builtins(part), SQL)


def edge_of(edge: EdgeBody) -> Edge:
    """Return an edge as an engine takes it."""
    return read_edge(msgspec.to_builtins(edge), SQL)


def put_node(part: Part) -> Write:
    """Have a node."""
    return one("INSERT OR REPLACE INTO nodes VALUES (?, ?)", part.id, msgspec.json.encode(part))


def put_edge(edge: EdgeBody) -> Write:
    """Have an edge."""
    body = msgspec.json.encode(edge)
    return one("INSERT OR REPLACE INTO edges VALUES (?, ?, ?)", edge.source, edge.target, body)


def remove_node(identity: str) -> Write:
    """Have no node of an id, and no edges that end there."""
    return together(
        one("DELETE FROM nodes WHERE id = ?", identity),
        one("DELETE FROM edges WHERE source = ?1 OR target = ?1", identity),
    )


def remove_edge(source: str, target: str) -> Write:
    """Have no edge between two nodes."""
    return one("DELETE FROM edges WHERE source = ? AND target = ?", source, target)


def put_taxonomy(text: str | None) -> Write:
    """Have a taxonomy, or none."""
    return keep(TAXONOMY, text)


def _list(ids: Iterable[str]) -> str:
    return msgspec.json.encode(list(ids)).decode()
