"""What events are matched against: verified snapshots, in one shard or several, opened once in a process."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from headgate.contents.registry import kind_at
from headgate.core.rooms import RANKING, RANKING_SHARDS
from headgate.core.snapshot import digest_of, room_of, shard_places
from headgate.core.values import fold, top_names
from headgate.core.versions.stores import Located, located, opened_at, title_of
from headgate.errors import MachineError, SnapshotError
from headgate.runtime.engines import Runtime
from headgate.runtime.pieces import refused_by_all, sources_of
from headgate.runtime.questions import check_target
from headgate.runtime.snapshots import Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from headgate.core.event import Event

    Opened = TypeVar("Opened")
    from headgate.core.values import Path as Attribute
    from headgate.engine.question import Top
    from headgate.runtime.shards import Routes


def opened_as(path: str, digest: str, opening: Callable[[Path], Opened]) -> Opened:
    """Open a snapshot that must have a digest.

    It is looked at afterwards: what was mapped before another snapshot took the place stays as it was.
    """
    directory = located(path)
    result = opening(directory)
    if digest_of(directory) != digest:
        raise SnapshotError(
            f"snapshot {title_of(path)} was replaced while it was being used: run the job again, with the "
            "new one"
        )
    return result


_NO_MEMORY = ("Cannot allocate memory", "out of memory", "malloc of size")
"""What is said by those who are refused memory and do not raise MemoryError."""
_NO_LIBRARY = ("shared object",)
"""What is said where a limit leaves no room to load a library: kernels are loaded after the snapshot."""


class Openable(Protocol):
    """What workers open to ask it."""

    @property
    def place(self) -> str:
        """Return what it is called in messages."""

    def open(self) -> Runtime:
        """Open it; the driver has verified it."""

    def __hash__(self) -> int: ...


class Group(NamedTuple):
    """Shards of a snapshot that lie in one memory together, and the checksum of the whole."""

    place: str
    digest: str
    shards: tuple[int, ...] = (0,)

    def open(self) -> Runtime:
        """Open them; the pages are shared by all processes of a machine."""
        return opened_as(
            self.place, self.digest, lambda place: Runtime.open(place, only=self.shards, verify=False)
        )


_opened: dict[Openable, Runtime] = {}
_MOST = 2
"""Groups that stay open: Spark hands out one after the other, and two are compared."""


def opened(group: Openable) -> Runtime:
    """Open shards once in a process; a version is brought up to date each time."""
    if isinstance(group, Version):
        return group.open()
    engines = _opened.pop(group, None)
    if engines is None:
        with in_memory(group.place):
            engines = group.open()
    return _keep(group, engines)


def _keep(group: Openable, engines: Runtime) -> Runtime:
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
        cause: BaseException = error
        while isinstance(cause, SnapshotError) and cause.__context__ is not None:
            cause = cause.__context__
        if not isinstance(cause, MemoryError) and not any(sign in str(cause) for sign in signs):
            raise
        most = f" of {limit >> 20:,} MB" if limited else ""
        raise MachineError(
            f"{title_of(snapshot)} does not fit into the memory{most} of a worker: compile it in more shards "
            "(--shards), or give workers more (spark.executor.pyspark.memory)"
        ) from error


class Sources(NamedTuple):
    """The nodes where events may enter a graph, on all of its shards."""

    groups: tuple[Openable, ...]

    def refusals(self, sources: pa.Array[Any]) -> list[str | None]:
        """Say of sources as they were given why they are refused; None for those that are nodes."""
        return refused_by_all(sources, (partial(_refusals, group) for group in self.groups))

    def of_events(self, events: Sequence[Event]) -> list[str | None]:
        """Say the same of events."""
        return self.refusals(sources_of(events))


def _refusals(group: Openable, sources: pa.Array[Any]) -> list[str | None]:
    with in_memory(group.place):
        return opened(group).refusals(sources)


@dataclass(frozen=True)
class Target:
    """A verified snapshot."""

    place: str
    digest: str
    content: str
    """The content room of its filters."""
    shards: tuple[Group, ...]
    """Each by itself: one, unless it was cut into more; a subscription is in one of them."""
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

    @property
    def columns(self) -> set[str]:
        """Name the columns that filters look at, folded."""
        return {name for path in self.attributes for name in top_names(path)}

    @property
    def whole(self) -> Group:
        """Return all shards together."""
        return Group(self.place, self.digest, tuple(range(len(self.shards))))

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


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def open_target(snapshot: str, *, graph: bool | None = None, top: Top | None = None) -> Target:
    """Verify a snapshot; with `graph` given, refuse one that has a graph and shall not, or the reverse.

    With `top`, refuse one that cannot say which subscriptions are best.
    """
    check_target(snapshot, graph=graph, top=top)
    target = opened_at(snapshot, _open_target)
    if top is None or top.column is None:
        return target
    # Workers are handed what filters look at, and this.
    path = tuple(map(fold, top.column.split(".")))
    return replace(target, attributes=tuple(sorted({*target.attributes, path})))


def _open_target(snapshot: Located) -> Target:
    """Verify a snapshot, and keep it open: whoever asks it here need not open it again."""
    path, here = snapshot.place, str(snapshot.place)
    room, places = room_of(path), shard_places(path)
    engines = Runtime.open(path)
    backends = engines.backends
    kind = kind_at(places[0])
    named, compared = kind.looked_at([each for backend in backends for each in backend.looked_at])
    named = named.union(*(backend.score_attributes for backend in backends))
    target = Target(
        snapshot.name,
        # The manifest of a graph names that of its filters.
        digest_of(path),
        kind.name,
        # Workers of other machines fetch it themselves.
        tuple(Group(snapshot.name_of(str(each).removeprefix(here)), digest_of(each)) for each in places),
        tuple(sorted(named)),
        frozenset(compared),
        numbered=engines.numbered,
        graph=engines.graph,
        numbered_nodes=engines.graph and engines.numbered_nodes,
        ranked=room in {RANKING, RANKING_SHARDS},
        routes=engines.routes,
        mark=kind.mark_at(places[0]),
    )
    _keep(target.whole, engines)
    return target
