"""How long things are kept.

Events by age and size, answers by age. A consumer that is behind is told what it missed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headgate.service.storage.answers import KEPT, forget

if TYPE_CHECKING:
    from headgate.service.storage.log import Log, Write
    from headgate.service.storage.store import Store

_STEP = 1_000
"""Blocks that are looked at together."""


def keep_until(store: Store, seconds: float, size: int) -> int:
    """Return the position before which events are to be forgotten.

    Older, or beyond the size, counted from the end.
    """
    now = time.time_ns() // 1_000
    by_age = store.log.at_time(now - int(seconds * 1e6))
    return max(by_age, _by_size(store, size))


def _by_size(store: Store, size: int) -> int:
    end, total = 1 << 62, 0
    while True:
        rows = store.database.rows(
            "SELECT first, length(block) FROM blocks WHERE first < ? ORDER BY first DESC LIMIT ?", end, _STEP
        )
        for first, length in rows:
            total += length
            if total > size:
                # The newest block stays, however large it is.
                return first + 1 if end != 1 << 62 else 0
            end = first
        if len(rows) < _STEP:
            return 0


def trimming(log: Log, before: int) -> list[Write]:
    """Return what forgets events before a position, and answers that are too old to be asked for again."""
    return [log.trimming(before), forget(time.time_ns() // 1_000 - KEPT * 1_000_000)]
