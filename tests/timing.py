"""How long our own code takes, in a test process that holds a great deal."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Spent:
    """The time that this thread worked; known when the body has ended."""

    seconds: float = float("inf")


@contextmanager
def thread_time() -> Iterator[Spent]:
    """Time the body, without what it takes to look through all that earlier tests have left for garbage."""
    spent = Spent()
    gc.disable()
    begun = time.thread_time()
    try:
        yield spent
    finally:
        spent.seconds = time.thread_time() - begun
        gc.enable()
