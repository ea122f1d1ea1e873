"""The graph and the taxonomy as they are stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headgate.core.subscription import SQL
from headgate.runtime.rows import read_edge, read_node
from headgate.service.resources import EdgeBody, Part

if TYPE_CHECKING:
    from collections.abc import Iterable

    import apsw

    from headgate.graph.model import Edge, Node
    from headgate.service.storage.database import Database
    from headgate.service.storage.log import Write

TAXONOMY = "taxonomy"
_PART = msgspec.json.Decoder(Part)
_EDGE = msgspec.json.Decoder(EdgeBody)


class Graph:
    """The stored nodes and edges."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def node(self, identity: str) -> Part | None:
        """Find a node."""
        found = self._database.row("SELECT body FROM nodes WHERE id = ?", identity)
        return None if found is None else _PART.decode(found[0])

    def nodes(self, after: str = "", most: int = -1, search: str | None = None) -> list[Part]:
        """List nodes in the order of their ids, after one."""
        query = f"SELECT body FROM nodes WHERE id > ? {_test(search)} ORDER BY id LIMIT ?"
        return [_PART.decode(body) for (body,) in self._database.rows(query, after, *_asked(search), most)]

    def edge(self, source: str, target: str) -> EdgeBody | None:
        """Find an edge."""
        query = "SELECT body FROM edges WHERE source = ? AND target = ?"
        found = self._database.row(query, source, target)
        return None if found is None else _EDGE.decode(found[0])

    def edges(
        self, after: tuple[str, str] = ("", ""), most: int = -1, search: str | None = None
    ) -> list[EdgeBody]:
        """List edges in the order of their ends, after one."""
        test, order = f"(source, target) > (?, ?) {_test(search)}", "ORDER BY source, target"
        query = f"SELECT body FROM edges WHERE {test} {order} LIMIT ?"
        return [_EDGE.decode(body) for (body,) in self._database.rows(query, *after, *_asked(search), most)]

    def ends_at(self, identity: str) -> list[EdgeBody]:
        """List the edges from a node and to it."""
        query = "SELECT body FROM edges WHERE source = ?1 OR target = ?1"
        return [_EDGE.decode(body) for (body,) in self._database.rows(query, identity)]

    def counts(self) -> tuple[int, int]:
        """Count nodes and edges."""
        found = self._database.row("SELECT (SELECT count(*) FROM nodes), (SELECT count(*) FROM edges)")
        return (0, 0) if found is None else (int(found[0]), int(found[1]))

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
        found = self._database.row("SELECT value FROM meta WHERE name = ?", TAXONOMY)
        return None if found is None else found[0]


def node_of(part: Part) -> Node:
    """Return a node as an engine takes it."""
    return read_node(msgspec.to_builtins(part), SQL)


def edge_of(said: EdgeBody) -> Edge:
    """Return an edge as an engine takes it."""
    return read_edge(msgspec.to_builtins(said), SQL)


def put_node(part: Part) -> Write:
    """Have a node."""
    row = (part.id, msgspec.json.encode(part))
    return lambda writer: _run(writer, "INSERT OR REPLACE INTO nodes VALUES (?, ?)", row)


def put_edge(said: EdgeBody) -> Write:
    """Have an edge."""
    row = (said.source, said.target, msgspec.json.encode(said))
    return lambda writer: _run(writer, "INSERT OR REPLACE INTO edges VALUES (?, ?, ?)", row)


def remove_node(identity: str) -> Write:
    """Have no node of an id, and no edges that end there."""

    def write(writer: apsw.Connection) -> None:
        writer.execute("DELETE FROM nodes WHERE id = ?", (identity,))
        writer.execute("DELETE FROM edges WHERE source = ?1 OR target = ?1", (identity,))

    return write


def remove_edge(source: str, target: str) -> Write:
    """Have no edge between two nodes."""
    return lambda writer: _run(writer, "DELETE FROM edges WHERE source = ? AND target = ?", (source, target))


def put_taxonomy(text: str | None) -> Write:
    """Have a taxonomy, or none."""
    if text is None:
        return lambda writer: _run(writer, "DELETE FROM meta WHERE name = ?", (TAXONOMY,))
    return lambda writer: _run(writer, "INSERT OR REPLACE INTO meta VALUES (?, ?)", (TAXONOMY, text))


def _run(writer: apsw.Connection, query: str, row: tuple[object, ...]) -> None:
    writer.execute(query, row)


def _list(ids: Iterable[str]) -> str:
    return msgspec.json.encode(list(ids)).decode()


def _test(search: str | None) -> str:
    return "AND instr(lower(CAST(body AS TEXT)), ?)" if search else ""


def _asked(search: str | None) -> list[str]:
    return [search.casefold()] if search else []
