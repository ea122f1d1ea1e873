"""Which subscriptions an event comes to, whether or not their own filter holds: what may be ranked relaxed.

An event comes to a subscription that hangs at a node when the node is reached, or is the source; and to one
that a node serves itself when the node is reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.graph.model import NODE, SUBSCRIPTION
from headgate.graph.ranked.ranked import ranking_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.event import Event, Id
    from headgate.graph.changes.view import View


def hanging(view: View, event: Event) -> NDArray[np.int64]:
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
    found = np.zeros(view.subscriptions, np.bool_)
    found[own[own >= 0]] = True
    found[hung[hung >= 0]] = True
    return np.flatnonzero(found)


def _one_by_one(view: View, reached: NDArray[np.int64], source: int) -> NDArray[np.int64]:
    """Do the same in a graph that was changed."""
    nodes = [vertex for vertex in reached.tolist() if view.stands_for(vertex)[0] == NODE]
    found = {view.serves(vertex) for vertex in nodes}
    for vertex in (*nodes, source):
        for child in view.children(vertex):
            if view.stands_for(child)[0] == SUBSCRIPTION:
                found.add(view.serves(child))
    return np.array(sorted(found - {-1}), np.int64)


def served(view: View) -> NDArray[np.int64]:
    """List the places of the subscriptions that are served anywhere, in rising order."""
    serves = ranking_of(view).ranks.serves
    return np.unique(serves[serves >= 0]).astype(np.int64)


def servers(view: View, place: int) -> list[int]:
    """List the vertices that serve a subscription."""
    found: list[int] = np.flatnonzero(ranking_of(view).ranks.serves == place).tolist()
    return found


def find(view: View, subscription: Id) -> int:
    """Find the place of a subscription, -1 for none; it need not be served any more."""
    ids = view.base.names.subscription_ids
    place = ids.find(subscription)
    if place < 0 and view.later is not None and subscription in view.later.subscription_ids:
        return len(ids) + view.later.subscription_ids.index(subscription)
    return place


def score(view: View, subscription: Id) -> float | None:
    """Return the score of a subscription that is served anywhere."""
    place = find(view, subscription)
    found = servers(view, place) if place >= 0 else []
    return float(ranking_of(view).ranks.score[found[0]]) if found else None
