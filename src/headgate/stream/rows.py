"""What workers write: matches, dead letters, and what they tell the driver of a part, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID, SUBSCRIPTION_ID
from headgate.contents.results import RESULT_COLUMNS
from headgate.runtime.questions import RANK, SCORE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.runtime.questions import Top


MALFORMED, LATE, DUPLICATE, UNKNOWN, LEFT_OUT = KINDS = (
    "malformed", "late", "duplicate", "unknown-source", "left-out",
)  # fmt: skip
"""Why an event is a dead letter; the last is matched, but for one filter that is too expensive for it."""

_DEAD: dict[str, pa.DataType] = {
    "row": pa.string(),
    "reason": pa.string(),
    "kind": pa.string(),
    "origin": pa.string(),
    "batch": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "subscription": pa.string(),
}
DEAD = pa.schema(_DEAD)

PART, FILE, DEAD_FILE, HASHES, ORIGINS = "part", "file", "dead_file", "hashes", "origins"
STATISTICS = "statistics"
EVENTS, MATCHES, NEWEST, ARRIVED, READING, MATCHING = (
    "events", "matches", "newest", "arrived", "reading", "matching",
)  # fmt: skip
_ORIGIN: list[tuple[str, pa.DataType]] = [
    ("name", pa.string()),
    ("events", pa.int64()),
    (ARRIVED, pa.float64()),
]
_SUMMARY: dict[str, pa.DataType] = {
    PART: pa.int32(),
    FILE: pa.string(),
    DEAD_FILE: pa.string(),
    EVENTS: pa.int64(),
    MATCHES: pa.int64(),
    "dead": pa.list_(pa.int64()),
    NEWEST: pa.int64(),
    HASHES: pa.binary(),
    ORIGINS: pa.list_(pa.struct(_ORIGIN)),
    READING: pa.float64(),
    MATCHING: pa.float64(),
    STATISTICS: pa.binary(),
}
SUMMARY = pa.schema(_SUMMARY)

NAMED = 1000
"""How many origins are named in a batch's record, at most."""


def match_schema(*, numbered: bool, top: Top | None, results: int | None = None) -> pa.Schema:
    """Return the columns of a match; ids of events are text whatever they were."""
    named: pa.DataType = pa.int64() if numbered else pa.string()
    found: dict[str, pa.DataType] = {EVENT_ID: pa.string(), SUBSCRIPTION_ID: named}
    if top is not None:
        found |= {SCORE: pa.float64(), RANK: pa.int32()}
    if results is not None:
        found |= RESULT_COLUMNS
    return pa.schema(found)


class Survey(NamedTuple):
    """All parts of a batch."""

    rows: Sequence[Mapping[str, Any]]

    @property
    def counts(self) -> dict[str, int]:
        """Count events, matches, and each kind of dead letters."""
        found = {name: sum(row[name] for row in self.rows) for name in (EVENTS, MATCHES)}
        dead = np.array([row["dead"] for row in self.rows], np.int64).reshape(-1, len(KINDS)).sum(axis=0)
        return found | dict(zip(KINDS, dead.tolist(), strict=True))

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """Return the hashes of the ids of all events that were matched."""
        return np.frombuffer(b"".join(bytes(row[HASHES]) for row in self.rows), np.uint64)

    @property
    def newest(self) -> int | None:
        """Return the greatest time of an event, in microseconds."""
        return max((row[NEWEST] for row in self.rows if row[NEWEST] is not None), default=None)

    def files(self, column: str) -> list[str]:
        """List the files that tasks have staged."""
        return [row[column] for row in self.rows if row[column] is not None]

    @property
    def origins(self) -> list[str]:
        """Name where events came from, each once, the first of them."""
        named = dict.fromkeys(origin["name"] for row in self.rows for origin in row[ORIGINS])
        return list(named)[:NAMED]

    @property
    def arrivals(self) -> list[tuple[float, int]]:
        """List when events arrived, and how many each time."""
        return [
            (origin[ARRIVED], origin["events"])
            for row in self.rows
            for origin in row[ORIGINS]
            if origin[ARRIVED] is not None
        ]

    @property
    def statistics(self) -> list[bytes]:
        """List what parts have counted, if they have."""
        return [bytes(row[STATISTICS]) for row in self.rows if row[STATISTICS] is not None]

    def seconds(self, column: str) -> float:
        """Sum up how long tasks took for a step."""
        return float(sum(row[column] for row in self.rows))

    def repeated(self, *, by_name: bool) -> dict[int, frozenset[int]]:
        """Find the hashes that two parts have: by part, those that it has to leave to another.

        The first counts. Files have an order by name, whatever part Spark puts them in; messages by part.
        """
        hashes = self.hashes
        if len(np.unique(hashes)) == len(hashes):
            return {}
        kept: dict[int, tuple[str, int]] = {}
        struck: dict[int, set[int]] = {}
        for row in self.rows:
            marks = np.frombuffer(bytes(row[HASHES]), np.uint64).tolist()
            names = [each["name"] for each in row[ORIGINS] for _ in range(each["events"])]
            for mark, name in zip(marks, names, strict=True):
                mine = (name if by_name else "", int(row[PART]))
                other = kept.get(mark, mine)
                kept[mark] = min(mine, other)
                if mine != other:
                    struck.setdefault(max(mine, other)[1], set()).add(mark)
        return {part: frozenset(marks) for part, marks in struck.items()}

    def has_once(self, marks: Iterable[int]) -> bool:
        """Tell whether no event is there twice, and each of some once."""
        hashes = self.hashes
        found = set(hashes.tolist())
        return len(found) == len(hashes) and found.issuperset(marks)
