"""Programs to conjunctions where they are few, else to trees.

The disjunctive normal form of a program is counted before it is written: a leaf is one term for each of its
parts, OR adds terms, AND multiplies them. Term t is then read off the program without building any other:
at an OR it lies in one of the two children, at an AND it is a pair of terms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.records.programs.programs import starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.index.lines import Parts
    from headgate.records.programs.programs import Programs

    Ints = NDArray[np.int64]

MOST_TERMS = 16
MOST_PARTS = 96
"""A program with more terms, or more parts in all its terms, stays a tree."""
_MANY = 1 << 40
_STACK = 512


class Terms(NamedTuple):
    """Conjunction t of filter term_filter[t]: all parts of part[term_start[t]:term_start[t + 1]] hold.

    Filters in `trees` have none; a filter that never holds has none either.
    """

    term_start: Ints
    term_filter: NDArray[np.int32]
    part: NDArray[np.int32]
    trees: NDArray[np.int32]


def make_terms(programs: Programs, parts: Parts) -> Terms:
    """Write all filters as terms or trees."""
    terms = np.zeros(programs.filters, np.int64)
    sizes = np.zeros(programs.filters, np.int64)
    _count_terms(programs.token_start, programs.tokens, parts.part_start, terms, sizes)
    small = (terms <= MOST_TERMS) & (sizes <= MOST_PARTS)
    counts = np.where(small, terms, 0)
    lengths = np.zeros(int(counts.sum()), np.int64)
    found = np.zeros(int(sizes[small].sum()), np.int32)
    _list_terms(programs.token_start, programs.tokens, parts.part_start, counts, lengths, found)
    owners = np.repeat(np.arange(programs.filters, dtype=np.int32), counts)
    return Terms(starts(lengths), owners, found, np.flatnonzero(~small).astype(np.int32))


@kernel
def _count_terms(
    token_start: Ints, tokens: NDArray[np.int32], part_start: Ints, terms: Ints, sizes: Ints
) -> None:
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
            elif token == -1:
                top -= 1
                c1, c2 = counts[top - 1], counts[top]
                lengths[top - 1] = min(lengths[top - 1] * c2 + lengths[top] * c1, _MANY)
                counts[top - 1] = min(c1 * c2, _MANY)
                # Bounded factors keep the products within 64 bits.
                counts[top - 1] = min(counts[top - 1], 1 << 20)
                lengths[top - 1] = min(lengths[top - 1], 1 << 20)
            elif token == -2:
                top -= 1
                counts[top - 1] = min(counts[top - 1] + counts[top], 1 << 20)
                lengths[top - 1] = min(lengths[top - 1] + lengths[top], 1 << 20)
            else:
                counts[top] = 1 if token == -3 else 0
                lengths[top] = 0
                top += 1
        terms[f] = counts[0]
        sizes[f] = lengths[0]


@kernel
def _list_terms(
    token_start: Ints,
    tokens: NDArray[np.int32],
    part_start: Ints,
    wanted: Ints,
    lengths: Ints,
    found: NDArray[np.int32],
) -> None:
    """Write the parts of each term of the filters that have some wanted."""
    longest = 0
    for f in range(len(wanted)):
        if wanted[f]:
            longest = max(longest, token_start[f + 1] - token_start[f])
    counts = np.empty(longest, np.int64)
    begins = np.empty(longest, np.int64)
    stack = np.empty(_STACK, np.int64)
    places = np.empty(_STACK, np.int64)
    choices = np.empty(_STACK, np.int64)
    term, at = 0, 0
    for f in range(len(wanted)):
        if wanted[f] == 0:
            continue
        base, size = token_start[f], token_start[f + 1] - token_start[f]
        # counts[t], begins[t]: the terms of the operand that ends at token t, and its first token.
        top = 0
        for t in range(size):
            token = tokens[base + t]
            if token >= 0:
                counts[t], begins[t] = part_start[token + 1] - part_start[token], t
            elif token <= -3:
                counts[t], begins[t] = (1 if token == -3 else 0), t
            else:
                top -= 2
                left, right = stack[top], stack[top + 1]
                begins[t] = begins[left]
                counts[t] = counts[left] * counts[right] if token == -1 else counts[left] + counts[right]
            stack[top] = t
            top += 1
        for choice in range(wanted[f]):
            before = at
            places[0], choices[0] = size - 1, choice
            top = 1
            while top:
                top -= 1
                t, c = places[top], choices[top]
                token = tokens[base + t]
                if token >= 0:
                    found[at] = part_start[token] + c
                    at += 1
                elif token == -1:
                    right = t - 1
                    left = begins[right] - 1
                    places[top], choices[top] = right, c % counts[right]
                    places[top + 1], choices[top + 1] = left, c // counts[right]
                    top += 2
                elif token == -2:
                    right = t - 1
                    left = begins[right] - 1
                    if c < counts[left]:
                        places[top], choices[top] = left, c
                    else:
                        places[top], choices[top] = right, c - counts[left]
                    top += 1
            lengths[term] = at - before
            term += 1
