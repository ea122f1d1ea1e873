"""What events are matched against: filters, ranked subscriptions or a graph, in one shard or several."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headgate.contents import CONTENTS, RECORDS, content_at, room_at
from headgate.core.snapshot import is_snapshot, open_snapshot, room_of
from headgate.engine import Engine
from headgate.errors import SnapshotError
from headgate.graph import sharding
from headgate.graph.base import ROOM as GRAPH
from headgate.ranking.base import CLAUSES, CONTENT
from headgate.ranking.base import ROOM as RANKING
from headgate.ranking.index import RankedIndex
from headgate.records.encode import compared
from headgate.records.index import RecordIndex
from headgate.spark import ranked_shards
from headgate.spark.ranked_shards import have_numbers, ranked_places
from headgate.spark.top import EXACT

if TYPE_CHECKING:
    from headgate.core.values import Path as Attribute
    from headgate.spark.top import Top


class Shard(NamedTuple):
    """A snapshot that workers open, and the checksum that tells it from another in its place."""

    place: str
    digest: str


@dataclass(frozen=True)
class Target:
    """A verified snapshot."""

    content: str
    """The content room of its filters."""
    shards: tuple[Shard, ...]
    """One, unless it was cut into more; a subscription is in one of them."""
    attributes: tuple[Attribute, ...]
    """What filters of records look at, sorted."""
    compared: frozenset[Attribute]
    """Those whose values they compare."""
    numbered: bool
    """Whether ids of subscriptions are whole numbers."""
    graph: bool
    numbered_nodes: bool = False
    ranked: bool = False
    """Whether subscriptions have scores and weights; those of a graph have scores in any case."""


def open_target(snapshot: str, *, graph: bool | None = None, top: Top | None = None) -> Target:
    """Verify a snapshot; with `graph` given, refuse one that has a graph and shall not, or the reverse.

    With `top`, refuse one that cannot say which subscriptions are best.
    """
    place = Path(snapshot).absolute()
    room = room_of(place)
    check_wish(snapshot, room, graph=graph)
    if top is not None:
        check_ranks(place, room, top.mode)
    if room in {GRAPH, sharding.ROOM}:
        return _open_graph(graph_places(place))
    if room in {RANKING, ranked_shards.ROOM}:
        return _open_ranked(ranked_places(place))
    index = room_at(place).open(place)
    shard = Shard(str(place), _digest(place, room))
    return Target(room, (shard,), *_attributes([place]), numbered=index.ids.numbered, graph=False)


def check_wish(snapshot: str, room: str, *, graph: bool | None) -> None:
    """Refuse to use a graph that is not there, and to leave out one that is."""
    if graph is True and room not in {GRAPH, sharding.ROOM}:
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


def check_ranks(place: Path, room: str, mode: str) -> None:
    """Refuse to rank where there is nothing to rank by."""
    if room in CONTENTS:
        raise SnapshotError(
            f"snapshot {place} was compiled without ranks: compile its subscriptions with --ranked, or "
            "with a column 'score' or 'weights'"
        )
    if mode == EXACT or room not in {GRAPH, sharding.ROOM}:
        return
    if not is_snapshot(graph_places(place)[0] / CLAUSES):
        raise SnapshotError(
            f"snapshot {place} ranks by score and path only: compile the graph with --ranked, or its "
            "subscriptions with a column 'weights'"
        )


def graph_places(place: Path) -> list[Path]:
    """List the directories of a graph's shards; a graph that is not cut is one."""
    return sharding.shard_places(place) if room_of(place) == sharding.ROOM else [place]


def _open_graph(places: list[Path]) -> Target:
    names = Engine.open(places[0]).graph.base.names
    for place in places[1:]:
        Engine.open(place)
    # The manifest of a graph names that of its filters.
    digests = [_digest(place, GRAPH) for place in places]
    return Target(
        content_at(places[0]),
        tuple(Shard(str(place), digest) for place, digest in zip(places, digests, strict=True)),
        *_attributes(_filters(places)),
        numbered=names.subscription_ids.numbered,
        graph=True,
        numbered_nodes=names.node_ids.numbered,
    )


def _open_ranked(places: list[Path]) -> Target:
    for place in places:
        RankedIndex.open(place, room=room_at(place))
    return Target(
        content_at(places[0]),
        tuple(Shard(str(place), _digest(place, RANKING)) for place in places),
        *_attributes(_filters(places)),
        numbered=have_numbers(places),
        graph=False,
        ranked=True,
    )


def _filters(places: list[Path]) -> list[Path]:
    """List the snapshots of filters inside others, and those of clauses if there are any."""
    inside = [place / name for place in places for name in (CONTENT, Path(CLAUSES) / CONTENT)]
    return [each for each in inside if is_snapshot(each)]


def _digest(place: Path, room: str) -> str:
    return open_snapshot(place, room, verify=False).digest


def _attributes(filters: list[Path]) -> tuple[tuple[Attribute, ...], frozenset[Attribute]]:
    """List the attributes that filters name, and those that they compare, of snapshots that were verified."""
    records = [RecordIndex.open(place, verify=False) for place in filters if room_of(place) == RECORDS]
    named = {path for index in records for path in index.built.attributes}
    seen = {index.built.attributes[number] for index in records for number in compared(index.built)}
    return tuple(sorted(named)), frozenset(seen)
