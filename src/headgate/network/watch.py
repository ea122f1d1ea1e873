"""Looking after a network: silent sites are taken out, slow ones relieved, and both come back.

A site is behind if its views have not come to what their inputs have given. So a slow site is behind, and
those that it feeds are not: they have come as far as it has. How far it is behind is counted in seconds:
since when there has been something for a view that it has not come to.

    behind for longer than `high`, and four times as long as half of the others   it is relieved
    less than `low` behind, for `hold` seconds                                    it is taken back

Each time that a site is relieved again, `hold` is twice as long as before. Where most sites are behind, the
machines are too small for all of it, and moving views about would not help.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import NetworkError, ServiceError
from headgate.network.assignment import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.core.event import Id
    from headgate.network.assignment import Assignment
    from headgate.network.deployment import Deployment
    from headgate.network.site import SiteStatus


_MOST = 256
"""Moments that are remembered of a view."""
_OTHERS = 4.0
"""How many times as far behind as half of the others a slow site is, at least."""
_LONGEST = 600.0
"""Seconds that a site is relieved after it has caught up, at most."""


@dataclass(frozen=True)
class Limits:
    """When a site is relieved, and taken back; in seconds."""

    high: float = 5.0
    low: float = 1.5
    hold: float = 20.0


class Advice(NamedTuple):
    """Sites to relieve, one at a time, and sites to take back."""

    relieve: tuple[str, ...]
    take_back: tuple[str, ...]


class SlowSites:
    """Looks at sites again and again, and says which to relieve."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._there: dict[tuple[str, Id], deque[tuple[float, int]]] = {}
        """Of each view at its site: when there was something to come to, which it has not."""
        self._relieved: dict[str, float] = {}
        """Sites that are relieved, and since when they have kept up."""
        self._times: dict[str, int] = {}
        """How often each site was relieved."""

    def look(
        self, now: float, told: Mapping[str, Assignment], statuses: Mapping[str, SiteStatus | None]
    ) -> Advice:
        """Look at all sites, as they were told and as they fare."""
        lags = self.lags(now, told, statuses)
        for name in set(self._relieved) - set(lags):
            del self._relieved[name]
        back = []
        for name, since in list(self._relieved.items()):
            if lags[name] > self.limits.low:
                self._relieved[name] = now
            elif now - since >= self._hold(name):
                del self._relieved[name]
                back.append(name)
        slow = None
        feeding = {name for name in lags if told[name].feeds and name not in self._relieved}
        if feeding:
            slow = max(sorted(feeding), key=lags.__getitem__)
            others = [lag for name, lag in lags.items() if name != slow]
            usual = statistics.median(others) if others else 0.0
            if lags[slow] < self.limits.high or lags[slow] < _OTHERS * usual:
                slow = None
        if slow is not None:
            self._relieved[slow] = now
            self._times[slow] = self._times.get(slow, 0) + 1
        return Advice(() if slow is None else (slow,), tuple(back))

    def lags(
        self, now: float, told: Mapping[str, Assignment], statuses: Mapping[str, SiteStatus | None]
    ) -> dict[str, float]:
        """Return for how many seconds each site has been behind its inputs."""
        reached = {
            (name, view.id): view.reached
            for name, status in statuses.items()
            if status is not None
            for view in status.views
        }
        lags: dict[str, float] = {}
        there: dict[tuple[str, Id], deque[tuple[float, int]]] = {}
        for name, assignment in told.items():
            if name == SOURCE or statuses.get(name) is None:
                continue
            lags[name] = 0.0
            for view in assignment.views:
                key = (name, view.id)
                inputs = [reached.get((each.site, each.view)) for each in view.inputs]
                known = [each for each in inputs if each is not None]
                if key not in reached or len(known) < len(inputs):
                    continue
                moments = there[key] = self._there.get(key, deque())
                upto = min(known)
                if upto > reached[key] and (not moments or upto > moments[-1][1]):
                    moments.append((now, upto))
                while moments and moments[0][1] <= reached[key]:
                    moments.popleft()
                if len(moments) > _MOST:
                    del moments[1]
                if moments:
                    lags[name] = max(lags[name], now - moments[0][0])
        self._there = there
        return lags

    def _hold(self, name: str) -> float:
        return min(_LONGEST, self.limits.hold * float(2 ** (self._times[name] - 1)))


LOOK = 0.5
"""Seconds between looks."""


async def watch(
    deployment: Deployment,
    tell: Callable[[str], None],
    seconds: float = LOOK,
    limits: Limits | None = None,
) -> None:
    """Look after a network until this is cancelled; `tell` gets a line for each thing that is done."""
    failing = ""
    slow = SlowSites(limits)
    while True:
        try:
            repaired = await deployment.repair()
            if repaired is not None:
                tell(
                    f"{_sites(repaired.failed)} does not answer: {len(repaired.moved):,} views are fed in "
                    f"another way, {len(repaired.unfed):,} by nobody, after {repaired.seconds:.2f} s"
                )
            back = await deployment.admit() if deployment.failed else ()
            if back:
                tell(f"{_sites(back)} is back, and catches up")
            if repaired is None and not back:
                await _relieve(deployment, slow, tell)
            failing = ""
        except (ServiceError, NetworkError) as error:
            # Said once: it is tried again until it works.
            if str(error) != failing:
                failing = str(error)
                tell(failing)
        await asyncio.sleep(seconds)


async def _relieve(deployment: Deployment, slow: SlowSites, tell: Callable[[str], None]) -> None:
    """Relieve a site that cannot keep up, and take back those that do again."""
    advice = slow.look(time.monotonic(), deployment.told, deployment.seen)
    for name in advice.relieve:
        moved = await deployment.relieve(name)
        tell(f"site {name!r} is behind: {len(moved):,} views that it fed are fed in another way")
    for name in advice.take_back:
        if name in deployment.relieved:
            moved = await deployment.take_back(name)
            tell(f"site {name!r} has caught up: it feeds {len(moved):,} views again")


def _sites(names: tuple[str, ...]) -> str:
    return f"site {names[0]!r}" if len(names) == 1 else f"{len(names)} sites ({', '.join(names[:3])} …)"
