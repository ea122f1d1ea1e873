"""Where documents come from: tables with their text in a column, or files that are one event each."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

from pyspark.sql import functions as sf

from headgate.spark.tables.document_names import files_of
from headgate.spark.tables.places import as_spark, for_reading, is_remote, local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.kind import Kind

TASK_BYTES = 8 << 20
"""How much a task is given to read, about."""
PATH, LENGTH, CONTENT = "path", "length", "content"
"""The columns of `read_files`; `CONTENT` is null for files that hold nothing, or too much to be read."""


def read_files(session: SparkSession, path: str, kind: Kind) -> DataFrame:
    """Read files as rows, those of a folder with those of the folders inside it. No shuffle."""
    files = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(for_reading(path))
    most = kind.most
    small = files.where(sf.col(LENGTH) <= most).select(PATH, LENGTH, CONTENT)
    # Their content is not even read.
    large = files.where(sf.col(LENGTH) > most).select(
        PATH, LENGTH, sf.lit(None).cast("binary").alias(CONTENT)
    )
    found = small.union(large)
    if is_remote(path):
        return _with_empty(found, _left_out(files))
    place = local(path)
    sizes = {file: file.stat().st_size for file in ([place] if place.is_file() else files_of(place))}
    found = _with_empty(found, [as_spark(file) for file, size in sizes.items() if not size])
    # Small files would be many tasks, each with a parser process of its own.
    tasks = sum(sizes.values()) // TASK_BYTES
    return found.coalesce(max(session.sparkContext.defaultParallelism, tasks))


def _left_out(files: DataFrame) -> list[str]:
    """List the files without a byte of another file system: Spark lists them, and then leaves them out."""
    listed = {unquote(file).replace("file:///", "file:/") for file in files.inputFiles()}
    return sorted(listed.difference(row[PATH] for row in files.select(PATH).collect()))


def _with_empty(found: DataFrame, paths: list[str]) -> DataFrame:
    """Add files without a byte, so that they are refused and not lost."""
    if not paths:
        return found
    rows = [(path, 0, None) for path in paths]
    empty = found.sparkSession.createDataFrame(rows, f"{PATH} string, {LENGTH} long, {CONTENT} binary")
    return found.union(empty)
