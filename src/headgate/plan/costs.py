"""The cost model: from what views give for an event, on average, to what each rewriting costs.

Known of each view are the rows and bytes that it gives for a document, on average. Then, for a rewriting of
view v over the inputs u:

    sent         each u sends its whole result                     sizes[u]; 0 if u is at the site of v
    sending      work of that, at the site of u                    sending * sent
    joining      work at the site of v: rows read and written      joining * (sum of rows[u] + rows[v])
    utilization  byte * (sum of sent) + (sum of sending) + joining      each weighed by its site
    latency      greatest of (delay + sent / speed of its link), + joining / speed
                 inputs send at the same time; an input at the site of v takes no link

and if the source feeds v:

    source_sent          what v gives                              sizes[v]
    source_sending       extracting it, then sending               extracting + sending * sizes[v]
    source_joining       nothing is left to do at v                0
    source_utilization   byte * source_sent + source_sending
    source_latency       delay + sizes[v] / speed of the link from the source

A join may run at the site of one of its inputs instead (`joins.py`).

A link has the delay `hop` and the speed `link`, unless its own are given (`placement.py`).

The time in which the source matches a document against all it feeds is the same for all, and left out.

At the site of input h the others are sent there, and what the view gives is sent on to the view:

    sent         size[v] by the site of h; sizes[u] by that of any other u, 0 if it is the same
    sending      of h: sending * sent, and the work of joining, which is left there
    joining      0: nothing is left to do at the site of v
    latency      greatest of (delay + sent / speed of the link to h), + joining / speed, + delay + size[v] /
                 speed of the link to v

Of these that is taken which is fastest, if it is faster than at the view, and utilization is not higher:
where inputs are near to each other and far from the view, or large and what the view gives is small. Without
a table of links all joins run at the view. So does a selection, and a join with an input at the view's own
site.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import EventError, PlanError
from headgate.plan.model import AT_VIEW, Costs
from headgate.plan.placement import PUBLISHER, Placement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, NDArray

    from headgate.contents.views import Views
    from headgate.core.event import Event
    from headgate.plan.model import Rewritings

    Floats = NDArray[np.float64]
    Sites = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Settings:
    """What things cost. Work has a unit of its own; latencies are in milliseconds.

    The source is who everybody depends on: `extracting`, the work of feeding one more view by it, is what
    a rewriting has to be cheaper than.
    """

    byte: float = 0.001
    sending: float = 0.0001
    joining: float = 0.01
    extracting: float = 100.0
    hop: float = 10.0
    link: float = 1000.0
    speed: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what cannot be: less than nothing, or no speed at all."""
        for field in fields(self):
            value = getattr(self, field.name)
            divides = field.name in {"link", "speed"}
            if not (math.isfinite(value) and (value > 0 if divides else value >= 0)):
                least = "more than 0" if divides else "0 or more"
                raise PlanError(f"the cost setting {field.name} is {value}: it is {least}, and finite")


def costs_of(
    rewritings: Rewritings,
    rows: ArrayLike,
    sizes: ArrayLike,
    settings: Settings | None = None,
    placement: Placement | None = None,
) -> Costs:
    """Compute what all rewritings cost, from rows and bytes that each view gives for a document.

    Without a placement each view has a site of its own.
    """
    settings = settings or Settings()
    views = len(rewritings.offsets) - 1
    placement = Placement(np.arange(views, dtype=np.int32)) if placement is None else placement
    if len(placement.sites) != views:
        raise PlanError(f"{len(placement.sites)} sites are given for {views} views: one for each is needed")
    many = _amounts(rows, views, "rows")
    large = _amounts(sizes, views, "sizes")
    firsts = rewritings.input_offsets[:-1]
    if (np.diff(rewritings.input_offsets) < 1).any():
        raise PlanError("a rewriting has no inputs: each needs one at least")
    owners = np.repeat(np.arange(views), np.diff(rewritings.offsets))
    origins = placement.sites[rewritings.inputs]
    targets = np.repeat(placement.sites[owners], np.diff(rewritings.input_offsets))
    remote = origins != targets
    sent = np.where(remote, large[rewritings.inputs], 0.0)
    sending = settings.sending * sent
    delays, speeds = _links(placement, origins, targets, settings)
    carried = np.where(remote, delays + sent / speeds, 0.0)
    if len(firsts):
        weighed_sent = np.add.reduceat(placement.weight(origins) * sent, firsts)
        slowest = np.maximum.reduceat(carried, firsts)
        read = np.add.reduceat(many[rewritings.inputs], firsts)
    else:
        weighed_sent = slowest = read = np.empty(0, dtype=np.float64)
    joining = settings.joining * (read + many[owners])
    source_sending = settings.extracting + settings.sending * large
    publisher = np.full(views, PUBLISHER, np.int32)
    delays, speeds = _links(placement, publisher, placement.sites, settings)
    at_views = Costs(
        utilization=(settings.byte + settings.sending) * weighed_sent
        + placement.weight(placement.sites)[owners] * joining,
        latency=slowest + joining / settings.speed,
        sent=sent,
        sending=sending,
        joining=joining,
        source_utilization=settings.byte * large + source_sending,
        source_latency=delays + large / speeds,
        source_sent=large,
        source_sending=source_sending,
        source_joining=np.zeros(views, dtype=np.float64),
    )
    if placement.links is None:
        return at_views
    terms = JoinTerms(
        lambda origins, targets: _links(placement, origins, targets, settings),
        settings.byte + settings.sending,
        settings.sending,
        settings.speed,
    )
    return placed_joins(at_views, rewritings, large, placement, terms)


def _links(
    placement: Placement, origins: NDArray[np.int32], targets: NDArray[np.int32], settings: Settings
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the delays and speeds of the links between some pairs of sites."""
    if placement.links is None:
        return np.full(len(origins), settings.hop), np.full(len(origins), settings.link)
    return placement.links.between(origins, targets, settings.hop, settings.link)


def _amounts(given: ArrayLike, views: int, what: str) -> NDArray[np.float64]:
    amounts = np.array(given, dtype=np.float64)
    if amounts.shape != (views,):
        raise PlanError(
            f"{what} of {amounts.size} views are given, there are {views}: one for each is needed"
        )
    if not (np.isfinite(amounts) & (amounts >= 0)).all():
        view = int(np.flatnonzero(~(np.isfinite(amounts) & (amounts >= 0)))[0])
        raise PlanError(f"{what} of view {view} are {amounts[view]}: they are 0 or more, and finite")
    return amounts


UNSEEN = 0.5
"""Rows that a view counts as having given if nothing in the sample matched it: it is rare, not free."""


class Estimates(NamedTuple):
    """Rows and bytes for an event, by view, and of how many events that was learned."""

    rows: NDArray[np.float64]
    bytes: NDArray[np.float64]
    events: int
    rejected: int
    """Rows of the sample that are no events."""
    unseen: int
    """Views that nothing in the sample matched."""


def averages(rows: NDArray[np.int64], size: NDArray[np.int64], events: int, rejected: int = 0) -> Estimates:
    """Divide what views gave in all; those that gave nothing get half an average row."""
    if events == 0:
        raise PlanError("the sample has no event that can be read: give some that are like those to come")
    many, large = rows.astype(np.float64), size.astype(np.float64)
    unseen = rows == 0
    a_row = large.sum() / many.sum() if many.any() else 1.0
    many[unseen], large[unseen] = UNSEEN, UNSEEN * a_row
    return Estimates(many / events, large / events, events, rejected, int(unseen.sum()))


def sums(
    views: Views, matching: Callable[[Event], Iterable[int]], events: Iterable[Event]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Sum up rows and bytes of what views give for events; `matching` lists the views that match one."""
    rows, size = np.zeros(len(views), np.int64), np.zeros(len(views), np.int64)
    count = 0
    for event in events:
        count += 1
        try:
            given = [(view, views.size(views.result(view, event))) for view in matching(event)]
        except EventError as error:
            raise EventError(f"event {event.id!r} of the sample: {error}") from None
        for view, amounts in given:
            rows[view] += amounts[0]
            size[view] += amounts[1]
    return rows, size, count


class JoinTerms(NamedTuple):
    """What joins are weighed by."""

    links: Callable[[Sites, Sites], tuple[Floats, Floats]]
    """Return the delays and speeds between sites."""
    byte: float
    """What a byte that is sent counts in utilization, with the work of sending it."""
    sending: float
    speed: float


def placed_joins(
    costs: Costs, rewritings: Rewritings, sizes: Floats, placement: Placement, terms: JoinTerms
) -> Costs:
    """Choose where joins run; `costs` are those where all run at the view that is computed."""
    views = len(rewritings.offsets) - 1
    owners = np.repeat(np.arange(views), np.diff(rewritings.offsets))
    widths = np.diff(rewritings.input_offsets)
    utilization, latency, joining, sent, sending = (
        np.array(each)
        for each in (costs.utilization, costs.latency, costs.joining, costs.sent, costs.sending)
    )
    hosts = np.full(len(widths), AT_VIEW, np.int32)
    for width in np.unique(widths[widths > 1]).tolist():
        rows = np.flatnonzero(widths == width)
        slots = rewritings.input_offsets[rows][:, None] + np.arange(width)
        inputs = rewritings.inputs[slots]
        sites, own = placement.sites[inputs], placement.sites[owners[rows]]
        given, work = sizes[owners[rows]], costs.joining[rows]
        apart = (sites != own[:, None]).all(axis=1)
        for host in range(width):
            at = sites[:, host]
            moved = np.where(sites != at[:, None], sizes[inputs], 0.0)
            delays, speeds = (
                each.reshape(sites.shape) for each in terms.links(sites.ravel(), np.repeat(at, width))
            )
            come = np.where(sites != at[:, None], delays + moved / speeds, 0.0).max(axis=1)
            delay, speed = terms.links(at, own)
            time = come + work / terms.speed + delay + given / speed
            weighed = (placement.weight(sites.ravel()).reshape(sites.shape) * moved).sum(axis=1)
            weight = placement.weight(at)
            used = terms.byte * (weighed + weight * given) + weight * work
            better = apart & (time < latency[rows]) & (used <= costs.utilization[rows])
            some = rows[better]
            hosts[some], latency[some], utilization[some] = host, time[better], used[better]
            sent[slots[better]] = moved[better]
            sending[slots[better]] = terms.sending * moved[better]
            sent[slots[better, host]] = given[better]
            sending[slots[better, host]] = terms.sending * given[better] + work[better]
            joining[some] = 0.0
    return costs._replace(
        utilization=utilization, latency=latency, sent=sent, sending=sending, joining=joining, hosts=hosts
    )
