"""What this process may use of the machine; imports nothing heavy."""

from __future__ import annotations

import os
from pathlib import Path


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Return the bytes of memory that this process may hope for."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        # A container's limit; the word "max" stands for none.
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    except (OSError, ValueError):
        return total


def cache_home() -> Path:
    """Return Headgate's own directory under the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "headgate"
