"""Views over XMark's schema, drawn as YFilter's generator draws queries: by walks down the schema.

A walk begins at the root, or with `//` anywhere; each step goes on from where the last one ended, or branches
off above it; now and then it is `//` over several levels, or names no label. Popular elements are drawn more
often. After Diao, Altinel, Franklin, Zhang and Fischer, "Path sharing and predicate evaluation for
high-performance XML filtering", TODS 2003; departure: several nodes of a view return something.

A view is a function of (seed, number, attempt). Views are unique up to the order of siblings: a number takes
its first attempt that no lesser number has taken.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import HeadgateError
from headgate.workloads.hashing import Key, bits
from headgate.workloads.xmark_schema import CHILDREN, EITHER, ROOT_LABEL, below, labels, values
from headgate.xml.canonical import canonical
from headgate.xml.model import ANY, CHILD, CONT, DESCENDANT, ROOT, VAL, Node, Pattern, Test, is_attribute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

__all__ = ["LARGEST", "TABLE_2", "ViewLaw", "draw_views", "unique_views"]

LARGEST = 16
"""Nodes of a view, at most."""
_TABLE = "xmark views"
_DRAWS = 112
"""Random numbers of a view; one that needs more begins again with the first, which none has been seen to."""
_ATTEMPTS = 250
_BATCH = 4096
_FIRST = ("item", "person", "open_auction", "closed_auction", "bidder", "annotation", "description", "mail")
"""Where walks that begin anywhere begin most often."""
_ROOM = 3
"""Paths that there must be below where a walk begins, for each of its steps: else few views are different."""
_COMMON = 3.0
"""How much rather tests ask for the common values: an exponent as `skew` is."""
_UPPER = frozenset({ROOT_LABEL, *CHILDREN[ROOT_LABEL], *CHILDREN["regions"]})
"""What holds a large part of the document; few want that."""


class ViewLaw(NamedTuple):
    """How views are drawn; the defaults are tuned to Table 2 of Karanasos et al., VLDB 2014."""

    sizes: tuple[float, ...] = (0.12, 0.3, 1.1, 3.8, 16, 28, 17, 7, 3, 1.3, 0.6, 0.3, 0.2, 0.1, 0.1, 0.1)
    """How often views of 1, 2, … nodes are drawn."""
    absolute: float = 0.16
    """How often a walk begins at the root."""
    descendant: float = 0.15
    """How often a step is `//`."""
    wildcard: float = 0.1
    """How often a step is `*`, where nothing branches off."""
    branch: float = 0.45
    """How often a step goes on from any node rather than from the last."""
    skew: float = 1.15
    """The place among choices, popular ones first, is (a number from 0 to 1) ** skew: above 1 is skewed."""
    test: float = 0.305
    """How often a node that has a value is tested."""
    compared: float = 0.1
    """How many of the tests of numbers are > or <."""
    returned: float = 0.48
    """How often a node returns something; of those that hold much of the document, an eighth of that."""
    content: float = 0.8
    """How often a node that contains others returns `cont` rather than `val`."""

    def check(self) -> None:
        """Refuse what cannot be drawn."""
        if not 0 < len(self.sizes) <= LARGEST or min(self.sizes) < 0 or sum(self.sizes) <= 0:
            raise HeadgateError(f"sizes of views are weights of 1 to {LARGEST} nodes, not {self.sizes}")
        for name in (
            "absolute",
            "descendant",
            "wildcard",
            "branch",
            "test",
            "compared",
            "returned",
            "content",
        ):
            part = getattr(self, name)
            if not 0 <= part <= 1:
                raise HeadgateError(f"{name} is a part, from 0 to 1, not {part}")


TABLE_2 = ViewLaw()


def unique_views(law: ViewLaw, count: int, seed: int) -> Iterator[tuple[int, Pattern]]:
    """Draw the views 0 to `count`, each with the attempt that it took.

    Some 80 microseconds a view.
    """
    law.check()
    seen: set[tuple[Node, ...]] = set()
    for first in range(0, count, _BATCH):
        rows = np.arange(first, min(first + _BATCH, count))
        for row, drawn in zip(rows.tolist(), draw_views(law, rows, seed, bytes(len(rows))), strict=True):
            view, attempt = drawn, 0
            while view.nodes in seen:
                attempt += 1
                if attempt == _ATTEMPTS:
                    raise HeadgateError(
                        f"view {row} of {count} was drawn {_ATTEMPTS} times and never new: "
                        "ask for fewer unique views"
                    )
                (view,) = draw_views(law, np.array([row]), seed, bytes([attempt]))
            seen.add(view.nodes)
            yield attempt, view


def draw_views(law: ViewLaw, rows: Ints, seed: int, attempts: bytes) -> list[Pattern]:
    """Draw the views of some rows, each at the given attempt."""
    tables = _tables(law)
    tried = np.frombuffer(attempts, np.uint8)
    drawn = np.empty((len(rows), _DRAWS))
    address = np.asarray(rows, np.int64)[:, None] * _DRAWS + np.arange(_DRAWS)
    for attempt in np.unique(tried).tolist():
        (at,) = np.nonzero(tried == attempt)
        words = bits(Key(seed, _TABLE, "draw", address[at].ravel()), attempt)
        drawn[at] = ((words >> np.uint64(11)).astype(np.float64) / (1 << 53)).reshape(len(at), _DRAWS)
    return [_Walk(law, tables, row).view() for row in drawn.tolist()]


class _Tables(NamedTuple):
    """What a law says, worked out."""

    sizes: list[float]
    """Cumulative."""
    starts: list[list[tuple[str, str]]]
    """Where walks of 1, 2, … nodes begin, popular ones first, with parents: where there is room for them."""


@lru_cache(maxsize=8)
def _tables(law: ViewLaw) -> _Tables:
    law.check()
    total = np.cumsum(np.asarray(law.sizes, np.float64))
    places = {label: place for place, label in enumerate(_FIRST)}
    known = {label: parent for parent, label in reversed(labels())}
    pairs = [(parent, label) for label, parent in reversed(known.items())]
    starts = sorted(pairs, key=lambda pair: places.get(pair[1], len(places)))
    rooms = [[pair for pair in starts if len(below(pair[1])) >= _ROOM * size] for size in range(len(total))]
    return _Tables((total / total[-1]).tolist(), rooms)


class _Walk:
    """A view that is being drawn."""

    def __init__(self, law: ViewLaw, tables: _Tables, drawn: list[float]) -> None:
        self._law = law
        self._tables = tables
        self._drawn = drawn
        self._used = 0
        # Of each node: parent and label in the schema; label, axis and parent in the view.
        self._above: list[str] = []
        self._label: list[str] = []
        self._shown: list[str] = []
        self._axis: list[str] = []
        self._parent: list[int] = []

    def view(self) -> Pattern:
        law = self._law
        size = 1 + bisect_right(self._tables.sizes, self._chance())
        if self._chance() < law.absolute:
            self._add("", ROOT_LABEL, CHILD, ROOT, shown=ROOT_LABEL)
        else:
            above, label = self._choose(self._tables.starts[size - 1])
            self._add(above, label, DESCENDANT, ROOT, shown=label)
        last = 0
        for _ in range(2 * size):
            if len(self._label) == size:
                break
            last = self._step(last)
            if last == ROOT:
                break
        return canonical(Pattern(tuple(self._nodes()))).pattern

    def _chance(self) -> float:
        self._used += 1
        return self._drawn[self._used % _DRAWS]

    def _choose(self, among: list[tuple[str, str]] | tuple[tuple[str, str], ...]) -> tuple[str, str]:
        return among[int(len(among) * self._chance() ** self._law.skew)]

    def _add(self, above: str, label: str, axis: str, parent: int, shown: str) -> int:
        self._above.append(above)
        self._label.append(label)
        self._shown.append(shown)
        self._axis.append(axis)
        self._parent.append(parent)
        return len(self._label) - 1

    def _step(self, last: int) -> int:
        """Go one step on, and return where it ended; ROOT if there is no way."""
        law = self._law
        parent = int(self._chance() * len(self._label)) if self._chance() < law.branch else last
        while parent != ROOT and self._label[parent] not in CHILDREN:
            parent = self._parent[parent]
        if parent == ROOT:
            return ROOT
        label = self._label[parent]
        if self._chance() < law.descendant:
            axis, (above, child) = DESCENDANT, self._choose(below(label))
        else:
            axis, (above, child) = CHILD, self._choose(_children(label))
        siblings = [place for place in range(parent + 1, len(self._label)) if self._parent[place] == parent]
        # A * beside other branches would ask for nothing that they do not.
        star = not siblings and not is_attribute(child) and self._chance() < law.wildcard
        shown = ANY if star else child
        for place in siblings:
            if self._shown[place] in (shown, ANY) or label in EITHER:
                return place
        return self._add(above, child, axis, parent, shown)

    def _nodes(self) -> list[Node]:
        law = self._law
        found: list[Node] = []
        for place, label in enumerate(self._label):
            known = values(self._above[place], label)
            likely = law.returned / 8 if label in _UPPER else law.returned
            # There must be something to return: the last node does if no other does.
            forced = place == len(self._label) - 1 and not any(node.returns for node in found)
            returns: tuple[str, ...] = ()
            if self._chance() < likely or forced:
                content = label in CHILDREN and self._chance() < law.content
                returns = (CONT,) if content else (VAL,)
            tests: tuple[Test, ...] = ()
            if known and self._shown[place] != ANY and self._chance() < law.test:
                tests = (self._test(known),)
            found.append(Node(self._shown[place], self._axis[place], self._parent[place], tests, returns))
        return found

    def _test(self, known: tuple[str, ...]) -> Test:
        value = known[int(len(known) * self._chance() ** _COMMON)]
        if not value.replace(".", "", 1).isdecimal():
            return Test("=", value)
        chance = self._chance() / max(self._law.compared, 1e-9)
        return Test("=" if chance >= 1 else ">" if chance < 0.5 else "<", float(value))


@lru_cache(maxsize=128)
def _children(label: str) -> tuple[tuple[str, str], ...]:
    return tuple((label, child) for child in CHILDREN[label])
