"""What jobs did, and the tables of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.core.arguments import likeliest
from headgate.core.rooms import RECORDS
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.contents.kind import Feeds
    from headgate.contents.protocol import SnapshotCounts


@dataclass(frozen=True, kw_only=True)
class CompileResult:
    """What the job did."""

    subscriptions: int
    """In a graph those of the table, and those that nodes serve by themselves."""
    rejected: int
    attributes: tuple[str, ...]
    parse_seconds: float
    build_seconds: float
    ranked: bool = False
    """In a graph whether clauses can be ranked, too: scores can in any case."""
    shards: int = 1
    content: str = RECORDS
    """The kind of content that filters look at."""
    holds: SnapshotCounts | None = None
    """What there is of patterns over documents, if the filters are such."""


@dataclass(frozen=True, kw_only=True)
class GraphCompileResult(CompileResult):
    """What the job did. Rows in the graph and rejected ones are all that were given, blank lines left out."""

    nodes: int
    edges: int
    rows: dict[str, int]
    """Rows that are in the graph, by table."""
    refused: dict[str, int]
    """Rows that are not, by table."""


@dataclass(frozen=True)
class Tables:
    """Where the tables of a graph are."""

    nodes: str
    edges: str
    subscriptions: str | None = None

    @property
    def places(self) -> dict[str, str]:
        """List those that are given, by name."""
        paths = {NODES: self.nodes, EDGES: self.edges, SUBSCRIPTIONS: self.subscriptions}
        return {name: path for name, path in paths.items() if path is not None}


@dataclass(frozen=True)
class Batch:
    """One batch of events in a worker: when it began, how long it took, how many events."""

    task: int
    start: float
    seconds: float
    events: int
    spent: tuple[float, ...] = ()
    """Seconds of the worker's CPU, for each of `report.STAGES`."""


def meant_by(unknown: Iterable[str], columns: Iterable[str]) -> dict[str, str]:
    """Find the columns of a table that were likeliest meant by attributes that it lacks.

    >>> meant_by(["pric", "user.cty", "x"], ["price", "user.city"])
    {'pric': 'price', 'user.cty': 'user.city'}
    """
    known = sorted(columns)
    nearest = {name: likeliest(name, known) for name in unknown}
    return {name: meant for name, meant in nearest.items() if meant is not None}


@dataclass(frozen=True)
class MatchResult:
    """What the job did."""

    events: int
    rejected: int
    matches: int
    unknown_attributes: tuple[str, ...]
    """Attributes that filters name and the events' table lacks: NULL in every event."""
    survey_seconds: float
    match_seconds: float
    batches: tuple[Batch, ...]
    feeds: Feeds | None = None
    """What was read of RSS feeds, if there were any."""
    shards: int = 1
    met: int = 0
    """How often an event met a shard, of at most events times shards; the others could not match there."""
    meant: Mapping[str, str] = field(default_factory=dict)
    """Columns of the table that were likeliest meant by unknown attributes."""
    left_out: int = 0
    """Filters that were too expensive for an event, for each event; they are in the rejected table, too."""
