"""Files of a taxonomy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import EventError, TableError
from headgate.rdf.reading import Reader
from headgate.rdf.screening import Limits
from headgate.rdf.taxonomy import Taxonomy
from headgate.spark.document_files import type_of_file
from headgate.spark.rdf_kind import RDF_DOCUMENTS

if TYPE_CHECKING:
    from collections.abc import Sequence

_VOCABULARY = Limits(size=1 << 30, triples=20_000_000, terms=1 << 30, seconds=600, memory=8 << 30)
"""A taxonomy is our own, and may be large; it is read in this process."""


def read_taxonomy(paths: Sequence[str]) -> Taxonomy | None:
    """Read the files of a taxonomy; none if there are none."""
    if not paths:
        return None
    reader = Reader(isolated=False, limits=_VOCABULARY)
    statements = []
    for path in paths:
        kind = type_of_file(path, RDF_DOCUMENTS)
        if kind is None:
            raise TableError(
                f"the format of {path} is not clear: name it with one of {', '.join(RDF_DOCUMENTS.suffixes)}"
            )
        try:
            statements += reader.read(Path(path).read_bytes(), kind).statements()
        except OSError as error:
            raise TableError(f"{path} cannot be read: {error.strerror}") from None
        except EventError as error:
            raise TableError(f"{path}: {error}") from None
    return Taxonomy.of(statements)
