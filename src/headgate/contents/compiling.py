"""What the compile jobs ask of a kind of content: workers write its filters, the driver indexes them.

text ──► FilterWriter.add ──► bytes ──► Contents.file ──► Filed.take, with_filter ──► index
on a worker                    on the driver, or on the worker of a shard
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from headgate.core.rooms import FILTERS
from headgate.core.snapshot import is_snapshot, room_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause, Content, ContentRoom
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.values import Path as Attribute

Keys: TypeAlias = "frozenset[str] | None"
"""What a filter demands of events: one that matches has one of these. None if it is open."""


class FilterWriter(Protocol):
    """Compiles filters one after another; what it has made goes to the driver as bytes."""

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it in the kind's own dialect; refuses a bad one."""

    def to_bytes(self) -> bytes:
        """Return all that was added."""


class Writers(Protocol):
    """What workers are given: small, and sent to them with every task."""

    @property
    def dialect(self) -> str:
        """Return the kind's own dialect."""

    def writer(self, *, checked: bool = True) -> FilterWriter:
        """Begin; `checked` is for filters as people wrote them, and not for clauses of these."""

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter in the kind's own dialect apart."""


class Filed(Protocol):
    """Compiled filters, by number."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """List the attributes that they name; patterns over documents name none."""

    def take(self, order: NDArray[np.int64]) -> Filed:
        """Pick filters."""

    def with_filter(self, text: str) -> Filed:
        """Append a filter in the kind's own dialect."""

    def index(self, ids: Ids, texts: TextPool) -> Content:
        """Index them, in the order of their ids."""


class Finder(Protocol):
    """Finds what filters demand of events. Small, and sent to workers."""

    @property
    def demands(self) -> bool:
        """Tell whether an event must have all keys of a filter, so that one of them is enough to route by."""

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of filters as a writer has written them."""

    def of_filed(self, filed: Any) -> list[Keys]:
        """Find the keys of filters that were filed."""


class Counted(NamedTuple):
    """What a snapshot holds besides subscriptions; one of shards, what they hold together."""

    counts: dict[str, int]
    sentence: str


class Contents(Protocol):
    """A kind of content with its settings, as the driver sees it while a table is compiled."""

    @property
    def name(self) -> str:
        """Name the kind."""

    @property
    def room(self) -> ContentRoom:
        """Return what builds and opens indexes."""

    @property
    def writers(self) -> Writers:
        """Return what workers need."""

    def file(self, parts: Sequence[memoryview]) -> tuple[Filed, NDArray[np.int64]]:
        """Lay what writers made one behind another; returns it, and how many filters each part has."""

    def finder(self, path: Attribute | None) -> Finder:
        """Return what finds the keys of filters: of rows, the values of the attribute `path`."""

    def counts(self, snapshot: Path) -> Counted | None:
        """Count what a snapshot holds; none if its attributes say it."""


def filters_in(snapshot: Path, content: str) -> list[Path]:
    """List the snapshots of filters in one: itself, that inside, or those in its shards."""
    if room_of(snapshot) == content:
        return [snapshot]
    shards = [place for place in sorted(snapshot.glob("shard-*")) if is_snapshot(place)]
    return [each for place in shards for each in filters_in(place, content)] or [snapshot / FILTERS]
