"""A taxonomy of classes with the shape of schema.org's, release 30.0.

That one has 1,014 classes; 57 have several parents, 3 at most; a class has 4.0 ancestors on average and 8
at most, itself included. Here classes lie on levels below one root, as many on each as `LEVELS` says, and
have a parent on the level above. Those with several parents have no classes below them.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.rdf.language.model import RDFS, SUBCLASS, TYPE, iri
from headgate.workloads.hashing import Key, integers, zipf_rank
from headgate.workloads.rdf.publications import BASE
from headgate.workloads.records.drawing import distinct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from headgate.rdf.language.model import Term

    Ints = NDArray[np.int64]
    Statement = tuple[Term, Term, Term]

__all__ = ["LEVELS", "Classes", "draw_classes", "read_classes"]

LEVELS = (1, 70, 300, 390, 170, 65, 14, 4)
"""How many classes there are on each level."""
_INNER = 0.2
"""The part of a level that classes below it hang on; which of it, by Zipf's law."""
_SKEW = 0.8
_TWO, _THREE = 52, 5
"""How many classes have two parents, and three."""
_TABLE = "rdf classes"
_CLASS = f"<{RDFS}Class>"


class Classes(NamedTuple):
    """Classes by number, and what each is below."""

    names: tuple[Term, ...]
    parents: tuple[tuple[int, ...], ...]

    def statements(self) -> list[Statement]:
        """Write what is below what."""
        return [
            (self.names[low], SUBCLASS, self.names[high])
            for low, parents in enumerate(self.parents)
            for high in parents
        ]

    def line(self, number: int) -> list[int]:
        """List a class, its first parent, the first parent of that, and so on."""
        found = [number]
        while self.parents[found[-1]] and self.parents[found[-1]][0] not in found:
            found.append(self.parents[found[-1]][0])
        return found


@lru_cache(maxsize=4)
def draw_classes(seed: int) -> Classes:
    """Draw classes.

    >>> draw_classes(1).names[-1]
    '<http://example.org/C1013>'
    """
    first = np.cumsum((0, *LEVELS))
    parents: list[tuple[int, ...]] = [()]
    for level in range(1, len(LEVELS)):
        key = Key(seed, _TABLE, f"parent {level}", np.arange(LEVELS[level]))
        inner = max(1, round(_INNER * LEVELS[level - 1]))
        parents += [(int(parent),) for parent in first[level - 1] + zipf_rank(key, inner, _SKEW)]
    inside = {parent for (parent,) in parents[1:]}
    leaves = [number for number in range(int(first[2]), int(first[4])) if number not in inside]
    chosen = distinct(Key(seed, _TABLE, "several", np.arange(1)), _TWO + _THREE, len(leaves))[0].tolist()
    several = {leaves[at] for at in chosen}
    for turn, number in enumerate(sorted(several)):
        wanted = 3 if turn < _THREE else 2
        level = int(np.searchsorted(first, number, side="right")) - 1
        more = dict.fromkeys(parents[number])
        draw = 0
        while len(more) < wanted:
            key = Key(seed, _TABLE, "another parent", np.array([number]))
            parent = int(integers(key, int(first[level - 1]), int(first[level]), draw)[0])
            # One that has several parents itself would bring too many ancestors.
            more |= {} if parent in several else {parent: None}
            draw += 1
        parents[number] = tuple(more)
    return Classes(tuple(iri(f"{BASE}C{number}") for number in range(len(parents))), tuple(parents))


def read_classes(statements: Iterable[Statement]) -> Classes:
    """Number the classes of a vocabulary, by name: those that it says to be classes, if it says so of any."""
    known = list(statements)
    pairs = {(low, high) for low, relation, high in known if relation == SUBCLASS}
    said = {low for low, relation, high in known if (relation, high) == (TYPE, _CLASS)}
    names = sorted(said or {term for pair in pairs for term in pair})
    number = {name: at for at, name in enumerate(names)}
    parents: list[list[int]] = [[] for _ in names]
    for low, high in sorted(pairs):
        if low in number and high in number:
            parents[number[low]].append(number[high])
    return Classes(tuple(names), tuple(tuple(above) for above in parents))
