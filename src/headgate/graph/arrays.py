"""A numbered graph as flat arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from headgate.core.arrays import Bools, Bytes, Floats64, Ints, Ints32, Words


class GraphArrays(NamedTuple):
    """Vertices by number: roots, then inner ones, then sinks (see `numbering`).

    marks           roots, inner
    child           of vertex v: child[child_start[v]:child_start[v + 1]], rising, each once;
                    child_cost is what going there takes off, passing the child included
    position        of vertex v: v - roots; roots have none, because nothing leads to them.
                    Position p is bit p & 63 of word p >> 6
    row             of vertex v: the same children as bits, row_bits[i] of word row_word[i] for i in
                    row_start[v] to row_start[v + 1]
    open            by word: positions without a filter
    component       of vertex v, rising with v
    serves[v]       the subscription that is served where v is reached, or -1; `serving` the same by word
    score[v]        of that subscription
    best[v]         the highest score to be had at v or behind it; -inf for none
    stands_for[v]   NODE, EDGE or SUBSCRIPTION, of number place[v] in its table
    """

    marks: Ints
    child_start: Ints
    child: Ints32
    child_cost: Floats64
    pass_cost: Floats64
    row_start: Ints
    row_word: Ints32
    row_bits: Words
    open: Words
    component: Ints32
    serves: Ints32
    serving: Words
    score: Floats64
    best: Floats64
    stands_for: Bytes
    place: Ints32

    @property
    def vertices(self) -> int:
        """Count the vertices."""
        return len(self.child_start) - 1

    @property
    def roots(self) -> int:
        """Count the roots: the number of the first vertex that has a position."""
        return int(self.marks[0])

    @property
    def words(self) -> int:
        """Count the words of bits that the positions take."""
        return (self.vertices - self.roots + 63) // 64

    def check(self) -> None:
        """Assert the invariants that the kernels rely on."""
        n, roots, inner = self.vertices, self.roots, int(self.marks[1])
        source = np.repeat(np.arange(n), np.diff(self.child_start))
        assert self.child_start[0] == 0
        assert self.child_start[-1] == len(self.child) == len(self.child_cost)
        assert bool((self.child >= roots).all())
        assert bool((np.diff(self.child_start)[roots + inner :] == 0).all())
        same = source[1:] == source[:-1]
        assert bool((self.child[1:][same] > self.child[:-1][same]).all())
        assert bool((np.diff(self.component) >= 0).all())
        assert bool((self.component[source] <= self.component[self.child]).all())
        assert bool((self.child_cost >= 0).all())
        assert bool((self.pass_cost >= 0).all())
        assert len(self.open) == len(self.serving) == self.words
        for v in range(n):
            bits = np.zeros(self.words, np.uint64)
            bits[self.row_word[self.row_start[v] : self.row_start[v + 1]]] = self.row_bits[
                self.row_start[v] : self.row_start[v + 1]
            ]
            children = self.child[self.child_start[v] : self.child_start[v + 1]] - roots
            assert np.array_equal(bits, bits_of(children, self.words))
        assert np.array_equal(self.serving, bits_of(np.flatnonzero(self.serves[roots:] >= 0), self.words))
        assert bool((self.best[source] >= self.best[self.child]).all())


def flags_of(words: Words, count: int) -> Bools:
    """Return the first bits of words as flags."""
    return np.unpackbits(words.view(np.uint8), bitorder="little")[:count].astype(np.bool_)


def has_bits(words: Words, positions: Ints) -> Bools:
    """Tell which positions have a bit that is set."""
    set_: Bools = (words[positions >> 6] >> (positions & 63).astype(np.uint64)) & np.uint64(1) > 0
    return set_


def bits_of(positions: Ints32 | Ints, words: int) -> Words:
    """Set a bit for each position.

    >>> bits_of(np.array([0, 3, 64]), 2).tolist()
    [9, 1]
    """
    flags = np.zeros(64 * words, np.uint8)
    flags[positions] = 1
    return np.packbits(flags, bitorder="little").view(np.uint64)
