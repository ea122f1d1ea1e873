"""Many events asked about by several threads: all read one index, and each has scratch of its own.

Kernels run without the GIL, and so do many loops of NumPy and Arrow. Events are cut into
runs that threads take one after another; answers, and filters that are left out, come in the order of the
events. A run is answered as if it had been asked about alone: of subscriptions that change meanwhile, it sees
those of some moment of the call.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from headgate.core.arguments import told
from headgate.core.omission import Omissions, tell
from headgate.engine.backend import in_slices
from headgate.errors import EventError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from headgate.contents.portions import Portion
    from headgate.engine.backend import Backend, Column, Events
    from headgate.engine.question import Top

_T = TypeVar("_T")
_S = TypeVar("_S")

LEAST, MOST = 512, 8_192
"""Events of a run: with fewer, what a question costs by itself counts; with more, threads wait at the end."""
MOST_THREADS = 256


def check_threads(threads: object) -> int:
    """Take how many threads are wanted."""
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= MOST_THREADS:
        shown = threads if isinstance(threads, int | float | str) else told(threads)
        raise EventError(f"threads is {shown!r}: give how many, a whole number from 1 to {MOST_THREADS}")
    return threads


def ask(
    backend: Backend, events: Events, ids: Column, top: Top | None, most: int, threads: int
) -> Iterator[Portion]:
    """Do as `Backend.ask`, by several threads."""
    size = max(LEAST, min(MOST, -(-len(events) // threads)))
    if threads == 1 or len(events) <= size:
        yield from backend.ask(events, ids, top, most)
        return

    def run(asked: tuple[int, Events, Column]) -> tuple[list[Portion], Omissions]:
        begin, some, own = asked
        with Omissions() as left_out:
            return [each.moved(begin) for each in backend.ask(some, own, top, most)], left_out

    for found, left_out in spread(run, list(in_slices(events, ids, size)), threads):
        for each in left_out:
            tell(*each)
        yield from found


def spread(work: Callable[[_T], _S], items: Sequence[_T], threads: int) -> list[_S]:
    """Do some work for each of some items, by this thread and others; if it fails, for the first that does.

    >>> spread(str, [1, 2, 3], 2)
    ['1', '2', '3']
    """
    results: dict[int, _S] = {}
    failures: dict[int, BaseException] = {}
    left = iter(range(len(items)))

    def run() -> None:
        # Items are taken in order, so all before the first failure are done whatever comes behind it.
        for place in left:
            if failures:
                return
            try:
                results[place] = work(items[place])
            except BaseException as error:  # noqa: BLE001 -- raised below, in the thread of who asked
                failures[place] = error

    others = min(threads, len(items)) - 1
    pool = _pool(os.getpid(), others) if others > 0 else None
    waiting = [pool.submit(copy_context().run, run) for _ in range(others)] if pool is not None else []
    run()
    for each in waiting:
        # One that has not begun has nothing left to do.
        if not each.cancel():
            each.result()
    if failures:
        raise failures[min(failures)]
    return [results[place] for place in range(len(items))]


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """Return threads that stay, with their scratch; those of a process do not outlive a fork."""
    del process
    return ThreadPoolExecutor(threads, "headgate-matching")
