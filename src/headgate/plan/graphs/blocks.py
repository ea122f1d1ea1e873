"""Targets by blocks, several threads at once; which thread takes which block does not show in the result."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Ints32

Part = TypeVar("Part")


def search_blocks(search: Callable[[Ints32], Part], targets: Ints32, size: int, threads: int) -> list[Part]:
    """Return what is found for each block of so many targets, in their order."""
    with ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(search, targets[first : first + size]) for first in range(0, len(targets), size)]
        try:
            return [job.result() for job in jobs]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
