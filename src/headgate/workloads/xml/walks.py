"""Walks down XMark's schema, which become views.

A walk begins at the root, or with `//` anywhere; each step goes on from where the last one ended, or branches
off above it; now and then it is `//` over several levels, or names no label. Popular elements are drawn more
often. Then some nodes get a test and some return something.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headgate.errors import HeadgateError
from headgate.workloads.xml.schema import CHILDREN, EITHER, ROOT_LABEL, below, labels, values
from headgate.xml.language import model
from headgate.xml.views.views import canonical

LARGEST = 16
"""Nodes of a view, at most."""
_FIRST = ("item", "person", "open_auction", "closed_auction", "bidder", "annotation", "description", "mail")
"""Where walks that begin anywhere begin most often."""
_ROOM = 3
"""Paths that there must be below where a walk begins, for each of its steps: else few views are different."""
_SHORT = 3
_COMMON = 3.0
"""How much rather tests ask for the common values: an exponent as `skew` is."""
_UPPER = frozenset({ROOT_LABEL, *CHILDREN[ROOT_LABEL], *CHILDREN["regions"]})
"""What holds a large part of the document; few want that, and short views do not return it as `cont`."""


def _popular() -> tuple[str, ...]:
    """List the labels of what does not hold a large part of the document, popular ones first."""
    known = dict.fromkeys((*_FIRST, *(label for _, label in labels())))
    return tuple(label for label in known if label not in _UPPER)


_POPULAR = _popular()
"""What can be a topic."""


class ViewLaw(NamedTuple):
    """How views are drawn; the defaults are tuned to Tables 2 and 3 of Karanasos et al., VLDB 2014."""

    sizes: tuple[float, ...] = (0.6, 7, 2, 17, 38, 22, 7, 2.5, 1, 0.6, 0.3, 0.2, 0.1, 0.1)
    """How often walks of 1, 2, … nodes are drawn; refined views have more."""
    absolute: float = 0.2
    """How often a walk begins at the root."""
    descendant: float = 0.08
    """How often a step is `//`."""
    loose: float = 0.8
    """The same in views of three nodes at most: short ones name ends rather than ways."""
    wildcard: float = 0.11
    """How often a step to a child is `*`, in longer views and where nothing branches off."""
    branch: float = 0.45
    """How often a step goes on from any node rather than from the last."""
    skew: float = 1.5
    """The place among choices, popular ones first, is (a number from 0 to 1) ** skew: above 1 is skewed."""
    test: float = 0.31
    """How often a node that has a value is tested."""
    compared: float = 0.1
    """How many of the tests of numbers are > or <."""
    returned: float = 0.465
    """How often a node returns something; of those that hold much of the document, an eighth of that."""
    content: float = 0.8
    """How often a node that contains others returns `cont` rather than `val`."""
    textual: float = 0.031
    """How often a view goes down to a `text()`, in longer views."""
    period: int = 3
    """One view in so many is drawn anew; the others refine one of these, early ones more often."""
    further: float = 0.6
    """How often a refined view goes on by two steps rather than one."""
    kept: float = 0.8
    """How often a node of a refined view returns what it did."""
    topics: int = 0
    """So many views come first, each of one label; all others name these labels only. 0 is no such views."""

    def check(self) -> None:
        """Refuse what cannot be drawn."""
        if not 0 < len(self.sizes) <= LARGEST or min(self.sizes) < 0 or sum(self.sizes) <= 0:
            raise HeadgateError(f"sizes of views are weights of 1 to {LARGEST} nodes, not {self.sizes}")
        for name, part in self._asdict().items():
            if name not in {"sizes", "skew", "period", "topics"} and not 0 <= part <= 1:
                raise HeadgateError(f"{name} is a part, from 0 to 1, not {part}")
        if self.period < 1:
            raise HeadgateError(f"one view in {self.period} cannot be drawn again: give 1 or more")
        if not 0 <= self.topics <= len(_POPULAR):
            raise HeadgateError(f"{self.topics} topics: there are labels for 0 to {len(_POPULAR)}")


class Walk:
    """A view that is being drawn, with random numbers from 0 to 1 that are used in turn."""

    def __init__(self, law: ViewLaw, drawn: list[float]) -> None:
        """Draw the nodes, what is tested and what is returned."""
        self._law = law
        self._drawn = drawn
        self._used = 0
        # Of each node: parent and label in the schema; label, axis and parent in the view.
        self._above: list[str] = []
        self._label: list[str] = []
        self._shown: list[str] = []
        self._axis: list[str] = []
        self._parent: list[int] = []
        self._tests: list[tuple[model.Test, ...]] = []
        self._returns: list[tuple[str, ...]] = []
        self._begin()
        self._mark()

    def refine(self, drawn: list[float]) -> None:
        """Go on with other random numbers: a step or two more, and other returns for some nodes."""
        self._drawn, self._used = drawn, 0
        size = len(self._label)
        self._go(size + 1 + (self._chance() < self._law.further), short=False)
        for node in range(size):
            if self._chance() >= self._law.kept:
                self._returns[node] = self._return(node)
        self._mark()

    def finish(self) -> None:
        """Go down to the text of an element, now and then."""
        if self._chance() >= self._law.textual or len(self._label) in (*range(_SHORT + 1), LARGEST):
            return
        ends = [node for node in range(len(self._label)) if self._has_text(node)]
        if ends:
            node = ends[int(self._chance() * len(ends))]
            self._add(self._label[node], model.TEXT, model.CHILD, node, model.TEXT)
            self._mark()

    def _has_text(self, node: int) -> bool:
        label = self._label[node]
        return bool(values(self._above[node], label)) and not model.is_attribute(label)

    def pattern(self) -> model.Pattern:
        """Make the view, in its canonical form."""
        columns = zip(self._shown, self._axis, self._parent, self._tests, self._returns, strict=True)
        return canonical(model.Pattern(tuple(model.Node(*each) for each in columns))).pattern

    def _chance(self) -> float:
        # One that needs more begins again with the first, which none has been seen to.
        self._used += 1
        return self._drawn[self._used % len(self._drawn)]

    def _choose(self, among: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> tuple[str, str]:
        return among[int(len(among) * self._chance() ** self._law.skew)]

    def _begin(self) -> None:
        tables = _tables(self._law)
        size = 1 + bisect_right(tables.sizes, self._chance())
        if self._chance() < self._law.absolute:
            self._add("", ROOT_LABEL, model.CHILD, model.ROOT, shown=ROOT_LABEL)
        else:
            above, label = self._choose(tables.starts[size - 1])
            self._add(above, label, model.DESCENDANT, model.ROOT, shown=label)
        self._go(size, short=size <= _SHORT)

    def _go(self, size: int, *, short: bool) -> None:
        """Go on until there are so many nodes, or no way is left."""
        last = len(self._label) - 1
        for _ in range(2 * size):
            if last == model.ROOT or len(self._label) >= min(size, LARGEST):
                break
            last = self._step(last, short=short)

    def _add(self, above: str, label: str, axis: str, parent: int, shown: str) -> int:
        self._above.append(above)
        self._label.append(label)
        self._shown.append(shown)
        self._axis.append(axis)
        self._parent.append(parent)
        return len(self._label) - 1

    def _step(self, last: int, *, short: bool) -> int:
        """Go one step on, and return where it ended; ROOT if there is no way."""
        law = self._law
        parent = int(self._chance() * len(self._label)) if self._chance() < law.branch else last
        while parent != model.ROOT and not _children(self._label[parent], law.topics):
            parent = self._parent[parent]
        if parent == model.ROOT:
            return model.ROOT
        label = self._label[parent]
        axis, (above, child) = model.CHILD, self._choose(_children(label, law.topics))
        if self._chance() < (law.loose if short else law.descendant):
            far = self._choose(_below(label, law.topics))
            if short or not model.is_attribute(far[1]):
                axis, (above, child) = model.DESCENDANT, far
        siblings = [node for node in range(parent + 1, len(self._label)) if self._parent[node] == parent]
        # A * beside other branches would ask for nothing that they do not, and //* for next to nothing.
        plain = short or axis == model.DESCENDANT or model.is_attribute(child)
        star = not (siblings or plain) and self._chance() < law.wildcard
        shown = model.ANY if star else child
        for node in siblings:
            if self._shown[node] in (shown, model.ANY) or label in EITHER:
                return node
        return self._add(above, child, axis, parent, shown)

    def _mark(self) -> None:
        """Draw tests and returns of nodes that have none yet."""
        for node in range(len(self._returns), len(self._label)):
            known = values(self._above[node], self._label[node])
            tested = known and self._shown[node] != model.ANY and self._chance() < self._law.test
            self._tests.append((self._test(known),) if tested else ())
            self._returns.append(self._return(node))
        if not any(self._returns):
            self._returns[-1] = (model.VAL,)

    def _return(self, node: int) -> tuple[str, ...]:
        label = self._label[node]
        upper = label in _UPPER
        if self._chance() >= (self._law.returned / 8 if upper else self._law.returned):
            return ()
        large = upper and len(self._label) <= _SHORT
        content = label in CHILDREN and not large and self._chance() < self._law.content
        return (model.CONT,) if content else (model.VAL,)

    def _test(self, known: tuple[str, ...]) -> model.Test:
        value = known[int(len(known) * self._chance() ** _COMMON)]
        if not value.replace(".", "", 1).isdecimal():
            return model.Test("=", value)
        chance = self._chance() / max(self._law.compared, 1e-9)
        return model.Test("=" if chance >= 1 else ">" if chance < 0.5 else "<", float(value))


class _Tables(NamedTuple):
    """What a law says, worked out."""

    sizes: list[float]
    """Cumulative."""
    starts: list[list[tuple[str, str]]]
    """Where walks of 1, 2, … nodes begin, popular ones first, with parents: where there is room for them."""


@lru_cache(maxsize=8)
def _tables(law: ViewLaw) -> _Tables:
    total = np.cumsum(np.asarray(law.sizes, np.float64))
    places = {label: place for place, label in enumerate(_FIRST)}
    known = {label: parent for parent, label in reversed(labels())}
    pairs = [(parent, label) for label, parent in reversed(known.items())]
    starts = sorted(pairs, key=lambda pair: places.get(pair[1], len(places)))
    starts = [pair for pair in starts if _named(pair[1], law.topics)]
    rooms = [
        [pair for pair in starts if len(_below(pair[1], law.topics)) >= _ROOM * size]
        for size in range(len(total))
    ]
    return _Tables((total / total[-1]).tolist(), rooms)


def topic(number: int) -> model.Pattern:
    """Make the view of a topic: all that has its label, whole.

    >>> from headgate.xml.language.printing import print_pattern
    >>> print_pattern(topic(0)), print_pattern(topic(12))
    ('//item', '//address')
    """
    label = _POPULAR[number]
    returned = (model.CONT,) if label in CHILDREN else (model.VAL,)
    return canonical(model.Pattern((model.Node(label, model.DESCENDANT, model.ROOT, (), returned),))).pattern


@lru_cache(maxsize=256)
def _children(label: str, topics: int) -> tuple[tuple[str, str], ...]:
    return tuple((label, child) for child in CHILDREN.get(label, ()) if _named(child, topics))


@lru_cache(maxsize=256)
def _below(label: str, topics: int) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in below(label) if _named(pair[1], topics))


def _named(label: str, topics: int) -> bool:
    """Tell whether views may name a label."""
    return topics == 0 or label in _POPULAR[:topics]
