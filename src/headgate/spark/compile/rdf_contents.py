"""Patterns over RDF in the compile jobs: texts to columns, and columns to an index."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from headgate.contents.registry import RDF
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import SPARQL
from headgate.rdf.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.rdf.index.index import RdfIndex, RdfRoom
from headgate.rdf.language.model import Options
from headgate.rdf.language.parse import parse_filter
from headgate.rdf.language.printing import print_pattern
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.spark.compile.contents import Counts, filters_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause
    from headgate.core.ids import Ids

_Array = tuple[str, tuple[int, ...], bytes]
_PARTS: msgspec.msgpack.Decoder[list[list[_Array]]] = msgspec.msgpack.Decoder(list[list[_Array]])


def to_bytes(columns: Columns) -> bytes:
    """Write columns, to be carried from one process to another; texts are two arrays."""
    parts = [part if isinstance(part, TextPool) else (part,) for part in columns]
    return msgspec.msgpack.encode(
        [[(array.dtype.str, array.shape, array.tobytes()) for array in part] for part in parts]
    )


def from_bytes(data: bytes | memoryview) -> Columns:
    """Read what `to_bytes` wrote.

    >>> columns = compile_all([parse_filter("ASK { ?x a <urn:a> }")], Options())
    >>> from_bytes(to_bytes(columns)).terms.texts() == columns.terms.texts()
    True
    """
    found: list[Any] = []
    for part in _PARTS.decode(data):
        arrays = [np.frombuffer(raw, kind).reshape(shape) for kind, shape, raw in part]
        found.append(arrays[0] if len(arrays) == 1 else TextPool(*arrays))
    return Columns(*found)


class RdfWriter:
    """Lays patterns one behind another."""

    def __init__(self, options: Options) -> None:
        self._writer = Writer(options)

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it as SPARQL."""
        pattern = parse_filter(text, dialect)
        self._writer.add(pattern)
        return text if dialect == SPARQL else print_pattern(pattern)

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        return to_bytes(self._writer.columns())


@dataclass(frozen=True)
class RdfWriters:
    """What workers need for patterns."""

    options: Options
    dialect: str = SPARQL

    def writer(self, *, checked: bool = True) -> RdfWriter:
        """Begin; there is nothing to check patterns against."""
        del checked
        return RdfWriter(self.options)

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return RdfIndex.clauses(text)


@dataclass(frozen=True)
class RdfFiled:
    """Columns of patterns, and what is to be indexed with them."""

    columns: Columns
    taxonomy: Taxonomy
    options: Options
    attributes: tuple[str, ...] = ()

    def take(self, order: NDArray[np.int64]) -> RdfFiled:
        """Pick filters."""
        return replace(self, columns=take(self.columns, order))

    def with_filter(self, text: str) -> RdfFiled:
        """Append a filter."""
        more = compile_all([parse_filter(text)], self.options)
        return replace(self, columns=concatenate([self.columns, more]))

    def index(self, ids: Ids, texts: TextPool) -> RdfIndex:
        """Index them, in the order of their ids."""
        return RdfIndex.from_columns(ids, texts, self.columns, taxonomy=self.taxonomy, options=self.options)


@dataclass(frozen=True)
class RdfContents:
    """The room of RDF, with a taxonomy and options."""

    taxonomy: Taxonomy = field(default_factory=Taxonomy)
    options: Options = field(default_factory=Options)
    name: str = RDF

    @property
    def room(self) -> RdfRoom:
        """Return the room."""
        return RdfRoom(self.taxonomy, self.options)

    @property
    def writers(self) -> RdfWriters:
        """Return what workers need."""
        return RdfWriters(self.options)

    def file(self, parts: Sequence[memoryview]) -> tuple[RdfFiled, NDArray[np.int64]]:
        """Lay columns one behind another."""
        columns = [from_bytes(part) for part in parts]
        counts = np.array([len(each.slots) for each in columns], np.int64)
        # With one that is empty, so that there is one.
        whole = concatenate([compile_all([], self.options), *columns])
        return RdfFiled(whole, self.taxonomy, self.options), counts

    def counts(self, snapshot: Path) -> Counts:
        """Count what a snapshot holds."""
        found = [open_snapshot(each, RDF, verify=False).counts for each in filters_in(snapshot, RDF)]
        patterns, terms = (sum(each[name] for each in found) for name in ("patterns", "terms"))
        left_out = self.taxonomy.ignored + self.taxonomy.unnamed
        return Counts(patterns, terms, len(self.taxonomy), left_out)
