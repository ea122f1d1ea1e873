"""What workers write: matches, dead letters, and what they tell the driver of a part, put together."""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.protocol import EVENT_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Words
    from headgate.engine.question import Question


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

EVENTS, MATCHES, READING, MATCHING = "events", "matches", "reading", "matching"
NAMED = 1000
"""How many origins are named in a batch's record, at most."""


def match_schema(question: Question, *, numbered: bool) -> pa.Schema:
    """Return the columns of a match; ids of events are text whatever they were."""
    return pa.schema({EVENT_ID: pa.string(), **question.columns(numbered=numbered)})


@dataclass
class Origin:
    """A file or a message, how many events it had, and when it arrived."""

    name: str
    events: int
    arrived: float | None


@dataclass
class PartReport:
    """What a worker tells of a part of a batch."""

    part: int
    file: str | None = None
    """The file of matches that was staged."""
    dead_file: str | None = None
    matches: int = 0
    dead: Counter[str] = field(default_factory=Counter)
    """How many dead letters there are of each kind."""
    newest: int | None = None
    """The greatest time of an event, in microseconds."""
    hashes: array[int] = field(default_factory=lambda: array("Q"))
    """The hashes of the ids of all events that were matched."""
    origins: list[Origin] = field(default_factory=list)
    reading: float = 0.0
    matching: float = 0.0
    statistics: bytes | None = None


class Survey(NamedTuple):
    """All parts of a batch."""

    parts: Sequence[PartReport]

    @property
    def counts(self) -> dict[str, int]:
        """Count events, matches, and each kind of dead letters."""
        counts = {EVENTS: len(self.hashes), MATCHES: sum(part.matches for part in self.parts)}
        return counts | {kind: sum(part.dead[kind] for part in self.parts) for kind in KINDS}

    @property
    def hashes(self) -> Words:
        """Return the hashes of the ids of all events that were matched."""
        return np.frombuffer(b"".join(part.hashes for part in self.parts), np.uint64)

    @property
    def newest(self) -> int | None:
        """Return the greatest time of an event, in microseconds."""
        return max((part.newest for part in self.parts if part.newest is not None), default=None)

    @property
    def files(self) -> list[str]:
        """List the files of matches that tasks have staged."""
        return [part.file for part in self.parts if part.file is not None]

    @property
    def dead_files(self) -> list[str]:
        """List those of dead letters."""
        return [part.dead_file for part in self.parts if part.dead_file is not None]

    @property
    def origins(self) -> list[str]:
        """Name where events came from, each once, the first of them."""
        return list(dict.fromkeys(origin.name for part in self.parts for origin in part.origins))[:NAMED]

    @property
    def arrivals(self) -> list[tuple[float, int]]:
        """List when events arrived, and how many each time."""
        origins = (origin for part in self.parts for origin in part.origins)
        return [(origin.arrived, origin.events) for origin in origins if origin.arrived is not None]

    @property
    def statistics(self) -> list[bytes]:
        """List what parts have counted, if they have."""
        return [part.statistics for part in self.parts if part.statistics is not None]

    @property
    def seconds(self) -> dict[str, float]:
        """Sum up how long tasks took for their steps."""
        return {
            READING: sum(part.reading for part in self.parts),
            MATCHING: sum(part.matching for part in self.parts),
        }

    def repeated(self, *, by_name: bool) -> dict[int, frozenset[int]]:
        """Find the hashes that two parts have: by part, those that it has to leave to another.

        The first counts. Files have an order by name, whatever part Spark puts them in; messages by part.
        """
        hashes = self.hashes
        if len(np.unique(hashes)) == len(hashes):
            return {}
        kept: dict[int, tuple[str, int]] = {}
        struck: dict[int, set[int]] = {}
        for part in self.parts:
            names = [origin.name for origin in part.origins for _ in range(origin.events)]
            for mark, name in zip(part.hashes, names, strict=True):
                mine = (name if by_name else "", part.part)
                other = kept.get(mark, mine)
                kept[mark] = min(mine, other)
                if mine != other:
                    struck.setdefault(max(mine, other)[1], set()).add(mark)
        return {part: frozenset(marks) for part, marks in struck.items()}

    def has_once(self, marks: Iterable[int]) -> bool:
        """Tell whether no event is there twice, and each of some once."""
        hashes = self.hashes
        marks_seen = set(hashes.tolist())
        return len(marks_seen) == len(hashes) and marks_seen.issuperset(marks)
