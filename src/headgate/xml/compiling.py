"""Tables of patterns: texts to columns on workers, and columns to an index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headgate.contents.columns import ColumnWriter, from_bytes
from headgate.contents.protocol import SnapshotCounts, filters_in
from headgate.core.rooms import XML
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import XPATH
from headgate.xml.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.xml.index.index import FilterReader, XmlIndex, XmlRoom
from headgate.xml.index.live import SETTINGS
from headgate.xml.language.model import ANY, ANY_ATTRIBUTE, WORD_MARK
from headgate.xml.whole.reading import clauses, read_filter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause, Keys
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.values import Path as Attribute
    from headgate.xml.whole.model import XPathSettings


@dataclass(frozen=True)
class XmlWriters:
    """What workers need for patterns."""

    settings: XPathSettings = SETTINGS
    dialect: str = XPATH

    def writer(self, *, checked: bool = True) -> ColumnWriter:
        """Begin; there is nothing to check patterns against."""
        del checked
        return ColumnWriter(FilterReader(self.settings), Writer())

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return clauses(text)


@dataclass(frozen=True)
class XmlCompiledFilters:
    """Columns of patterns, and what was said of them."""

    columns: Columns
    settings: XPathSettings = SETTINGS
    attributes: tuple[str, ...] = ()

    def take(self, order: NDArray[np.int64]) -> XmlCompiledFilters:
        """Pick filters."""
        return replace(self, columns=take(self.columns, order))

    def with_filter(self, text: str) -> XmlCompiledFilters:
        """Append a filter."""
        return replace(self, columns=concatenate([self.columns, compile_all([read_filter(text)[1]])]))

    def index(self, ids: Ids, texts: TextPool) -> XmlIndex:
        """Index them, in the order of their ids."""
        return XmlIndex.from_columns(ids, texts, self.columns, settings=self.settings)


@dataclass(frozen=True)
class XmlContents:
    """The room of XML, with what is said of its filters."""

    settings: XPathSettings = SETTINGS
    name: str = XML

    @property
    def room(self) -> XmlRoom:
        """Return the room."""
        return XmlRoom(self.settings)

    @property
    def writers(self) -> XmlWriters:
        """Return what workers need."""
        return XmlWriters(self.settings)

    def file(self, parts: Sequence[memoryview]) -> tuple[XmlCompiledFilters, NDArray[np.int64]]:
        """Lay columns one behind another."""
        columns = [from_bytes(part, Columns) for part in parts]
        counts = np.array([each.size for each in columns], np.int64)
        # With one that is empty, so that there is one.
        return XmlCompiledFilters(concatenate([compile_all([]), *columns]), self.settings), counts

    def finder(self, path: Attribute | None) -> XmlFinder:
        """Return what finds the keys of patterns."""
        del path
        return XmlFinder()

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Count what a snapshot holds: different paths from the roots of patterns to nodes, and labels."""
        found = [open_snapshot(each, XML, verify=False).counts for each in filters_in(snapshot, XML)]
        names = ("paths", "labels", "verified", "unindexed")
        counts = {name: sum(each[name] for each in found) for name in names}
        line = f"over {counts['paths']:,} paths of {counts['labels']:,} labels"
        if counts["verified"]:
            line += f" (lxml decides {counts['verified']:,}, {counts['unindexed']:,} of them for every event)"
        return SnapshotCounts(counts, line)


@dataclass(frozen=True)
class XmlFinder:
    """Finds the keys of patterns: labels, of which an event must have all."""

    demands: bool = True

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of patterns as a writer has written them."""
        return xml_keys(from_bytes(payload, Columns))

    def of_compiled(self, compiled_filters: XmlCompiledFilters) -> list[Keys]:
        """Find the keys of patterns that were filed."""
        return xml_keys(compiled_filters.columns)


def xml_keys(columns: Columns) -> list[Keys]:
    """List the labels that patterns demand: every one that is named without a wildcard.

    >>> from headgate.xml.index.columns import compile_all
    >>> from headgate.xml.language.parse import parse_filter
    >>> [sorted(keys) for keys in xml_keys(compile_all([parse_filter("//news[*]/@id", "xpath")]))]
    [['@id', 'news']]
    """
    labels = columns.labels.texts()
    wide = ("*:", "@*:", WORD_MARK)
    plain = [label not in {ANY, ANY_ATTRIBUTE} and not label.startswith(wide) for label in labels]
    used = [
        frozenset(labels[label] for label in columns.label[begin:end].tolist() if plain[label])
        for begin, end in pairwise(columns.node_start.tolist())
    ]
    # Of several patterns one must hold: what all of them demand.
    return [
        frozenset.intersection(*used[begin:end]) or None if begin < end else None
        for begin, end in pairwise(columns.first.tolist())
    ]
