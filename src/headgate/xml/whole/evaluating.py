"""Expressions asked of documents, by lxml: whether they are true, and what they select.

The tree of a document is made when the first expression asks, and kept by the thread while it asks about the
same documents. How long an expression may take is known before it is asked (`costs.py`): one that may take
too long is not.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from lxml import etree

from headgate.contents.results import LARGEST, ResultRows
from headgate.errors import EventError
from headgate.xml.answers.structural import Tuples
from headgate.xml.events.document import SourcedDocument
from headgate.xml.events.reading import parse
from headgate.xml.events.serialising import Texts, content
from headgate.xml.language.model import TEXT, is_attribute
from headgate.xml.language.syntax import BOOLEAN, NODES, NUMBER, type_of
from headgate.xml.whole.costs import MOST_STEPS, Extent, Sizes, work_of
from headgate.xml.whole.reading import expression_of
from headgate.xml.whole.writing import Written

if TYPE_CHECKING:
    from headgate.xml.events.document import Document
    from headgate.xml.events.subject import Subject
    from headgate.xml.whole.reading import WholeFilter


__all__ = ["Evaluation", "compiled", "tree_of"]

_COMPILED = 1 << 14
"""Expressions that are kept compiled, some kilobytes each."""
_KEPT = 4 << 20
"""Bytes of documents whose trees a thread keeps; a tree is some times as large."""
_ROUND = 2.0
_NOTHING = Extent(0.0, 0.0, 0.0)


class DocumentTree:
    """A document as lxml has it."""

    def __init__(self, document: Document) -> None:
        self.document = document
        source = document.source if isinstance(document, SourcedDocument) else content(document, 0).encode()
        self.bytes = len(source)
        self.root = parse(source, whole=True)
        others = source.count(b"<!--") + source.count(b"<?")
        levels, parents = document.levels, document.parents
        wide = int(np.bincount(parents[1:]).max()) if len(parents) > 1 else 1
        self.sizes = Sizes(
            float(len(document.labels) + others + 1),
            float(levels.max() + 2),
            float(wide + others + 1),
            float(len(document.text)),
            float(source.count(b"xmlns") + 1),
            self._extent,
        )
        self.rough = tuple(map(_up, self.sizes[:5]))
        self._places: dict[Any, int] | None = None
        self._texts: Texts | None = None

    @cached_property
    def _names(self) -> dict[str, Extent]:
        document = self.document
        size = len(document.names)
        below = document.ends - np.arange(len(document.ends)) + 1
        columns = [
            np.bincount(document.labels, weights, size).tolist()
            for weights in (None, below, document.stops - document.begins)
        ]
        extents: dict[str, Extent] = {}
        for label, *more in zip(document.names, *columns, strict=True):
            local = "@" * is_attribute(label) + label.removeprefix("@").rpartition("}")[2]
            extents[local] = Extent(*map(sum, zip(extents.get(local, _NOTHING), more, strict=True)))
        return extents

    def _extent(self, name: str) -> Extent:
        return self._names.get(name, _NOTHING)

    def shown(self, node: Any) -> str:
        """Write what lxml selected: an element as `cont` is written, of all else its value."""
        if isinstance(node, tuple):
            return str(node[1])
        if not etree.iselement(node):
            return str(node)
        if callable(node.tag):
            # A comment or an instruction.
            return etree.tostring(node, encoding="unicode", with_tail=False)
        if self._places is None or self._texts is None:
            labels = [name != TEXT and not is_attribute(name) for name in self.document.names]
            numbers = np.flatnonzero(np.array(labels)[self.document.labels]).tolist()
            self._places = dict(zip(self.root.iter("*"), numbers, strict=True))
            self._texts = Texts(self.document)
        return self._texts.contents(np.array([self._places[node]], np.int32))[0]


def _rough(nodes: float, depth: float, wide: float, text: float, spaces: float) -> Sizes:
    """Describe a document as if all nodes had every name."""
    return Sizes(nodes, depth, wide, text, spaces, lambda _: Extent(nodes, nodes * depth, text * depth))


def _up(size: float) -> float:
    rounded = 1.0
    while rounded < size:
        rounded *= _ROUND
    return rounded


class _Trees(threading.local):
    """The trees of the documents that a thread asked about last."""

    def __init__(self) -> None:
        self.kept: OrderedDict[int, DocumentTree] = OrderedDict()
        self.bytes = 0


_TREES = _Trees()


def tree_of(document: Document) -> DocumentTree:
    """Return the tree of a document, made once while it is among those that were asked about last."""
    kept = _TREES.kept
    tree = kept.get(id(document))
    if tree is not None and tree.document is document:
        kept.move_to_end(id(document))
        return tree
    tree = DocumentTree(document)
    while kept and _TREES.bytes + tree.bytes > _KEPT:
        _TREES.bytes -= kept.popitem(last=False)[1].bytes
    # The document is kept with its tree, so that no other gets its number meanwhile.
    before = kept.pop(id(document), None)
    _TREES.bytes += tree.bytes - (0 if before is None else before.bytes)
    kept[id(document)] = tree
    return tree


class Evaluation:
    """An expression that can be asked.

    >>> from headgate.xml.events.reading import read_document
    >>> document = tree_of(read_document("<a><b>1</b><b>2</b></a>"))
    >>> compiled("//b[2]").holds(document), compiled("count(//b) > 2").holds(document)
    (True, False)
    >>> compiled("//b[2]").results(document, 10).rows
    [('<b>2</b>',)]
    """

    def __init__(self, text: str) -> None:
        self.expression = expression_of(text)
        self.type = type_of(self.expression)
        self._written = Written(self.expression)
        self._true = self._compile(f"boolean({self._written.text})")
        self._all: etree.XPath | None = None
        self._works: dict[tuple[float, ...], float] = {}

    def _compile(self, text: str) -> etree.XPath:
        return etree.XPath(text, namespaces=self._written.namespaces or None, smart_strings=False)

    def too_much(self, tree: DocumentTree) -> str:
        """Say why the expression is not asked about a document, if it is not."""
        rough = self._works.get(tree.rough)
        if rough is None:
            rough = work_of(self.expression, _rough(*tree.rough))
            if len(self._works) < 64:
                self._works[tree.rough] = rough
        if rough <= MOST_STEPS or work_of(self.expression, tree.sizes) <= MOST_STEPS:
            return ""
        return (
            f"it may take more than {MOST_STEPS:,} steps for {len(tree.document.labels):,} nodes; "
            "send smaller documents, or narrow the filter"
        )

    def work(self, tree: DocumentTree) -> float:
        """Bound the steps."""
        return work_of(self.expression, tree.sizes)

    def holds(self, tree: DocumentTree) -> bool:
        """Tell whether the expression is true of a document; refuses if lxml cannot tell."""
        return bool(self._ask(self._true, tree))

    def results(self, tree: DocumentTree, limit: int) -> ResultRows:
        """Return what the expression selects, or its value; a truth value is nothing more than that."""
        reason = self.too_much(tree)
        if reason:
            raise EventError(reason)
        if self.type == BOOLEAN or not self.holds(tree):
            return ResultRows((), ((),) if self.type == BOOLEAN and self.holds(tree) else (), complete=True)
        if self._all is None:
            text = self._written.text
            self._all = self._compile(f"string({text})" if self.type == NUMBER else text)
        result = self._ask(self._all, tree)
        if self.type != NODES:
            return ResultRows((VALUE,), [(str(result),)], complete=True)
        rows: list[tuple[str]] = []
        letters = 0
        for node in result[:limit]:
            rows.append((tree.shown(node),))
            letters += len(rows[-1][0])
            if letters > LARGEST:
                raise EventError(f"the filter returns more than {LARGEST:,} characters: narrow it")
        return ResultRows((VALUE,), rows, complete=len(result) <= limit)

    def _ask(self, expression: etree.XPath, tree: DocumentTree) -> Any:
        try:
            return expression(tree.root)
        except etree.XPathError as error:
            raise EventError(f"lxml cannot evaluate it: {error}") from None


VALUE = "value"
"""The name of what an expression gives."""

compiled = lru_cache(_COMPILED)(Evaluation)
"""Compile an expression, or find that it was lately."""


MOST = 1_000_000
"""Rows of an answer, at most."""


class SelectedAnswer(NamedTuple):
    """What an expression selects in a document, as texts."""

    selected: ResultRows

    @property
    def values(self) -> tuple[tuple[str, ...] | None, ...]:
        """Return what was selected, as one column."""
        return (tuple(row[0] for row in self.selected.rows if row),)

    @property
    def contents(self) -> tuple[tuple[str, ...] | None, ...]:
        """Return the same, as elements are written with all that is in them."""
        return self.values

    def tuples(self, limit: int = 1000) -> Tuples:
        """List what was selected."""
        rows = tuple(self.selected.rows[:limit])
        return Tuples(
            self.selected.names, rows, self.selected.complete and len(rows) == len(self.selected.rows)
        )

    def rows(self) -> int:
        """Count what was selected."""
        return len(self.selected.rows)

    @property
    def nbytes(self) -> int:
        """Count the bytes that are sent."""
        return sum(len(text.encode()) for row in self.selected.rows for text in row)

    def plain(self) -> list[dict[str, Any]]:
        """Return it for JSON."""
        return self.tuples(MOST).plain()


class PreparedExpression:
    """An expression that is asked about many documents."""

    def __init__(self, filter_: WholeFilter) -> None:
        self.pattern = filter_
        self._evaluation = compiled(filter_.text)
        self.returns = self._evaluation.type != BOOLEAN

    def ask(self, subject: Subject) -> SelectedAnswer | None:
        """Return what the expression selects in a document; None if it does not hold."""
        rows = self._evaluation.results(tree_of(subject.document), MOST)
        return SelectedAnswer(rows) if rows.rows else None

    def results(self, subject: Subject, limit: int) -> ResultRows:
        """Return what the expression selects as text; nothing if it does not hold."""
        return self._evaluation.results(tree_of(subject.document), limit)
