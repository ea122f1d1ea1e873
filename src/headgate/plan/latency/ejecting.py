"""Making room: a view that would be quicker at a site that is full, for one that loses less by leaving it.

A plan of least utilization leaves little room at the sites that everybody wants to be fed by. If the
rewriting that a view wants is too much for one site, some view that this site feeds is moved to another of
its rewritings, if the two changes together make the plan better.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import bare
from headgate.plan.running.configuration import (
    EMPTY,
    FREE,
    NONE,
    blocked,
    change,
    over,
    push,
    replace,
    settle,
    shift,
    waited,
)

if TYPE_CHECKING:
    from headgate.core.arrays import Ints
    from headgate.plan.running.configuration import Configuration

WANTED = 12
"""For so many alternatives that a full site rules out somebody is looked for who could leave it."""


@bare
def eject(
    c: Configuration,
    order: Ints,
    begin: int,
    end: int,
    alpha: float,
    beta: float,
    tolerance: float,
    tally: Ints,
) -> None:
    """Look at views of the order from `begin` to `end`; `tally[1]` counts swaps.

    Of each view the quickest alternatives are tried, quickest first.
    """
    for turn in range(begin, end):
        view = int(order[turn])
        if c.chosen[view] < 0:
            continue
        last = -1.0
        last_rewriting = NONE
        for _ in range(WANTED):
            wanted = NONE
            least = c.latency[view]
            for rewriting in range(c.offsets[view], c.offsets[view + 1]):
                latency = waited(c, rewriting)
                behind = latency > last or (latency == last and rewriting > last_rewriting)
                if behind and latency < least:
                    wanted = rewriting
                    least = latency
            if wanted < 0:
                break
            if _swapped(c, view, wanted, least, alpha, beta, tolerance):
                tally[1] += 1
                break
            last = least
            last_rewriting = wanted


@bare
def _swapped(
    c: Configuration, view: int, wanted: int, latency: float, alpha: float, beta: float, tolerance: float
) -> bool:
    """Give a view a rewriting that one site cannot bear, by moving another view away from that site.

    What both moves are worth is estimated first (what a view gains or loses, times itself and the views
    behind it, as counted at the beginning of the round). The best pair is carried out, and undone if in truth
    the mixed cost does not fall by more than `tolerance`.
    """
    old = int(c.chosen[view])
    gain = beta * (c.latency[view] - latency) * (c.reach[view] + 1)
    gain -= alpha * (c.utilization[wanted] - c.utilization[old])
    shift(c, view, old, wanted)
    site = blocked(c, view, wanted)
    leaving = NONE
    instead = NONE
    if site >= 0 and gain > c.hopeless[site]:
        least = gain
        for held in range(c.site_offsets[site], c.site_offsets[site + 1]):
            slot = c.heads[c.site_views[held]]
            while slot >= 0 and least > 0.0:
                other = int(c.owners[slot])
                slot = c.nexts[slot]
                if other == view:
                    continue
                current = int(c.chosen[other])
                for rewriting in range(c.offsets[other], c.offsets[other + 1]):
                    loss = beta * (waited(c, rewriting) - c.latency[other]) * (c.reach[other] + 1)
                    loss += alpha * (c.utilization[rewriting] - c.utilization[current])
                    if loss < least and rewriting != current and _fits(c, other, current, rewriting, site):
                        least = loss
                        leaving = other
                        instead = rewriting
        if leaving < 0:
            c.hopeless[site] = gain
    shift(c, view, wanted, old)
    return leaving >= 0 and _carried_out(c, view, wanted, leaving, instead, alpha, beta, tolerance)


@bare
def _fits(c: Configuration, view: int, old: int, new: int, site: int) -> bool:
    """Tell whether all sites can bear another rewriting of a view, and also the site that it is to leave."""
    shift(c, view, old, new)
    free = not over(c, site) and blocked(c, view, new) == FREE
    shift(c, view, new, old)
    return free


@bare
def _carried_out(
    c: Configuration,
    view: int,
    wanted: int,
    leaving: int,
    instead: int,
    alpha: float,
    beta: float,
    tolerance: float,
) -> bool:
    """Replace two rewritings, and go back if that was no gain."""
    old = int(c.chosen[view])
    current = int(c.chosen[leaving])
    taken = c.utilization[wanted] - c.utilization[old] + c.utilization[instead] - c.utilization[current]
    for _ in range(2):
        replace(c, leaving, instead)
        replace(c, view, wanted)
        logged = settle(c, push(c, push(c, EMPTY, leaving), view), EMPTY)
        if alpha * taken + beta * change(c, logged) < -tolerance:
            return True
        # The way back: latencies are computed anew, to what they were.
        tolerance = np.inf
        instead = current
        wanted = old
    return False
