"""The log of events that a service keeps, as a source of streams and of DataFrames, over HTTP."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from headgate.client.asking import KEY
from headgate.client.log import EventLog, LogSettings

if TYPE_CHECKING:
    from headgate.stream.settings import StreamSettings

PREFIX = "service."
"""Before the names of settings of a service among the `options` of a stream."""


def events_of(settings: StreamSettings) -> LogSettings:
    """Return where events come from; what the address says itself goes before the options."""
    shared = {
        name.removeprefix(PREFIX): value
        for name, value in settings.options.items()
        if name.startswith(PREFIX)
    }
    # Workers have an environment of their own.
    key = shared.pop("key", None) or os.environ.get(KEY)
    return LogSettings.of(settings.events, shared, max_rows=settings.max_rows, key=key)


def check(settings: StreamSettings) -> None:
    """Ask a service before any work whether its log can be read."""
    with EventLog(events_of(settings), patient=False) as log:
        log.state()
