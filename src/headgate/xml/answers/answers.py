"""What a pattern gives for a document: for each of its nodes, the nodes that take part in an embedding.

Ids are structural, so the embeddings are the combinations of these that satisfy the axes. Nothing of their
cross product is stored; `tuples` lists as much of it as is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.kind import Results, table_lines
from headgate.contents.results import NOTHING, ResultRows
from headgate.core.jit import kernel
from headgate.core.text.wording import SHOWN, Worded, table
from headgate.xml.answers.structural import (
    Flat,
    Ids,
    Listing,
    Shape,
    Tuples,
    listing_of,
    reduce_flat,
    shape_of,
)
from headgate.xml.events.subject import Subject
from headgate.xml.index.passing import Conditions, lay_tests, sift
from headgate.xml.language.model import CONT, VAL
from headgate.xml.language.values import holds

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.core.arrays import Bools, Bytes, Ints, Ints32
    from headgate.xml.events.document import Document
    from headgate.xml.events.serialising import Texts
    from headgate.xml.language.model import Pattern


@dataclass(frozen=True, eq=False)
class Answer(Worded):
    """What a pattern gives for a document; it stands alone, without the document.

    One entry for each node of the pattern. `values` and `contents` are None where the node does not return
    them, else one text for each id.
    """

    pattern: Pattern
    ids: tuple[Ids, ...]
    values: tuple[tuple[str, ...] | None, ...]
    contents: tuple[tuple[str, ...] | None, ...]

    def __eq__(self, other: object) -> bool:
        """Tell whether the same nodes are given, and the same is returned of them, for the same pattern."""
        if not isinstance(other, Answer):
            return NotImplemented
        return (
            self.pattern == other.pattern
            and self.values == other.values
            and self.contents == other.contents
            and all(
                np.array_equal(mine, yours)
                for one, another in zip(self.ids, other.ids, strict=True)
                for mine, yours in zip(one, another, strict=True)
            )
        )

    def __hash__(self) -> int:
        """Hash what is cheap to hash."""
        return hash((self.pattern, self.values, self.contents))

    def tuples(self, limit: int = 1000) -> Tuples:
        """List what the returning nodes return, for each combination of these that an embedding has."""
        return listing_of(self.pattern).tuples(self.ids, self.values, self.contents, limit)

    def rows(self) -> int:
        """Count the nodes that are given, once for each node of the pattern that they stand for."""
        return sum(len(ids.pre) for ids in self.ids)

    @property
    def nbytes(self) -> int:
        """Count the bytes that are sent: 12 for an id, and the texts."""
        texts = (text for column in (*self.values, *self.contents) if column for text in column)
        return 12 * self.rows() + sum(len(text.encode()) for text in texts)

    def lines(self) -> list[str]:
        """List the tuples for people, the first twenty."""
        tuples = self.tuples(SHOWN)
        return table(tuples.names, tuples.written(), complete=tuples.complete)

    def plain(self) -> list[dict[str, Any]]:
        """Return it for JSON: an object for each node of the pattern."""
        rows: list[dict[str, Any]] = []
        for node, ids, values, conts in zip(
            self.pattern.nodes, self.ids, self.values, self.contents, strict=True
        ):
            row: dict[str, Any] = {
                "label": node.label,
                "ids": [list(each) for each in zip(*(column.tolist() for column in ids), strict=True)],
            }
            if values is not None:
                row[VAL] = list(values)
            if conts is not None:
                row[CONT] = list(conts)
            rows.append(row)
        return rows


def answer(pattern: Pattern, document: Document) -> Answer | None:
    """Return what a pattern gives for a document; None if it does not hold.

    >>> from headgate.xml.language.model import Node, Pattern
    >>> from headgate.xml.events.reading import read_document
    >>> pattern = Pattern((Node("a", "//"), Node("b", "/", 0, (), ("val",))))
    >>> answer(pattern, read_document("<c><a><b>1</b></a><a/></c>")).tuples().plain()
    [{'b.val': '1'}]
    """
    return prepared(pattern).ask(Subject(document))


class PreparedPattern:
    """A pattern that is asked about many documents."""

    def __init__(self, pattern: Pattern) -> None:
        """Lay the pattern out."""
        self.pattern = pattern
        self.returns = bool(pattern.returning)
        self._shape = shape_of(pattern)
        self._labels = tuple(node.label for node in pattern.nodes)
        self._tests = lay_tests(pattern)
        self._listing: Listing | None = None

    def ask(self, subject: Subject) -> Answer | None:
        """Return what the pattern gives for a document; None if it does not hold."""
        spans = subject.spans(self._labels)
        if spans is None:
            return None
        document = subject.document
        flat, decided = _find(
            self._shape,
            self._tests,
            spans,
            subject.nodes,
            document.ends,
            document.levels,
            document.begins,
            document.stops,
            document.text,
        )
        if flat.offsets[0] < 0:
            return None
        if not decided:
            keep = self._passing(document, flat)
            if not reduce_flat(self._shape, flat, keep):
                return None
            flat = _compact(flat, keep)
        return self._made(subject.texts, flat)

    def results(self, subject: Subject, limit: int) -> ResultRows:
        """Return the tuples for a document as text; none if the pattern does not hold."""
        answer = self.ask(subject)
        if answer is None:
            return NOTHING
        if self._listing is None:
            self._listing = Listing(self.pattern)
        tuples = self._listing.tuples(answer.ids, answer.values, answer.contents, limit)
        return ResultRows(tuples.names, tuples.written(), tuples.complete)

    def _passing(self, document: Document, flat: Flat) -> Bools:
        """Tell which candidates pass the tests, the slow way."""
        keep = np.ones(len(flat.pre), np.bool_)
        for node, (start, stop) in zip(self.pattern.nodes, pairwise(flat.offsets.tolist()), strict=True):
            for candidate in range(start, stop) if node.tests else ():
                val = document.val(int(flat.pre[candidate]))
                keep[candidate] = all(holds(test, val) for test in node.tests)
        return keep

    def _made(self, texts: Texts, flat: Flat) -> Answer:
        pre, level = flat.pre, flat.level
        post = flat.ends - level
        ids = []
        values: list[tuple[str, ...] | None] = []
        conts: list[tuple[str, ...] | None] = []
        for node, (start, stop) in zip(self.pattern.nodes, pairwise(flat.offsets.tolist()), strict=True):
            which = pre[start:stop]
            ids.append(Ids(which, post[start:stop], level[start:stop]))
            values.append(texts.vals(which) if VAL in node.returns else None)
            conts.append(texts.contents(which) if CONT in node.returns else None)
        return Answer(self.pattern, tuple(ids), tuple(values), tuple(conts))


prepared: Callable[[Pattern], PreparedPattern] = lru_cache(maxsize=4096)(PreparedPattern)
"""Prepare a pattern, or find that it was lately."""


@kernel
def _find(
    shape: Shape,
    tests: Conditions,
    spans: Ints,
    nodes: Ints32,
    ends: Ints32,
    levels: Ints32,
    begins: Ints32,
    stops: Ints32,
    text: Bytes,
) -> tuple[Flat, bool]:
    """Find the nodes that take part in an embedding; false if tests are left to be looked at.

    The first offset is -1 if there is none.
    """
    size = len(spans)
    offsets = np.zeros(size + 1, np.int64)
    most = 0
    for node in range(size):
        most += spans[node, 1] - spans[node, 0]
    nodes_found = np.empty(most, np.int32)
    found_ends = np.empty(most, np.int32)
    found_levels = np.empty(most, np.int32)
    decided = True
    count = 0
    for node in range(size):
        for one in range(spans[node, 0], spans[node, 1]):
            nodes_found[count] = nodes[one]
            count += 1
        if tests.offsets[node] < tests.offsets[node + 1]:
            count, sure = sift(tests, node, text, begins, stops, nodes_found, offsets[node], count)
            decided &= sure
        offsets[node + 1] = count
        if offsets[node] == count:
            offsets[0] = -1
            return Flat(offsets, nodes_found, found_ends, found_levels), decided
        for one in range(offsets[node], count):
            found_ends[one] = ends[nodes_found[one]]
            found_levels[one] = levels[nodes_found[one]]
    keep = np.ones(count, np.bool_)
    flat = Flat(offsets, nodes_found[:count], found_ends[:count], found_levels[:count])
    if not reduce_flat(shape, flat, keep):
        offsets[0] = -1
        return flat, decided
    return _compact(flat, keep), decided


@kernel
def _compact(flat: Flat, keep: Bools) -> Flat:
    """Leave out what is not kept."""
    offsets, pre, ends, level = flat.offsets, flat.pre, flat.ends, flat.level
    total = 0
    for each in keep:
        total += each
    kept_offsets = np.zeros(len(offsets), np.int64)
    kept_pre = np.empty(total, np.int32)
    kept_ends = np.empty(total, np.int32)
    kept_level = np.empty(total, np.int32)
    count = 0
    for node in range(len(offsets) - 1):
        for one in range(offsets[node], offsets[node + 1]):
            if keep[one]:
                kept_pre[count] = pre[one]
                kept_ends[count] = ends[one]
                kept_level[count] = level[one]
                count += 1
        kept_offsets[node + 1] = count
    return Flat(kept_offsets, kept_pre, kept_ends, kept_level)


def tuples_shown(answer: Answer | None, limit: int) -> Results:
    """Show what a pattern returns, `limit` rows at most: for machines, and as a table for people."""
    tuples = None if answer is None else answer.tuples(limit)
    if tuples is None:
        return Results({"rows": [], "complete": True}, ["no tuples"])
    if not tuples.names:
        lines = ["tuples: the filter returns nothing; mark what it is to return, as in //a{val}"]
    else:
        count = f"{len(tuples.rows):,}" if tuples.complete else f"the first {len(tuples.rows):,}"
        rows = [tuples.names, *(tuple(map(_on_a_line, row)) for row in tuples.rows)]
        lines = [f"tuples: {count}", *table_lines(rows)]
    return Results({"rows": tuples.plain(), "complete": tuples.complete}, lines)


_WIDEST = 60


def _on_a_line(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
