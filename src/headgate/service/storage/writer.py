"""The thread that writes: whatever waits is committed together, and then acknowledged.

While one group is being forced to disk, the next one gathers. So an event alone waits for one commit, and
under load a commit is shared by hundreds.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.service.storage.block import Block
    from headgate.service.storage.log import Log, Write

_MOST = 64
"""Entries that are committed together."""


@dataclass
class Entry:
    """What is committed at once: events, or changes of state, or both."""

    block: Block | None = None
    writes: list[Write] = field(default_factory=list)
    done: Callable[[HeadgateError | None], None] = lambda _: None
    """Is called by the writer when it is on disk, or could not be put there."""


class Writer:
    """Commits entries in their order, in groups."""

    def __init__(self, log: Log, name: str) -> None:
        self._log = log
        self._entries: deque[Entry] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self.commits = 0
        """How many groups were committed."""
        self._thread = threading.Thread(target=self._run, name=f"writer-{name}", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        """Count the entries that wait."""
        return len(self._entries)

    def submit(self, entry: Entry) -> None:
        """Have an entry committed."""
        with self._wake:
            if self._closed:
                raise StorageError("the service is stopping: nothing more is written")
            self._entries.append(entry)
            self._wake.notify()

    def close(self) -> None:
        """Commit what waits, and end."""
        with self._wake:
            self._closed = True
            self._wake.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._entries and not self._closed:
                    self._wake.wait()
                if not self._entries:
                    return
                group = [self._entries.popleft() for _ in range(min(_MOST, len(self._entries)))]
            self._commit(group)

    def _commit(self, group: list[Entry]) -> None:
        try:
            self._log.append(
                [entry.block for entry in group if entry.block is not None],
                [write for entry in group for write in entry.writes],
            )
        except HeadgateError as error:
            # One of them may be at fault, as one that is too large for what is left of a disk.
            if len(group) > 1:
                for entry in group:
                    self._commit([entry])
                return
            failed: HeadgateError | None = error
        else:
            failed = None
            self.commits += 1
        for entry in group:
            entry.done(failed)
