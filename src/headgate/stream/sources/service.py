"""The log of events that a service keeps, as a source of streams, over HTTP."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.stream.sources.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.client.log import LogSettings
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sources.logs import Log


class Service(Source):
    """A service; it takes no matches and gives no changes."""

    title, name = "a service", "service"
    schemes = ("http://", "https://")
    local = True

    def check(self, settings: StreamSettings) -> None:
        """Refuse a service that is no source of events."""
        if self.has(settings.output) or self.has(settings.changes):
            raise TableError(
                "a service is a source of events alone: matches go to a folder, nats:// or kafka://, and "
                "changes of subscriptions come from a folder or nats://"
            )

    def ask(self, settings: StreamSettings) -> None:
        """Ask whether the log can be read."""
        from headgate.stream.sources.service_log import ServiceLog

        with closing(ServiceLog(self._read(settings), patient=False)) as log:
            log.state()

    def log(self, settings: StreamSettings) -> Callable[[], Log]:
        """Return what opens the log."""
        from headgate.stream.sources.service_log import ServiceLog

        return partial(ServiceLog, self._read(settings))

    def _read(self, settings: StreamSettings) -> LogSettings:
        """Read an address; what it says itself goes before the options."""
        from headgate.client.asking import KEY
        from headgate.client.log import LogSettings

        shared = self.shared(settings.options)
        # Workers have an environment of their own.
        key = shared.pop("key", None) or os.environ.get(KEY)
        return LogSettings.of(settings.events, shared, max_rows=settings.max_rows, key=key)
