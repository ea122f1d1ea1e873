"""What the compile jobs ask of a content room: workers write its filters, the driver indexes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headgate.core.snapshot import is_snapshot, room_of
from headgate.graph.base import CONTENT as FILTERS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause
    from headgate.contents.registry import Room
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.rdf.index.index import RdfIndex
    from headgate.records.index.index import RecordIndex
    from headgate.xml.index.index import XmlIndex


class FilterWriter(Protocol):
    """Compiles filters one after another; what it has made goes to the driver as bytes."""

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it in the room's own dialect; refuses a bad one."""

    def to_bytes(self) -> bytes:
        """Return all that was added."""


class Writers(Protocol):
    """What workers are given: small, and sent to them with every task."""

    @property
    def dialect(self) -> str:
        """Return the room's own dialect."""

    def writer(self, *, checked: bool = True) -> FilterWriter:
        """Begin; `checked` is for filters as people wrote them, and not for clauses of these."""

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter in the room's own dialect apart."""


class Filed(Protocol):
    """Compiled filters, by number."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """List the attributes that they name; patterns over RDF and XML name none."""

    def take(self, order: NDArray[np.int64]) -> Filed:
        """Pick filters."""

    def with_filter(self, text: str) -> Filed:
        """Append a filter in the room's own dialect."""

    def index(self, ids: Ids, texts: TextPool) -> RecordIndex | RdfIndex | XmlIndex:
        """Index them, in the order of their ids."""


class Counts(NamedTuple):
    """What a snapshot of patterns over RDF holds; one of shards, what they hold together."""

    patterns: int
    """Different ones: filters that differ in their ranges only, or in names of variables, share one."""
    terms: int
    taxonomy: int
    """Statements."""
    left_out: int = 0
    """Statements of its files that say nothing of classes, properties and instances."""


class XmlCounts(NamedTuple):
    """What a snapshot of patterns over XML holds; one of shards, what they hold together."""

    paths: int
    """Different ones from the root of a pattern to a node: those are shared."""
    labels: int


class Contents(Protocol):
    """A content room as the driver sees it while a table is compiled."""

    @property
    def name(self) -> str:
        """Name the room."""

    @property
    def room(self) -> Room:
        """Return the room."""

    @property
    def writers(self) -> Writers:
        """Return what workers need."""

    def file(self, parts: Sequence[memoryview]) -> tuple[Filed, NDArray[np.int64]]:
        """Lay what writers made one behind another; returns it, and how many filters each part has."""

    def counts(self, snapshot: Path) -> Counts | XmlCounts | None:
        """Count what a snapshot of this room holds; none for records."""


def counted(contents: Contents, snapshot: Path) -> dict[str, Any]:
    """Count what a snapshot holds, by the name that a job's result has for it."""
    found = contents.counts(snapshot)
    return {
        "rdf": found if isinstance(found, Counts) else None,
        "xml": found if isinstance(found, XmlCounts) else None,
    }


def filters_in(snapshot: Path, content: str) -> list[Path]:
    """List the snapshots of filters in one: itself, that inside, or those in its shards."""
    if room_of(snapshot) == content:
        return [snapshot]
    shards = [place for place in sorted(snapshot.glob("shard-*")) if is_snapshot(place)]
    return [each for place in shards for each in filters_in(place, content)] or [snapshot / FILTERS]
