"""The frozen part of an index of boxes: their arrays and ids, and the methods that were asked for."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from headgate.core.ids import Ids
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.ranking.boxes.boxes import Boxes
from headgate.ranking.boxes.methods import THRESHOLD, chosen, combined_rows, ranker
from headgate.ranking.boxes.rows import bounds
from headgate.ranking.boxes.threshold import Threshold
from headgate.ranking.boxes.threshold_kernels import EXACT, SUM, Alive, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path as FilePath

    import numpy as np
    from numpy.typing import NDArray

    from headgate.core.event import Id
    from headgate.ranking.boxes.methods import Question, Ranker

ROOM = "boxes"
LAYOUT = 1
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""


class Base:
    """Boxes in the order of their ids, and the methods that were asked for. Dimensions are sorted by name."""

    def __init__(self, ids: Ids, dimensions: tuple[str, ...], boxes: Boxes) -> None:
        self.ids = ids
        self.dimensions = dimensions
        self.boxes = boxes
        self._bound: dict[int, NDArray[np.float64]] = {}
        self._rankers: dict[tuple[str, str], Ranker] = {}
        self._used: set[tuple[str, str]] = set()
        self._building = threading.RLock()

    @classmethod
    def open(cls, path: FilePath, *, verify: bool) -> Base:
        """Open a snapshot, memory-mapped; methods are built when they are asked for."""
        snapshot = open_snapshot(path, ROOM, verify=verify)
        if snapshot.about.get("layout") != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has another layout of boxes than this Headgate reads: compile it again"
            )
        boxes = Boxes(**{name: snapshot.arrays[name] for name in Boxes._fields})
        return cls(Ids.from_arrays(snapshot.arrays), tuple(snapshot.about["dimensions"]), boxes)

    def save(self, path: FilePath, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot; `source` says what it was built from."""
        counts = {"subscriptions": self.boxes.size, "intervals": len(self.boxes.dim)}
        about = {"layout": LAYOUT, "dimensions": self.dimensions, "source": dict(source or {})}
        arrays = {**self.boxes._asdict(), **self.ids.to_arrays()}
        write_snapshot(path, ROOM, arrays, counts=counts, about=about)

    @property
    def used(self) -> list[tuple[str, str]]:
        """List the methods that were asked, with their modes."""
        return sorted(self._used)

    def prepare(self, mode: str, method: str) -> Ranker:
        """Return the boxes as a method wants them; others wait while it is built."""
        found = self._rankers.get((mode, method))
        if found is None:
            with self._building:
                found = self._rankers.get((mode, method))
                if found is None:
                    found = ranker(self.boxes, len(self.dimensions), mode, method)
                    self._rankers[mode, method] = found
        return found

    def bound(self, how: int) -> NDArray[np.float64]:
        """Return what each box is worth at most."""
        kind = EXACT if how == EXACT else SUM
        found = self._bound.get(kind)
        if found is None:
            found = self._bound[kind] = bounds(self.boxes, kind)
        return found

    def find(self, identity: Id) -> int:
        """Find the row of an id, -1 for none."""
        return self.ids.find(identity)

    def top(self, question: Question, dimensions: Sequence[str], k: int, method: str, alive: Alive) -> Rows:
        """Find the best k."""
        asked, combine = question.ask(self.dimensions), question.function(self.dimensions, dimensions)
        method = chosen(self.boxes, len(self.dimensions), question, method)
        if combine is None or method.startswith(THRESHOLD):
            self._used.add((question.mode, method))
            found = self.prepare(question.mode, method)
            if combine is None:
                return found.top(asked, k, question.how, alive)
            assert isinstance(found, Threshold)
            return found.top_any(asked, k, combine, alive)
        every = combined_rows(self.boxes, self.bound(SUM), asked, combine, alive, self.boxes.size)
        return Rows(every.value[:k], every.row[:k])
