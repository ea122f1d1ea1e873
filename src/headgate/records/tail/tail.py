"""The part of a live index that grows: filters that can be matched as soon as they are added.

One thread adds, any number of threads match, without locks: arrays are only appended to, an array that is
full is copied into a larger one, and a view of them is published last, as one reference. What a view counts
never changes again, so a reader that holds one sees exactly the filters of its moment.

A filter is found through a *cover*: points one of which an event must have for the filter to hold. Of an AND
that is the cover of one operand, of an OR those of both; a filter that has none is a candidate for every
event. Nothing is ever taken out: who owns the tail says which filters are removed, and makes an index from
`programs` in time.
"""

from __future__ import annotations

import threading
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.growing import Growing
from headgate.core.interning import TextPool
from headgate.records.index.arrays import Scratch
from headgate.records.programs.leaves import Facet
from headgate.records.programs.programs import Programs, take
from headgate.records.tail.arrays import TailArrays
from headgate.records.tail.code import NO_GUARD, Coder
from headgate.records.tail.events import encode_columns, encode_one, within
from headgate.records.tail.kernels import match_tail, read_back

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.events.columns import Column
    from headgate.records.programs.tokens import Program
    from headgate.records.tail.arrays import TailEvents
    from headgate.records.tail.code import Point
    from headgate.records.tail.events import Sides

_BUCKETS = 1 << 12


class TailView(NamedTuple):
    """The filters of one moment."""

    arrays: TailArrays
    sides: Sides
    named: int

    @property
    def filters(self) -> int:
        """Count the filters."""
        return self.arrays.filters

    @property
    def attributes(self) -> list[Path]:
        """List the attributes that filters look at."""
        # Making the list is one step, so no attribute can come in between.
        return list(self.sides.of)[: self.named]

    @property
    def compared(self) -> list[Path]:
        """List the attributes that filters look into, beyond whether they are there or arrays."""
        width = self.arrays.width
        plain = (Facet.PRESENT, Facet.ARRAY)
        found = []
        for path in self.attributes:
            side = self.sides.of[path]
            inside = any(facet not in plain for _, facet in within(side.values, width))
            if inside or any(True for _ in within(side.elements, width)):
                found.append(path)
        return found


class Tail:
    """Filters by position: 0, 1, 2, … in the order in which they are added.

    >>> from headgate.records.language.parse import parse_filter
    >>> from headgate.records.programs.program import compile_program
    >>> from headgate.records.language.rewrite import normalise
    >>> tail = Tail()
    >>> tail.add(compile_program(normalise(parse_filter("age > 30 AND topic = 'news'"))))
    0
    >>> event = {("age",): 35, ("topic",): "news"}
    >>> tail.match_one(tail.view(), event, np.zeros(1, np.uint8)).tolist()
    [0]
    """

    def __init__(self, mark: str = "") -> None:
        self.mark = mark
        """What names mean, see `core/values.py`."""
        self._coder = Coder()
        self._code = Growing(np.int64)
        self._at = Growing(np.int64)
        self._at.append(0)
        self._entries = Growing(np.int64)
        self._heads = np.full(_BUCKETS, -1, np.int32)
        # Of each chain the last entry and their number; readers do not need them.
        self._last = array("i", [-1]) * _BUCKETS
        self._sizes = array("i", [0]) * _BUCKETS
        self._scan = Growing(np.int64)
        self._probes = Growing(np.int32)
        self._probed: set[int] = set()
        self._local = threading.local()
        self._unfinished = False
        self._view = self._look(0)

    def __len__(self) -> int:
        """Count the filters."""
        return self._view.arrays.filters

    def view(self) -> TailView:
        """Return the filters of this moment."""
        return self._view

    def add(self, program: Program) -> int:
        """Add a filter and return its position; for one thread only."""
        number = self._view.arrays.filters
        if self._unfinished:
            self._restore()
        words, cover = self._coder.translate(program, self._sizes)
        self._unfinished = True
        self._code.extend(words)
        self._at.append(self._code.size)
        points = cover.points
        inside = {column for column, _ in points} if points else ()
        _, column, low, high = min(
            [guard for guard in cover.guards if guard[1] not in inside], default=NO_GUARD
        )
        guard = [column << 32 | number, low, high]
        if points is None:
            self._scan.extend(guard)
        else:
            self._post(points, guard)
        self._view = self._look(number + 1)
        self._unfinished = False
        return number

    def _restore(self) -> None:
        """Forget what was left of an `add` that failed: all that the view does not count."""
        arrays = self._view.arrays
        self._at.size = arrays.filters + 1
        self._code.size = int(self._at.array[arrays.filters])
        self._scan.size = 3 * arrays.scanned
        self._probes.size = arrays.probed
        self._probed = set(arrays.probes[: arrays.probed].tolist())
        self._entries.size = 5 * arrays.posted
        self._spread(len(self._heads))

    def _look(self, count: int) -> TailView:
        coder = self._coder
        arrays = TailArrays(
            self._code.array,
            self._at.array,
            self._heads,
            self._entries.array,
            self._scan.array,
            self._probes.array,
            coder.columns.array,
            coder.text_ends.array,
            coder.text_data.array,
            coder.globs.array,
            count,
            self._entries.size // 5,
            self._scan.size // 3,
            self._probes.size,
            coder.sides.width,
            coder.text_ends.size - 1,
        )
        return TailView(arrays, coder.sides, len(coder.sides.of))

    def _post(self, points: dict[Point, None], guard: list[int]) -> None:
        """Append entries to the ends of their chains, where readers of older views stop before them."""
        entry = self._entries.size // 5
        if entry + len(points) > len(self._heads):
            self._spread(4 * len(self._heads))
        self._entries.reserve(5 * len(points))
        heads, entries, last, sizes = self._heads, self._entries.array, self._last, self._sizes
        self._entries.extend([word for _, code in points for word in (code, *guard, -1)])
        for column, code in points:
            if column not in self._probed:
                self._probed.add(column)
                self._probes.append(column)
            bucket = code & len(heads) - 1
            if sizes[bucket]:
                entries[5 * last[bucket] + 4] = entry
            else:
                heads[bucket] = entry
            last[bucket] = entry
            sizes[bucket] += 1
            entry += 1

    def _spread(self, buckets: int) -> None:
        """Lay the chains out anew, in arrays that readers do not have yet."""
        entries = Growing(np.int64)
        entries.reserve(len(self._entries.array))
        entries.extend(self._entries.array[: self._entries.size])
        table = entries.array[: entries.size].reshape(-1, 5)
        bucket = table[:, 0] & buckets - 1
        order = np.argsort(bucket, kind="stable").astype(np.int32)
        ordered = bucket[order]
        alike = ordered[1:] == ordered[:-1]
        table[:, 4] = -1
        table[order[:-1][alike], 4] = order[1:][alike]
        heads, last = np.full(buckets, -1, np.int32), np.full(buckets, -1, np.int32)
        # Backwards, so that the first of each chain is written last and stays.
        heads[ordered[::-1]] = order[::-1]
        last[ordered] = order
        sizes = np.bincount(bucket, minlength=buckets).astype(np.int32)
        self._heads, self._entries = heads, entries
        self._last, self._sizes = array("i", last.tobytes()), array("i", sizes.tobytes())

    def match_columns(
        self, view: TailView, columns: Callable[[Path], Column], count: int, removed: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Match a batch; returns how many filters hold for each event, and these, rising within an event.

        `columns` is asked for each of the view's attributes; removed[p] says that position p is passed over.
        """
        if not view.filters:
            return np.zeros(count, np.int64), np.zeros(0, np.int32)
        events = encode_columns(view.sides, view.arrays.width, view.attributes, columns, count)
        return self._match(view, events, count, removed)

    def match_one(
        self, view: TailView, attributes: Mapping[Path, object], removed: NDArray[np.uint8]
    ) -> NDArray[np.int32]:
        """Match one event; returns the positions of the filters that hold, rising."""
        if not view.filters:
            return np.zeros(0, np.int32)
        return self._match(view, encode_one(view.sides, view.arrays.width, attributes), 1, removed)[1]

    def _match(
        self, view: TailView, events: TailEvents, count: int, removed: NDArray[np.uint8]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        assert len(removed) >= view.filters
        scratch = self._scratch(view)
        counts = np.zeros(count, np.int64)
        parts: list[NDArray[np.int32]] = []
        done = 0
        while done < count:
            stamp = scratch.stamps(count) - done
            reached = match_tail(
                view.arrays, events, done, count, scratch.seen, stamp, removed, scratch.out, counts
            )
            if reached == done:
                scratch.grow()
                continue
            parts.append(scratch.out[: counts[done:reached].sum()].copy())
            done = reached
        return counts, parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.int32), *parts])

    def _scratch(self, view: TailView) -> Scratch:
        """Return this thread's scratch space, with room for as many filters as the view's arrays."""
        found: Scratch | None = getattr(self._local, "scratch", None)
        if found is None or len(found.seen) < view.filters:
            found = self._local.scratch = Scratch(len(view.arrays.at))
        return found

    def programs(self, keep: NDArray[np.bool_]) -> Programs:
        """Return the kept ones of the first `len(keep)` filters, in columns; any thread may ask."""
        view = self._view
        arrays, filters = view.arrays, len(keep)
        assert filters <= view.filters
        tokens, leaves, ranges, globs = _read_back(arrays, filters, 0, 0, 0, 0)[0]
        found = _read_back(arrays, filters, tokens, leaves, ranges, globs)[1]
        offsets = arrays.text_offsets[: arrays.texts + 1].copy()
        texts = TextPool(offsets, arrays.text_data[: offsets[-1]].copy())
        columns: dict[str, Any] = dict(zip(Programs._fields, found, strict=False))
        programs = Programs(**columns, texts=texts, attributes=tuple(view.attributes))
        return take(programs, np.flatnonzero(keep))


def _read_back(
    arrays: TailArrays, filters: int, tokens: int, leaves: int, ranges: int, globs: int
) -> tuple[tuple[int, int, int, int], tuple[NDArray[Any], ...]]:
    """Make columns of the given lengths and write programs into them; without tokens, only count."""
    out = (
        np.zeros(filters + 1, np.int64),
        np.zeros(tokens, np.int32),
        np.zeros(leaves, np.uint8),
        np.zeros(leaves, np.int32),
        np.zeros(leaves, np.uint8),
        np.zeros(leaves + 1, np.int64),
        np.zeros(ranges, np.uint8),
        np.zeros(ranges, np.int64),
        np.zeros(ranges, np.int64),
        np.zeros(leaves + 1, np.int64),
        np.zeros(globs, np.int16),
    )
    return read_back(arrays, filters, tokens > 0, *out), out
