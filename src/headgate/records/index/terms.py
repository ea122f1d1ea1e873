"""Programs to conjunctions where they are few, else to trees.

The disjunctive normal form of a program is counted before it is written: a leaf is one term for each of its
parts, OR adds terms, AND multiplies them. Term t is then read off the program without building any other:
at an OR it lies in one of the two children, at an AND it is a pair of terms.

Filters whose normal form would be large are trees: a cover of leaves leads to them, and jumps evaluate them.
A *cover* of a tree is a set of leaves one of which must hold for the tree to hold: of an AND the cheaper
child's cover, of an OR the covers of both. An event that has none of its atoms cannot satisfy the tree.
The tree itself is written as checks with jumps, left to right, so that no check is made that cannot matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.records.index.access import WEAK, cover
from headgate.records.index.arrays import ACCEPT, FALSE_OP, REJECT, TRUE_OP
from headgate.records.index.checking import write_check
from headgate.records.programs.programs import ALL, starts
from headgate.records.programs.tokens import AND, OR, TRUE

if TYPE_CHECKING:
    from headgate.core.arrays import Ints, Ints32
    from headgate.records.index.access import Atoms
    from headgate.records.index.lines import Parts
    from headgate.records.programs.programs import Programs


MOST_TERMS = 16
MOST_PARTS = 96
"""A program with more terms, or more parts in all its terms, stays a tree."""
_BOUND = 1 << 20
"""Where counting ends; bounded factors keep products within 64 bits."""
_STACK = 512


class Terms(NamedTuple):
    """Conjunction t of filter term_filter[t]: all parts of part[term_start[t]:term_start[t + 1]] hold.

    Filters in `trees` have none; a filter that never holds has none either.
    """

    term_start: Ints
    term_filter: Ints32
    part: Ints32
    trees: Ints32


def make_terms(programs: Programs, parts: Parts) -> Terms:
    """Write all filters as terms or trees."""
    terms = np.zeros(programs.filters, np.int64)
    sizes = np.zeros(programs.filters, np.int64)
    _count_terms(programs.token_start, programs.tokens, parts.part_start, terms, sizes)
    small = (terms <= MOST_TERMS) & (sizes <= MOST_PARTS)
    counts = np.where(small, terms, 0)
    lengths = np.zeros(int(counts.sum()), np.int64)
    term_parts = np.zeros(int(sizes[small].sum()), np.int32)
    _list_terms(programs.token_start, programs.tokens, parts.part_start, counts, lengths, term_parts)
    owners = np.repeat(np.arange(programs.filters, dtype=np.int32), counts)
    return Terms(starts(lengths), owners, term_parts, np.flatnonzero(~small).astype(np.int32))


@kernel
def _count_terms(token_start: Ints, tokens: Ints32, part_start: Ints, terms: Ints, sizes: Ints) -> None:
    """Count the terms of each filter and the parts in all of them, up to a bound."""
    counts = np.empty(_STACK, np.int64)
    lengths = np.empty(_STACK, np.int64)
    for f in range(len(token_start) - 1):
        top = 0
        for t in range(token_start[f], token_start[f + 1]):
            token = tokens[t]
            if token >= 0:
                counts[top] = part_start[token + 1] - part_start[token]
                lengths[top] = counts[top]
                top += 1
            elif token == AND:
                top -= 1
                c1, c2 = counts[top - 1], counts[top]
                lengths[top - 1] = min(lengths[top - 1] * c2 + lengths[top] * c1, _BOUND)
                counts[top - 1] = min(c1 * c2, _BOUND)
            elif token == OR:
                top -= 1
                counts[top - 1] = min(counts[top - 1] + counts[top], _BOUND)
                lengths[top - 1] = min(lengths[top - 1] + lengths[top], _BOUND)
            else:
                counts[top] = 1 if token == TRUE else 0
                lengths[top] = 0
                top += 1
        terms[f] = counts[0]
        sizes[f] = lengths[0]


@kernel
def _list_terms(
    token_start: Ints, tokens: Ints32, part_start: Ints, wanted: Ints, lengths: Ints, term_parts: Ints32
) -> None:
    """Write the parts of each term of the filters that have some wanted."""
    longest = 0
    for f in range(len(wanted)):
        if wanted[f]:
            longest = max(longest, token_start[f + 1] - token_start[f])
    counts = np.empty(longest, np.int64)
    begins = np.empty(longest, np.int64)
    places = np.empty(_STACK, np.int64)
    choices = np.empty(_STACK, np.int64)
    term, at = 0, 0
    for f in range(len(wanted)):
        if wanted[f] == 0:
            continue
        base, size = token_start[f], token_start[f + 1] - token_start[f]
        # counts[t], begins[t]: the terms of the operand that ends at token t, and its first token.
        for t in range(size):
            token = tokens[base + t]
            if token >= 0:
                counts[t], begins[t] = part_start[token + 1] - part_start[token], t
            elif token <= TRUE:
                counts[t], begins[t] = (1 if token == TRUE else 0), t
            else:
                right = t - 1
                left = begins[right] - 1
                begins[t] = begins[left]
                counts[t] = counts[left] * counts[right] if token == AND else counts[left] + counts[right]
        for choice in range(wanted[f]):
            before = at
            places[0], choices[0] = size - 1, choice
            top = 1
            while top:
                top -= 1
                t, c = places[top], choices[top]
                token = tokens[base + t]
                if token >= 0:
                    term_parts[at] = part_start[token] + c
                    at += 1
                elif token == AND:
                    right = t - 1
                    left = begins[right] - 1
                    places[top], choices[top] = right, c % counts[right]
                    places[top + 1], choices[top + 1] = left, c // counts[right]
                    top += 2
                elif token == OR:
                    right = t - 1
                    left = begins[right] - 1
                    if c < counts[left]:
                        places[top], choices[top] = left, c
                    else:
                        places[top], choices[top] = right, c - counts[left]
                    top += 1
            lengths[term] = at - before
            term += 1


MOST_ATOMS = 1024
"""A tree that needs more atoms to cover it is looked at for every event."""
_UNCOVERED = 1e9
_MOST_CODES = 256
"""A part that needs more atoms to cover it is not covered."""
JUMPS = 2
"""Words behind each check of a tree."""


@kernel
def _cover_leaf(
    atoms: Atoms, parts: Parts, gram_atom: Ints, leaf: int, level_of: Ints32
) -> tuple[float, int]:
    """Weigh the cheapest cover of a leaf, part by part; returns its weight and its atoms."""
    none = np.empty(0, np.int64)
    weight, count = 0.0, 0
    for p in range(parts.part_start[leaf], parts.part_start[leaf + 1]):
        line = parts.part_line[p]
        if gram_atom[p] >= 0:
            return atoms.weight[gram_atom[p]], 1
        if line < 0 or parts.part_kind[p] >= ALL:
            return _UNCOVERED, 0
        best, size = _UNCOVERED, 0
        for level in range(2):
            if level and atoms.level_base[line] < 0:
                continue
            some, cost = cover(atoms, parts, p, level > 0, none)
            if some <= _MOST_CODES and cost < best:
                best, size = cost, some
                level_of[p - parts.part_start[leaf]] = level
        weight += best
        count += size
    return weight, count


@kernel
def cover_tree(atoms: Atoms, parts: Parts, gram_atom: Ints, tokens: Ints32, out: Ints) -> int:
    """Write the atoms of the cheapest cover of a tree; returns how many, -1 if it has no good one."""
    size = len(tokens)
    weight = np.empty(size, np.float64)
    count = np.empty(size, np.int64)
    begins = np.empty(size, np.int64)
    stack = np.empty(size + 1, np.int64)
    levels = np.empty(32, np.int32)
    for t in range(size):
        token = tokens[t]
        begins[t] = t
        if token >= 0:
            weight[t], count[t] = _cover_leaf(atoms, parts, gram_atom, token, levels)
        elif token <= TRUE:
            weight[t], count[t] = (_UNCOVERED if token == TRUE else 0.0), 0
        else:
            right = t - 1
            left = begins[right] - 1
            begins[t] = begins[left]
            if token == AND:
                better = left if weight[left] <= weight[right] else right
                weight[t], count[t] = weight[better], count[better]
            else:
                weight[t], count[t] = weight[left] + weight[right], count[left] + count[right]
    if weight[size - 1] > WEAK or count[size - 1] > MOST_ATOMS:
        return -1
    n, top = 0, 1
    stack[0] = size - 1
    while top:
        top -= 1
        t = stack[top]
        token = tokens[t]
        if token >= 0:
            _cover_leaf(atoms, parts, gram_atom, token, levels)
            for p in range(parts.part_start[token], parts.part_start[token + 1]):
                if gram_atom[p] >= 0:
                    out[n] = gram_atom[p]
                    n += 1
                    continue
                n += cover(atoms, parts, p, levels[p - parts.part_start[token]] > 0, out[n:])[0]
        elif token > TRUE:
            right = t - 1
            left = begins[right] - 1
            if token == OR:
                stack[top], stack[top + 1] = left, right
                top += 2
            else:
                stack[top] = left if weight[left] <= weight[right] else right
                top += 1
    return n


def token_words(parts: Parts, words: Ints, tokens: Ints32) -> Ints:
    """Count the words of the checks, with their jumps, of each token of trees; `words` are those of parts."""
    leaves = np.bincount(parts.part_leaf, words + JUMPS, len(parts.part_start) - 1).astype(np.int64)
    constant = np.where(tokens <= TRUE, 1 + JUMPS, 0)
    return np.where(tokens >= 0, leaves[np.maximum(tokens, 0)], constant) if len(leaves) else constant


@kernel
def write_tree(parts: Parts, tokens: Ints32, words_of: Ints, out: Ints32) -> None:
    """Write a tree's checks with their jumps; `words_of` are those of each token.

    A child's jumps are those of its parent, but for the left child of an AND (if true, on to the right one)
    and of an OR (if false, on to the right one).
    """
    size = len(tokens)
    words = np.empty(size, np.int64)
    begins = np.empty(size, np.int64)
    stack = np.empty((size + 1, 4), np.int64)
    for t in range(size):
        begins[t] = t
        words[t] = words_of[t]
        if tokens[t] in {AND, OR}:
            left = begins[t - 1] - 1
            begins[t] = begins[left]
            words[t] = words[left] + words[t - 1]
    top = 1
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = size - 1, 0, ACCEPT, REJECT
    while top:
        top -= 1
        t, at, if_true, if_false = stack[top, 0], stack[top, 1], stack[top, 2], stack[top, 3]
        token = tokens[t]
        if token <= TRUE:
            out[at] = TRUE_OP if token == TRUE else FALSE_OP
            out[at + 1], out[at + 2] = if_true, if_false
        elif token >= 0:
            last = parts.part_start[token + 1] - 1
            for p in range(parts.part_start[token], last + 1):
                at += write_check(parts, p, out[at:])
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
            stack[top, 2] = middle if token == AND else if_true
            stack[top, 3] = middle if token == OR else if_false
            top += 1
