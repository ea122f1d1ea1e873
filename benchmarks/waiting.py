"""How long the threads of this process and of those below it waited for a core.

The kernel counts for each thread the nanoseconds that it ran, and those in which it could have run and had no
core. By these a reader tells a slow program from a busy machine.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Waits = dict[str, tuple[int, int]]


def processes_below(process: int) -> Iterator[int]:
    """List the processes that a process started, and those that they started."""
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text("ascii").split()
        except OSError:
            # A thread may end while its siblings are read.
            continue
        for child in map(int, children):
            yield child
            yield from processes_below(child)


def waited() -> Waits:
    """Read for each living thread the nanoseconds that it ran, and those that it waited."""
    found: Waits = {}
    for process in (os.getpid(), *processes_below(os.getpid())):
        for place in Path(f"/proc/{process}/task").glob("*/schedstat"):
            try:
                ran, queued, _ = map(int, place.read_text("ascii").split())
            except OSError:
                continue
            found[str(place)] = ran, queued
    return found


def share_waited(before: Waits, after: Waits) -> float:
    """Return the share of their time that threads waited; those that ended in between are not counted."""
    ran = queued = 0
    for thread, (its_ran, its_queued) in after.items():
        first = before.get(thread, (0, 0))
        ran += its_ran - first[0]
        queued += its_queued - first[1]
    return queued / max(1, ran + queued)
