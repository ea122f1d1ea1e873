"""Many patterns in columns: built into an index, kept for compaction, sent between machines.

patterns  first[f] to first[f + 1]: of a filter that is a pattern, that one; of one that lxml decides, those
          of which one must hold, perhaps none
nodes     node_start[p] to node_start[p + 1]: label, axis and parent of each, in document order
tests     test_start[n] to test_start[n + 1], n counted over all patterns: sign, and a number or a text

A test for a word is a node below its own (`word_nodes.py`), not a test.

Labels and texts are places in pools of distinct ones. A parent is counted within its pattern, ROOT for none.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.contents.columns import joined_starts, merged, picked
from headgate.core.interning import TextPool
from headgate.xml.language.model import AXES, CHILD, SIGNS, WORD, WORD_MARK
from headgate.xml.whole.reading import BY_LXML, BY_PATTERN, EVERY_TIME, WholeFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.xml.language.model import Pattern

NO_TEXT = -1
"""Stands for the text of a test that has a number."""
_AXIS = {axis: code for code, axis in enumerate(AXES)}
_SIGN = {sign: code for code, sign in enumerate(SIGNS)}


class Columns(NamedTuple):
    """Filters in columns; an axis and a sign are places in `AXES` and `SIGNS`.

    `asked` says how a filter is decided: by its pattern, by lxml, or by lxml for every document.
    """

    node_start: Ints
    label: Ints32
    axis: NDArray[np.int8]
    parent: Ints32
    test_start: Ints
    sign: NDArray[np.int8]
    number: Floats64
    text: Ints32
    labels: TextPool
    texts: TextPool
    first: Ints
    asked: NDArray[np.int8]

    @property
    def size(self) -> int:
        """Count the filters."""
        return len(self.asked)

    @property
    def patterns(self) -> int:
        """Count the patterns of all filters."""
        return len(self.node_start) - 1


class Writer:
    """Lays patterns one behind another."""

    def __init__(self) -> None:
        self._labels: dict[str, int] = {}
        self._texts: dict[str, int] = {}
        # Numbers, not lists of tuples, which the garbage collector would go through again and again.
        self._node_start, self._test_start = array("q", [0]), array("q", [0])
        self._label, self._parent, self._text = array("i"), array("i"), array("i")
        self._axis, self._sign = array("b"), array("b")
        self._number = array("d")
        self._first, self._asked = array("q", [0]), array("b")

    def add(self, filter_: Pattern | WholeFilter) -> None:
        """Append a filter."""
        if isinstance(filter_, WholeFilter):
            for each in filter_.needs or ():
                self._add(each)
            self._asked.append(EVERY_TIME if filter_.needs is None else BY_LXML)
        else:
            self._add(filter_)
            self._asked.append(BY_PATTERN)
        self._first.append(len(self._node_start) - 1)

    def _add(self, pattern: Pattern) -> None:
        labels, texts = self._labels, self._texts
        first, numbers = len(self._label), []
        for node in pattern.nodes:
            numbers.append(len(self._label) - first)
            self._label.append(labels.setdefault(node.label, len(labels)))
            self._axis.append(_AXIS[node.axis])
            self._parent.append(numbers[node.parent] if node.parent >= 0 else node.parent)
            words = [test for test in node.tests if test.sign == WORD]
            for test in node.tests:
                if test.sign == WORD:
                    continue
                is_text = isinstance(test.value, str)
                self._sign.append(_SIGN[test.sign])
                self._number.append(0.0 if is_text else float(test.value))
                self._text.append(texts.setdefault(str(test.value), len(texts)) if is_text else NO_TEXT)
            self._test_start.append(len(self._sign))
            for test in words:
                label = f"{WORD_MARK}{test.value}"
                self._label.append(labels.setdefault(label, len(labels)))
                self._axis.append(_AXIS[CHILD])
                self._parent.append(numbers[-1])
                self._test_start.append(len(self._sign))
        self._node_start.append(len(self._label))

    def columns(self) -> Columns:
        """Return what was added."""
        return Columns(
            np.array(self._node_start, np.int64),
            np.array(self._label, np.int32),
            np.array(self._axis, np.int8),
            np.array(self._parent, np.int32),
            np.array(self._test_start, np.int64),
            np.array(self._sign, np.int8),
            np.array(self._number, np.float64),
            np.array(self._text, np.int32),
            TextPool.build(self._labels),
            TextPool.build(self._texts),
            np.array(self._first, np.int64),
            np.array(self._asked, np.int8),
        )


def compile_all(patterns: Iterable[Pattern | WholeFilter]) -> Columns:
    """Lay patterns out."""
    writer = Writer()
    for pattern in patterns:
        writer.add(pattern)
    return writer.columns()


def concatenate(parts: Sequence[Columns]) -> Columns:
    """Put the filters of several columns one behind another, with one pool of each kind."""
    if len(parts) == 1:
        return parts[0]
    labels, label_places = merged([each.labels for each in parts])
    texts, text_places = merged([each.texts for each in parts])
    text = [
        np.where(each.text >= 0, places[np.maximum(each.text, 0)], NO_TEXT) if len(places) else each.text
        for each, places in zip(parts, text_places, strict=True)
    ]
    return Columns(
        joined_starts([each.node_start for each in parts]),
        np.concatenate([places[each.label] for each, places in zip(parts, label_places, strict=True)]),
        np.concatenate([each.axis for each in parts]),
        np.concatenate([each.parent for each in parts]),
        joined_starts([each.test_start for each in parts]),
        np.concatenate([each.sign for each in parts]),
        np.concatenate([each.number for each in parts]),
        np.concatenate(text).astype(np.int32),
        labels,
        texts,
        joined_starts([each.first for each in parts]),
        np.concatenate([each.asked for each in parts]),
    )


def take(columns: Columns, order: Ints) -> Columns:
    """Pick filters, with what they name and nothing else."""
    first, patterns = picked(columns.first, order)
    node_start, nodes = picked(columns.node_start, patterns)
    test_start, tests = picked(columns.test_start, nodes)
    labels, label = _trimmed(columns.labels, columns.label[nodes])
    texts, text = _trimmed(columns.texts, columns.text[tests])
    return Columns(
        node_start,
        label,
        columns.axis[nodes],
        columns.parent[nodes],
        test_start,
        columns.sign[tests],
        columns.number[tests],
        text,
        labels,
        texts,
        first,
        columns.asked[order],
    )


def _trimmed(pool: TextPool, used: Ints32) -> tuple[TextPool, Ints32]:
    """Leave out texts that nothing names; returns the names in what is left."""
    kept, places = np.unique(used[used >= 0], return_inverse=True)
    names = np.full(len(used), NO_TEXT, np.int32)
    names[used >= 0] = places
    if len(kept) == pool.size:
        return pool, used
    return TextPool.build([pool.text(index) for index in kept.tolist()]), names
