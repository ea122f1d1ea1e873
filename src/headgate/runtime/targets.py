"""What events are matched against: verified snapshots, in one shard or several, opened once in a worker."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headgate.contents.registry import content_at, kind_at, room_at
from headgate.core.rooms import CLAUSES, FILTERS, GRAPH, RANKING
from headgate.core.snapshot import digest_of, is_snapshot, room_of
from headgate.engine.engine import Engine
from headgate.errors import SnapshotError
from headgate.graph.build import sharding
from headgate.ranking.filters.index import RankedIndex
from headgate.runtime import shards as shard_snapshots
from headgate.runtime.checks import check_target, graph_places
from headgate.runtime.questions import EXACT
from headgate.runtime.routes import Routes
from headgate.runtime.shards import have_numbers, ids_at, shard_places

if TYPE_CHECKING:
    from collections.abc import Callable

    Opened = TypeVar("Opened")
    from headgate.core.values import Path as Attribute
    from headgate.runtime.questions import Top
    from headgate.runtime.routes import Route


def opened_as(path: str, digest: str, opening: Callable[[Path], Opened]) -> Opened:
    """Open a snapshot that must have a digest.

    It is looked at afterwards: what was mapped before another snapshot took the place stays as it was.
    """
    place = Path(path)
    found = opening(place)
    if digest_of(place) != digest:
        raise SnapshotError(
            f"snapshot {path} was replaced while it was being used: run the job again, with the new one"
        )
    return found


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
    routes: Routes | None = None
    """Which events meet which shards; None if all meet all."""

    def meetings(self, top: Top | None) -> list[tuple[Shard, Route | None]]:
        """List the shards that events meet, and what leads to each; those without subscriptions are left out.

        Relaxed ranking asks for any clause of a filter, and keys are about all: there everything is met.
        """
        if self.routes is None:
            return [(shard, None) for shard in self.shards]
        relaxed = top is not None and top.mode != EXACT
        found = [
            (shard, None if relaxed else self.routes.route(number))
            for number, shard in enumerate(self.shards)
            if self.routes.subscriptions[number]
        ]
        return found or [(self.shards[0], None)]


def open_target(snapshot: str, *, graph: bool | None = None, top: Top | None = None) -> Target:
    """Verify a snapshot; with `graph` given, refuse one that has a graph and shall not, or the reverse.

    With `top`, refuse one that cannot say which subscriptions are best.
    """
    check_target(snapshot, graph=graph, top=top)
    place = Path(snapshot).absolute()
    room = room_of(place)
    if room in {GRAPH, sharding.ROOM}:
        target = _open_graph(graph_places(place))
    else:
        target = _open_filters(shard_places(place), ranked=room in {RANKING, shard_snapshots.RANKED})
    if room not in {sharding.ROOM, *shard_snapshots.ROOMS}:
        return target
    return replace(target, routes=Routes.read(place, room, target.content))


def _open_graph(places: list[Path]) -> Target:
    names = Engine.open(places[0]).graph.base.names
    for place in places[1:]:
        Engine.open(place)
    # The manifest of a graph names that of its filters.
    digests = [digest_of(place) for place in places]
    return Target(
        content_at(places[0]),
        tuple(Shard(str(place), digest) for place, digest in zip(places, digests, strict=True)),
        *_attributes(_filters(places)),
        numbered=names.subscription_ids.numbered,
        graph=True,
        numbered_nodes=names.node_ids.numbered,
    )


def _open_filters(places: list[Path], *, ranked: bool) -> Target:
    """Verify filters without a graph, in one shard or several."""
    for place in places:
        if ranked:
            RankedIndex.open(place, room=room_at(place))
        else:
            room_at(place).open(place)
    return Target(
        content_at(places[0]),
        tuple(Shard(str(place), digest_of(place)) for place in places),
        *_attributes(_filters(places) if ranked else places),
        numbered=have_numbers([ids_at(place, ranked=ranked) for place in places]),
        graph=False,
        ranked=ranked,
    )


def _filters(places: list[Path]) -> list[Path]:
    """List the snapshots of filters inside others, and those of clauses if there are any."""
    inside = [place / name for place in places for name in (FILTERS, Path(CLAUSES) / FILTERS)]
    return [each for each in inside if is_snapshot(each)]


def _attributes(filters: list[Path]) -> tuple[tuple[Attribute, ...], frozenset[Attribute]]:
    """List the attributes that filters name, and those that they compare, of snapshots that were verified."""
    named, compared = kind_at(filters[0]).attributes(filters) if filters else (set(), set())
    return tuple(sorted(named)), frozenset(compared)
