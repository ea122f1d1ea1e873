"""Work beside the service, for pages that ask how far it is: in threads of its own, until it is cancelled."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from headgate.errors import HeadgateError
from headgate.service.worker import telling

_LOG = logging.getLogger("headgate.console")
AT_ONCE = 2
"""Pieces of work of a kind that run at the same time."""


class Work:
    """Something that takes long."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.began = time.monotonic()
        self.ended: float | None = None
        self.error = ""
        """Why it could not be done."""
        self._stop = threading.Event()

    @property
    def cancelled(self) -> bool:
        """Tell whether somebody had it end."""
        return self._stop.is_set()

    def cancel(self) -> None:
        """Have it end soon."""
        self._stop.set()

    def work(self) -> None:
        """Do it all, in the thread that calls."""
        self.error = f"the {self.what} failed: the log of the service says why"
        try:
            self._work()
            self.error = ""
        except HeadgateError as error:
            self.error = str(error)
        finally:
            self.ended = time.monotonic()

    def _work(self) -> None:
        """Do it, and look now and then whether it is cancelled."""
        raise NotImplementedError


WorkT = TypeVar("WorkT", bound=Work)


class Beside(Generic[WorkT]):
    """What runs of a kind."""

    def __init__(self) -> None:
        self.running: dict[WorkT, asyncio.Future[None]] = {}
        # Threads of their own: those that all requests share are never all taken.
        self._threads = ThreadPoolExecutor(AT_ONCE, "headgate-beside")

    def begin(self, work: WorkT) -> None:
        """Begin one; it waits while others run."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, work.work)
        self.running[work] = future
        future.add_done_callback(lambda _: self.running.pop(work))
        future.add_done_callback(telling(_LOG, f"a {work.what} failed"))

    async def close(self) -> None:
        """Have all end: what they read is closed next."""
        for work in self.running:
            work.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self.running:
            await asyncio.wait(self.running.values())
