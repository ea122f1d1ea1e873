"""The tail as flat arrays, and events for it.

Compiled code knows these fields by place: kernels that take them go through `headgate.core.jit`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

VALUE, ANY, ALL, GLOB, NOT_GLOB, TRUE, FALSE, AND, OR = range(9)
"""What a word of code does; the first five are the kinds of leaf of `Programs`."""
OPS = 4
"""Bits of what a word does, below the number of words that belong to it."""
SIZES = 24
"""Bits of the number of ranges, below a column."""
ELEMENT, TEXT = 1, 2
"""Flags of a column, below its facet."""
FACETS = 2
"""Bits of those flags."""


class TailArrays(NamedTuple):
    """Filters in the order in which they were added; all arrays have room at their ends.

        filter f      code[at[f]:at[f + 1]], for f < filters
          leaf        [op | words << 4, attribute | groups << 32, …]
            VALUE     groups
            ANY, ALL  the column of the elements themselves (facet PRESENT), groups
            GLOB…     column, begin, end: the pattern is globs[begin:end]
          group       [column << 24 | n, low, high, …]: n ranges as in `Programs`, rising and disjoint;
                      true if the key lies in one; without ranges true if the value has not this facet
          TRUE, FALSE [op]
          AND, OR     [op | words << 4] before the right operand: pass over it if the left one decides
        column c      a facet of the values or elements of an attribute: facet << 2 | TEXT | ELEMENT
        text t        text_data[text_offsets[t]:text_offsets[t + 1]], UTF-8, in no order
        guard         [column << 32 | filter, low, high]: the filter does not hold if the value is NULL or its
                      key lies outside; of a text the key is its hash; no guard if the column is -1
        entry i       entries[5 * i:]: [hash, guard, following entry]: the filter can hold for events with a
                      key of that hash; columns that hashes were made of are probes[:probed]
          chain b     entries of hashes h with h & (len(heads) - 1) == b: heads[b], its following, …
                      rising, up to -1
        scan          guards scan[3 * i:] for i < scanned: filters without entries may hold for any event

    Guards are there for speed: most candidates fail them, and their programs are not fetched from memory.

    What lies below filters, posted, scanned, probed, width and texts never changes, but for ends of chains:
    a link to an entry from `posted` on is an end, too.
    """

    code: NDArray[np.int64]
    at: NDArray[np.int64]
    heads: NDArray[np.int32]
    entries: NDArray[np.int64]
    scan: NDArray[np.int64]
    probes: NDArray[np.int32]
    columns: NDArray[np.uint8]
    text_offsets: NDArray[np.int64]
    text_data: NDArray[np.uint8]
    globs: NDArray[np.int16]
    filters: int
    posted: int
    scanned: int
    probed: int
    width: int
    texts: int


class TailEvents(NamedTuple):
    """A batch of events as keys of the tail's columns, event after event.

    has[e * width + c]    1 if the value has the facet of column c; of elements, if the value is an array;
                          else 0 if it is NULL, 2 if not
    keys[e * width + c]   its key there; of a text its number in `offsets` and `data`; of elements where
                          multi_keys holds how many they are, and then their keys, multi_has likewise
    hashes[t]             stands for text t in hashes of keys
    """

    keys: NDArray[np.int64]
    has: NDArray[np.uint8]
    multi_keys: NDArray[np.int64]
    multi_has: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    data: NDArray[np.uint8]
    hashes: NDArray[np.int64]
