"""The network: sites by level, what flows between them, who is behind, and the way of one document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.console.network_drawing import GOOD, LATE, draw, draw_ways, silent, waits_for
from headgate.console.view import View, page
from headgate.service.api.operation import ADMIN
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from starlette.responses import Response


@page("GET", "/console/network")
async def network(view: View) -> Response:
    """Show the network, or what one is."""
    check_scope(view.key, ADMIN)
    if not view.console.pictures.sites:
        return view.shown("network_empty.html.j2")
    file = getattr(view.server.settings, "network", None) or "sites.jsonl"
    return view.shown("network.html.j2", file=file, **await _values(view))


@page("GET", "/console/network/live")
async def live(view: View) -> Response:
    """Give the network as it is now."""
    check_scope(view.key, ADMIN)
    return view.part("network_live.html.j2", **await _values(view))


async def _values(view: View) -> dict[str, Any]:
    document = view.number("document") or None
    seen = await view.console.pictures.of(document)
    found: dict[str, Any] = {
        "seen": seen,
        "asked": document,
        "network": seen.network,
        "good": GOOD,
        "slow": LATE,
    }
    if seen.network is None:
        return found
    kept, sites = view.console.pictures, seen.network.sites
    down = silent(seen.network)
    waiting = {each.name: name for each in sites if (name := waits_for(each, down)) is not None}
    broken = [each for each in sites if each.state != GOOD and each.name not in waiting]
    late = [each for each in sites if each.name in waiting or (each.state == GOOD and each.behind > LATE)]
    held = [each for each in sites[1:] if each.levels]
    return found | {
        "drawing": draw(seen.network, kept.levels, kept.feeds),
        "ways": draw_ways(seen.network.ways),
        "waiting": waiting,
        "broken": broken,
        "late": sorted(late, key=lambda each: -each.behind),
        "rest": [each for each in sites if each not in broken and each not in late],
        "views": sum(len(each.levels) for each in held),
        "levels": max((max(each.levels) for each in held), default=0),
        "feeds": sorted(seen.network.feeds, key=lambda each: -each[2]),
    }
