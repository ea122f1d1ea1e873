"""From a plan to what is simulated: which results go from which station to which."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import NetworkError
from headgate.network.simulation.model import SOURCE, Layout
from headgate.plan.measures import input_places
from headgate.plan.model import SOURCE as BY_SOURCE

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from headgate.network.simulation.model import Ints
    from headgate.plan.model import Plan, Rewritings


def layout_of(station: ArrayLike, input_offsets: ArrayLike, inputs: ArrayLike, stations: int) -> Layout:
    """Lay views out: the station of each, from 1 on, and its inputs; without inputs the source feeds it."""
    at = np.asarray(station, np.int64)
    offsets, given = np.asarray(input_offsets, np.int64), np.asarray(inputs, np.int64)
    views = len(at)
    if views and not (at.min() > SOURCE and at.max() < stations):
        raise NetworkError(f"a view is at station {at.min()} or {at.max()}: give 1 to {stations - 1}")
    counts = np.diff(offsets)
    fed = np.flatnonzero(counts == 0)
    targets = np.repeat(np.arange(views), counts)
    # By input and station, the input's own station first; targets of one feed rise.
    where = at[targets]
    own = where != at[given]
    order = np.lexsort((targets, where, own, given))
    targets, given, where = targets[order], given[order], where[order]
    new = np.ones(len(targets), np.bool_)
    new[1:] = (given[1:] != given[:-1]) | (where[1:] != where[:-1])
    (firsts,) = np.nonzero(new)
    feed_view = np.concatenate([given[firsts], fed])
    target_offsets = np.concatenate([firsts, len(targets) + np.arange(len(fed) + 1)])
    feed_offsets = np.searchsorted(given[firsts], np.arange(views + 1))
    return Layout(
        stations,
        at,
        offsets,
        np.asarray(inputs, np.int64),
        fed,
        feed_offsets.astype(np.int64),
        feed_view.astype(np.int64),
        np.concatenate([where[firsts], at[fed]]),
        target_offsets.astype(np.int64),
        np.concatenate([targets, fed]),
    )


def layout_of_plan(plan: Plan, rewritings: Rewritings, sites: NDArray[np.integer], count: int) -> Layout:
    """Lay out a plan whose views are at sites 0 to `count`: these are stations 1 and on."""
    fed = plan.chosen != BY_SOURCE
    counts = np.zeros(len(plan.chosen) + 1, np.int64)
    counts[1:][fed] = np.diff(rewritings.input_offsets)[plan.chosen[fed]]
    inputs = rewritings.inputs[input_places(plan, rewritings)]
    return layout_of(np.asarray(sites, np.int64) + 1, np.cumsum(counts), inputs, count + 1)


def with_joins(layout: Layout, hosts: ArrayLike) -> tuple[Layout, Ints]:
    """Compute views at other stations than their own, from where these take them as they are.

    `hosts` are the stations where views are computed, or their own. What is computed elsewhere is a view
    more, at the end; returns for all views which they are.
    """
    at = np.asarray(hosts, np.int64)
    moved = np.flatnonzero((at != layout.station) & (np.diff(layout.input_offsets) > 0))
    if not len(moved):
        return layout, np.arange(layout.views)
    place = {view: layout.views + number for number, view in enumerate(moved.tolist())}
    given = [layout.inputs[slice(*layout.input_offsets[view : view + 2])] for view in range(layout.views)]
    whole = [[place[view]] if view in place else own.tolist() for view, own in enumerate(given)]
    whole += [given[view].tolist() for view in moved.tolist()]
    offsets = np.cumsum([0, *map(len, whole)])
    flat = np.array([each for some in whole for each in some], np.int64)
    station = np.concatenate([layout.station, at[moved]])
    return layout_of(station, offsets, flat, layout.stations), np.concatenate(
        [np.arange(layout.views), moved]
    )


def levels_of(layout: Layout) -> Ints:
    """Count the levels: 1 if the source feeds a view, else one more than the highest among its inputs."""
    return _behind(layout, np.ones(len(layout.inputs), np.int64), np.maximum)


def hops_of(layout: Layout) -> tuple[Ints, Ints]:
    """Count the messages on the way to each view, by its shortest and by its longest way.

    What goes from one view to another at the same station is no message.
    """
    owners = np.repeat(np.arange(layout.views), np.diff(layout.input_offsets))
    moved = (layout.station[owners] != layout.station[layout.inputs]).astype(np.int64)
    return _behind(layout, moved, np.minimum), _behind(layout, moved, np.maximum)


def _behind(layout: Layout, step: Ints, pick: np.ufunc) -> Ints:
    """Add steps up from the source on, round by round until all views are reached."""
    found = np.zeros(layout.views, np.int64)
    found[layout.fed] = 1
    owners = np.repeat(np.arange(layout.views), np.diff(layout.input_offsets))
    left = np.setdiff1d(np.arange(layout.views), layout.fed)
    while len(left):
        waits = np.zeros(layout.views, np.bool_)
        waits[owners[found[layout.inputs] == 0]] = True
        ready = left[~waits[left]]
        if not len(ready):
            raise NetworkError("views feed each other in a circle: a plan has none")
        for view in ready.tolist():
            begin, end = layout.input_offsets[view : view + 2]
            found[view] = pick.reduce(found[layout.inputs[begin:end]] + step[begin:end])
        left = left[waits[left]]
    return found
