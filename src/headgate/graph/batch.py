"""Many events through a graph: all that they reach, or the best k."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from headgate.contents.portions import Portion
from headgate.contents.protocol import slice_of
from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.event import ID, SOURCE, Event, column_of
from headgate.core.omission import by_row, renaming
from headgate.errors import EventError
from headgate.graph.base import NO_CELLS, no_planes
from headgate.graph.path_cost import DEFAULT_PATH_COST, PathCost
from headgate.graph.ranked import kernels
from headgate.graph.ranked.ranked import order_by_id, ranking_of, search_of
from headgate.graph.walk import walking
from headgate.graph.walk.hits import BY_FILTERS, NO_HITS, find_hits
from headgate.graph.walk.leading import NO_PARENTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from headgate.contents.protocol import Encoded, FilterPlanes
    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.core.event import Event, Id
    from headgate.core.ids import Ids
    from headgate.core.planes import Cells, Planes
    from headgate.graph.changes.view import View
    from headgate.graph.walk.hits import Hits
    from headgate.graph.walk.leading import ParentLists

    Column = pa.Array[Any]
    Events = pa.RecordBatch | Sequence[Event]


FEW = 1 << 22
"""Answers that there is room for at once: with a large k, fewer events are searched for together."""
_SURROGATE = re.compile("[\ud800-\udfff]")
CHUNK = 4096
"""Events encoded together."""
PORTION = 1 << 20
"""Matches that are handed on, once there are so many."""


class Matches(NamedTuple):
    """What some events find: their rows, and the places of subscriptions, sorted."""

    row: Ints
    subscription: Ints32


class RankedMatches(NamedTuple):
    """Answers of some events: the row of each, its subscription and value, the best of each event first."""

    row: Ints
    subscription: Ints
    value: Floats64


T = TypeVar("T", Matches, RankedMatches)


def match(view: View, events: Events, ids: Column) -> Iterator[Portion]:
    """Match events that all have a source, in portions that fit into memory, even if each finds all."""
    for matches in _in_chunks(view, events, entries(view, events), ids, CHUNK, partial(_chunk, view)):
        yield Portion.of(matches.row, subscription_ids(view, matches.subscription))


def entries(view: View, events: Events) -> Ints32:
    """Find the vertices of the sources; refuses events if one has none."""
    if isinstance(events, pa.RecordBatch):
        vertices = sources(view, events)
        for row in np.flatnonzero(vertices < 0)[:1].tolist():
            raise EventError(f"event {column_of(events, ID)[row].as_py()!r}: {refusals(view, events)[row]}")
        return vertices
    vertices = np.array(find_all(view, [event.source for event in events]), np.int32)
    for row in np.flatnonzero(vertices < 0)[:1].tolist():
        view.source(events[row])
    return vertices


def _in_chunks(
    view: View,
    events: Events,
    source: Ints32,
    ids: Column,
    size: int,
    find: Callable[[Events, Ints32, int], Iterator[T]],
) -> Iterator[T]:
    """Find for some events at a time, in the way that is quicker, and number their rows through."""

    def some(begin: int, way: int, first: int, last: int) -> Iterator[T]:
        given, starts = slice_of(events, begin + first, begin + last), source[begin + first : begin + last]
        for each in renaming(by_row(ids, begin + first), find(given, starts, way)):
            yield each._replace(row=each.row + begin + first)

    for begin in range(0, len(source), size):
        yield from view.ways.run(min(size, len(source) - begin), partial(some, begin))


def sources(view: View, events: pa.RecordBatch) -> Ints32:
    """Find the vertices of the sources, -1 where there is none."""
    coded: Any = column_of(events, SOURCE).dictionary_encode()
    values = coded.dictionary.to_pylist()
    codes = np.asarray(coded.indices.fill_null(len(values)))
    return np.asarray(np.array([*find_all(view, values), -1], np.int32)[codes])


def find_all(view: View, values: Sequence[object]) -> list[int]:
    """Find the vertices of nodes, -1 for what is none."""
    ids, vertex = view.base.names.node_ids, view.base.names.vertex_of_node
    wanted = [value for value in values if isinstance(value, str | int)]
    if view.later is not None or len(wanted) < len(values) or not len(ids) or not _fit(ids, wanted):
        return [view.find(value) if isinstance(value, str | int) else -1 for value in values]
    # All at once: one by one takes twenty times as long, and half of the time of a match.
    places = ids.places(wanted).tolist()
    return [
        int(vertex[place]) if place < len(ids) and ids[place] == value else -1
        for place, value in zip(places, wanted, strict=True)
    ]


def _fit(ids: Ids, values: Sequence[Id]) -> bool:
    """Tell whether values may be looked up together: of the type of the ids, and such that can be stored."""
    if ids.numbered:
        return all(type(value) is int and INT64_MIN <= value <= INT64_MAX for value in values)
    return all(isinstance(value, str) and not _SURROGATE.search(value) for value in values)


def refusals(view: View, events: pa.RecordBatch) -> list[str | None]:
    """Say of each event why its source is refused; None where it is not."""
    reasons: list[str | None] = [None] * events.num_rows
    given = column_of(events, SOURCE)
    for row in np.flatnonzero(sources(view, events) < 0).tolist():
        source = given[row].as_py()
        reasons[row] = (
            "it has no source: name the node where it enters the graph"
            if source is None
            else f"source {source!r} is not a node of the graph: give the id of one"
        )
    return reasons


def _chunk(view: View, events: Events, source: Ints32, way: int) -> Iterator[Matches]:
    """Match events; some of them at a time."""
    if way == BY_FILTERS or view.base.filter_planes is None or view.later is not None:
        walked = _by_filters(view, events, source)
    else:
        walked = _by_graph(view, events, source)
    rows, positions = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    held = 0
    for row, position in walked:
        rows.append(row)
        positions.append(position)
        held += len(position)
        if held >= PORTION:
            yield _sorted(view, np.concatenate(rows), np.concatenate(positions))
            rows, positions, held = rows[:1], positions[:1], 0
    yield _sorted(view, np.concatenate(rows), np.concatenate(positions))


def _sorted(view: View, rows: Ints, positions: Ints) -> Matches:
    later = view.later
    if later is None:
        return _sorted_once(rows, view.arrays.serves[positions + view.arrays.roots], np.zeros(0))
    places = np.concatenate([view.arrays.serves, later.serves])[positions + view.arrays.roots]
    return _sorted_once(rows, places, -order_by_id(view))


def _by_graph(view: View, events: Events, source: Ints32) -> Iterator[tuple[Ints, Ints]]:
    """Walk from the sources and ask the filters on the way; gives rows of events, and what they come to."""
    filter_planes = view.base.filter_planes
    assert filter_planes is not None
    encoded = _encoded(filter_planes, events)
    scratch = view.scratch()
    q = view.question(filter_planes.planes, encoded.cells, np.zeros(view.words, np.uint64), view.serving)
    out, counts = _make_out(view), np.zeros(len(source), np.int64)
    held: list[tuple[Ints, Ints]] = []
    done, resume = 0, False
    while done < len(source):
        reached, why = walking.walk_events(*q, source, done, resume, scratch, out, counts)
        held.append(_walked(done, reached, counts, out))
        done, resume = reached, why == walking.ASKING
        if not resume:
            # Not within a walk: whoever gets these may walk too, and there is one scratch for both.
            yield from held
            held.clear()
        else:
            asked = scratch.asked[: scratch.counts[walking.ASKED]]
            walking.answer(view.arrays, scratch, filter_planes.holds(encoded, done, asked))


def _by_filters(view: View, events: Events, source: Ints32) -> Iterator[tuple[Ints, Ints]]:
    """Ask all filters, and walk through those that hold."""
    q = view.question(no_planes(), NO_CELLS, np.zeros(view.words, np.uint64), view.serving)
    out = _make_out(view)
    # As many rows as there are planes: none.
    scratch = view.scratch()._replace(rows=np.zeros(0, np.int32))
    for begin, end, hits in find_hits(view, events):
        some = source[begin:end]
        counts = np.zeros(len(some), np.int64)
        done = 0
        while done < len(some):
            reached = walking.walk_hits(q, hits, some, done, scratch, out, counts)
            rows, positions = _walked(done, reached, counts, out)
            yield rows + begin, positions
            done = reached


def _encoded(filter_planes: FilterPlanes, events: Events) -> Encoded:
    """Write events as the planes have them."""
    if isinstance(events, pa.RecordBatch):
        return filter_planes.encode_batch(events)
    return filter_planes.encode(events)


def _walked(done: int, reached: int, counts: Ints, out: Ints) -> tuple[Ints, Ints]:
    some = counts[done:reached]
    return np.repeat(np.arange(done, reached), some), out[: some.sum()].copy()


def _make_out(view: View) -> Ints:
    """Make room for what some events find, or one that finds everything."""
    return np.empty(max(1 << 16, 64 * view.words + 64), np.int64)


def _sorted_once(rows: Ints, places: Ints32, rank: Floats64) -> Matches:
    """Sort by event and subscription; several vertices may serve one subscription, which counts once.

    Places are in the order of ids, unless subscriptions came later: then `rank` says it.
    """
    order = np.lexsort((rank[places] if len(rank) else places, rows))
    rows, places = rows[order], places[order]
    kept = np.ones(len(rows), np.bool_)
    kept[1:] = (rows[1:] != rows[:-1]) | (places[1:] != places[:-1])
    return Matches(rows[kept], places[kept])


def subscription_ids(view: View, places: NDArray[np.integer[Any]]) -> Column:
    """Return ids of subscriptions for Arrow."""
    ids: Column = view.base.subscription_array
    if view.later is not None and view.later.subscription_ids:
        new: Any = tuple(view.later.subscription_ids)
        later: Any = pa.array(new, ids.type if len(ids) else None)
        ids = pa.concat_arrays([ids.cast(later.type), later])
    return ids.take(places)


def best(view: View, events: Events, ids: Column, k: int, path: PathCost = DEFAULT_PATH_COST) -> Portion:
    """Find the best k of events that all have a source; they are told of by their `ids`."""
    source = entries(view, events)
    k = min(k, view.subscriptions)
    size = max(1, min(CHUNK, FEW // max(1, k)))
    answers = [RankedMatches(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]

    if k:
        answers += _in_chunks(view, events, source, ids, size, partial(_best, view, _Wanted(k, path)))
    row, subscriptions, value = (np.concatenate(each) for each in zip(*answers, strict=True))
    return Portion.of(row, subscription_ids(view, subscriptions), value)


class _Wanted(NamedTuple):
    """How many, and by what."""

    k: int
    path: PathCost


def _best(view: View, wanted: _Wanted, events: Events, source: Ints32, way: int) -> Iterator[RankedMatches]:
    """Search for the best of events; some of them at a time."""
    filter_planes, ranking = view.base.filter_planes, ranking_of(view)
    scratch = ranking.scratch(len(view.base.planes.axis_line))
    if way == BY_FILTERS or filter_planes is None or view.later is not None:
        # As many rows as there are planes: none.
        scratch = scratch._replace(rows=np.zeros(0, np.int32))
        for begin, end, hits in find_hits(view, events):
            search = _Search(
                view, no_planes(), NO_CELLS, ranking.above, scratch, hits, source[begin:end], wanted
            )
            search.on(resume=False)
            answers = search.found()
            yield answers._replace(row=answers.row + begin)
        return
    encoded = _encoded(filter_planes, events)
    search = _Search(view, filter_planes.planes, encoded.cells, NO_PARENTS, scratch, NO_HITS, source, wanted)
    resume = False
    while search.on(resume=resume):
        asked = scratch.asked[: scratch.counts[kernels.ASKED]]
        kernels.answer(scratch, filter_planes.holds(encoded, search.done, asked))
        resume = True
    yield search.found()


class _Search:
    """Searches for one event after another."""

    def __init__(
        self,
        view: View,
        planes: Planes,
        cells: Cells,
        up: ParentLists,
        scratch: kernels.SearchBuffers,
        hits: Hits,
        source: Ints32,
        wanted: _Wanted,
    ) -> None:
        k, path = wanted
        given = np.zeros(view.words, np.uint64)
        self._args = (search_of(view, planes, cells, given, up, k, path), scratch, hits, source)
        self.done = 0
        self._k, self._count, self._order = k, len(source), ranking_of(view).ranks.order
        self._counts = np.zeros(len(source), np.int64)
        self._subscription, self._value = np.zeros(len(source) * k, np.int32), np.zeros(len(source) * k)

    def on(self, *, resume: bool) -> bool:
        """Go on; tells whether filters must be asked for event `done` first."""
        self.done = kernels.search_events(
            *self._args, self.done, resume, self._subscription, self._value, self._counts
        )
        return self.done < self._count

    def found(self) -> RankedMatches:
        """Return the answers, the best of each event first."""
        counts, starts = self._counts, np.arange(self._count) * self._k
        row = np.repeat(np.arange(self._count), counts)
        kept = np.arange(len(row)) + np.repeat(starts - np.cumsum(counts) + counts, counts)
        return _best_first(row, self._subscription[kept], self._value[kept], self._order)


def _best_first(row: Ints, subscriptions: Ints32, value: Floats64, order: Floats64) -> RankedMatches:
    """Put the best of each event first, equal ones by id."""
    by = np.lexsort((-order[subscriptions], -value, row))
    return RankedMatches(row[by], subscriptions[by].astype(np.int64), value[by])
