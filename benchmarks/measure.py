"""Timing on a noisy machine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def best(work: Callable[[], object], times: int = 3) -> float:
    """Return the seconds of the quickest of some runs, after one that is not counted."""
    work()
    found = []
    for _ in range(times):
        begun = time.perf_counter()
        work()
        found.append(time.perf_counter() - begun)
    return min(found)


def once(work: Callable[[], object]) -> float:
    """Return the seconds of one run."""
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
