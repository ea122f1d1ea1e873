"""A thread with a queue: what is given to it is done in order, some at a time.

While one group is being forced to disk, the next one gathers. So an event alone waits for one commit, and
under load a commit is shared by hundreds.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from headgate.errors import HeadgateError, StorageError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any

    from headgate.service.storage.log import Block, Log, Write


_Item = TypeVar("_Item")


class Worker(Generic[_Item]):
    """Takes items from any thread, and does them in its own until it is closed."""

    def __init__(self, name: str) -> None:
        self._items: deque[_Item] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def __len__(self) -> int:
        """Count the items that wait."""
        return len(self._items)

    def start(self) -> None:
        """Begin, when all is there that doing needs."""
        self._thread.start()

    def submit(self, item: _Item) -> None:
        """Have an item done."""
        with self._wake:
            if self._closed:
                raise StorageError("the service is stopping: nothing more is taken")
            self._items.append(item)
            self._wake.notify()

    def close(self) -> None:
        """Do what waits, and end."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._items and not self._closed:
                    self._wake.wait()
                if not self._items:
                    return
                some = self._take(self._items)
            self._do(some)

    def _take(self, items: deque[_Item]) -> list[_Item]:
        """Take the items that are done next, at least one."""
        raise NotImplementedError

    def _do(self, items: list[_Item]) -> None:
        """Do items. What this raises ends the thread, so it raises nothing."""
        raise NotImplementedError


_LOG = logging.getLogger("headgate.service")


def telling(log: logging.Logger, what: str) -> Callable[[asyncio.Future[Any]], None]:
    """Return what logs why something that ran beside others failed, if it did; an error of ours in a line."""

    def ended(task: asyncio.Future[Any]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("%s: %s", what, error, exc_info=None if isinstance(error, HeadgateError) else error)

    return ended


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
