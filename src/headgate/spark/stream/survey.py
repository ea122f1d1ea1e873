"""What the parts of a batch tell the driver, put together: counts, ids, and ids that two parts have."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.spark.stream import rows as told
from headgate.spark.stream.rows import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import Row

ORIGINS = 1000
"""How many origins are named in a batch's record, at most."""


class Survey(NamedTuple):
    """All parts of a batch."""

    rows: Sequence[Row]

    @property
    def counts(self) -> dict[str, int]:
        """Count events, matches, and each kind of dead letters."""
        found = {name: sum(row[name] for row in self.rows) for name in (told.EVENTS, told.MATCHES)}
        dead = np.array([row["dead"] for row in self.rows], np.int64).reshape(-1, len(KINDS)).sum(axis=0)
        return found | dict(zip(KINDS, dead.tolist(), strict=True))

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """Return the hashes of the ids of all events that were matched."""
        return np.frombuffer(b"".join(bytes(row[told.HASHES]) for row in self.rows), np.uint64)

    @property
    def newest(self) -> int | None:
        """Return the greatest time of an event, in microseconds."""
        return max((row[told.NEWEST] for row in self.rows if row[told.NEWEST] is not None), default=None)

    def files(self, column: str) -> list[str]:
        """List the files that tasks have staged."""
        return [row[column] for row in self.rows if row[column] is not None]

    @property
    def origins(self) -> list[str]:
        """Name where events came from, each once, the first of them."""
        named = dict.fromkeys(origin["name"] for row in self.rows for origin in row[told.ORIGINS])
        return list(named)[:ORIGINS]

    @property
    def arrivals(self) -> list[tuple[float, int]]:
        """List when events arrived, and how many each time."""
        return [
            (origin[told.ARRIVED], origin["events"])
            for row in self.rows
            for origin in row[told.ORIGINS]
            if origin[told.ARRIVED] is not None
        ]

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
            marks = np.frombuffer(bytes(row[told.HASHES]), np.uint64).tolist()
            names = [each["name"] for each in row[told.ORIGINS] for _ in range(each["events"])]
            for mark, name in zip(marks, names, strict=True):
                mine = (name if by_name else "", int(row[told.PART]))
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
