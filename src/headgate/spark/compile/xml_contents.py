"""Patterns over XML in the compile jobs: texts to columns, and columns to an index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.registry import XML
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import XPATH
from headgate.spark.compile.contents import XmlCounts, filters_in
from headgate.xml.index.columns import Columns, Writer, compile_all, concatenate, from_bytes, take, to_bytes
from headgate.xml.index.index import XmlIndex
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool


class XmlWriter:
    """Lays patterns one behind another."""

    def __init__(self) -> None:
        self._writer = Writer()

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it as XPath."""
        pattern = parse_filter(text, dialect)
        self._writer.add(pattern)
        return text if dialect == XPATH else print_pattern(pattern)

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        return to_bytes(self._writer.columns())


@dataclass(frozen=True)
class XmlWriters:
    """What workers need for patterns."""

    dialect: str = XPATH

    def writer(self, *, checked: bool = True) -> XmlWriter:
        """Begin; there is nothing to check patterns against."""
        del checked
        return XmlWriter()

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return XmlIndex.clauses(text)


@dataclass(frozen=True)
class XmlFiled:
    """Columns of patterns."""

    columns: Columns
    attributes: tuple[str, ...] = ()

    def take(self, order: NDArray[np.int64]) -> XmlFiled:
        """Pick filters."""
        return replace(self, columns=take(self.columns, order))

    def with_filter(self, text: str) -> XmlFiled:
        """Append a filter."""
        return replace(self, columns=concatenate([self.columns, compile_all([parse_filter(text)])]))

    def index(self, ids: Ids, texts: TextPool) -> XmlIndex:
        """Index them, in the order of their ids."""
        return XmlIndex.from_columns(ids, texts, self.columns)


@dataclass(frozen=True)
class XmlContents:
    """The room of XML."""

    name: str = XML
    room: type[XmlIndex] = XmlIndex
    writers: XmlWriters = XmlWriters()

    def file(self, parts: Sequence[memoryview]) -> tuple[XmlFiled, NDArray[np.int64]]:
        """Lay columns one behind another."""
        columns = [from_bytes(part) for part in parts]
        counts = np.array([each.size for each in columns], np.int64)
        # With one that is empty, so that there is one.
        return XmlFiled(concatenate([compile_all([]), *columns])), counts

    def counts(self, snapshot: Path) -> XmlCounts:
        """Count what a snapshot holds."""
        found = [open_snapshot(each, XML, verify=False).counts for each in filters_in(snapshot, XML)]
        return XmlCounts(*(sum(each[name] for each in found) for name in XmlCounts._fields))
