"""What a site has besides a service: operations that assign it views, and say how they fare."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headgate.errors import NetworkError
from headgate.network.assignment import Assignment
from headgate.network.link import Located
from headgate.network.site import Site, SiteStatus
from headgate.service.api.operation import ADMIN, READ, Answer, Call, in_json, operation
from headgate.service.extension import Extension
from headgate.service.problems import Conflict, NotFound

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
    "Assign views to a site; those that it holds already go on where they are.",
    ADMIN,
    {200: SiteStatus},
    body=Assignment,
    problems=(404, 409),
    among=OPERATIONS,
    large=True,
    example=in_json('{"network": "n", "site": "a", "epoch": 1, "views": []}'),
)
async def assign_site(call: Call) -> Answer:
    """Assign views."""
    site = _site(call)
    try:
        await site.assign(call.said(Assignment))
    except NetworkError as error:
        raise Conflict(str(error)) from None
    return Answer(site.status())


@operation(
    "GET",
    "/v1/site",
    "Read how a site fares: its views, how far each has come, and its links.",
    READ,
    {200: SiteStatus},
    query=SiteQuery,
    problems=(400, 404),
    among=OPERATIONS,
)
async def read_site(call: Call) -> Answer:
    """Read how a site fares."""
    return Answer(_site(call).status(memory=call.query(SiteQuery).memory))


@operation(
    "GET",
    "/v1/site/assignment",
    "Read what a site was told; null if nothing.",
    ADMIN,
    {200: Assignment | None},
    problems=(404,),
    among=OPERATIONS,
)
async def read_assignment(call: Call) -> Answer:
    """Read what a site was told."""
    return Answer(_site(call).assignment)


@operation(
    "DELETE",
    "/v1/site",
    "Have a site hold no views.",
    ADMIN,
    {204: None},
    problems=(404,),
    among=OPERATIONS,
)
async def clear_site(call: Call) -> Answer:
    """Clear a site."""
    await _site(call).clear()
    return Answer(status=204)


@operation(
    "POST",
    "/v1/site:locate",
    "Find where the log of a site has all documents of some views after given ones.",
    READ,
    {200: Located},
    body=Wanted,
    problems=(404, 409),
    among=OPERATIONS,
    example=in_json('{"site": "b", "views": [["v1", 0]], "protocol": 1}'),
)
async def locate_views(call: Call) -> Answer:
    """Find where a site's log has some views."""
    said = call.said(Wanted)
    try:
        return Answer(_site(call).locate(said.site, said.views, said.protocol))
    except NetworkError as error:
        raise Conflict(str(error)) from None
