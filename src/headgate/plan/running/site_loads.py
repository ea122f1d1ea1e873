"""What sites and the source have to bear, as feeding a view is begun and ended one by one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import PlanError
from headgate.plan.model import Capacities
from headgate.plan.placement import PUBLISHER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.plan.running.options import Option

RESOURCES = ("fan-out", "bandwidth", "cpu")
NEAR = 1.0 + 1e-9


class SiteLoads:
    """Sites, their bounds, and what is asked of them."""

    def __init__(self, capacities: Capacities) -> None:
        self.sites: list[int] = capacities.sites.tolist()
        rows = zip(
            capacities.fan_out.tolist(), capacities.bandwidth.tolist(), capacities.cpu.tolist(), strict=True
        )
        self._bounds: dict[int, tuple[float, float, float]] = dict(enumerate(rows))
        self._bounds[PUBLISHER] = (
            capacities.source_fan_out,
            capacities.source_bandwidth,
            capacities.source_cpu,
        )
        self._used: dict[int, list[float]] = {site: [0.0, 0.0, 0.0] for site in self._bounds}
        self._failed: set[int] = set()
        self._relieved: dict[int, frozenset[int]] = {}
        """Sites that feed nobody elsewhere at present: each with those of its machine."""

    def __contains__(self, site: object) -> bool:
        """Tell whether there is such a site, and it has not failed."""
        return site in self._bounds and site != PUBLISHER and site not in self._failed

    def add_site(self, fan_out: float, bandwidth: float, cpu: float) -> int:
        """Add a site; returns its number."""
        if any(math.isnan(bound) or bound < 0 for bound in (fan_out, bandwidth, cpu)):
            raise PlanError("a bound of a new site is negative or not a number: 0 or more, inf for no limit")
        site = len(self._bounds) - 1
        self._bounds[site] = (float(fan_out), float(bandwidth), float(cpu))
        self._used[site] = [0.0, 0.0, 0.0]
        return site

    def fail(self, site: int) -> None:
        """Take a site out."""
        self._failed.add(site)
        for each in self._relieved.get(site, ()):
            del self._relieved[each]

    def relieve(self, machine: frozenset[int]) -> None:
        """Have sites of one machine feed nobody elsewhere."""
        self._relieved |= dict.fromkeys(machine, machine)

    def resume(self, machine: frozenset[int]) -> None:
        """Let sites feed others again."""
        for site in machine:
            self._relieved.pop(site, None)

    def begin(self, view: int, option: Option) -> None:
        """Count what feeding a view asks of sites."""
        for site, amounts in self._asked(view, option).items():
            self._used[site] = [used + amount for used, amount in zip(self._used[site], amounts, strict=True)]

    def end(self, view: int, option: Option) -> None:
        """Take off what feeding a view asked; a site that is not asked for anything bears exactly nothing."""
        for site, amounts in self._asked(view, option).items():
            left = [used - amount for used, amount in zip(self._used[site], amounts, strict=True)]
            # Rounding would add up. Where nobody is fed nothing is sent either.
            self._used[site] = [left[0], left[1] if left[0] else 0.0, max(left[2], 0.0)]

    def excess(self, view: int, option: Option) -> str | None:
        """Say which bound feeding a view would break; None if all can bear it."""
        for site, _, _ in self._feeders(option):
            if site in self._relieved and self.sites[view] not in self._relieved[site]:
                return f"site {site}, which is behind, would feed one more"
        for site, amounts in self._asked(view, option).items():
            for what, used, amount, bound in zip(
                RESOURCES, self._used[site], amounts, self._bounds[site], strict=True
            ):
                if amount > 0 and not used + amount <= bound * NEAR:
                    who = "the source" if site == PUBLISHER else f"site {site}"
                    return f"the {what} of {who} would be {used + amount:g} of {bound:g}"
        return None

    def fan_outs(self) -> dict[int, float]:
        """Return the bound of each site that has not failed."""
        return {site: bounds[0] for site, bounds in self._bounds.items() if site in self}

    def source_is_full(self) -> bool:
        """Tell whether the source can feed nobody more."""
        fan_out, *rest = zip(self._used[PUBLISHER], self._bounds[PUBLISHER], strict=True)
        return fan_out[0] + 1 > fan_out[1] or any(used * NEAR >= bound for used, bound in rest)

    def capacities(self, views: list[int], *, relieved: bool = False) -> Capacities:
        """Return the bounds for some views; sites that failed bear nothing.

        With `relieved`, those that feed nobody at present have no room for that.
        """
        count = len(self._bounds) - 1
        bounds = np.array([self._bounds[site] for site in range(count)], dtype=np.float64).reshape(count, 3)
        bounds[sorted(self._failed)] = 0.0
        if relieved:
            bounds[sorted(self._relieved), :2] = 0.0
        return Capacities(
            np.array([self.sites[view] for view in views], dtype=np.int32),
            np.ascontiguousarray(bounds[:, 0]),
            np.ascontiguousarray(bounds[:, 1]),
            np.ascontiguousarray(bounds[:, 2]),
            *self._bounds[PUBLISHER],
        )

    def _asked(self, view: int, option: Option) -> dict[int, list[float]]:
        asked: dict[int, list[float]] = {}
        for site, sent, sending in self._feeders(option):
            if site == self.sites[view]:
                continue
            row = asked.setdefault(site, [0.0, 0.0, 0.0])
            row[0] += 1
            row[1] += sent
            row[2] += sending
        asked.setdefault(self.sites[view], [0.0, 0.0, 0.0])[2] += option.joining
        return asked

    def _feeders(self, option: Option) -> Iterator[tuple[int, float, float]]:
        feeders = [self.sites[view] for view in option.inputs] or [PUBLISHER]
        return zip(feeders, option.sent, option.sending, strict=True)
