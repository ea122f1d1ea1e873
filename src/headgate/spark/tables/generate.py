"""The generate job: a workload's rows, made in parallel; the same rows however they are split."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.spark.session.progress import watch
from headgate.spark.session.session import spark_errors
from headgate.spark.session.settings import in_own_session
from headgate.spark.tables.tables import write_table
from headgate.tables.places import check_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    Maker = Callable[[NDArray[np.int64], int], pa.RecordBatch]

BATCH = 10_000


@in_own_session
def generate(
    session: SparkSession,
    make: Maker,
    schema: pa.Schema,
    count: int,
    output: str,
    *,
    seed: int,
    parts: int | None = None,
    quiet: bool = False,
) -> None:
    """Write `count` rows of a table to `output`; `make(row numbers, seed)` makes some of them.

    They are made in `parts` tasks, or as many as keep all cores busy.
    """
    check_output(output)
    parallel = session.sparkContext.defaultParallelism
    parts = parts or max(1, min(4 * parallel, count // BATCH))
    with spark_errors(), watch(session, f"generating {count:,} rows", quiet=quiet):
        rows = session.range(0, count, 1, parts).mapInArrow(
            partial(_make, make=make, seed=seed), from_arrow_schema(schema)
        )
        write_table(rows, output)


def _make(batches: Iterator[pa.RecordBatch], make: Maker, seed: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield make(np.asarray(batch["id"], np.int64), seed)
