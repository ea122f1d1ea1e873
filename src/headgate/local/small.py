"""Whether tables are small enough for a job in this process: Spark takes 10 seconds to start."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.tables.packed import size_of
from headgate.tables.places import is_remote, table_files

if TYPE_CHECKING:
    from collections.abc import Iterable

BYTES = 16 << 20
"""What tables may have together, on disk."""
ROWS = 200_000
"""How many rows a workload may have."""


def why_large(tables: Iterable[str]) -> str | None:
    """Say why a job over tables is for Spark; None if it is small."""
    size = 0
    for path in tables:
        if is_remote(path):
            return f"{path} is not on this machine"
        size += sum(size_of(file) for file in table_files(path))
    if size > BYTES:
        return f"the tables have {size >> 20:,} MB, and up to {BYTES >> 20} are small"
    return None
