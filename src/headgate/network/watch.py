"""Looking after a network: sites that do not answer are taken out, sites that answer again come back."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from headgate.errors import NetworkError, ServiceError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.network.deployment import Deployment

LOOK = 0.5
"""Seconds between looks."""


async def watch(deployment: Deployment, tell: Callable[[str], None], seconds: float = LOOK) -> None:
    """Look after a network until this is cancelled; `tell` gets a line for each thing that is done."""
    failing = ""
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
            failing = ""
        except (ServiceError, NetworkError) as error:
            # Said once: it is tried again until it works.
            if str(error) != failing:
                failing = str(error)
                tell(failing)
        await asyncio.sleep(seconds)


def _sites(names: tuple[str, ...]) -> str:
    return f"site {names[0]!r}" if len(names) == 1 else f"{len(names)} sites ({', '.join(names[:3])} …)"
