"""Which changes a snapshot contains: the position of their log when its tables were read.

Whoever writes the tables does so first, and tells the change afterwards. So what the log has before tables
are read is in them, and a stream that opens the snapshot applies the log from this position on. Changes that
are in the tables already and come later in the log are applied once more, which gives the same subscriptions.
"""

from __future__ import annotations

from typing import Any

from headgate.errors import TableError
from headgate.runtime.questions import check_changes

NATS, KAFKA = "nats://", "kafka://"


def check_log(place: str | None) -> None:
    """Refuse a log of changes that is not there; servers are not asked."""
    if place is None or place.startswith(NATS):
        return
    if place.startswith(KAFKA):
        raise TableError("changes of subscriptions come from a folder or from nats://, not from Kafka")
    check_changes(place)


def contained(place: str | None) -> dict[str, Any] | None:
    """Return what a snapshot says that is compiled of tables read from now on; None without a log."""
    check_log(place)
    if place is None:
        return None
    if place.startswith(NATS):
        from headgate.brokers.nats.settings import NatsSettings
        from headgate.brokers.nats.stream import Stream

        with Stream(NatsSettings.of(place, {})) as stream:
            return {"source": "nats", "position": stream.state().position}
    from headgate.runtime.changes import FileChanges

    return {"source": FileChanges.source, "position": FileChanges(place).end()}
