"""The record index as flat arrays, and events as flat arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.records.facets import TEXT_FACETS, Facet
from headgate.records.program import AND, FALSE, OR

if TYPE_CHECKING:
    from numpy.typing import NDArray

VALUE, ANY, ALL, GLOB, NOT_GLOB = range(5)
"""What a leaf does; the first three are the numbers of `Quantifier`."""


class RecordArrays(NamedTuple):
    """All filters, as programs over shared leaves.

        filter f      tokens[token_start[f]:token_start[f + 1]], postfix; >= 0 pushes that leaf
        leaf l        equal leaves of all filters are one; over one attribute
          VALUE…ALL   ranges[range_start[l]:range_start[l + 1]]: key on `range_column` in [low, high]
          GLOB…       pattern leaf_glob[l]: glob_tokens[glob_start[g]:glob_start[g + 1]]
        column c      one facet of one attribute, the keys that events are encoded to
          of texts    the texts that filters name are the sorted run text_first[c]:text_last[c] of the pool;
                      a text's key is 2r + 1 if it is the r-th of them, 2r if it lies before the r-th

    Leaves are numbered by attribute, so that one pass over them touches one event column at a time.
    Rejected: running the programs filter by filter for each event. Evaluating every distinct leaf once for
    256 events and combining bit sets is about 50 times faster at 100,000 filters, needs no normal form, and
    cannot blow up (docs/benchmarks/records.md).
    """

    token_start: NDArray[np.int64]
    tokens: NDArray[np.int32]
    leaf_kind: NDArray[np.uint8]
    leaf_attribute: NDArray[np.int32]
    leaf_on_null: NDArray[np.uint8]
    leaf_glob: NDArray[np.int32]
    range_start: NDArray[np.int64]
    range_column: NDArray[np.int32]
    range_low: NDArray[np.int64]
    range_high: NDArray[np.int64]
    glob_start: NDArray[np.int64]
    glob_tokens: NDArray[np.int16]
    glob_attribute: NDArray[np.int32]
    column_attribute: NDArray[np.int32]
    column_facet: NDArray[np.uint8]
    column_element: NDArray[np.uint8]
    text_first: NDArray[np.int64]
    text_last: NDArray[np.int64]

    @property
    def filters(self) -> int:
        """Count the filters."""
        return len(self.token_start) - 1

    @property
    def leaves(self) -> int:
        """Count the distinct leaves."""
        return len(self.leaf_kind)

    def check(self) -> None:
        """Assert the invariants."""
        for starts, items in (
            (self.token_start, self.tokens),
            (self.range_start, self.range_column),
            (self.glob_start, self.glob_tokens),
        ):
            assert starts[0] == 0
            assert starts[-1] == len(items)
            assert bool((np.diff(starts) >= 0).all())
        assert bool((self.tokens >= FALSE).all())
        assert bool((self.tokens < self.leaves).all())
        assert len(self.range_start) == self.leaves + 1
        assert bool((self.range_low <= self.range_high).all())
        assert bool((self.range_column < len(self.column_facet)).all())
        texts = np.isin(self.column_facet, [int(facet) for facet in TEXT_FACETS])
        assert bool((self.text_first <= self.text_last).all())
        assert bool((self.text_first == self.text_last)[~texts].all())
        assert bool((self.column_facet <= max(Facet)).all())
        self._check_programs()

    def _check_programs(self) -> None:
        """Assert that every program leaves one value: pushes are one more than joins."""
        joins = np.isin(self.tokens, [AND, OR])
        height = np.concatenate([[0], np.cumsum(np.where(joins, -1, 1))])
        ends = height[self.token_start]
        assert bool((np.diff(ends) == 1).all())


class Events(NamedTuple):
    """A batch of events, encoded for one index.

    keys[c, e], has[c, e]        the key of event e on scalar column c, and whether it has that facet
    element_keys, element_has    the same for the elements of all arrays, column after column: those of
                                 event e on column c are element_base[c] + array_start[a, e] and on;
                                     element_base[c] is -1 where no element has that facet
    is_null[a, e], is_array[a, e]
    globs[g, e]                  1 if the text of event e fits pattern g, 0 if not, 2 if it has no text
    """

    keys: NDArray[np.int64]
    has: NDArray[np.uint8]
    used: NDArray[np.uint8]
    is_null: NDArray[np.uint8]
    is_array: NDArray[np.uint8]
    array_start: NDArray[np.int64]
    element_base: NDArray[np.int64]
    element_keys: NDArray[np.int64]
    element_has: NDArray[np.uint8]
    globs: NDArray[np.uint8]
