"""Boxes that change: a frozen base, a tail of what came later, and the moments at which rows went.

    insert                    appends to the tail
    delete                    notes the moment at which a row of the base or the tail went
    new score or weights      both in one: the row goes, and comes back at the end of the tail
    compaction                makes one base of what is left of both

Every change is a moment, counted from 0. A reader takes one `View` and keeps to it: it sees the rows of
the tail that it counts, and of all rows those that went after its moment. So nothing is copied for a change,
and a box that is moved is never seen twice, nor missed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.core.ids import Ids
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import SnapshotError
from headgate.ranking.boxes.boxes import Boxes, joined, renumbered, take
from headgate.ranking.boxes.methods import THRESHOLD, best_of, chosen, combined_rows, matching, ranker
from headgate.ranking.boxes.rows import bounds
from headgate.ranking.boxes.threshold import Threshold
from headgate.ranking.boxes.threshold_kernels import EXACT, SUM, Alive, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path as FilePath

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


NEVER = np.iinfo(np.int32).max
_NONE = Boxes(np.zeros(1, np.int64), np.zeros(0, np.int32), *(np.zeros(0) for _ in range(4)))


class Tail(NamedTuple):
    """The tail: boxes with room for more behind them, the sums of their weights, and when they went."""

    boxes: Boxes
    sums: NDArray[np.float64]
    gone: NDArray[np.int32]


def grown(boxes: Boxes, sums: NDArray[np.float64], gone: NDArray[np.int32], rows: int, entries: int) -> Tail:
    """Copy a tail, with room for so many more rows and entries."""
    return Tail(
        Boxes(
            _longer(boxes.start, rows, 0),
            _longer(boxes.dim, entries, 0),
            _longer(boxes.low, entries, 0),
            _longer(boxes.high, entries, 0),
            _longer(boxes.weight, entries, 0),
            _longer(boxes.score, rows, 0),
        ),
        _longer(sums, rows, 0),
        _longer(gone, rows, NEVER),
    )


def _longer(column: NDArray[Any], more: int, filling: int) -> NDArray[Any]:
    return np.concatenate([column, np.full(more, filling, column.dtype)])


class View(NamedTuple):
    """What a reader sees: the base, the first `late_size` rows of the tail, less what went by the moment."""

    base: Base
    gone: NDArray[np.int32]
    tail: Tail
    ids: list[Id]
    late_size: int
    moment: int
    dimensions: tuple[str, ...]

    @property
    def alive(self) -> Alive:
        """Return which rows of the base are there."""
        return Alive(self.gone, self.moment)

    @property
    def alive_tail(self) -> Alive:
        """Return which rows of the tail are there."""
        return Alive(self.tail.gone, self.moment)

    @property
    def late(self) -> Boxes:
        """Return the boxes of the tail, without the room behind them."""
        boxes, end = self.tail.boxes, self.tail.boxes.start[self.late_size]
        return Boxes(
            boxes.start[: self.late_size + 1],
            boxes.dim[:end],
            boxes.low[:end],
            boxes.high[:end],
            boxes.weight[:end],
            boxes.score[: self.late_size],
        )

    def top(self, question: Question, k: int, method: str) -> list[tuple[float, Id]]:
        """List the best k as values and ids, the best first, equal ones by id."""
        found = self.base.top(question, self.dimensions, k, method, self.alive)
        ids = self.base.ids
        best = [
            (value, ids[row]) for value, row in zip(found.value.tolist(), found.row.tolist(), strict=True)
        ]
        if not self.late_size:
            return best
        floor = best[-1][0] if len(best) == k else -np.inf
        return in_order([*best, *self.of_tail(question, floor, k)])[:k]

    def of_base(self, question: Question, floor: float) -> Rows:
        """List all rows of the base that are worth `floor` or more."""
        base = self.base
        asked, combine = question.ask(base.dimensions), question.function(base.dimensions, self.dimensions)
        how, count = question.how, base.boxes.size
        return matching(base.boxes, base.bound(how), asked, how, combine, floor, self.alive, count)

    def of_tail(self, question: Question, floor: float, k: int | None = None) -> list[tuple[float, Id]]:
        """List what of the tail is worth `floor` or more; with `k`, at least all that may be among it."""
        asked, combine = question.ask(self.dimensions), question.function(self.dimensions, self.dimensions)
        boxes, how = self.tail.boxes, question.how
        bound = boxes.score if how == EXACT else self.tail.sums
        found = matching(boxes, bound, asked, how, combine, floor, self.alive_tail, self.late_size)
        if k is not None and len(found.value) > k:
            # Rows of the tail are not in the order of ids: all that tie with the k-th may be among the best.
            found = best_of(found, found.value[k - 1])
        return [
            (value, self.ids[row])
            for value, row in zip(found.value.tolist(), found.row.tolist(), strict=True)
        ]

    def left(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """List the rows of the base and of the tail that are there."""
        kept = np.arange(self.base.boxes.size)
        if len(self.gone):
            kept = kept[self.gone > self.moment]
        return kept, np.flatnonzero(self.tail.gone[: self.late_size] > self.moment)


def in_order(best: list[tuple[float, Id]]) -> list[tuple[float, Id]]:
    """Sort values and ids: the highest value first, equal ones by id."""
    return sorted(best, key=lambda one: (-one[0], one[1]))


def fresh(base: Base) -> View:
    """Return a view of a base, with no tail and nothing gone."""
    tail = Tail(_NONE, np.zeros(0), np.zeros(0, np.int32))
    return View(base, np.zeros(0, np.int32), tail, [], 0, 0, base.dimensions)


def widened(view: View, names: Iterable[str]) -> View:
    """Return the same with more dimensions; theirs is the order of names, so others change their numbers."""
    dimensions = tuple(sorted({*view.dimensions, *names}))
    if dimensions == view.dimensions:
        return view
    late, count = renumbered(view.late, view.dimensions, dimensions), view.late_size
    tail = grown(late, view.tail.sums[:count], view.tail.gone[:count], 0, 0)
    return view._replace(tail=tail, dimensions=dimensions)


def changed(view: View, old: int | None, new: tuple[Id, Boxes] | None) -> View:
    """Let a row go, let one come, or both. Writer only; nothing is seen of it before the view is published.

    Rows of the tail are numbered behind those of the base. A new one has the numbers of its dimensions.
    """
    moment, base = view.moment + 1, view.base.boxes.size
    view = view._replace(moment=moment)
    if new is not None:
        view = _appended(view, *new)
    if old is not None and old >= base:
        view.tail.gone[old - base] = moment
    elif old is not None:
        if not len(view.gone):
            view = view._replace(gone=np.full(base, NEVER, np.int32))
        view.gone[old] = moment
    return view


def _appended(view: View, identity: Id, box: Boxes) -> View:
    count, more = view.late_size, len(box.dim)
    end = int(view.tail.boxes.start[count])
    tail = view.tail
    if count == tail.boxes.size or end + more > len(tail.boxes.dim):
        tail = grown(view.late, tail.sums[:count], tail.gone[:count], max(64, count), max(256, end) + more)
    boxes = tail.boxes
    for name in ("dim", "low", "high", "weight"):
        getattr(boxes, name)[end : end + more] = getattr(box, name)
    boxes.start[count + 1] = end + more
    boxes.score[count], tail.sums[count], tail.gone[count] = box.score[0], bounds(box, SUM)[0], NEVER
    # What a change that failed has left.
    del view.ids[count:]
    view.ids.append(identity)
    return view._replace(tail=tail, late_size=count + 1)


def compacted(view: View) -> Base:
    """Make one base of all that is left, with the methods that the old one had."""
    kept, late = view.left()
    base, new = view.base, [view.ids[row] for row in late.tolist()]
    old = renumbered(base.boxes, base.dimensions, view.dimensions)
    numbered = base.ids.numbered if len(base.ids) else bool(new) and isinstance(new[0], int)
    order = _merged(base.ids, kept, new)
    kind = pa.int64() if numbered else pa.large_string()
    ids = pa.concat_arrays([base.ids.to_arrow().cast(kind).take(kept), pa.array(new, kind)])
    boxes = take(joined(take(old, kept), take(view.late, late)), order)
    made = Base(Ids.from_arrow(ids.take(order)), view.dimensions, boxes)
    for mode, method in base.used:
        made.prepare(mode, method)
    return made


def _merged(ids: Ids, kept: NDArray[np.int64], new: list[Id]) -> NDArray[np.int64]:
    """Sort some of the ids and new ones behind them: returns their places in rising order of ids."""
    order = sorted(range(len(new)), key=new.__getitem__)
    before = ids.places([new[place] for place in order]) if len(ids) else np.zeros(len(new), np.int64)
    # An id goes before the first old one that is not below it; new ones are in order among themselves.
    keys = np.concatenate([2 * kept + 1, 2 * before])
    behind = np.concatenate([np.arange(len(kept)), len(kept) + np.array(order, np.int64)])
    return behind[np.argsort(keys, kind="stable")]
