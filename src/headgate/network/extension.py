"""What a site has besides a service: operations that assign it views, and say how they fare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headgate.network.assignment import Assignment
from headgate.network.link import Located
from headgate.network.site import Site, SiteStatus
from headgate.service.api.operation import ADMIN, READ, Call, in_json, operation
from headgate.service.problems import NotFound
from headgate.service.server import Extension

if TYPE_CHECKING:
    from headgate.service.api.operation import Operation
    from headgate.service.server import Server

OPERATIONS: list[Operation] = []
TENANT = "network"
"""The tenant that has the results."""


class SiteExtension(Extension):
    """A site, in a server."""

    operations = OPERATIONS

    def __init__(self, tenant: str = TENANT) -> None:
        self.derived = tenant
        self.site: Site | None = None

    async def start(self, server: Server) -> None:
        """Go on with what the site was told before."""
        assert self.derived is not None
        self.site = await Site.open(server, await server.tenant(self.derived))

    async def close(self) -> None:
        """End it."""
        if self.site is not None:
            await self.site.close()


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What another site takes: views, and the document after which each is needed."""

    site: str
    views: list[tuple[str | int, int]]
    protocol: int


class SiteQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is asked besides."""

    memory: bool = False
    """Whether the memory of its process is counted."""


def _site(call: Call) -> Site:
    more = call.server.more
    if not isinstance(more, SiteExtension) or more.site is None:
        raise NotFound("this service is no site of a network: start it with `headgate site`")
    if call.tenant is not more.site.tenant:
        raise NotFound(
            f"the key is one of tenant {call.tenant.name!r}, and the network is tenant {more.derived!r}: "
            "use a key of that one"
        )
    return more.site


@operation(
    "PUT",
    "/v1/site",
    ADMIN,
    problems=(404, 409),
    among=OPERATIONS,
    large=True,
    example=in_json('{"network": "n", "site": "a", "epoch": 1, "views": []}'),
)
async def assign_site(call: Call, body: Assignment) -> SiteStatus:
    """Assign views to a site; those that it holds already go on where they are."""
    site = _site(call)
    await site.assign(body)
    return site.status()


@operation("GET", "/v1/site", READ, problems=(404,), among=OPERATIONS)
async def read_site(call: Call, query: SiteQuery) -> SiteStatus:
    """Read how a site fares: its views, how far each has come, and its links."""
    return _site(call).status(memory=query.memory)


@operation("GET", "/v1/site/assignment", ADMIN, problems=(404,), among=OPERATIONS)
async def read_assignment(call: Call) -> Assignment | None:
    """Read what a site was told; null if nothing."""
    return _site(call).assignment


@operation("DELETE", "/v1/site", ADMIN, problems=(404,), among=OPERATIONS)
async def clear_site(call: Call) -> None:
    """Have a site hold no views."""
    await _site(call).clear()


@operation(
    "POST",
    "/v1/site:locate",
    READ,
    problems=(404, 409),
    among=OPERATIONS,
    example=in_json('{"site": "b", "views": [["v1", 0]], "protocol": 1}'),
)
async def locate_views(call: Call, body: Wanted) -> Located:
    """Find where the log of a site has all documents of some views after given ones."""
    return _site(call).locate(body.site, body.views, body.protocol)
