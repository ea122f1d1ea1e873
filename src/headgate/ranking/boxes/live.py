"""Boxes that change: a frozen base, a tail of what came later, and the rows that are gone.

insert                    appends to the tail
delete                    lets a row of the base or the tail be gone
new score or weights      both in one: the row goes, and comes back at the end of the tail
compaction                makes one base of what is left of both
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.columns import Growing
from headgate.core.ids import Ids
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.ranking.answers import RankedRows
from headgate.ranking.boxes.boxes import Boxes, joined, places, renumbered, take
from headgate.ranking.boxes.methods import THRESHOLD, chosen, combined_rows, matching, ranker
from headgate.ranking.boxes.rows import bounds
from headgate.ranking.boxes.threshold import Threshold
from headgate.ranking.boxes.threshold_kernels import EXACT, SUM
from headgate.ranking.rows import RowIds, best

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path as FilePath

    from numpy.typing import NDArray

    from headgate.core.arrays import Floats64
    from headgate.core.event import Id
    from headgate.ranking.boxes.methods import Question, Ranker
    from headgate.ranking.boxes.threshold_kernels import Flags


ROOM = "boxes"
LAYOUT = 1
"""The layout of the arrays in a snapshot; one that was written with another must be compiled again."""


class Base:
    """Boxes in the order of their ids, and the methods that were asked for. Dimensions are sorted by name."""

    def __init__(self, ids: Ids, dimensions: tuple[str, ...], boxes: Boxes) -> None:
        self.ids = ids
        self.dimensions = dimensions
        self.boxes = boxes
        self._bound: dict[int, Floats64] = {}
        self._rankers: dict[tuple[str, str], Ranker] = {}
        self._used: set[tuple[str, str]] = set()
        self._building = threading.RLock()

    @classmethod
    def open(cls, path: FilePath, *, verify: bool) -> Base:
        """Open a snapshot, memory-mapped; methods are built when they are asked for."""
        snapshot = open_snapshot(path, ROOM, verify=verify)
        if snapshot.about.get("layout") != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has another layout of boxes than this Headgate reads: "
                "write it again, or use the Headgate that wrote it"
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
        prepared = self._rankers.get((mode, method))
        if prepared is None:
            with self._building:
                prepared = self._rankers.get((mode, method))
                if prepared is None:
                    prepared = ranker(self.boxes, len(self.dimensions), mode, method)
                    self._rankers[mode, method] = prepared
        return prepared

    def bound(self, how: int) -> Floats64:
        """Return what each box is worth at most."""
        kind = EXACT if how == EXACT else SUM
        bound = self._bound.get(kind)
        if bound is None:
            bound = self._bound[kind] = bounds(self.boxes, kind)
        return bound

    def top(
        self, question: Question, dimensions: Sequence[str], k: int, method: str, gone: Flags
    ) -> RankedRows:
        """Find the best k."""
        asked, combine = question.ask(self.dimensions), question.function(self.dimensions, dimensions)
        method = chosen(self.boxes, len(self.dimensions), question, method)
        if combine is None or method.startswith(THRESHOLD):
            self._used.add((question.mode, method))
            laid_out = self.prepare(question.mode, method)
            if combine is None:
                return laid_out.top(asked, k, question.how, gone)
            assert isinstance(laid_out, Threshold)
            return laid_out.top_any(asked, k, combine, gone)
        every = combined_rows(self.boxes, self.bound(SUM), asked, combine, gone)
        return RankedRows(every.rows[:k], every.values[:k])


class Tail(NamedTuple):
    """The boxes that came since, with the sums of their weights; theirs are all dimensions that there are.

    It is replaced as a whole: loops over it must not see half of a change.
    """

    dimensions: tuple[str, ...]
    boxes: Boxes
    sums: Floats64


class BoxState:
    """Boxes as they are; whoever holds it sees to it that no answer is given that a change came into."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.rows = RowIds(base.ids)
        self.changes = 0
        self._columns = [Growing(np.int64), Growing(np.int32), *(Growing(np.float64) for _ in range(4))]
        self._columns[0].append(0)
        self._sums = Growing(np.float64)
        self._publish(base.dimensions)

    def _publish(self, dimensions: tuple[str, ...]) -> None:
        self.tail = Tail(dimensions, Boxes(*(column.used for column in self._columns)), self._sums.used)

    def box(self, row: int) -> Boxes:
        """Return the box of a row, with the numbers of all dimensions."""
        base, tail = self.base, self.tail
        if row >= base.boxes.size:
            return take(tail.boxes, np.array([row - base.boxes.size]))
        return renumbered(take(base.boxes, np.array([row])), base.dimensions, tail.dimensions)

    # Asking

    def top(self, question: Question, k: int, method: str) -> RankedRows:
        """Find the best k, equal ones by id."""
        tail = self.tail
        if not k:
            return RankedRows(np.zeros(0, np.int64), np.zeros(0))
        ranked = self.base.top(question, tail.dimensions, k, method, self._gone[: self.base.boxes.size])
        if not tail.boxes.size:
            return ranked
        floor = ranked.values[-1] if len(ranked.values) == k else -np.inf
        return best(ranked.with_(self._of_tail(question, tail, floor)), k, self.rows)

    def at_least(self, question: Question, floor: float) -> RankedRows:
        """List all rows that are worth `floor` or more."""
        base, tail, how = self.base, self.tail, question.how
        asked, combine = question.ask(base.dimensions), question.function(base.dimensions, tail.dimensions)
        gone = self._gone[: base.boxes.size]
        of_base = matching(base.boxes, base.bound(how), asked, how, combine, floor, gone)
        return of_base.with_(self._of_tail(question, tail, floor))

    def _of_tail(self, question: Question, tail: Tail, floor: float) -> RankedRows:
        asked, combine = question.ask(tail.dimensions), question.function(tail.dimensions, tail.dimensions)
        how, first = question.how, self.base.boxes.size
        bound = tail.boxes.score if how == EXACT else tail.sums
        late = matching(tail.boxes, bound, asked, how, combine, floor, self._gone[first:])
        return RankedRows(late.rows + first, late.values)

    @property
    def _gone(self) -> Flags:
        """Mark the rows that are gone; nothing, if nothing changed."""
        return self.rows.gone.view(np.uint8) if self.rows.changed else _NOBODY

    # Changing

    def add(self, identity: Id, box: Boxes) -> None:
        """Append a box, with the numbers of all dimensions."""
        self.rows.add(identity)
        columns: tuple[NDArray[Any], ...] = box[1:]
        for column, more in zip(self._columns[1:], columns, strict=True):
            column.extend(more)
        self._columns[0].append(self._columns[1].size)
        self._sums.append(bounds(box, SUM)[0])
        self._publish(self.tail.dimensions)

    def widen(self, names: Iterable[str]) -> None:
        """Have more dimensions; theirs is the order of names, so others change their numbers."""
        old = self.tail.dimensions
        dimensions = tuple(sorted({*old, *names}))
        if dimensions != old:
            numbers = places(old, dimensions)[self._columns[1].used]
            self._columns[1] = Growing(np.int32)
            self._columns[1].extend(numbers)
            self._publish(dimensions)

    def folded(self) -> BoxState:
        """Return a state with one base of all that is left, and the methods that the old one had."""
        rows, kept = self.rows.folded()
        base, tail = self.base, self.tail
        old = renumbered(base.boxes, base.dimensions, tail.dimensions)
        made = Base(rows.base, tail.dimensions, take(joined(old, tail.boxes), kept))
        for mode, method in base.used:
            made.prepare(mode, method)
        return BoxState(made)


_NOBODY = np.zeros(0, np.uint8)
