"""Where views are: their sites, the links between sites, and what work at a site weighs.

    sites     of each view, by number
    links     delay and speed of some pairs of sites; all others have `hop` and `link` of the cost settings
    weights   of each site: what a unit of its work counts for in utilization; without, 1

A feed between views of one site takes no link: nothing is sent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.arguments import told
from headgate.core.interning import TextPool
from headgate.core.ranks import double
from headgate.errors import PlanError
from headgate.plan.model import same_capacities

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.plan.model import Capacities
    from headgate.plan.running.planner import Settings
    from headgate.plan.running.saved_plan import SavedPlan


PUBLISHER = -1
"""The site of the source."""


SOURCE_NAME = "source"
"""What the site of the source is called in links."""


class Link(NamedTuple):
    """The way from one site to another, by names: milliseconds, and bytes in a millisecond.

    None is as everywhere else. The source is called `source`.
    """

    origin: str
    target: str
    delay: float | None = None
    speed: float | None = None


class Links(NamedTuple):
    """Pairs of sites with the delay and the speed from the one to the other, each pair once.

    `origins` and `targets` are numbers of sites; PUBLISHER is where the source is. A delay or speed that is
    not a number is as that of pairs that are not listed.
    """

    origins: Ints32
    targets: Ints32
    delays: Floats64
    speeds: Floats64

    def between(
        self, origins: Ints32, targets: Ints32, delay: float, speed: float
    ) -> tuple[Floats64, Floats64]:
        """Return the delays and speeds of some pairs; those that are not listed have `delay` and `speed`."""
        delays = np.full(len(origins), delay, np.float64)
        speeds = np.full(len(origins), speed, np.float64)
        if not len(self.origins):
            return delays, speeds
        known = _pairs(self.origins, self.targets)
        order = np.argsort(known, kind="stable")
        asked = _pairs(origins, targets)
        places = order[np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)]
        listed = known[places] == asked
        for own, values in ((self.delays, delays), (self.speeds, speeds)):
            given = own[places]
            known_here = listed & ~np.isnan(given)
            values[known_here] = given[known_here]
        return delays, speeds


def links_of(given: Iterable[Link], names: Sequence[str]) -> Links:
    """Lay links out by the numbers of sites, whose names are given; refuses what is no link.

    >>> links_of([Link("source", "paris", delay=4.0)], ["lyon", "paris"]).targets.tolist()
    [1]
    """
    numbers: dict[str, list[int]] = {}
    for number, name in enumerate(names):
        numbers.setdefault(name, []).append(number)
    if SOURCE_NAME in numbers:
        raise PlanError(f"a site is called {SOURCE_NAME!r}, which is the publisher's in links: rename it")
    numbers[SOURCE_NAME] = [PUBLISHER]
    seen: set[tuple[str, str]] = set()
    rows: list[tuple[int, int, float, float]] = []
    for each in given:
        check_link(each)
        for name in each[:2]:
            if name not in numbers:
                raise PlanError(f"there is no site {name!r}: links are between sites of the plan")
        if each[:2] in seen:
            raise PlanError(f"the link from {each.origin!r} to {each.target!r} is given twice: give it once")
        seen.add(each[:2])
        delay, speed = (math.nan if value is None else float(value) for value in each[2:])
        rows += [(a, b, delay, speed) for a in numbers[each.origin] for b in numbers[each.target]]
    columns = tuple(zip(*rows, strict=True)) or ((), (), (), ())
    return Links(
        np.array(columns[0], np.int32),
        np.array(columns[1], np.int32),
        np.array(columns[2], np.float64),
        np.array(columns[3], np.float64),
    )


def check_link(link: object) -> None:
    """Refuse what is no link."""
    if not isinstance(link, Link) or not all(isinstance(name, str) for name in link[:2]):
        raise PlanError(f"a link is {told(link)}: give Link(origin, target, delay, speed), by names of sites")
    if link.origin == link.target:
        raise PlanError(f"a link leads from {link.origin!r} to itself: what stays at a site takes none")
    if link.target == SOURCE_NAME:
        raise PlanError("a link leads to the source, which nobody feeds: give the other direction")
    for name, value, divides in (("delay", link.delay, False), ("speed", link.speed, True)):
        number = 1.0 if value is None else double(value)
        if number is None or not math.isfinite(number) or number < 0 or (divides and number == 0):
            rule = "more than 0" if divides else "0 or more"
            raise PlanError(
                f"the {name} from {link.origin!r} to {link.target!r} is {value!r}: it is {rule}, and finite"
            )


class Placement(NamedTuple):
    """The site of each view; see the module."""

    sites: Ints32
    links: Links | None = None
    weights: Floats64 | None = None

    def weight(self, sites: Ints32) -> Floats64:
        """Return what work at each of some sites weighs."""
        return np.ones(len(sites), np.float64) if self.weights is None else self.weights[sites]


def _pairs(origins: Ints32, targets: Ints32) -> Ints:
    """Make one number of each pair; the source is -1."""
    return (origins.astype(np.int64) + 1) << 32 | (targets.astype(np.int64) + 1)


def sites_of(ids: Ids, sites: Mapping[Id, str], settings: Settings) -> tuple[Capacities, TextPool]:
    """Give each subscription its site, and all sites the same bounds; returns the names of sites, too."""
    if not isinstance(sites, Mapping):
        raise PlanError(f"sites are {told(sites)}: give the name of a site by the id of a subscription")
    known = set(ids)
    unknown = [identity for identity in sites if identity not in known]
    if unknown:
        raise PlanError(f"a site is given for {unknown[0]!r}, which is no subscription here")
    # What has no site of a name is apart from all that have one, whatever these are called.
    keys = [(True, str(sites[each])) if each in sites else (False, str(each)) for each in ids]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    placed = np.array([numbers[key] for key in keys], np.int32)
    capacities = same_capacities(
        len(keys), settings.fan_out, bandwidth=settings.bandwidth, cpu=settings.cpu, sites=placed
    )
    return capacities, TextPool.build([name for _, name in numbers])


class KnownLinks:
    """The links between sites and the weights of sites, by names: sites come and go."""

    def __init__(self, names: dict[int, str], links: list[Link], weights: dict[str, float]) -> None:
        self.names = names
        self._links = links
        self._weights = weights

    def placement(self, sites: Sequence[int | None], new: Sequence[str]) -> Placement:
        """Place views at sites; those at None, at the end, have sites of their own, with new names."""
        first = len(sites) - len(new)
        keys = [("new", place) if site is None else ("", site) for place, site in enumerate(sites)]
        numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        names = [self.names[at] if not kind else new[at - first] for kind, at in numbers]
        known = {*names, SOURCE_NAME}
        links = [link for link in self._links if link.origin in known and link.target in known]
        return Placement(
            np.array([numbers[key] for key in keys], np.int32),
            links_of(links, names) if links else None,
            np.array([self._weights.get(name, 1.0) for name in names]) if self._weights else None,
        )


def known_links(saved: SavedPlan) -> KnownLinks:
    """Read the links and weights of a saved."""
    names = dict(enumerate(saved.sites.texts()))
    called = {**names, PUBLISHER: SOURCE_NAME}
    links: dict[tuple[str, str], Link] = {}
    if saved.links is not None:
        for origin, target, delay, speed in zip(*(each.tolist() for each in saved.links), strict=True):
            link = Link(called[origin], called[target], _given(delay), _given(speed))
            links.setdefault(link[:2], link)
    heavy = [] if saved.weights is None else saved.weights.tolist()
    weights = dict(zip(names.values(), heavy, strict=False))
    return KnownLinks(names, list(links.values()), weights)


def _given(number: float) -> float | None:
    return None if math.isnan(number) else number
