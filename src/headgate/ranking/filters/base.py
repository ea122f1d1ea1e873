"""Snapshots of a ranking: ids, scores and keys, with the filters by rank and the clauses inside.

ranking/                ids, scores, keys
filters/              the content room's snapshot of the filters by rank
clauses/              rows of weighted clauses; also inside a graph
filters/            the content room's snapshot of the distinct clauses that are asked by themselves
codes/              rows as boxes and in lists, with the lines of codes that they are over
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.protocol import CodesClauses
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.rooms import FILTERS, RANKING
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.ranking.filters.clauses import Named, Weighted
from headgate.ranking.filters.coded import Coded
from headgate.ranking.scores.table import EventScores

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import ContentRoom
    from headgate.core.arrays import Floats64, Ints
    from headgate.core.snapshot import Snapshot

ROOM, CLAUSES_ROOM, CODES_ROOM = RANKING, "clauses", "codes"
FORMS = "scores"
"""The forms of scores that depend on the event, in a snapshot that has any."""
LAYOUT = 3
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""
CONTENT = FILTERS
"""The snapshot of the filters, inside that of the ranking."""
CODES = "codes"
"""The snapshot of boxes and lists of codes, inside that of clauses."""


class Frozen(NamedTuple):
    """Subscriptions in the order of their ids, and who ranks where.

    scores[r]      of row r, which is the r-th id
    keys, rows     the ids of the filters in the content room, rising, and whose they are
    relaxed        whether the clauses are inside
    by_event       the scores that depend on the event
    """

    ids: Ids
    scores: Floats64
    keys: Ints
    rows: Ints
    relaxed: bool
    by_event: EventScores


def save_frozen(
    path: Path,
    frozen: Frozen,
    inside: Mapping[str, Callable[[Path], None]],
    source: Mapping[str, object] | None,
) -> None:
    """Write a snapshot; `source` says what it was built from."""
    arrays: dict[str, NDArray[Any]] = {**frozen.ids.to_arrays()}
    arrays.update(scores=frozen.scores, keys=frozen.keys, rows=frozen.rows)
    counts = {"subscriptions": len(frozen.ids)}
    about = {"layout": LAYOUT, "relaxed": frozen.relaxed, "source": dict(source or {})}
    if frozen.by_event:
        more, about[FORMS] = frozen.by_event.to_arrays()
        arrays.update(more)
    write_snapshot(path, ROOM, arrays, counts=counts, about=about, inside=inside)


def open_frozen(path: Path, *, verify: bool) -> Frozen:
    """Open a snapshot, without what is inside."""
    snapshot = _opened(path, ROOM, "the ranking", verify=verify)
    arrays = snapshot.arrays
    return Frozen(
        Ids.from_arrays(arrays),
        arrays["scores"],
        arrays["keys"],
        arrays["rows"],
        bool(snapshot.about["relaxed"]),
        EventScores.from_arrays(arrays, snapshot.about[FORMS])
        if FORMS in snapshot.about
        else EventScores.build([]),
    )


class FrozenClauses(NamedTuple):
    """Rows of weighted clauses, in the order of ids; `coded` tells whether codes are inside."""

    ids: Ids
    table: Weighted
    named: Named
    hashes: Ints
    texts: TextPool
    coded: bool


def save_clauses(path: Path, frozen: FrozenClauses, inside: Mapping[str, Callable[[Path], None]]) -> None:
    """Write a snapshot of rows of weighted clauses."""
    named = frozen.named
    arrays: dict[str, NDArray[Any]] = {**frozen.ids.to_arrays(), **frozen.table._asdict()}
    arrays["name_offsets"], arrays["name_data"] = TextPool.build(named.names)
    arrays["name_start"], arrays["name"], arrays["hashes"] = named.start, named.name, frozen.hashes
    arrays["clause_offsets"], arrays["clause_data"] = frozen.texts
    counts = {"subscriptions": len(frozen.ids), "clauses": len(named.start) - 1}
    about = {"layout": LAYOUT, "coded": frozen.coded}
    write_snapshot(path, CLAUSES_ROOM, arrays, counts=counts, about=about, inside=inside)


def open_clauses(path: Path, *, verify: bool) -> FrozenClauses:
    """Open a snapshot of rows of weighted clauses, without what is inside."""
    snapshot = _opened(path, CLAUSES_ROOM, "clauses", verify=verify)
    arrays = snapshot.arrays
    names = TextPool(arrays["name_offsets"], arrays["name_data"]).texts()
    return FrozenClauses(
        Ids.from_arrays(arrays),
        Weighted(arrays["start"], arrays["clause"], arrays["weight"]),
        Named(tuple(names), arrays["name_start"], arrays["name"]),
        arrays["hashes"],
        TextPool(arrays["clause_offsets"], arrays["clause_data"]),
        bool(snapshot.about["coded"]),
    )


def save_codes(coded: Coded, path: Path) -> None:
    """Write a snapshot of boxes and lists."""
    counts = {"rows": coded.size}
    write_snapshot(path, CODES_ROOM, coded.to_arrays(), counts=counts, about={"layout": LAYOUT})


def open_codes(path: Path, room: ContentRoom, table: Weighted, *, verify: bool) -> Coded:
    """Open a snapshot of boxes and lists of a table."""
    arrays = _opened(path, CODES_ROOM, "codes", verify=verify).arrays
    assert isinstance(room, CodesClauses), "codes are made by rooms that code clauses"
    return Coded.from_arrays(arrays, room.event_coder(arrays), table)


def _opened(path: Path, room: str, what: str, *, verify: bool) -> Snapshot:
    snapshot = open_snapshot(path, room, verify=verify)
    if snapshot.about.get("layout") != LAYOUT:
        raise SnapshotError(
            f"snapshot {path} has another layout of {what} than this Headgate reads: "
            "compile it again (headgate compile), or use the Headgate that wrote it"
        )
    return snapshot
