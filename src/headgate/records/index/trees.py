"""Filters whose normal form would be large: a cover of leaves leads to them, and jumps evaluate them.

A *cover* of a tree is a set of leaves one of which must hold for the tree to hold: of an AND the cheaper
child's cover, of an OR the covers of both. An event that has none of its atoms cannot satisfy the tree.
The tree itself is written as checks with jumps, left to right, so that no check is made that cannot matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.core.jit import kernel
from headgate.records.index.access import WEAK, cover_size, cover_weight, list_cover
from headgate.records.index.arrays import ACCEPT, FALSE_OP, REJECT, TRUE_OP
from headgate.records.index.checking import check_words, write_check

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.access import Atoms
    from headgate.records.index.lines import Parts

    Ints = NDArray[np.int64]

MOST_ATOMS = 1024
"""A tree that needs more atoms to cover it is looked at for every event."""
_UNCOVERED = 1e9


@kernel
def _cover_leaf(
    atoms: Atoms,
    parts: Parts,
    kind: NDArray[np.uint8],
    gram_atom: Ints,
    leaf: int,
    level_of: NDArray[np.int32],
) -> tuple[float, int]:
    """Weigh the cheapest cover of a leaf, part by part; returns its weight and its atoms."""
    weight, count = 0.0, 0
    for p in range(parts.part_start[leaf], parts.part_start[leaf + 1]):
        line = parts.part_line[p]
        if gram_atom[p] >= 0:
            return atoms.weight[gram_atom[p]], 1
        if line < 0 or kind[leaf] >= 2:
            return _UNCOVERED, 0
        low = parts.set_low[parts.set_start[p] : parts.set_start[p + 1]]
        high = parts.set_high[parts.set_start[p] : parts.set_start[p + 1]]
        best, size = _UNCOVERED, 0
        for level in range(2):
            if level and atoms.level_base[line] < 0:
                continue
            some = cover_size(atoms, line, low, high, level > 0)
            if some > 256:
                continue
            cost = cover_weight(atoms, line, low, high, level > 0)
            if cost < best:
                best, size = cost, some
                level_of[p - parts.part_start[leaf]] = level
        weight += best
        count += size
    return weight, count


@kernel
def cover_tree(
    atoms: Atoms,
    parts: Parts,
    kind: NDArray[np.uint8],
    gram_atom: Ints,
    tokens: NDArray[np.int32],
    out: Ints,
) -> int:
    """Write the atoms of the cheapest cover of a tree; returns how many, -1 if it has no good one."""
    size = len(tokens)
    weight = np.empty(size, np.float64)
    count = np.empty(size, np.int64)
    begins = np.empty(size, np.int64)
    stack = np.empty(size + 1, np.int64)
    levels = np.empty(32, np.int32)
    top = 0
    for t in range(size):
        token = tokens[t]
        begins[t] = t
        if token >= 0:
            weight[t], count[t] = _cover_leaf(atoms, parts, kind, gram_atom, token, levels)
        elif token <= -3:
            weight[t], count[t] = (_UNCOVERED if token == -3 else 0.0), 0
        else:
            top -= 2
            left, right = stack[top], stack[top + 1]
            begins[t] = begins[left]
            if token == -1:
                better = left if weight[left] <= weight[right] else right
                weight[t], count[t] = weight[better], count[better]
            else:
                weight[t], count[t] = weight[left] + weight[right], count[left] + count[right]
        stack[top] = t
        top += 1
    if weight[size - 1] > WEAK or count[size - 1] > MOST_ATOMS:
        return -1
    n, top = 0, 1
    stack[0] = size - 1
    while top:
        top -= 1
        t = stack[top]
        token = tokens[t]
        if token >= 0:
            _cover_leaf(atoms, parts, kind, gram_atom, token, levels)
            for p in range(parts.part_start[token], parts.part_start[token + 1]):
                if gram_atom[p] >= 0:
                    out[n] = gram_atom[p]
                    n += 1
                    continue
                s, e = parts.set_start[p], parts.set_start[p + 1]
                level = levels[p - parts.part_start[token]] > 0
                n += list_cover(
                    atoms, parts.part_line[p], parts.set_low[s:e], parts.set_high[s:e], level, out[n:]
                )
        elif token > -3:
            right = t - 1
            left = begins[right] - 1
            if token == -2:
                stack[top], stack[top + 1] = left, right
                top += 2
            else:
                stack[top] = left if weight[left] <= weight[right] else right
                top += 1
    return n


@kernel
def tree_words(parts: Parts, tokens: NDArray[np.int32]) -> int:
    """Count the words of a tree's checks."""
    total = 0
    for t in range(len(tokens)):
        total += _token_words(parts, tokens[t])
    return total


@kernel
def _token_words(parts: Parts, token: int) -> int:
    if token >= 0:
        total = 0
        for p in range(parts.part_start[token], parts.part_start[token + 1]):
            total += check_words(parts, p) + 2
        return total
    return 3 if token <= -3 else 0


@kernel
def write_tree(
    parts: Parts,
    kind: NDArray[np.uint8],
    globs: NDArray[np.int32],
    tokens: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Write a tree's checks with their jumps.

    A child's jumps are those of its parent, but for the left child of an AND (if true, on to the right one)
    and of an OR (if false, on to the right one).
    """
    size = len(tokens)
    words = np.empty(size, np.int64)
    begins = np.empty(size, np.int64)
    stack = np.empty((size + 1, 4), np.int64)
    top = 0
    for t in range(size):
        token = tokens[t]
        begins[t] = t
        words[t] = _token_words(parts, token)
        if token in {-1, -2}:
            top -= 2
            left, right = stack[top, 0], stack[top + 1, 0]
            begins[t] = begins[left]
            words[t] = words[left] + words[right]
        stack[top, 0] = t
        top += 1
    top = 1
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = size - 1, 0, ACCEPT, REJECT
    while top:
        top -= 1
        t, at, if_true, if_false = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        token = tokens[t]
        if token <= -3:
            out[at] = TRUE_OP if token == -3 else FALSE_OP
            out[at + 1], out[at + 2] = if_true, if_false
        elif token >= 0:
            last = parts.part_start[token + 1] - 1
            for p in range(parts.part_start[token], last + 1):
                at += write_check(parts, kind, globs, p, out[at:])
                out[at] = if_true
                out[at + 1] = at + 2 if p < last else if_false
                at += 2
        else:
            right = t - 1
            left = begins[right] - 1
            middle = at + words[left]
            stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3] = right, middle, if_true, if_false
            top += 1
            stack[top, 0], stack[top, 1] = left, at
            stack[top, 2] = middle if token == -1 else if_true
            stack[top, 3] = middle if token == -2 else if_false
            top += 1
