"""What lies above each class and each property, as flat arrays.

    terms            classes, properties and instances, a line each, sorted by their bytes
    class_up         ancestors of the term at place t: class_up[class_start[t]:class_start[t + 1]], rising;
                     every term is an ancestor of itself, whether it is a class or not
    property_up      the same for rdfs:subPropertyOf
    type_of          the classes that the taxonomy lists for the instance at place t, rising; no ancestors

Classes on a cycle are ancestors of each other, so they all have the same ancestors.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import TaxonomyError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from headgate.rdf.language.model import Term

LIMIT = 20_000_000
"""How many pairs of a term and its ancestor there may be: a chain of n classes has n * (n + 1) / 2."""


class Closure(NamedTuple):
    """The taxonomy at one version. An array of starts is one longer than there are terms."""

    terms: bytes
    class_start: NDArray[np.int64]
    class_up: NDArray[np.int32]
    property_start: NDArray[np.int64]
    property_up: NDArray[np.int32]
    type_start: NDArray[np.int64]
    type_of: NDArray[np.int32]

    def check(self) -> None:
        """Check the invariants."""
        terms = self.terms.split(b"\n") if self.terms else []
        assert terms == sorted(set(terms))
        for start, items in (
            (self.class_start, self.class_up),
            (self.property_start, self.property_up),
            (self.type_start, self.type_of),
        ):
            assert start.dtype == np.int64
            assert items.dtype == np.int32
            assert len(start) == len(terms) + 1
            assert start[0] == 0
            assert start[-1] == len(items)
            rows = [items[start[t] : start[t + 1]].tolist() for t in range(len(terms))]
            assert all(row == sorted(set(row)) for row in rows)
            if items is not self.type_of:
                assert all(t in row for t, row in enumerate(rows))
        assert self.type_of.min(initial=0) >= 0
        assert self.type_of.max(initial=-1) < len(terms)


def build_closure(
    classes: Iterable[tuple[Term, Term]],
    properties: Iterable[tuple[Term, Term]],
    types: Iterable[tuple[Term, Term]],
) -> Closure:
    """Close pairs of a term and the one above it; `types` are pairs of an instance and its class.

    >>> closure = build_closure([("<urn:Man>", "<urn:Human>")], [], [("<urn:Socrates>", "<urn:Man>")])
    >>> closure.terms.split()
    [b'<urn:Human>', b'<urn:Man>', b'<urn:Socrates>']
    >>> closure.class_start.tolist(), closure.class_up.tolist(), closure.type_of.tolist()
    ([0, 1, 3, 4], [0, 0, 1, 2], [1])
    """
    pairs = [sorted(set(each)) for each in (classes, properties, types)]
    terms = sorted({term for each in pairs for pair in each for term in pair})
    place = {term: t for t, term in enumerate(terms)}
    numbered = [[(place[low], place[high]) for low, high in each] for each in pairs]
    above_classes = _above(len(terms), numbered[0])
    above_properties = _above(len(terms), numbered[1])
    listed: list[list[int]] = [[] for _ in terms]
    for instance, of in numbered[2]:
        listed[instance].append(of)
    return Closure(
        "\n".join(terms).encode(),
        *_rows(above_classes),
        *_rows(above_properties),
        *_rows(listed),
    )


def _above(count: int, pairs: list[tuple[int, int]]) -> list[list[int]]:
    """List what lies above each number, itself included, rising; those on a cycle share one list."""
    parents: dict[int, list[int]] = {}
    for low, high in pairs:
        parents.setdefault(low, []).append(high)
        parents.setdefault(high, [])
    above = [[t] for t in range(count)]
    size = count
    for component in _components(parents):
        over = {parent for member in component for parent in parents[member]}.difference(component)
        shared = sorted(set(component).union(*(above[parent] for parent in over)))
        size += len(component) * (len(shared) - 1)
        if size > LIMIT:
            raise TaxonomyError(
                f"the taxonomy has more than {LIMIT:,} pairs of a class and its ancestor:"
                f" leave out what the filters do not name"
            )
        for member in component:
            above[member] = shared
    return above


def _components(parents: Mapping[int, list[int]]) -> list[list[int]]:
    """List the strongly connected components, each behind those above it (Tarjan 1972, without recursion)."""
    order: dict[int, int] = {}
    lowest: dict[int, int] = {}
    waiting: dict[int, None] = {}
    components: list[list[int]] = []
    for root in parents:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        waiting[root] = None
        walk = [(root, iter(parents[root]))]
        while walk:
            vertex, rest = walk[-1]
            for parent in rest:
                if parent not in order:
                    order[parent] = lowest[parent] = len(order)
                    waiting[parent] = None
                    walk.append((parent, iter(parents[parent])))
                    break
                if parent in waiting:
                    lowest[vertex] = min(lowest[vertex], order[parent])
            else:
                walk.pop()
                if walk:
                    below = walk[-1][0]
                    lowest[below] = min(lowest[below], lowest[vertex])
                if lowest[vertex] == order[vertex]:
                    component: list[int] = []
                    while vertex in waiting:
                        component.append(waiting.popitem()[0])
                    components.append(component)
    return components


def _rows(rows: list[list[int]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Lay lists into one array, with the starts."""
    start = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, rows), np.int64, len(rows)), out=start[1:])
    return start, np.fromiter(chain.from_iterable(rows), np.int32, int(start[-1]))
