"""From patterns that hold to filters that do: some follow at once, and of the others lxml is asked.

A filter has one pattern, which decides; or it is decided by lxml, and has as many patterns as it has ways to
hold, of which one is enough to be asked; or none, and is asked about every document.

    pattern   0   1   2   3   4          first    0  1  4  4  5
    filter    0   1   1   1   3          asked    0  1  1  0       2 is asked every time

lxml reads documents otherwise than the index does in two things. It reads numbers with an exponent, which
XPath 1.0 does not have: `1e3` is a thousand. And comments and instructions part texts for it. Few documents
have either. For those that do, the patterns of filters that lxml decides are asked once more, without tests
of numbers, or with texts that need only have a part; both are made of the columns when such a document is
first met.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.documents import DecidingMatcher
from headgate.errors import EventError
from headgate.xml.events.document import SourcedDocument
from headgate.xml.index.build import build
from headgate.xml.index.columns import take
from headgate.xml.index.matching import Matcher
from headgate.xml.language.model import CONTAINS, SIGNS, TEXT
from headgate.xml.whole.evaluating import compiled, tree_of
from headgate.xml.whole.reading import BY_PATTERN, EVERY_TIME

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.xml.events.document import Document
    from headgate.xml.index.columns import Columns


_CONTAINS, _UNEQUAL = SIGNS.index(CONTAINS), SIGNS.index("!=")
_IN_NUMBERS = np.zeros(256, np.bool_)
_IN_NUMBERS[list(b"0123456789.eE+- \t\r\n")] = True


class Loosened(NamedTuple):
    """Patterns that ask for less, and which ones of the columns they were."""

    columns: Columns
    patterns: Ints


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


STEPS_AT_ONCE = 1024.0
"""Steps of lxml that count as one word of the index, where work is counted."""


class Decider(DecidingMatcher):
    """Filters in columns, with the matcher of their patterns; lxml is asked."""

    def __init__(self, matcher: Matcher, columns: Columns, text: Callable[[int], str]) -> None:
        super().__init__(
            matcher, columns.first, np.repeat(columns.asked == BY_PATTERN, np.diff(columns.first))
        )
        self._columns = columns
        self._text = text
        self._always = np.flatnonzero(columns.asked == EVERY_TIME).astype(np.int32)
        self._loose: dict[Readings, tuple[Matcher, Ints32]] = {}

    @cached_property
    def _tested(self) -> Readings:
        """Tell whether filters that lxml decides test numbers, and texts."""
        numbers, texts = (
            len(loosened(self._columns, Readings(*differ)).patterns) > 0
            for differ in ((True, False), (False, True))
        )
        return Readings(numbers, texts)

    def _asked_besides(self, document: Document, lost: dict[int, str]) -> list[Ints32]:
        # A pattern that was too much may hold: lxml tells.
        undecided = [pattern for pattern in lost if not self._decides[pattern]]
        for pattern in undecided:
            del lost[pattern]
        asked = [self._owner[undecided], self._always]
        differ = Readings(
            self._tested.numbers and has_exponents(document),
            self._tested.texts and has_parted_texts(document),
        )
        return [*asked, self._loosely(document, differ)] if any(differ) else asked

    def _loosely(self, document: Document, differ: Readings) -> Ints32:
        """List filters for which lxml may say otherwise than the tests of their patterns."""
        if differ not in self._loose:
            columns, patterns = loosened(self._columns, differ)
            self._loose[differ] = Matcher(build(columns), columns.labels), self._owner[patterns]
        matcher, owner = self._loose[differ]
        lost: dict[int, str] = {}
        patterns = np.concatenate([matcher.match(document, lost), np.array(list(lost), np.int32)])
        return owner[patterns].astype(np.int32)

    def _ask(self, document: Document, numbers: Ints32, left_out: dict[int, str]) -> Ints32:
        # Equal texts are asked once.
        tree = tree_of(document)
        known: dict[str, bool | str] = {}
        held: list[int] = []
        for number in numbers.tolist():
            text = self._text(number)
            verdict = known.get(text)
            if verdict is None:
                evaluation = compiled(text)
                verdict = evaluation.too_much(tree)
                if not verdict:
                    try:
                        verdict = evaluation.holds(tree)
                    except EventError as error:
                        verdict = str(error)
                known[text] = verdict
            if verdict is True:
                held.append(number)
            elif verdict:
                left_out[number] = str(verdict)
        return np.array(held, np.int32)

    def _asking(self, document: Document, numbers: Ints32) -> Floats64:
        tree = tree_of(document)
        return np.array([compiled(self._text(each)).work(tree) / STEPS_AT_ONCE for each in numbers.tolist()])

    def costs(self, document: Document, candidates: Ints, work: Floats64) -> None:
        """Count those that are asked every time as checked, too."""
        super().costs(document, candidates, work)
        candidates[self._always] += 1
