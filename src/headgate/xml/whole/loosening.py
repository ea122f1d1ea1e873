"""Where lxml reads a document otherwise than the index does, and what filters ask for then.

Two things differ. lxml reads numbers with an exponent, which XPath 1.0 does not have: `1e3` is a thousand.
And comments and instructions part texts for lxml, and not for the index. Few documents have either. For those
that do, the patterns of filters that lxml decides are asked once more, without tests of numbers, or with
texts that need only have a part; both are made of the columns when such a document is first met.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.xml.events.document import SourcedDocument
from headgate.xml.index.columns import take
from headgate.xml.language.model import CONTAINS, SIGNS, TEXT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.xml.events.document import Document
    from headgate.xml.index.columns import Columns

_CONTAINS, _UNEQUAL = SIGNS.index(CONTAINS), SIGNS.index("!=")
_IN_NUMBERS = np.zeros(256, np.bool_)
_IN_NUMBERS[list(b"0123456789.eE+- \t\r\n")] = True


class Loosened(NamedTuple):
    """Patterns that ask for less, and which ones of the columns they were."""

    columns: Columns
    patterns: NDArray[np.int64]


class Readings(NamedTuple):
    """What of a document lxml reads otherwise: numbers, texts."""

    numbers: bool
    texts: bool


def has_exponents(document: Document) -> bool:
    """Tell whether a node may read as a number with an exponent.

    >>> from headgate.xml.events.reading import read_document
    >>> [has_exponents(read_document(text)) for text in ("<a>2e1</a>", "<a>2 eggs</a>", "<a n='3e'/>")]
    [True, False, True]
    """
    text = document.text
    places = np.flatnonzero((text | 32) == ord("e"))
    places = places[places > 0]
    before = text[places - 1]
    places = places[((before >= 48) & (before <= 57)) | (before == 46)]
    if not len(places):
        return False
    # A node that is such a number has nothing else in it.
    strange = np.concatenate([np.zeros(1, np.int64), np.cumsum(~_IN_NUMBERS[text])])
    begins, stops = document.begins, document.stops
    only = strange[stops] == strange[begins]
    within = np.searchsorted(places, stops) > np.searchsorted(places, begins + 1)
    return bool((only & within).any())


def has_parted_texts(document: Document) -> bool:
    """Tell whether comments or instructions may part texts of a document."""
    if not isinstance(document, SourcedDocument):
        return False
    return b"<!--" in document.source or document.source.find(b"<?", 1) >= 0


def loosened(columns: Columns, differ: Readings) -> Loosened:
    """Take the patterns of filters that lxml decides and that ask for what differs, without it."""
    patterns = np.arange(columns.patterns)
    owner = np.repeat(np.arange(columns.size), np.diff(columns.first))
    node = np.repeat(np.arange(len(columns.label)), np.diff(columns.test_start))
    pattern = np.repeat(patterns, np.diff(columns.node_start))[node]
    numbers = columns.text < 0
    labels = columns.labels.texts()
    texts = columns.label[node] == (labels.index(TEXT) if TEXT in labels else -1)
    asked = (columns.asked != 0)[owner][pattern]
    numbers, texts = numbers & asked & differ.numbers, texts & asked & differ.texts
    sign = np.where(texts, _CONTAINS, columns.sign).astype(np.int8)
    kept = ~(numbers | (texts & ((columns.text < 0) | (columns.sign == _UNEQUAL))))
    counts = np.bincount(node[kept], minlength=len(columns.label))
    loose = columns._replace(
        test_start=np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]),
        sign=sign[kept],
        number=columns.number[kept],
        text=columns.text[kept],
        first=np.arange(columns.patterns + 1),
        asked=np.zeros(columns.patterns, np.int8),
    )
    chosen = np.unique(pattern[numbers | texts])
    return Loosened(take(loose, chosen), chosen)
