"""The generate job in this process: a workload's rows, the same as Spark makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.runtime.progress import step
from headgate.tables.writing import writing

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from numpy.typing import NDArray

    Maker = Callable[[NDArray[np.int64], int], pa.RecordBatch]

BATCH = 10_000


def generate(
    make: Maker, schema: pa.Schema, count: int, output: str, *, seed: int, quiet: bool = False
) -> None:
    """Write `count` rows of a table to `output`; `make(row numbers, seed)` makes some of them."""
    with step(f"generating {count:,} rows", quiet=quiet), writing(output, schema) as write:
        for begin in range(0, count, BATCH):
            write(make(np.arange(begin, min(count, begin + BATCH), dtype=np.int64), seed))
