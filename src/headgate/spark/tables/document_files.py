"""Where documents come from: tables with their text in a column, or files that are one event each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.errors import EventError
from headgate.spark.tables.document_names import files_of
from headgate.spark.tables.places import for_reading, is_remote, local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from headgate.contents.kind import Kind

TASK_BYTES = 8 << 20
"""How much a task is given to read, about."""
PATH, LENGTH, CONTENT = "path", "length", "content"
"""The columns of `read_files`; `CONTENT` is null for files that are too large to be read."""


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
        return found
    # Small files would be many tasks, each with a parser process of its own.
    place = local(path)
    size = sum(file.stat().st_size for file in ([place] if place.is_file() else files_of(place)))
    return found.coalesce(max(session.sparkContext.defaultParallelism, size // TASK_BYTES))


def too_large(length: int, kind: Kind) -> EventError:
    """Say that a file is larger than a document may be."""
    return EventError(f"the document has {length:,} bytes: {kind.most:,} are allowed")
