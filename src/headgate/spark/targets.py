"""What events are matched against: the filters of a snapshot, or a graph in one shard or several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.snapshot import open_snapshot, room_of
from headgate.errors import SnapshotError
from headgate.graph import sharding
from headgate.graph.base import ROOM as GRAPH
from headgate.graph.base import Base as GraphBase
from headgate.records.encode import compared
from headgate.records.index import ROOM as RECORDS
from headgate.records.index import RecordIndex

if TYPE_CHECKING:
    from headgate.core.values import Path as Attribute


class Shard(NamedTuple):
    """A snapshot that workers open, and the checksum that tells it from another in its place."""

    place: str
    digest: str


@dataclass(frozen=True)
class Target:
    """A verified snapshot."""

    shards: tuple[Shard, ...]
    """One, unless a graph was cut into more; a subscription is in one of them."""
    attributes: tuple[Attribute, ...]
    """What filters look at, sorted."""
    compared: frozenset[Attribute]
    """Those whose values they compare."""
    numbered: bool
    """Whether ids of subscriptions are whole numbers."""
    graph: bool
    numbered_nodes: bool = False


def open_target(snapshot: str, *, graph: bool | None = None) -> Target:
    """Verify a snapshot; with `graph` given, refuse one that has a graph and shall not, or the reverse."""
    place = Path(snapshot).absolute()
    room = room_of(place)
    check_wish(snapshot, room, graph=graph)
    if room in {GRAPH, sharding.ROOM}:
        return _open_graph(graph_places(place))
    index = RecordIndex.open(place)
    shard = Shard(str(place), _digest(place, RECORDS))
    return Target((shard,), *_attributes([index]), numbered=index.ids.numbered, graph=False)


def check_wish(snapshot: str, room: str, *, graph: bool | None) -> None:
    """Refuse to use a graph that is not there, and to leave out one that is."""
    if graph is True and room == RECORDS:
        raise SnapshotError(
            f"snapshot {snapshot} was compiled without a graph: leave out --graph, or compile it with "
            "--nodes and --edges"
        )
    if graph is False and room in {GRAPH, sharding.ROOM}:
        raise SnapshotError(
            f"snapshot {snapshot} was compiled with a graph, and without it events would reach subscriptions "
            "that no path leads to: leave out --no-graph, or compile the subscriptions alone and match "
            "against that"
        )


def graph_places(place: Path) -> list[Path]:
    """List the directories of a graph's shards; a graph that is not cut is one."""
    return sharding.shard_places(place) if room_of(place) == sharding.ROOM else [place]


def _open_graph(places: list[Path]) -> Target:
    bases = [GraphBase.open(place, RecordIndex, verify=True) for place in places]
    contents = [base.content for base in bases if isinstance(base.content, RecordIndex)]
    # The manifest of a graph names that of its filters.
    digests = [_digest(place, GRAPH) for place in places]
    return Target(
        tuple(Shard(str(place), digest) for place, digest in zip(places, digests, strict=True)),
        *_attributes(contents),
        numbered=bases[0].names.subscription_ids.numbered,
        graph=True,
        numbered_nodes=bases[0].names.node_ids.numbered,
    )


def _digest(place: Path, room: str) -> str:
    return open_snapshot(place, room, verify=False).digest


def _attributes(indexes: list[RecordIndex]) -> tuple[tuple[Attribute, ...], frozenset[Attribute]]:
    named = {path for index in indexes for path in index.built.attributes}
    seen = {index.built.attributes[number] for index in indexes for number in compared(index.built)}
    return tuple(sorted(named)), frozenset(seen)
