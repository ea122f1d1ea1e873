"""The frozen part of a graph index: the numbered graph, the names in it, and the filters by vertex."""

from __future__ import annotations

import threading
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.ids import Ids
from headgate.core.plane_build import Conjunctions, build_planes
from headgate.core.planes import Cells
from headgate.core.rooms import FILTERS, GRAPH
from headgate.core.snapshot import open_snapshot, open_with_inside, write_snapshot
from headgate.core.subscription import Subscription
from headgate.errors import GraphError, HeadgateError, SnapshotError, raise_first
from headgate.graph.arrays import GraphArrays
from headgate.graph.model import EDGE, NODE
from headgate.graph.walk import walking
from headgate.graph.walk.hits import StrategyChooser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.contents.protocol import Content, ContentRoom, FilterPlanes
    from headgate.core.arrays import Ints, Ints32
    from headgate.core.event import Id
    from headgate.core.planes import Planes
    from headgate.graph.build.build import BuiltGraph

ROOM = GRAPH
LAYOUT = 1
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
CONTENT = FILTERS
"""The snapshot of the filters, inside that of the graph."""


class Names(NamedTuple):
    """Ids of nodes and subscriptions, the kinds of nodes, and what vertices stand for.

    vertex_of_node[n]     the vertex of the node that is n-th by id
    node_kind[n]          of kinds
    edge_ends[k]          the nodes that split edge k joins
    """

    node_ids: Ids
    subscription_ids: Ids
    kinds: tuple[str, ...]
    node_kind: Ints32
    vertex_of_node: Ints32
    edge_ends: Ints32


class Base:
    """A graph that does not change. Filters have the number of their vertex as id."""

    def __init__(self, arrays: GraphArrays, names: Names, content: Content) -> None:
        self.arrays = arrays
        self.names = names
        self.content = content
        self._local = threading.local()

    @classmethod
    def build(cls, built: BuiltGraph, names: Names, room: ContentRoom) -> Base:
        """Index the filters of a graph; those that are refused are named."""
        rows = zip(
            built.filtered.tolist(), built.filters.to_pylist(), built.dialects.to_pylist(), strict=True
        )
        filters = [Subscription(vertex, str(text), str(dialect)) for vertex, text, dialect in rows]
        try:
            return cls(built.arrays, names, room.build(filters))
        except HeadgateError as error:
            hung: dict[Id, HeadgateError] = {}
            for vertex, why in error.refused.items():
                told = GraphError(f"{_owner(built, names, vertex)}: {why}")
                if built.arrays.stands_for[vertex] in {NODE, EDGE}:
                    raise told from None
                hung[names.subscription_ids[int(built.arrays.place[vertex])]] = told
            raise_first(hung)
            raise

    @classmethod
    def open(cls, path: Path, room: ContentRoom, *, verify: bool) -> Base:
        """Open a snapshot, memory-mapped."""
        return open_with_inside(path, lambda place: cls._open(place, room, verify=verify))

    @classmethod
    def _open(cls, path: Path, room: ContentRoom, *, verify: bool) -> Base:
        snapshot = open_snapshot(path, ROOM, verify=verify)
        if snapshot.about.get("layout") != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has another layout of the graph than this Headgate reads: "
                "compile it again (headgate compile), or use the Headgate that wrote it"
            )
        arrays = snapshot.arrays
        names = Names(
            Ids.from_arrays(_named(arrays, "node_")),
            Ids.from_arrays(_named(arrays, "subscription_")),
            tuple(snapshot.about["kinds"]),
            arrays["node_kind"],
            arrays["vertex_of_node"],
            arrays["edge_ends"],
        )
        graph = GraphArrays(**{name: arrays[f"graph_{name}"] for name in GraphArrays._fields})
        return cls(graph, names, room.open(path / CONTENT, verify=verify))

    def save(
        self,
        path: Path,
        *,
        source: Mapping[str, object] | None = None,
        inside: Mapping[str, Callable[[Path], None]] | None = None,
    ) -> None:
        """Write a snapshot; `source` says what it was built from, `inside` what else belongs to it."""
        names = self.names
        arrays = {f"graph_{name}": array for name, array in self.arrays._asdict().items()}
        arrays.update({f"node_{name}": array for name, array in names.node_ids.to_arrays().items()})
        subscription_arrays = names.subscription_ids.to_arrays().items()
        arrays.update({f"subscription_{name}": array for name, array in subscription_arrays})
        arrays["node_kind"], arrays["vertex_of_node"] = names.node_kind, names.vertex_of_node
        arrays["edge_ends"] = names.edge_ends
        counts = {
            "nodes": len(names.node_ids),
            "edges": len(self.arrays.child),
            "subscriptions": len(names.subscription_ids),
            "filters": len(self.content),
        }
        about = {"layout": LAYOUT, "kinds": names.kinds, "source": dict(source or {})}
        within = {CONTENT: self.content.save, **(inside or {})}
        write_snapshot(path, ROOM, arrays, counts=counts, about=about, inside=within)

    @cached_property
    def node_array(self) -> pa.Array[Any]:
        """Return the ids of nodes for Arrow."""
        return self.names.node_ids.to_arrow()

    @cached_property
    def subscription_array(self) -> pa.Array[Any]:
        """Return the ids of subscriptions for Arrow."""
        return self.names.subscription_ids.to_arrow()

    @cached_property
    def filter_planes(self) -> FilterPlanes | None:
        """Return the filters for asking one by one, by position; None if their room cannot."""
        return self.content.filter_planes(self.arrays.roots, self.arrays.vertices - self.arrays.roots)

    @cached_property
    def ways(self) -> StrategyChooser:
        """Return what is known of the quicker way through this graph for many events."""
        return StrategyChooser()

    @cached_property
    def planes(self) -> Planes:
        """Return the filters as planes; without them, planes that say nothing."""
        return no_planes() if self.filter_planes is None else self.filter_planes.planes

    @cached_property
    def acyclic(self) -> bool:
        """Tell whether no component has more than one vertex, and no vertex leads to itself."""
        arrays = self.arrays
        source = np.repeat(np.arange(arrays.vertices), np.diff(arrays.child_start))
        alone = not arrays.vertices or int(arrays.component[-1]) + 1 == arrays.vertices
        return alone and not bool((source == arrays.child).any())

    def scratch(self, words: int) -> walking.WalkBuffers:
        """Return this thread's scratch space, with room for so many words: all views share it."""
        own: walking.WalkBuffers | None = getattr(self._local, "scratch", None)
        if own is None or len(own.stamp) < words:
            # Vertices that come later find room for a while.
            room = words if words == self.arrays.words else words + words // 8 + 64
            own = self._local.scratch = walking.scratch(room, len(self.planes.axis_line))
        return own

    def servers(self, subscription: int) -> list[int]:
        """List the vertices that serve a subscription, given by the place of its id."""
        order, start = self._servers
        vertices: list[int] = (
            order[start[subscription] : start[subscription + 1]].tolist()
            if subscription + 1 < len(start)
            else []
        )
        return vertices

    @cached_property
    def _servers(self) -> tuple[Ints, Ints]:
        """Sort the vertices that serve by what they serve."""
        serves = self.arrays.serves
        vertices = np.flatnonzero(serves >= 0)
        order = vertices[np.argsort(serves[vertices], kind="stable")]
        places = np.arange(len(self.names.subscription_ids) + 1)
        return order, np.searchsorted(serves[order], places)

    def find(self, node: int | str) -> int:
        """Find the vertex of a node, -1 for none."""
        number = self.names.node_ids.find(node)
        return int(self.names.vertex_of_node[number]) if number >= 0 else -1


def _owner(built: BuiltGraph, names: Names, vertex: int) -> str:
    """Say whose filter is at a vertex."""
    kind, place = int(built.arrays.stands_for[vertex]), int(built.arrays.place[vertex])
    if kind == NODE:
        return f"node {names.node_ids[place]!r}"
    if kind == EDGE:
        source, target = (names.node_ids[int(end)] for end in names.edge_ends[place])
        return f"edge from {source!r} to {target!r}"
    return f"subscription {names.subscription_ids[place]!r}"


def _named(arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> dict[str, NDArray[np.generic]]:
    """Pick the arrays of some ids."""
    return {
        name.removeprefix(prefix): array
        for name, array in arrays.items()
        if name in {f"{prefix}ids", f"{prefix}id_offsets", f"{prefix}id_data"}
    }


_NONE = np.zeros(0, np.int32)


@cache
def no_planes() -> Planes:
    """Return planes of no filters; not made before they are asked for: that takes a kernel."""
    return build_planes(
        Conjunctions(
            line_codes=_NONE,
            conjunction_start=np.zeros(1, np.int32),
            asks=np.zeros(0, np.uint8),
            check_start=np.zeros(1, np.int32),
            check_line=_NONE,
            check_kind=np.zeros(0, np.uint8),
            set_start=np.zeros(1, np.int32),
            set_low=_NONE,
            set_high=_NONE,
        )
    )


NO_CELLS = Cells(np.zeros((1, 0), np.int32), np.zeros((0, 2), np.int64), _NONE)
