"""Answers written to Parquet by the workers that found them.

Spark takes rows out of Arrow and writes them one by one, which takes several times the CPU. That can be left
out for what `match` and the other functions return, as long as nothing was done to it since.
"""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from headgate.errors import TableError
from headgate.spark.frames.columns import check_frame
from headgate.spark.jobs.match.worker import CODECS, FILE, writing_errors
from headgate.spark.session.session import discard
from headgate.spark.tables.groups import mapped
from headgate.tables.places import is_remote, local
from headgate.tables.writing import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from os import PathLike

    from pyspark.sql import DataFrame

    from headgate.spark.tables.groups import Work

ERROR, OVERWRITE = MODES = ("error", "overwrite")
"""What becomes of a table that is there: it is kept, and refused; or it is replaced."""


class Answered(NamedTuple):
    """How an answer is found: what workers do with which rows."""

    rows: DataFrame
    works: Sequence[Work]
    columns: tuple[str, ...]
    """What workers call the columns of the answer, in their order."""


_ANSWERS: WeakKeyDictionary[DataFrame, Answered] = WeakKeyDictionary()


def answered(found: DataFrame, how: Answered) -> DataFrame:
    """Note how an answer is found; returns it."""
    _ANSWERS[found] = how
    return found


def write_parquet(found: DataFrame, path: str | PathLike[str], *, mode: str = ERROR) -> None:
    """Write what `match` and `top` return to Parquet, as `found.write.parquet(path)` does.

    The workers write it, which takes less CPU. Where they may not see this machine's files, or if something
    was done to the DataFrame since, Spark writes it. A table that is there is an error, unless `mode` is
    "overwrite"; then it stays as it is until the new one is whole.

    >>> write_parquet(match(events, "snapshot"), "matches.parquet")  # doctest: +SKIP
    """
    check_frame(found, "matches")
    place = os.fspath(path)
    if mode not in MODES:
        raise TableError(f"mode is {mode!r}: use {' or '.join(map(repr, MODES))}")
    if found.isStreaming:
        raise TableError("this DataFrame is a stream: use its writeStream")
    how = _ANSWERS.get(found)
    codec = _codec(found)
    if how is None or codec is None or is_remote(place) or not _sees_files(found):
        found.write.mode(mode).parquet(place)
        return
    if mode == ERROR and local(place).exists():
        raise TableError(f"{place} is there already: remove it, or give mode='overwrite'")
    called = dict(zip(how.columns, found.columns, strict=True))
    with replacing(place, discard) as folder:
        # The name is one that readers of tables pass over. A task that Spark gave up and that writes on does
        # so into a folder that is gone.
        parts = folder / "_temporary"
        parts.mkdir(parents=True)
        works = [
            partial(write_answers, work=work, called=called, parts=str(parts), codec=codec)
            for work in how.works
        ]
        done = mapped(how.rows, works, f"{FILE} string").collect()
        for row in done:
            (parts / row[FILE]).rename(folder / row[FILE])
        shutil.rmtree(parts)
        if not done:
            # Else the table would have no columns.
            none = found.sparkSession.createDataFrame([], found.schema)
            none.write.mode(OVERWRITE).parquet(f"file://{folder}")
        (folder / "_SUCCESS").touch()


def _codec(found: DataFrame) -> str | None:
    """Return how the session compresses Parquet; None if workers cannot."""
    codec = (found.sparkSession.conf.get("spark.sql.parquet.compression.codec") or "").lower()
    return codec if codec in CODECS else None


def _sees_files(found: DataFrame) -> bool:
    """Tell whether workers surely see the files of this process: on a local master, and not by Connect."""
    session: Any = found.sparkSession
    context = getattr(session, "_sc", None)
    return context is not None and (context.master or "").startswith("local")


def write_answers(
    batches: Iterable[pa.RecordBatch], work: Work, called: Mapping[str, str], parts: str, codec: str
) -> Iterator[pa.RecordBatch]:
    """Find answers, write them to a file of this task, if there are any, and tell its name.

    `called` says which columns of the answers go into the file, and what they are called there. Files are
    named by task and attempt, so that one which was cut short is never taken for a whole one.
    """
    context = TaskContext.get()
    assert context is not None
    name = f"part-{context.partitionId():05}-{context.taskAttemptId()}.{codec}.parquet"
    writer: pq.ParquetWriter | None = None
    for found in work(batches):
        if not found.num_rows:
            continue
        named = {called[given]: found.column(given) for given in called}
        rows = pa.RecordBatch.from_pydict(named)
        with writing_errors():
            if writer is None:
                writer = pq.ParquetWriter(Path(parts) / name, rows.schema, compression=CODECS[codec])
            writer.write_batch(rows)
    if writer is not None:
        with writing_errors():
            writer.close()
        yield pa.RecordBatch.from_pydict({FILE: [name]})
