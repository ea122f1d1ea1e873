"""What events are matched against: verified snapshots, in one shard or several, opened once in a process."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from headgate.contents.registry import content_at, kind_at
from headgate.core.rooms import CLAUSES, FILTERS, GRAPH, RANKING
from headgate.core.snapshot import digest_of, is_snapshot, room_of
from headgate.core.values import fold
from headgate.core.versions.locating import Located, located, opened_at, title_of
from headgate.engine.engine import Engine
from headgate.errors import MachineError, SnapshotError
from headgate.graph.build import sharding
from headgate.runtime import shards as shard_snapshots
from headgate.runtime.batch_queries import refused_by_all, sources_of
from headgate.runtime.engines import ShardEngines
from headgate.runtime.questions import check_target, graph_places
from headgate.runtime.routes import Routes
from headgate.runtime.shards import have_numbers, ids_at, shard_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from headgate.core.event import Event

    Opened = TypeVar("Opened")
    from headgate.core.ids import Ids
    from headgate.core.values import Path as Attribute
    from headgate.runtime.questions import Top


def opened_as(path: str, digest: str, opening: Callable[[Path], Opened]) -> Opened:
    """Open a snapshot that must have a digest.

    It is looked at afterwards: what was mapped before another snapshot took the place stays as it was.
    """
    place = located(path)
    found = opening(place)
    if digest_of(place) != digest:
        raise SnapshotError(
            f"snapshot {title_of(path)} was replaced while it was being used: run the job again, with the "
            "new one"
        )
    return found


_NO_MEMORY = ("Cannot allocate memory", "out of memory", "malloc of size")
"""What is said by those who are refused memory and do not raise MemoryError."""
_NO_LIBRARY = ("shared object",)
"""What is said where a limit leaves no room to load a library: kernels are loaded after the snapshot."""


class Openable(Protocol):
    """What workers open to ask it."""

    @property
    def place(self) -> str:
        """Return what it is called in messages."""

    def open(self) -> ShardEngines:
        """Open it; the driver has verified it."""

    def __hash__(self) -> int: ...


class Group(NamedTuple):
    """Shards of a snapshot that lie in one memory together, and the checksum of the whole."""

    place: str
    digest: str
    shards: tuple[int, ...] = (0,)

    def open(self) -> ShardEngines:
        """Open them; the pages are shared by all processes of a machine."""
        return opened_as(
            self.place, self.digest, lambda place: ShardEngines.open(place, only=self.shards, verify=False)
        )


_opened: dict[Openable, ShardEngines] = {}
_MOST = 2
"""Groups that stay open: Spark hands out one after the other, and two are compared."""


def opened(group: Openable) -> ShardEngines:
    """Open shards once in a process."""
    engines = _opened.pop(group, None)
    if engines is None:
        with in_memory(group.place):
            engines = group.open()
    return _keep(group, engines)


def _keep(group: Openable, engines: ShardEngines) -> ShardEngines:
    _opened[group] = engines
    while len(_opened) > _MOST:
        _opened.pop(next(iter(_opened)), None)
    return engines


@contextmanager
def in_memory(snapshot: str) -> Iterator[None]:
    """Say in one line that a snapshot is too large for a worker."""
    try:
        yield
    except (MemoryError, OSError, SnapshotError) as error:
        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        limited = limit != resource.RLIM_INFINITY
        signs = (*_NO_MEMORY, *(_NO_LIBRARY if limited else ()))
        # One of ours was made of what the machine said.
        said: BaseException = error
        while isinstance(said, SnapshotError) and said.__context__ is not None:
            said = said.__context__
        if not isinstance(said, MemoryError) and not any(sign in str(said) for sign in signs):
            raise
        most = f" of {limit >> 20:,} MB" if limited else ""
        raise MachineError(
            f"{title_of(snapshot)} does not fit into the memory{most} of a worker: compile it in more shards "
            "(--shards), or give workers more (spark.executor.pyspark.memory)"
        ) from error


class Sources(NamedTuple):
    """The nodes where events may enter a graph, on all of its shards."""

    groups: tuple[Openable, ...]

    def refusals(self, given: pa.Array[Any]) -> list[str | None]:
        """Say of sources as they were given why they are refused; None for those that are nodes."""
        return refused_by_all(given, (partial(_refusals, group) for group in self.groups))

    def of_events(self, events: Sequence[Event]) -> list[str | None]:
        """Say the same of events."""
        return self.refusals(sources_of(events))


def _refusals(group: Openable, given: pa.Array[Any]) -> list[str | None]:
    with in_memory(group.place):
        return opened(group).refusals(given)


class Shard(NamedTuple):
    """A snapshot that workers open, and the checksum that tells it from another in its place."""

    place: str
    digest: str


@dataclass(frozen=True)
class Target:
    """A verified snapshot."""

    place: str
    digest: str
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
    mark: str = ""
    """What stands before names in `attributes`, see `core/values.py`."""

    @property
    def title(self) -> str:
        """Return what people call it."""
        return title_of(self.place)

    def ids(self) -> list[Ids]:
        """List the ids of the subscriptions, by shard."""
        return [ids_at(shard.place) for shard in self.shards]

    def groups(self, memory: int) -> tuple[Group, ...]:
        """Put shards together that lie in one memory of so many bytes, or one by one if they are larger.

        Those without subscriptions are left out.
        """
        counts = None if self.routes is None else self.routes.subscriptions
        some = [number for number in range(len(self.shards)) if counts is None or counts[number]]
        groups: list[list[int]] = []
        left = 0
        for number in some or [0]:
            size = _size(located(self.shards[number].place)) if len(some) > 1 else 0
            if not groups or size > left:
                groups.append([])
                left = memory
            groups[-1].append(number)
            left -= size
        return tuple(Group(self.place, self.digest, tuple(each)) for each in groups)

    def sources(self, memory: int) -> Sources | None:
        """Return where events may enter; None without a graph."""
        if not self.graph:
            return None
        every = replace(self, routes=None)
        return Sources(every.groups(memory))


def _size(place: Path) -> int:
    return sum(file.stat().st_size for file in place.rglob("*") if file.is_file())


def open_target(snapshot: str, *, graph: bool | None = None, top: Top | None = None) -> Target:
    """Verify a snapshot; with `graph` given, refuse one that has a graph and shall not, or the reverse.

    With `top`, refuse one that cannot say which subscriptions are best.
    """
    check_target(snapshot, graph=graph, top=top)
    target = opened_at(snapshot, _open_target)
    if top is None or top.column is None:
        return target
    # Workers are handed what filters look at, and this.
    asked = tuple(map(fold, top.column.split(".")))
    return replace(target, attributes=tuple(sorted({*target.attributes, asked})))


def _open_target(found: Located) -> Target:
    target, engine = _target_at(found.place)
    if str(found.place) != found.name:
        # Workers of other machines fetch it themselves.
        here = str(found.place)
        shards = [each._replace(place=found.name_of(each.place.removeprefix(here))) for each in target.shards]
        target = replace(target, place=found.name, shards=tuple(shards))
    if engine is not None:
        # Whoever asks it here need not open it again.
        _keep(Group(target.place, target.digest), ShardEngines.of(engine.backend))
    return target


def _target_at(place: Path) -> tuple[Target, Engine | None]:
    """Verify a snapshot; the engine is that of one in one piece."""
    room = room_of(place)
    if room in {GRAPH, sharding.ROOM}:
        target, engine = _open_graph(place, graph_places(place))
    else:
        ranked = room in {RANKING, shard_snapshots.RANKED}
        target, engine = _open_filters(place, shard_places(place), ranked=ranked)
    if room not in {sharding.ROOM, *shard_snapshots.ROOMS}:
        return target, engine
    return replace(target, routes=Routes.read(place, room, target.content)), None


def _open_graph(whole: Path, places: list[Path]) -> tuple[Target, Engine]:
    engine = Engine.open(places[0])
    names = engine.graph.base.names
    for place in places[1:]:
        Engine.open(place)
    # The manifest of a graph names that of its filters.
    digests = [digest_of(place) for place in places]
    target = Target(
        str(whole),
        digest_of(whole),
        content_at(places[0]),
        tuple(Shard(str(place), digest) for place, digest in zip(places, digests, strict=True)),
        *_attributes(_filters(places)),
        numbered=names.subscription_ids.numbered,
        graph=True,
        numbered_nodes=names.node_ids.numbered,
        mark=kind_at(places[0]).mark_at(places[0]),
    )
    return target, engine


def _open_filters(whole: Path, places: list[Path], *, ranked: bool) -> tuple[Target, Engine]:
    """Verify filters without a graph, in one shard or several."""
    engines = [Engine.open(place) for place in places]
    kind = kind_at(places[0])
    indexes = [each for engine in engines for each in engine.backend.contents]
    looked_at = _attributes(_filters(places)) if ranked else _sorted(*kind.looked_at(indexes))
    target = Target(
        str(whole),
        digest_of(whole),
        content_at(places[0]),
        tuple(Shard(str(place), digest_of(place)) for place in places),
        *looked_at,
        numbered=have_numbers([engine.backend.built for engine in engines]),
        graph=False,
        ranked=ranked,
        mark=kind.mark_at(places[0]),
    )
    return target, engines[0]


def _filters(places: list[Path]) -> list[Path]:
    """List the snapshots of filters inside others, and those of clauses if there are any."""
    inside = [place / name for place in places for name in (FILTERS, Path(CLAUSES) / FILTERS)]
    return [each for each in inside if is_snapshot(each)]


def _attributes(filters: list[Path]) -> tuple[tuple[Attribute, ...], frozenset[Attribute]]:
    """List the attributes that filters name, and those that they compare, of snapshots that were verified."""
    return _sorted(*(kind_at(filters[0]).attributes(filters) if filters else (set(), set())))


def _sorted(
    named: set[Attribute], compared: set[Attribute]
) -> tuple[tuple[Attribute, ...], frozenset[Attribute]]:
    return tuple(sorted(named)), frozenset(compared)
