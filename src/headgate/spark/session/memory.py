"""How much memory the workers of a session have."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.core.machine import cores, memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKER_MEMORY = "spark.executor.pyspark.memory"
_MOST_MAPPED = 8 << 30
"""Bytes of snapshots that a worker maps together, at most: its machine may have less than the driver's."""
_LIBRARIES = 1 << 30
"""Bytes that a worker maps before it has any snapshot, about."""
_UNITS = {"b": 0, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def worker_memory(session: SparkSession) -> int:
    """Return how many bytes of snapshots a worker should have in memory at once.

    Pages are shared by the workers of a machine. A limit for workers counts what they map, and they may still
    have the snapshot before.
    """
    given = session.conf.get(WORKER_MEMORY, None)
    if given is None:
        return min(memory() // 2, _MOST_MAPPED)
    limit = read_size(given)
    return max(limit - _LIBRARIES, limit // 4) // 4


def building_memory(session: SparkSession) -> int:
    """Return how many bytes a worker may take to build a shard: all cores build at once."""
    limit = session.conf.get(WORKER_MEMORY, None)
    return memory() // 2 // cores() if limit is None else read_size(limit) // 2


def read_size(text: str) -> int:
    """Read a size as Spark writes it; without a unit it is in MiB.

    >>> read_size("2g"), read_size("512"), read_size("64KiB")
    (2147483648, 536870912, 65536)
    """
    found = re.fullmatch(r"(\d+)\s*([bkmgtp]?)(?:i?b)?", text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is not a size")
    return int(found[1]) << _UNITS[found[2] or "m"]
