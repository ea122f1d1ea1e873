"""Where RDF events come from: tables with their text in a column, or files that are one event each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.core.event import JSON_LD, N_TRIPLES, RDF_TYPES, RDF_XML, RSS, TURTLE, media_type
from headgate.errors import EventError, TableError
from headgate.rdf.reading import Reader
from headgate.rdf.screening import Limits
from headgate.rdf.taxonomy import Taxonomy
from headgate.spark.tables import ENDINGS, Format, check_input, for_reading, is_remote, local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

SUFFIXES = {
    ".ttl": TURTLE,
    ".nt": N_TRIPLES,
    ".rdf": RDF_XML,
    ".owl": RDF_XML,
    ".xml": RDF_XML,
    ".jsonld": JSON_LD,
    ".rss": RSS,
}
"""The content types of files, by the endings of their names."""
TASK_BYTES = 8 << 20
"""How much a task is given to read, about."""
_VOCABULARY = Limits(size=1 << 30, triples=20_000_000, terms=1 << 30, seconds=600, memory=8 << 30)
"""A taxonomy is our own, and may be large; it is read in this process."""
PATH, LENGTH, CONTENT = "path", "length", "content"
"""The columns of `read_files`; `CONTENT` is null for files that are too large to be read."""


def type_of_file(name: str) -> str | None:
    """Find the content type of a file by its name.

    >>> type_of_file("feeds/News.RSS"), type_of_file("README")
    ('application/rss+xml', None)
    """
    return SUFFIXES.get(Path(name).suffix.lower())


def check_type(content_type: str | None) -> str | None:
    """Return the media type that is meant, if any is; refuses one that is not RDF."""
    kind = None if content_type is None else media_type(content_type)
    if content_type is not None and kind is None:
        raise TableError(f"{content_type!r} is no format of RDF: use {', '.join(RDF_TYPES)}")
    return kind


def check_events(path: str, content_type: str | None = None) -> Format | None:
    """Tell the format of a table of events; None for files. Refuses what is neither, before Spark starts."""
    kind = check_type(content_type)
    if not is_remote(path) and not local(path).exists():
        raise TableError(f"{path} does not exist")
    suffixes = _suffixes(path)
    if suffixes.isdisjoint(SUFFIXES) and not suffixes.isdisjoint(ENDINGS):
        return check_input(path)
    if suffixes.isdisjoint(SUFFIXES) and kind is None:
        known = ", ".join((*ENDINGS, *SUFFIXES))
        raise TableError(f"the format of {path} is not clear: name it with one of {known}, or say --format")
    return None


def _suffixes(path: str) -> set[str]:
    """List the ending of a path; if that says nothing, those of the files in the folder."""
    own = Path(path.rstrip("/")).suffix.lower()
    if own in SUFFIXES or own in ENDINGS or is_remote(path) or not local(path).is_dir():
        return {own}
    return {file.suffix.lower() for file in _files(local(path))}


def _files(place: Path) -> list[Path]:
    """List the files of a folder and of those inside it, without those that Spark passes over."""
    found = [file.relative_to(place) for file in place.rglob("*") if file.is_file()]
    return [place / file for file in found if not any(part.startswith((".", "_")) for part in file.parts)]


def read_files(session: SparkSession, path: str) -> DataFrame:
    """Read files as rows, those of a folder with those of the folders inside it. No shuffle."""
    files = session.read.format("binaryFile").option("recursiveFileLookup", "true").load(for_reading(path))
    most = Limits().size
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
    size = sum(file.stat().st_size for file in ([place] if place.is_file() else _files(place)))
    return found.coalesce(max(session.sparkContext.defaultParallelism, size // TASK_BYTES))


def too_large(length: int) -> EventError:
    """Say that a file is larger than a document may be."""
    return EventError(f"the document has {length:,} bytes: {Limits().size:,} are allowed")


def read_taxonomy(paths: Sequence[str]) -> Taxonomy | None:
    """Read the files of a taxonomy; none if there are none."""
    if not paths:
        return None
    reader = Reader(isolated=False, limits=_VOCABULARY)
    statements = []
    for path in paths:
        kind = type_of_file(path)
        if kind is None:
            raise TableError(f"the format of {path} is not clear: name it with one of {', '.join(SUFFIXES)}")
        try:
            statements += reader.read(Path(path).read_bytes(), kind).statements()
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror}") from None
        except EventError as error:
            raise TableError(f"{path}: {error}") from None
    return Taxonomy.of(statements)
