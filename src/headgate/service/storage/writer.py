"""The thread that writes: whatever waits is committed together, and then acknowledged.

While one group is being forced to disk, the next one gathers. So an event alone waits for one commit, and
under load a commit is shared by hundreds.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError, StorageError
from headgate.service.worker import Worker

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    from headgate.service.storage.block import Block
    from headgate.service.storage.log import Log, Write

_LOG = logging.getLogger("headgate.service")
_MOST = 64
"""Entries that are committed together."""


@dataclass
class Entry:
    """What is committed at once: events, or changes of state, or both."""

    block: Block | None = None
    writes: list[Write] = field(default_factory=list)
    done: Callable[[HeadgateError | None], None] = lambda _: None
    """Is called by the writer when it is on disk, or could not be put there."""


class Writer(Worker[Entry]):
    """Commits entries in their order, in groups."""

    def __init__(self, log: Log, name: str) -> None:
        super().__init__(f"writer-{name}")
        self._log = log
        self.start()

    def _take(self, items: deque[Entry]) -> list[Entry]:
        return [items.popleft() for _ in range(min(_MOST, len(items)))]

    def _do(self, items: list[Entry]) -> None:
        self._commit(items)

    def _commit(self, group: list[Entry]) -> None:
        try:
            self._log.append(
                [entry.block for entry in group if entry.block is not None],
                [write for entry in group for write in entry.writes],
            )
        except Exception as error:  # noqa: BLE001 -- others must go on
            # One of them may be at fault, as one that is too large for what is left of a disk.
            if len(group) > 1:
                for entry in group:
                    self._commit([entry])
                return
            group[0].done(_told(error))
            return
        for entry in group:
            entry.done(None)


def _told(error: Exception) -> HeadgateError:
    """Return what is answered for an entry that could not be committed; a defect of ours is logged."""
    if isinstance(error, HeadgateError):
        return error
    _LOG.error("an entry could not be written", exc_info=error)
    return StorageError("the service could not write this: its log says why")
