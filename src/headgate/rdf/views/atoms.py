"""Patterns as atoms and expressions without terms, and how one maps to another: hot loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import bare, bare_inner
from headgate.rdf.language.model import within
from headgate.rdf.language.rewrite import substitute

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bools, Ints, Ints32, Words
    from headgate.rdf.language.model import Expression, Term


def shape_of(expression: Expression) -> tuple[Expression, tuple[Term, ...]]:
    """Take the terms out of an expression, from left to right.

    Two expressions are equal if and only if both parts are.

    >>> from headgate.rdf.language.model import Call, Compare
    >>> shape_of(Compare("<", "?x", Call("STR", ("?y",))))
    (Compare(sign='<', left='', right=Call(name='STR', arguments=('',))), ('?x', '?y'))
    """
    terms = tuple(each for each in within(expression) if isinstance(each, str))
    return substitute(expression, dict.fromkeys(terms, "")), terms


MAX_EDGES = 64
"""Edges of a view that takes part in a plan: one word."""
MAX_ATOMS = 128
SLOTS = 3 * MAX_EDGES
FREE = np.int32(-(2**31))
STEPS = 20_000
"""After so many tries a mapping counts as not found: this is hard where all properties are variables."""
FILTER = 4
"""Kinds from here on are filters; below are the paths of edges."""

_ODD = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_ONE = np.uint64(1)


class Atoms(NamedTuple):
    """The atoms of view v are `starts[v]` to `starts[v + 1]`, none if it takes no part in plans.

    The terms of atom a are `terms[term_starts[a]:term_starts[a + 1]]`. `bits` are the places of edges among
    those of their view. `slots` counts the variables of each view.
    """

    starts: Ints
    kinds: Ints32
    bits: NDArray[np.int8]
    term_starts: Ints
    terms: Ints32
    slots: Ints32
    needed: Words


class Search(NamedTuple):
    """What a search needs: what each variable stands for, in which order that was set, and what is tried."""

    images: Ints32
    trail: Ints32
    marks: Ints32
    tried: Ints


def new_search() -> Search:
    """Make room for a search."""
    return Search(
        np.zeros(SLOTS, np.int32),
        np.zeros(SLOTS + 1, np.int32),
        np.zeros(MAX_ATOMS + 1, np.int32),
        np.zeros(MAX_ATOMS + 1, np.int64),
    )


@bare_inner
def _bind(atoms: Atoms, one: int, other: int, search: Search, top: int) -> int:
    """Let an atom become another; returns the new length of the trail, or -1 if it cannot."""
    first, size = atoms.term_starts[one], atoms.term_starts[one + 1] - atoms.term_starts[one]
    second = atoms.term_starts[other]
    if atoms.kinds[one] != atoms.kinds[other] or size != atoms.term_starts[other + 1] - second:
        return -1
    start = top
    for i in range(size):
        term, image = atoms.terms[first + i], atoms.terms[second + i]
        fits = term == image
        if term < 0:
            slot = -1 - term
            fits = search.images[slot] == image
            if search.images[slot] == FREE:
                search.images[slot] = image
                search.trail[top] = slot
                top += 1
                fits = True
        if not fits:
            while top > start:
                top -= 1
                search.images[search.trail[top]] = FREE
            return -1
    return top


@bare
def find(atoms: Atoms, source: int, target: int, first: int, image: int, search: Search) -> bool:
    """Find a mapping that takes one atom to another, any mapping if `first` is -1.

    `search.images` is the mapping; `search.tried` of each atom of the source is one behind its image.
    """
    begin, count = atoms.starts[source], atoms.starts[source + 1] - atoms.starts[source]
    low, high = atoms.starts[target], atoms.starts[target + 1]
    for slot in range(atoms.slots[source]):
        search.images[slot] = FREE
    top = 0
    if first >= 0:
        top = _bind(atoms, first, image, search, top)
        if top < 0:
            return False
    steps = 0
    depth = 0
    search.tried[0] = low
    search.marks[0] = top
    while depth < count:
        while top > search.marks[depth]:
            top -= 1
            search.images[search.trail[top]] = FREE
        mapped = False
        if begin + depth == first:
            # It is bound already: one way and no other.
            mapped = search.tried[depth] == low
            search.tried[depth] = image + 1
        else:
            other = search.tried[depth]
            while other < high and not mapped:
                steps += 1
                after = _bind(atoms, begin + depth, other, search, top)
                other += 1
                if after >= 0:
                    top = after
                    mapped = True
            search.tried[depth] = other
        if steps > STEPS:
            return False
        if mapped:
            depth += 1
            search.tried[depth] = low
            search.marks[depth] = top
        elif depth == 0:
            return False
        else:
            depth -= 1
    return True


@bare_inner
def covered(atoms: Atoms, source: int, search: Search) -> np.uint64:
    """List the edges of the target that a mapping takes edges to."""
    begin = atoms.starts[source]
    edges = np.uint64(0)
    for depth in range(atoms.starts[source + 1] - begin):
        bit = atoms.bits[search.tried[depth] - 1]
        if bit >= 0:
            edges |= _ONE << np.uint64(bit)
    return edges


@bare
def cover(
    atoms: Atoms, sources: Ints32, targets: Ints32, search: Search, embeds: Bools, masks: Words
) -> None:
    """Answer for pairs of views: one mapping, then one for each edge that is not covered yet."""
    for i in range(len(sources)):
        source, target = sources[i], targets[i]
        masks[i] = 0
        embeds[i] = False
        if atoms.needed[source] == 0 or atoms.needed[target] == 0:
            continue
        if source == target:
            embeds[i] = True
            masks[i] = atoms.needed[target]
            continue
        if not find(atoms, source, target, -1, -1, search):
            continue
        embeds[i] = True
        mask = covered(atoms, source, search)
        for image in range(atoms.starts[target], atoms.starts[target + 1]):
            if atoms.bits[image] < 0:
                continue
            bit = _ONE << np.uint64(atoms.bits[image])
            for one in range(atoms.starts[source], atoms.starts[source + 1]):
                if mask & bit:
                    break
                if atoms.bits[one] >= 0 and find(atoms, source, target, one, image, search):
                    mask |= covered(atoms, source, search)
        masks[i] = mask


@bare_inner
def _mark(words: Words, view: int, kind: int, one: int, other: int, third: int) -> None:
    """Mark the bit of an atom; a variable is any negative number."""
    hashed = np.uint64(kind + 1) * _ODD
    hashed = (hashed ^ (hashed >> _SHIFT) ^ np.uint64(max(one, -1) + 1)) * _ODD
    hashed = (hashed ^ (hashed >> _SHIFT) ^ np.uint64(max(other, -1) + 1)) * _ODD
    hashed = (hashed ^ (hashed >> _SHIFT) ^ np.uint64(max(third, -1) + 1)) * _ODD
    bit = (hashed >> _SHIFT) & np.uint64(127)
    words[2 * view + np.int64(bit >> np.uint64(6))] |= _ONE << (bit & np.uint64(63))


@bare
def sign(atoms: Atoms, demands: Words, offers: Words) -> None:
    """Mark what each view demands of a target, and offers as one.

    An edge demands one with its constants, and offers itself with any of them left out. A filter stands for
    its kind.
    """
    for view in range(len(atoms.starts) - 1):
        for atom in range(atoms.starts[view], atoms.starts[view + 1]):
            kind, start = atoms.kinds[atom], atoms.term_starts[atom]
            if kind >= FILTER:
                _mark(demands, view, kind, -1, -1, -1)
                _mark(offers, view, kind, -1, -1, -1)
                continue
            s, p, o = atoms.terms[start], atoms.terms[start + 1], atoms.terms[start + 2]
            _mark(demands, view, kind, s, p, o)
            for choice in range(8):
                _mark(
                    offers,
                    view,
                    kind,
                    s if choice & 1 else -1,
                    p if choice & 2 else -1,
                    o if choice & 4 else -1,
                )
