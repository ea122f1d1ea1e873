"""Rows that workers write to Parquet files themselves, where they see the files of this machine.

Spark takes rows out of Arrow and writes them one by one, ten times as slowly.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext

from headgate.errors import TableError
from headgate.spark.session.session import discard
from headgate.spark.tables.rows import mapped
from headgate.tables.event_rows import REASON, ROW
from headgate.tables.writing import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame

    from headgate.jobs.runner import Work

CODECS: dict[str, Any] = {
    "snappy": "snappy",
    "zstd": "zstd",
    "gzip": "gzip",
    "lz4_raw": "lz4",
    "uncompressed": "none",
}
"""How workers can compress Parquet: Spark's names and Arrow's."""
FILE, KIND, COUNT = "file", "kind", "count"
PARTS_DDL = f"{FILE} string, {KIND} string, {COUNT} long"
"""A file that a task has written: the type of its first column, or `REASON` for rows that are no events."""


class Part(NamedTuple):
    """A file that workers have written."""

    file: Path
    kind: str
    rows: int


class PartsTask(NamedTuple):
    """What workers must know to write files."""

    folder: str
    codec: str
    called: Mapping[str, str]
    """Which columns go into the files, and what they are called there."""


def sees_files(session: Any) -> bool:
    """Tell whether workers surely see the files of this process: on a local master, and not by Connect."""
    context = getattr(session, "_sc", None)
    return context is not None and (context.master or "").startswith("local")


def codec_of(session: Any) -> str | None:
    """Return how a session compresses Parquet; None if workers cannot."""
    codec = (session.conf.get("spark.sql.parquet.compression.codec") or "").lower()
    return codec if codec in CODECS else None


def write_parts(rows: DataFrame, works: Sequence[Work], task: PartsTask) -> list[Part]:
    """Have workers write what comes of rows. No shuffle. Only files of tasks that came to their end count."""
    writing = [partial(write_part, work=work, task=task) for work in works]
    done = mapped(rows, writing, PARTS_DDL).collect()
    return [Part(Path(task.folder) / row[FILE], row[KIND], row[COUNT]) for row in done]


def write_part(batches: Iterable[pa.RecordBatch], work: Work, task: PartsTask) -> Iterator[pa.RecordBatch]:
    """Write what comes of rows to files of this task, if there is anything, and tell of them.

    Files are named by task and attempt, so that one which was cut short is never taken for a whole one. Rows
    with a reason go to a file of their own; so do those whose first column is text among whole numbers.
    """
    context = TaskContext.get()
    assert context is not None
    name = f"part-{context.partitionId():05}-{context.taskAttemptId()}"
    files: dict[str, tuple[str, pq.ParquetWriter]] = {}
    counts: dict[str, int] = {}
    for answers in work(batches):
        if not answers.num_rows:
            continue
        called = dict(task.called)
        kind = "long" if pa.types.is_integer(answers.column(next(iter(called))).type) else "string"
        if REASON in answers.schema.names and answers.column(REASON).null_count < answers.num_rows:
            kind, called = REASON, {ROW: ROW, REASON: REASON}
        rows = answers.select(list(called)).rename_columns(list(called.values()))
        with writing_errors():
            if kind not in files:
                own = f"{name}{f'-{kind}' if files else ''}.{task.codec}.parquet"
                files[kind] = own, open_part(Path(task.folder) / own, rows.schema, task.codec)
            files[kind][1].write_batch(rows)
        counts[kind] = counts.get(kind, 0) + rows.num_rows
    for kind, (own, writer) in files.items():
        with writing_errors():
            writer.close()
        yield pa.RecordBatch.from_pydict({FILE: [own], KIND: [kind], COUNT: [counts[kind]]})


def open_part(file: Path, schema: pa.Schema, codec: str) -> pq.ParquetWriter:
    """Open a file."""
    return pq.ParquetWriter(file, schema, compression=CODECS[codec])


def retype(file: Path, schema: pa.Schema, codec: str) -> None:
    """Write a file with the types that all of the table has: other tasks had text for ids."""
    beside = file.with_suffix(".new")
    with open_part(beside, schema, codec) as writer, pq.ParquetFile(file) as file_read:
        for batch in file_read.iter_batches():
            writer.write_batch(batch.cast(schema))
    beside.replace(file)


@contextmanager
def parts_of(place: str) -> Iterator[tuple[Path, list[Path]]]:
    """Yield a folder for files of workers, and a list for those that become a table at a place."""
    with replacing(place, discard) as folder:
        # The name is one that readers of tables pass over. A task that Spark gave up and that writes on does
        # so into a folder that is gone.
        parts = folder / "_temporary"
        parts.mkdir(parents=True)
        files: list[Path] = []
        yield parts, files
        for file in files:
            file.rename(folder / file.name)
        shutil.rmtree(parts, ignore_errors=True)
        (folder / "_SUCCESS").touch()


@contextmanager
def writing_errors() -> Iterator[None]:
    """Turn what the machine refuses into an error that says so."""
    try:
        yield
    except OSError as error:
        raise TableError(f"matches cannot be written: {error}") from error
