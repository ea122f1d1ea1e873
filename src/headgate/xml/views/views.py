"""`XmlViews`: what the plan room asks about views over XML documents.

Views that are written differently and give the same get one form. Children are sorted and written once: the
order of branches says nothing, and two equal branches stand for the same nodes of every document. What a
branch implies of another is kept, since each node's ids are part of what a view gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from headgate.contents.views import Pairs, Views
from headgate.xml.answers.answers import Answer, answer
from headgate.xml.answers.structural import Ids
from headgate.xml.events.reading import document_of
from headgate.xml.language import model
from headgate.xml.views import embedding
from headgate.xml.views.rewriting import Rewriting, rewriting, size_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.arrays import Ints, Ints32
    from headgate.core.event import Event
    from headgate.xml.language.model import Label


_Key: TypeAlias = tuple[object, ...]


class Canonical(NamedTuple):
    """The form, and for each node of the pattern as it was written its place there."""

    pattern: model.Pattern
    places: tuple[int, ...]


def canonical(pattern: model.Pattern) -> Canonical:
    """Write a pattern in its one form.

    >>> from headgate.xml.language.model import Node, Pattern
    >>> nodes = (Node("a"), Node("c", parent=0), Node("b", parent=0), Node("c", parent=0))
    >>> form, places = canonical(Pattern(nodes))
    >>> [node.label for node in form.nodes], places
    (['a', 'b', 'c'], (0, 2, 1, 2))
    """
    children = pattern.children
    keys: list[_Key] = [()] * len(pattern.nodes)
    for index in reversed(range(len(pattern.nodes))):
        inner = tuple(sorted({keys[child] for child in children[index]})) if children[index] else ()
        keys[index] = (*_own(pattern.nodes[index]), inner)
    written: list[model.Node] = []
    places = [0] * len(pattern.nodes)
    # A group is branches that are equal, below what is equal: they are written once.
    todo = _groups(pattern.roots, model.ROOT, keys)
    while todo:
        group, parent = todo.pop()
        here = len(written)
        written.append(_node(pattern.nodes[group[0]], parent))
        for index in group:
            places[index] = here
        if children[group[0]]:
            below = (
                children[group[0]]
                if len(group) == 1
                else [each for index in group for each in children[index]]
            )
            todo += _groups(below, here, keys)
    return Canonical(model.Pattern(tuple(written)), tuple(places))


def _groups(siblings: Sequence[int], parent: int, keys: list[_Key]) -> list[tuple[list[int], int]]:
    """Group siblings that are alike, the last of the order first, each group with the place of its parent."""
    if len(siblings) == 1:
        return [([siblings[0]], parent)]
    alike: dict[_Key, list[int]] = {}
    for index in siblings:
        alike.setdefault(keys[index], []).append(index)
    return [(alike[key], parent) for key in sorted(alike, reverse=True)]


def _node(node: model.Node, parent: int) -> model.Node:
    tests = tests_of(node)
    returns = (
        node.returns
        if len(node.returns) < 2
        else tuple(each for each in model.RETURNS if each in node.returns)
    )
    if (node.parent, node.tests, node.returns) == (parent, tests, returns):
        return node
    return model.Node(node.label, node.axis, parent, tests, returns)


def tests_of(node: model.Node) -> tuple[model.Test, ...]:
    """List the tests of a node, each once, in one order."""
    if len(node.tests) < 2:
        return node.tests
    return tuple(sorted(set(node.tests), key=_test_key))


def _test_key(test: model.Test) -> tuple[str, str, str]:
    return test.sign, type(test.value).__name__, repr(test.value)


def _own(node: model.Node) -> _Key:
    tests = tuple([_test_key(test) for test in tests_of(node)]) if node.tests else ()
    returns = tuple(sorted(set(node.returns))) if node.returns else ()
    return node.axis, node.label, tests, returns


class XmlViews(Views):
    """Views over XML documents, each in its canonical form, by number.

    `patterns` are these forms, and results are in their order; `places` lead there from the nodes as
    written. Labels are names, items 4 bits for each node: a view of more than 16 cannot be rewritten.
    """

    def __init__(
        self,
        patterns: tuple[model.Pattern, ...],
        places: tuple[tuple[int, ...], ...],
        written: tuple[model.Pattern, ...],
        rows: embedding.NodeRows,
        labels: tuple[Ints, Ints32, list[Label]],
        equals: Ints32,
    ) -> None:
        """Take what `build` made."""
        self.patterns = patterns
        self.places = places
        self._written = written
        self._rows = rows
        self.needed = rows.needed
        self.label_offsets, self.labels, self.names = labels
        self.equals = equals
        self.demands, self.offers = np.zeros((2, 2 * len(patterns)), np.uint64)
        embedding.sign(rows, self.demands, self.offers)

    @classmethod
    def build(cls, patterns: Sequence[model.Pattern]) -> XmlViews:
        """Lay views out; one of more than 16 nodes is taken, but feeds no other and is fed by none."""
        forms = [canonical(pattern) for pattern in patterns]
        shapes = tuple(form.pattern for form in forms)
        firsts: dict[model.Pattern, int] = {}
        equals = np.array([firsts.setdefault(form, index) for index, form in enumerate(shapes)], np.int32)
        rows, labels = _lay(shapes)
        places = tuple(form.places for form in forms)
        return cls(shapes, places, tuple(patterns), rows, labels, equals)

    def __len__(self) -> int:
        """Count the views."""
        return len(self.patterns)

    def _cover(self, pairs: Pairs) -> None:
        images = np.zeros(embedding.MAX_NODES, np.int64)
        embedding.cover(self._rows, pairs.sources, pairs.targets, images, pairs.embeds, pairs.masks)

    def result(self, view: int, event: Event) -> Answer | None:
        """Compute what a view gives for an event: for each node what takes part; None if it does not hold."""
        return answer(self.patterns[view], document_of(event))

    def rewriting(self, view: int, inputs: Sequence[int]) -> Rewriting:
        """Make the plan that computes a view from others; refuses inputs that do not cover it."""
        return rewriting(self.patterns, view, inputs)

    def plan_of(self, view: int, inputs: Sequence[int]) -> list[str]:
        """Say in lines how a view is computed from others."""
        return self.rewriting(view, inputs).lines()

    def written(self, view: int, result: Answer | None) -> Answer | None:
        """Return a result with the nodes of its view as they were written, for those who wrote them."""
        if result is None:
            return None
        pattern, places = self._written[view], self.places[view]
        # Siblings that ask for the same are one, which returns what any of them does.
        return Answer(
            pattern,
            tuple(result.ids[index] for index in places),
            tuple(
                _where(model.VAL, node, result.values[n])
                for node, n in zip(pattern.nodes, places, strict=True)
            ),
            tuple(
                _where(model.CONT, node, result.contents[n])
                for node, n in zip(pattern.nodes, places, strict=True)
            ),
        )

    def size(self, result: Answer | None) -> tuple[int, int]:
        """Count the nodes of a result, and the bytes that it takes to send it."""
        return size_of(result)

    def pack(self, result: Answer | None) -> Any:
        """Return for each node of the pattern its ids, by column, and what it returns of them."""
        if result is None:
            return None
        columns = zip(result.ids, result.values, result.contents, strict=True)
        return [[[each.tolist() for each in ids], values, contents] for ids, values, contents in columns]

    def unpack(self, view: int, packed: Any) -> Answer | None:
        """Return the result of a view that was packed."""
        if packed is None:
            return None
        ids, values, contents = zip(*packed, strict=True)
        return Answer(
            self.patterns[view],
            tuple(Ids(*(np.array(column, np.int32) for column in each)) for each in ids),
            tuple(None if each is None else tuple(each) for each in values),
            tuple(None if each is None else tuple(each) for each in contents),
        )


def _where(what: str, node: model.Node, texts: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return texts if what in node.returns else None


def _lay(patterns: Sequence[model.Pattern]) -> tuple[embedding.NodeRows, tuple[Ints, Ints32, list[Label]]]:
    """Lay out those that take part in plans; the others have no rows and no labels."""
    small = [pattern if embedding.needed(pattern) else None for pattern in patterns]
    nodes = [node for pattern in small if pattern is not None for node in pattern.nodes]
    # Labels that cover others come first.
    labels = sorted({node.label for node in nodes}, key=lambda label: (not embedding.is_wide(label), label))
    numbers = {label: index for index, label in enumerate(labels)}
    wide = [label for label in labels if embedding.is_wide(label)]
    sets: dict[tuple[model.Test, ...], int] = {(): 0}
    used: dict[Label, set[int]] = {label: set() for label in labels}
    for node in nodes:
        used[node.label].add(sets.setdefault(node.tests, len(sets)))
    implied = embedding.implications(list(sets), used)
    table: list[tuple[int, int, int, int]] = []
    starts = [0]
    names: list[int] = []
    name_offsets = [0]
    for pattern in small:
        if pattern is not None:
            table.extend(_rows(pattern, numbers, sets))
            own = {numbers[node.label] - len(wide) for node in pattern.nodes}
            names.extend(sorted(each for each in own if each >= 0))
        starts.append(len(table))
        name_offsets.append(len(names))
    rows = embedding.NodeRows(
        np.array(starts, np.int64),
        np.array(table, np.int64).reshape(-1, embedding.WORDS),
        np.array([embedding.needed(pattern) for pattern in patterns], np.uint64),
        np.array([model.covers(one, other) for one in wide for other in labels], np.bool_).reshape(
            len(wide), len(labels)
        ),
        implied.offsets,
        implied.implied,
    )
    return rows, (np.array(name_offsets, np.int64), np.array(names, np.int32), labels[len(wide) :])


def _rows(
    pattern: model.Pattern, numbers: dict[Label, int], sets: dict[tuple[model.Test, ...], int]
) -> list[tuple[int, int, int, int]]:
    """Lay out the nodes of a view, as `coverage` draws them."""
    above, below, kids = ([0] * len(pattern.nodes) for _ in range(3))
    for index, node in enumerate(pattern.nodes):
        if node.parent != model.ROOT:
            above[index] = above[node.parent] | 1 << node.parent
    for index, node in reversed(list(enumerate(pattern.nodes))):
        if node.parent != model.ROOT:
            below[node.parent] |= below[index] | 1 << index
            kids[node.parent] |= (node.axis == model.CHILD) << index
    return [
        (
            numbers[node.label],
            sets[node.tests],
            _flags(node) | kids[index] << 16,
            above[index] | below[index] << 16,
        )
        for index, node in enumerate(pattern.nodes)
    ]


def _flags(node: model.Node) -> int:
    flags = node.parent + 1
    flags |= embedding.CHILD_BIT * (node.axis == model.CHILD) | embedding.VAL_BIT * (
        model.VAL in node.returns
    )
    return (
        flags
        | embedding.CONT_BIT * (model.CONT in node.returns)
        | embedding.ATTRIBUTE_BIT * model.is_attribute(node.label)
    )
