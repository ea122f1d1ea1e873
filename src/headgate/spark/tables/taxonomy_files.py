"""Files of a taxonomy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import EventError, TableError
from headgate.rdf.kind import KIND
from headgate.spark.tables.requests import type_of_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.rdf.taxonomy.taxonomy import Taxonomy


def read_taxonomy(paths: Sequence[str]) -> Taxonomy | None:
    """Read the files of a taxonomy; none if there are none."""
    if not paths:
        return None
    given = [(path, *_content(path)) for path in paths]
    # Not before all files are there: parsers take long to load.
    from headgate.rdf.events.reading import Reader
    from headgate.rdf.events.screening import Limits
    from headgate.rdf.taxonomy.taxonomy import Taxonomy

    # A taxonomy is our own, and may be large; it is read in this process.
    limits = Limits(size=1 << 30, triples=20_000_000, terms=1 << 30, seconds=600, memory=8 << 30)
    reader = Reader(isolated=False, limits=limits)
    statements = []
    for path, kind, data in given:
        try:
            statements += reader.read(data, kind).statements()
        except EventError as error:
            raise TableError(f"{path}: {error}") from None
    return Taxonomy.of(statements)


def check_taxonomy(paths: Sequence[str]) -> None:
    """Refuse files that are not there, or whose names say no format."""
    for path in paths:
        _kind(path)
        if not Path(path).is_file():
            _content(path)


def _content(path: str) -> tuple[str, bytes]:
    """Return the content type of a file, and what it holds."""
    kind = _kind(path)
    try:
        return kind, Path(path).read_bytes()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None


def _kind(path: str) -> str:
    kind = type_of_file(path, KIND)
    if kind is None:
        raise TableError(f"the format of {path} is not clear: name it with one of {', '.join(KIND.suffixes)}")
    return kind
