"""Ranked reachability: the best k of the subscriptions that get an event, by score and path.

The paper leaves this as future work. A subscription's value is its score less what the cheapest valid path
costs ("minus"), or times `decay` to the power of that ("times").

What may be ranked relaxed are the subscriptions that an event comes to, whether or not their own filter
holds. An event comes to a subscription that hangs at a node when the node is reached, or is the source; and
to one that a node serves itself when the node is reached.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

import numpy as np

from headgate.errors import GraphError
from headgate.graph.arrays import flags_of
from headgate.graph.base import NO_CELLS, no_planes
from headgate.graph.changes.rows import owners
from headgate.graph.model import NODE, SUBSCRIPTION
from headgate.graph.path_cost import DECAY, MINUS, TIMES, PathCost
from headgate.graph.ranked import kernels
from headgate.graph.walk.leading import NO_PARENTS, above

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints, Ints32, Words
    from headgate.core.event import Event, Id
    from headgate.core.planes import Cells, Planes
    from headgate.graph.changes.view import View
    from headgate.graph.walk.leading import ParentLists


@dataclass(frozen=True)
class RankedMatch:
    """A subscription that gets the event, and the cheapest valid path to it: nodes and edges with a filter.

    `path` begins with the source and ends with the node that serves the subscription, or that it hangs at.
    """

    subscription: Id
    value: float
    score: float
    cost: float
    path: tuple[str, ...]


def top(
    view: View, event: Event, k: int, *, by: str = MINUS, decay: float = DECAY, hops: bool = False
) -> list[RankedMatch]:
    """List the best k, the highest value first, equal ones by id."""
    check_wanted(k)
    scratch, ranking = search(view, event, k, PathCost.of(by, decay, hops=hops)), ranking_of(view)
    ranks = ranking.ranks
    subscriptions = scratch.top[: scratch.counts[kernels.FOUND]]
    values = scratch.value[subscriptions]
    subscriptions = subscriptions[np.lexsort((-ranks.order[subscriptions], -values))]
    names: dict[int, str] = {}
    return [
        RankedMatch(
            view.subscription_id(subscription),
            float(scratch.value[subscription]),
            float(ranks.score[server + view.arrays.roots]),
            float(scratch.cost[server]),
            _path(view, event, scratch.parent, server, names),
        )
        for subscription, server in zip(
            subscriptions.tolist(), scratch.server[subscriptions].tolist(), strict=True
        )
    ]


def check_wanted(k: int) -> None:
    """Refuse to find no best."""
    if k < 1:
        raise GraphError(f"k is {k!r}: give the number of subscriptions wanted, 1 or more")


def search(view: View, event: Event, k: int, path: PathCost) -> kernels.SearchBuffers:
    """Search for the best k; the answer is in this thread's scratch space until its next search."""
    source, filter_planes, ranking = view.source(event), view.base.filter_planes, ranking_of(view)
    planes, cells, encoded = no_planes(), NO_CELLS, None
    if filter_planes is not None:
        encoded = filter_planes.encode([event])
        planes, cells = filter_planes.planes, encoded.cells
    given = view.given(event, complete=filter_planes is None)
    scratch = ranking.scratch(len(planes.axis_line))
    scratch.counts[[kernels.EVENT, kernels.SIFTED, kernels.LED]] = 0
    k = min(k, len(ranking.ranks.order))
    q = search_of(view, planes, cells, given, NO_PARENTS, k, path)
    while k and kernels.search(q, scratch, source) == kernels.ASKING:
        assert filter_planes is not None
        assert encoded is not None
        asked = scratch.asked[: scratch.counts[kernels.ASKED]]
        kernels.answer(scratch, filter_planes.holds(encoded, 0, asked))
        source = -1
    return scratch


def search_of(
    view: View, planes: Planes, cells: Cells, given: Words, up: ParentLists, k: int, path: PathCost
) -> kernels.Search:
    """Return what the loops are told of a search."""
    ranks = ranking_of(view).ranks
    settings = k, path.by == TIMES, path.decay, path.hops
    return kernels.Search(view.arrays, view.overlay, planes, cells, given, ranks, up, *settings)


class Ranking:
    """What ranking needs to know of a view, and scratch space for each thread."""

    def __init__(self, view: View) -> None:
        self.ranks = _ranks(view)
        self._view = ref(view)
        self._words = view.words
        self._local = threading.local()

    @cached_property
    def above(self) -> ParentLists:
        """Return the graph upside down; of one that has changed since it was made, nothing."""
        view = self._view()
        return NO_PARENTS if view is None or view.later is not None else above(view.arrays)

    def scratch(self, axes: int) -> kernels.SearchBuffers:
        """Return this thread's scratch space."""
        own: kernels.SearchBuffers | None = getattr(self._local, "scratch", None)
        if own is None:
            own = self._local.scratch = kernels.make_scratch(self._words, len(self.ranks.order), axes)
        return own


_rankings: WeakKeyDictionary[View, Ranking] = WeakKeyDictionary()
_sharing = threading.Lock()


def ranking_of(view: View) -> Ranking:
    """Return what is known of a view; made when first asked for, because most views are never ranked."""
    with _sharing:
        known = _rankings.get(view)
    if known is not None:
        return known
    made = Ranking(view)
    with _sharing:
        return _rankings.setdefault(view, made)


def _ranks(view: View) -> kernels.Ranks:
    arrays, later = view.arrays, view.later
    if later is None:
        order = -np.arange(len(view.base.names.subscription_ids), dtype=np.float64)
        return kernels.Ranks(
            arrays.serves,
            arrays.score,
            arrays.best,
            arrays.pass_cost,
            arrays.stands_for,
            view.swap_cost,
            order,
        )
    order = order_by_id(view)
    serves = np.concatenate([arrays.serves, later.serves])
    serves[arrays.roots :][~flags_of(view.serving, view.vertices - arrays.roots)] = -1
    serves[later.mute] = -1
    moved = [vertex for vertex in map(view.base.find, later.moved) if 0 <= vertex < arrays.roots]
    serves[moved] = -1
    score = np.concatenate([arrays.score, later.score])
    highest = np.full(len(order), -np.inf)
    np.maximum.at(highest, serves[serves >= 0], score[serves >= 0])
    for place, given in later.rescored.items():
        highest[place] = given
    if len(order):
        score = np.where(serves >= 0, highest[serves], 0.0)
    return kernels.Ranks(
        serves,
        score,
        _best(view, serves, score),
        np.concatenate([arrays.pass_cost, later.pass_cost]),
        np.concatenate([arrays.stands_for, later.stands_for]),
        view.swap_cost,
        order,
    )


def _best(view: View, serves: Ints32, score: Floats64) -> Floats64:
    """Bound the scores to be had behind vertices of a changed graph, without going through the graph.

    A way that takes no new edge leads to no better score than it did before, or to one that was given since.
    One that does leads behind the end of a new edge, or to a vertex that is new: `floor` is the highest score
    of all those.
    """
    first = view.arrays.vertices
    highest = np.concatenate([view.arrays.best, np.where(serves[first:] >= 0, score[first:], -np.inf)])
    ends = np.concatenate([_new_ends(view), np.arange(first, view.vertices)])
    assert view.later is not None
    floor: float = max([highest[ends].max(initial=-np.inf), *view.later.rescored.values()])
    return np.asarray(np.maximum(highest, floor))


def _new_ends(view: View) -> Ints:
    """List the ends of the edges that the base does not have."""
    arrays, overlay = view.arrays, view.overlay
    owner = np.repeat(owners(overlay.swap, len(overlay.start) - 1), np.diff(overlay.start))
    before = np.repeat(np.arange(arrays.vertices), np.diff(arrays.child_start))
    replaced = overlay.swap[before] >= 0
    old = before[replaced] * view.vertices + arrays.child[replaced]
    child = overlay.child.astype(np.int64)
    return child[(owner >= 0) & ~np.isin(owner * view.vertices + child, old)]


def order_by_id(view: View) -> Floats64:
    """Number subscriptions by id, the smallest highest; ids that came later go between those of the base."""
    ids, later = view.base.names.subscription_ids, view.later
    assert later is not None
    order = np.arange(len(ids) + len(later.subscription_ids), dtype=np.float64)
    new = sorted(range(len(later.subscription_ids)), key=later.subscription_ids.__getitem__)
    if new:
        places = ids.places([later.subscription_ids[each] for each in new])
        order[len(ids) + np.array(new)] = places - 1 + np.arange(1, len(new) + 1) / (len(new) + 1)
    return -order


def _path(view: View, event: Event, parent: Ints32, server: int, names: dict[int, str]) -> tuple[str, ...]:
    """Name the vertices from the source to a position; a subscription that hangs is not one of them."""
    reversed_: list[str] = []
    at = server
    if view.stands_for(at + view.arrays.roots)[0] == SUBSCRIPTION:
        at = int(parent[at])
    while at != kernels.START:
        if at not in names:
            names[at] = view.name(at + view.arrays.roots)
        reversed_.append(names[at])
        at = int(parent[at])
    return (str(event.source), *reversed(reversed_))


def hanging(view: View, event: Event) -> Ints:
    """List the places of the subscriptions that an event comes to, each once."""
    reached, source = view.walk(event), view.source(event)
    if view.later is not None:
        return _one_by_one(view, reached, source)
    arrays = view.arrays
    nodes = reached[arrays.stands_for[reached] == NODE]
    own = arrays.serves[nodes]
    at = np.concatenate([nodes, [source]])
    begin, count = arrays.child_start[at], arrays.child_start[at + 1] - arrays.child_start[at]
    behind = np.cumsum(count) - count
    child = arrays.child[np.arange(count.sum()) + np.repeat(begin - behind, count)]
    hung = arrays.serves[child[arrays.stands_for[child] == SUBSCRIPTION]]
    come_to = np.zeros(view.subscriptions, np.bool_)
    come_to[own[own >= 0]] = True
    come_to[hung[hung >= 0]] = True
    return np.flatnonzero(come_to)


def _one_by_one(view: View, reached: Ints, source: int) -> Ints:
    """Do the same in a graph that was changed."""
    nodes = [vertex for vertex in reached.tolist() if view.stands_for(vertex)[0] == NODE]
    places = {view.serves(vertex) for vertex in nodes}
    for vertex in (*nodes, source):
        for child in view.children(vertex):
            if view.stands_for(child)[0] == SUBSCRIPTION:
                places.add(view.serves(child))
    return np.array(sorted(places - {-1}), np.int64)


def served(view: View) -> Ints:
    """List the places of the subscriptions that are served anywhere, in rising order."""
    serves = ranking_of(view).ranks.serves
    return np.unique(serves[serves >= 0]).astype(np.int64)


def servers(view: View, subscription: int) -> list[int]:
    """List the vertices that serve a subscription."""
    vertices: list[int] = np.flatnonzero(ranking_of(view).ranks.serves == subscription).tolist()
    return vertices


def find(view: View, subscription: Id) -> int:
    """Find the place of a subscription, -1 for none; it need not be served any more."""
    ids = view.base.names.subscription_ids
    number = ids.find(subscription)
    if number < 0 and view.later is not None and subscription in view.later.subscription_ids:
        return len(ids) + view.later.subscription_ids.index(subscription)
    return number


def score(view: View, subscription: Id) -> float | None:
    """Return the score of a subscription that is served anywhere."""
    number = find(view, subscription)
    vertices = servers(view, number) if number >= 0 else []
    return float(ranking_of(view).ranks.score[vertices[0]]) if vertices else None
