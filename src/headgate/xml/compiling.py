"""Tables of patterns: texts to columns on workers, and columns to an index."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from headgate.contents.columns import ColumnContents, ColumnFinder, ColumnWriters
from headgate.contents.protocol import SnapshotCounts, filters_in
from headgate.core.rooms import XML
from headgate.core.snapshot import open_snapshot
from headgate.core.subscription import XPATH
from headgate.xml.index.columns import Columns, Writer, compile_all, concatenate, take
from headgate.xml.index.index import FilterReader, XmlIndex, XmlRoom
from headgate.xml.language.model import ANY, ANY_ATTRIBUTE, WORD_MARK
from headgate.xml.whole.reading import clauses, read_filter

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from headgate.contents.protocol import Keys
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.values import Path as Attribute


@dataclass(frozen=True)
class XmlContents(ColumnContents, XmlRoom):
    """The room of XML, while patterns are compiled with what is said of them."""

    columns = Columns
    take = staticmethod(take)
    concatenate = staticmethod(concatenate)

    @property
    def writers(self) -> ColumnWriters:
        """Return what workers need."""
        return ColumnWriters(XPATH, FilterReader(self.settings), Writer, clauses)

    def compiled(self, texts: Sequence[str]) -> Columns:
        """Compile filters in XPath."""
        return compile_all([read_filter(text)[1] for text in texts])

    def indexed(self, ids: Ids, texts: TextPool, columns: Columns) -> XmlIndex:
        """Index patterns, in the order of their ids."""
        return XmlIndex.from_columns(ids, texts, columns, settings=self.settings)

    def finder(self, path: Attribute | None) -> ColumnFinder:
        """Return what finds the keys of patterns: labels."""
        del path
        return ColumnFinder(Columns, xml_keys)

    def counts(self, snapshot: Path) -> SnapshotCounts:
        """Count what a snapshot holds: different paths from the roots of patterns to nodes, and labels."""
        found = [open_snapshot(each, XML, verify=False).counts for each in filters_in(snapshot, XML)]
        names = ("paths", "labels", "verified", "unindexed")
        counts = {name: sum(each[name] for each in found) for name in names}
        line = f"over {counts['paths']:,} paths of {counts['labels']:,} labels"
        if counts["verified"]:
            line += f" (lxml decides {counts['verified']:,}, {counts['unindexed']:,} of them for every event)"
        return SnapshotCounts(counts, line)


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
