"""What an index is built of after a change of the graph; and the taxonomy as it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.core.event import TURTLE
from headgate.runtime.operations import AddEdge, AddNode, RemoveEdge, RemoveNode

if TYPE_CHECKING:
    from headgate.runtime.operations import Change
    from headgate.service.tenant.contents import Contents


def changed(contents: Contents, change: Change) -> Contents:
    """Return what an index is built of, with a change of the graph; a node or an edge may replace another."""
    nodes, edges = list(contents.nodes), list(contents.edges)
    match change:
        case AddNode(node):
            nodes = [*(each for each in nodes if each.id != node.id), node]
        case RemoveNode(identity):
            nodes = [each for each in nodes if each.id != identity]
            edges = [each for each in edges if identity not in {each.source, each.target}]
        case AddEdge(edge):
            edges = [
                *(each for each in edges if (each.source, each.target) != (edge.source, edge.target)),
                edge,
            ]
        case RemoveEdge(source, target):
            edges = [each for each in edges if (each.source, each.target) != (source, target)]
    return contents._replace(nodes=nodes, edges=edges)


def read_taxonomy(text: str) -> Any:
    """Read a taxonomy; refuses what is no Turtle, and statements that no taxonomy has."""
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    return Taxonomy.read(text, TURTLE)
