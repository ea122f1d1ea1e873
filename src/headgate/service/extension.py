"""What a server may have besides its own operations: a site of a network is a server that has more."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.routing import BaseRoute

    from headgate.service.api.operation import Operation
    from headgate.service.server import Server


class Extension:
    """More operations, and something that runs beside them; this one has nothing."""

    operations: Sequence[Operation] = ()
    derived: str | None = None
    """A tenant whose events can be had again from elsewhere: its writes are not forced to disk one by one."""

    def routes(self, server: Server) -> Sequence[BaseRoute]:
        """List what is answered besides operations of the API."""
        del server
        return ()

    def end_listeners(self) -> None:
        """Have who listens be told that the service stops."""

    async def start(self, server: Server) -> None:
        """Begin, when the server is about to answer."""

    async def close(self) -> None:
        """End, before the tenants are closed."""
