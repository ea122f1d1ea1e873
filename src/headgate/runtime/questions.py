"""What is asked about events, and whether a snapshot can answer: known before anything large is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.contents.registry import is_content
from headgate.core.ranks import EXACT
from headgate.core.rooms import CLAUSES, FILTER_SHARDS, GRAPH, GRAPH_SHARDS, RANKING, RANKING_SHARDS
from headgate.core.snapshot import is_snapshot, room_of, shard_places
from headgate.core.versions.current import called
from headgate.core.versions.stores import located
from headgate.errors import SnapshotError, TableError

if TYPE_CHECKING:
    from headgate.engine.question import Top

NOT_BY_EVENT = (
    "{} has shards that do not fit into one worker, and how many of all an event wants is not known to each: "
    "compile fewer shards, give workers more memory, or ask for as many of each event"
)
STAGED = "_staged"
"""Where tasks write, inside a folder that a stream writes to."""


def check_target(snapshot: str, *, graph: bool | None = None, top: Top | None = None) -> None:
    """Refuse a snapshot that has a graph and shall not, or the reverse, or that has no ranks."""
    path = located(snapshot).absolute()
    room = room_of(path)
    check_wish(snapshot, room, graph=graph)
    if top is not None:
        check_ranks(path, room, top)


def check_wish(snapshot: str, room: str, *, graph: bool | None) -> None:
    """Refuse to use a graph that is not there, and to leave out one that is."""
    if graph is True and room not in {GRAPH, GRAPH_SHARDS}:
        raise SnapshotError(
            f"snapshot {snapshot} was compiled without a graph: leave out --graph, or compile it with "
            "--nodes and --edges"
        )
    if graph is False and room in {GRAPH, GRAPH_SHARDS}:
        raise SnapshotError(
            f"snapshot {snapshot} was compiled with a graph, and without it events would reach subscriptions "
            "that no path leads to: leave out --no-graph, or compile the subscriptions alone and match "
            "against that"
        )


def check_ranks(path: Path, room: str, top: Top) -> None:
    """Refuse to rank where there is nothing to rank by."""
    top.check_way(routed=room in {GRAPH, GRAPH_SHARDS})
    if is_content(room) or room == FILTER_SHARDS:
        raise SnapshotError(
            f"snapshot {called(path)} was compiled without ranks: compile its subscriptions with --ranked, "
            "or with a column 'score' or 'weights'"
        )
    if top.mode == EXACT or room not in {GRAPH, GRAPH_SHARDS}:
        return
    if not is_snapshot(shard_places(path)[0] / CLAUSES):
        raise SnapshotError(
            f"snapshot {called(path)} ranks by score and path only: compile the graph with --ranked, or its "
            "subscriptions with a column 'weights'"
        )


def check_snapshot(path: str, top: Top | None) -> None:
    """Refuse a snapshot that a stream cannot match against."""
    directory = located(path).absolute()
    room = room_of(directory)
    others = {GRAPH, RANKING, GRAPH_SHARDS, RANKING_SHARDS, FILTER_SHARDS}
    if not is_content(room) and room not in others:
        raise SnapshotError(
            f"snapshot {path} is a snapshot of {room!r}: give one of filters, of a ranking, or of a graph"
        )
    if top is not None:
        check_ranks(directory, room, top)


def check_changes(path: str) -> None:
    """Refuse a place that is no folder."""
    if not Path(path).is_dir():
        raise TableError(f"{path} is not a folder: make it, and move files of changes into it")
