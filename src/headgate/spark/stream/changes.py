"""Changes of subscriptions, as they come: rows of JSON or Parquet, from a folder or a broker.

{"op": "subscribe", "id": …, "filter": …, "dialect": …, "score": …, "weights": …, "node": …}
{"op": "unsubscribe", "id": …}
{"op": "score", "id": …, "score": …}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.spark.stream.settings import NATS

if TYPE_CHECKING:
    from headgate.spark.stream.settings import StreamSettings


class Change(NamedTuple):
    """A row as it came, not yet looked at, and where it came from."""

    row: bytes
    """One JSON object; what is none is refused by whoever applies it."""
    origin: str
    """The file or the subject."""


class Changes(Protocol):
    """Where changes come from. It is asked before each batch, by one thread."""

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """List the changes after a position, in order, and the position after them.

        None stands for the beginning. What it returns is kept in the stream's state together with the
        changes, and given back after a crash: so a change is never lost nor applied twice. Without anything
        new it returns no changes and the same position, at once.
        """

    def close(self) -> None:
        """End what was opened."""


def open_changes(settings: StreamSettings) -> Changes | None:
    """Open the source of changes that the settings name, if they name one."""
    if settings.changes is None:
        return None
    if settings.changes.startswith(NATS):
        from headgate.spark.nats.changes import NatsChanges

        return NatsChanges(settings)
    from headgate.spark.stream.file_changes import FileChanges

    return FileChanges(settings.changes)
