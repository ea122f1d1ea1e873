"""Pictures of a network of sites: asked for by pages, never waited for longer than a page may take.

A site that hangs holds up the next picture, and no page: it shows the last one, and how old it is.
"""

from __future__ import annotations

import asyncio
import importlib
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from headgate.console.network_drawing import silent
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.network.assignment import Neighbour
    from headgate.report.network_page import RunningNetwork

_FRESH = 2.0
"""Seconds for which a picture counts as that of now."""
_PATIENCE = 3.0
"""Seconds that a page waits for a new one."""
_KEPT = 8
"""Documents whose pictures are kept."""


class Seen(NamedTuple):
    """What is known of a network."""

    network: RunningNetwork | None
    """None if no picture was ever taken."""
    age: float
    """Seconds."""
    error: HeadgateError | None
    """Why the last look failed."""


@dataclass
class _Kept:
    network: RunningNetwork | None = None
    taken: float = 0.0
    error: HeadgateError | None = None
    looking: asyncio.Task[None] | None = None


@dataclass
class Pictures:
    """The last pictures of a network, by the document whose way they show."""

    sites: Mapping[str, Neighbour]
    levels: dict[str, float] = field(default_factory=dict)
    """The mean level of each site's views when it last had some."""
    feeds: dict[str, dict[str, int]] = field(default_factory=dict)
    """How many views each site fed others, when it last told."""
    _kept: dict[int | None, _Kept] = field(default_factory=dict)

    async def of(self, document: int | None = None) -> Seen:
        """Return the last picture; a new one if it comes soon enough."""
        kept = self._kept.setdefault(document, _Kept())
        if kept.looking is None and time.monotonic() - kept.taken > _FRESH:
            kept.looking = asyncio.get_running_loop().create_task(self._look(document, kept))
        if kept.looking is not None:
            await asyncio.wait([kept.looking], timeout=_PATIENCE)
        while len(self._kept) > _KEPT:
            del self._kept[next(each for each in self._kept if each not in {None, document})]
        return Seen(kept.network, time.monotonic() - kept.taken if kept.taken else 0.0, kept.error)

    async def _look(self, document: int | None, kept: _Kept) -> None:
        try:
            # It loads what draws reports, which takes a while the first time.
            picture = await asyncio.to_thread(importlib.import_module, "headgate.network.picture")
            found: RunningNetwork = await picture.picture_of(self.sites, document)
            kept.network, kept.taken, kept.error = found, time.monotonic(), None
            self._remember(found)
        except HeadgateError as error:
            kept.error = error
        finally:
            kept.looking = None

    def _remember(self, found: RunningNetwork) -> None:
        for site in found.sites:
            if site.levels:
                self.levels[site.name] = sum(site.levels) / len(site.levels)
        told: dict[str, dict[str, int]] = {}
        for feeder, fed, views in found.feeds:
            told.setdefault(feeder, {})[fed] = views
        # Of a site that does not answer it is not known any more, and drawn as it was.
        down = silent(found)
        self.feeds = told | {
            name: each for name, each in self.feeds.items() if name in down and name not in told
        }

    def close(self) -> None:
        """Look no more."""
        for kept in self._kept.values():
            if kept.looking is not None:
                kept.looking.cancel()
