"""The generate job: a workload's rows, made in parallel; the same rows however they are split."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.event import ID
from headgate.jobs.runner import job
from headgate.tables.places import check_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.jobs.runner import Runner

    Maker = Callable[[NDArray[np.int64], int], pa.RecordBatch]


@job
def generate(
    runner: Runner,
    make: Maker,
    schema: pa.Schema,
    count: int,
    output: str,
    *,
    seed: int,
    parts: int | None = None,
) -> None:
    """Write `count` rows of a table to `output`; `make(row numbers, seed)` makes some of them.

    They are made in `parts` tasks, or as many as keep all cores busy.
    """
    check_output(output)
    with runner.step(f"generating {count:,} rows"):
        runner.numbers(count, parts).map(partial(_make, make=make, seed=seed), schema).write(output)


def _make(batches: Iterable[pa.RecordBatch], make: Maker, seed: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield make(np.asarray(batch[ID], np.int64), seed)
