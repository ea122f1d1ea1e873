"""Looking after a network: silent sites are taken out, slow ones relieved, and both come back."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from headgate.errors import NetworkError, ServiceError
from headgate.network.slow_sites import SlowSites

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.network.deployment import Deployment
    from headgate.network.slow_sites import Limits

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
