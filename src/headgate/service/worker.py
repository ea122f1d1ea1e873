"""A thread with a queue: what is given to it is done in order, some at a time."""

from __future__ import annotations

import threading
from collections import deque
from typing import Generic, TypeVar

from headgate.errors import StorageError

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
