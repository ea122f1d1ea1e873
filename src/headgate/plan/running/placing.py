"""Subscriptions at sites of a name, and the links between sites while subscriptions come and go."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.arguments import told
from headgate.core.interning import TextPool
from headgate.errors import PlanError
from headgate.plan.model import same_capacities
from headgate.plan.placement import PUBLISHER, SOURCE_NAME, Link, Placement, links_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Id
    from headgate.core.ids import Ids
    from headgate.plan.model import Capacities
    from headgate.plan.running.planner import Settings
    from headgate.plan.running.saved_plan import SavedPlan


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
