"""Programs of many filters, in columns: what parsing hands to building, in one process or across many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.contents.columns import joined_starts, merged, picked, starts_of
from headgate.core.interning import TextPool
from headgate.records.programs.leaves import TEXT_FACETS
from headgate.records.programs.tokens import AND, FALSE, OR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.core.values import Path

VALUE, ANY, ALL, GLOB, NOT_GLOB = range(5)
"""What a leaf does; the first three are the numbers of `Quantifier`."""

TOP = 2**63 - 1
"""The cut after all texts."""

starts = starts_of


class Programs(NamedTuple):
    """Filters as postfix programs over leaves, in columns.

    filter f      tokens[token_start[f]:token_start[f + 1]]; >= 0 pushes a leaf, else AND, OR, TRUE, FALSE
    leaf l        over attribute leaf_attribute[l]; filters may share it, and equal leaves may repeat
      VALUE…ALL   ranges range_start[l]:range_start[l + 1]: key on facet range_facet in [low, high];
                  sorted by facet, then low; those of one facet are disjoint
                  on a facet of texts low and high are cuts, high excluded: 2t before text t, 2t + 1 after
                  it, TOP after all
      GLOB…       range_start[l]:range_start[l + 1] is empty and the pattern is
                  glob_tokens[glob_start[l]:glob_start[l + 1]]
    texts         in any order, each once
    """

    token_start: Ints
    tokens: Ints32
    leaf_kind: Bytes
    leaf_attribute: Ints32
    leaf_on_null: Bytes
    range_start: Ints
    range_facet: Bytes
    range_low: Ints
    range_high: Ints
    glob_start: Ints
    glob_tokens: NDArray[np.int16]
    texts: TextPool
    attributes: tuple[Path, ...]

    @property
    def filters(self) -> int:
        """Count the filters."""
        return len(self.token_start) - 1

    @property
    def size(self) -> int:
        """Count the filters, as columns of any kind do."""
        return self.filters

    @property
    def leaves(self) -> int:
        """Count the leaves."""
        return len(self.leaf_kind)

    def check(self) -> None:
        """Assert the invariants."""
        for starts, items in (
            (self.token_start, self.tokens),
            (self.range_start, self.range_facet),
            (self.glob_start, self.glob_tokens),
        ):
            assert starts[0] == 0
            assert starts[-1] == len(items)
            assert bool((np.diff(starts) >= 0).all())
        assert len(self.range_start) == len(self.glob_start) == self.leaves + 1
        assert bool((self.tokens >= FALSE).all())
        assert bool((self.tokens < self.leaves).all())
        assert bool((self.leaf_attribute < len(self.attributes)).all())
        numbers = ~np.isin(self.range_facet, [int(facet) for facet in TEXT_FACETS])
        assert bool((self.range_low <= self.range_high)[numbers].all())
        joins = np.isin(self.tokens, [AND, OR])
        height = np.concatenate([[0], np.cumsum(np.where(joins, -1, 1))])
        assert bool((np.diff(height[self.token_start]) == 1).all()), "pushes are one more than joins"


def concatenate(parts: Sequence[Programs]) -> Programs:
    """Lay the filters of several parts one after another; attributes and texts are numbered anew."""
    attributes: dict[Path, int] = {}
    texts, text_places = merged([part.texts for part in parts])
    moved: list[Programs] = []
    leaves = 0
    for part, places in zip(parts, text_places, strict=True):
        names = np.array([attributes.setdefault(path, len(attributes)) for path in part.attributes], np.int32)
        is_text = np.isin(part.range_facet, [int(facet) for facet in TEXT_FACETS])
        moved.append(
            part._replace(
                tokens=np.where(part.tokens >= 0, part.tokens + np.int32(leaves), part.tokens),
                leaf_attribute=names[part.leaf_attribute] if len(names) else part.leaf_attribute,
                range_low=_move_cuts(part.range_low, is_text, places),
                range_high=_move_cuts(part.range_high, is_text, places),
            )
        )
        leaves += part.leaves
    starts = {
        name: joined_starts([np.zeros(1, np.int64), *(getattr(part, name) for part in moved)])
        for name in ("token_start", "range_start", "glob_start")
    }
    return Programs(
        token_start=starts["token_start"],
        tokens=_joined(moved, "tokens", np.int32),
        leaf_kind=_joined(moved, "leaf_kind", np.uint8),
        leaf_attribute=_joined(moved, "leaf_attribute", np.int32),
        leaf_on_null=_joined(moved, "leaf_on_null", np.uint8),
        range_start=starts["range_start"],
        range_facet=_joined(moved, "range_facet", np.uint8),
        range_low=_joined(moved, "range_low", np.int64),
        range_high=_joined(moved, "range_high", np.int64),
        glob_start=starts["glob_start"],
        glob_tokens=_joined(moved, "glob_tokens", np.int16),
        texts=texts,
        attributes=tuple(attributes),
    )


def take(programs: Programs, order: Ints) -> Programs:
    """Return the filters of the given numbers, in that order; what they do not name is left out.

    Leaves, attributes and texts are numbered in the order in which filters name them.

    >>> from headgate.records.programs.binding import compile_filters
    >>> found = take(compile_filters(["a = 1", "b = 'x' AND c", "c OR a = 1"]).programs, np.array([2, 0]))
    >>> found.tokens.tolist(), found.token_start.tolist(), found.attributes, found.texts.size
    ([0, 1, -2, 1], [0, 3, 4], (('c',), ('a',)), 0)
    """
    token_start, places = picked(programs.token_start, order)
    tokens = programs.tokens[places]
    pushes = tokens >= 0
    leaves, tokens[pushes] = _renumbered(tokens[pushes], programs.leaves)
    attributes, leaf_attribute = _renumbered(programs.leaf_attribute[leaves], len(programs.attributes))
    range_start, ranges = picked(programs.range_start, leaves)
    glob_start, globs = picked(programs.glob_start, leaves)
    facets, cuts = programs.range_facet[ranges], np.empty((len(ranges), 2), np.int64)
    cuts[:, 0], cuts[:, 1] = programs.range_low[ranges], programs.range_high[ranges]
    named = np.isin(facets, [int(facet) for facet in TEXT_FACETS])[:, None] & (cuts != TOP)
    texts, numbers = _renumbered(cuts[named] >> 1, programs.texts.size)
    cuts[named] = 2 * numbers + (cuts[named] & 1)
    text_start, data = picked(programs.texts.offsets, texts)
    return Programs(
        token_start=token_start,
        tokens=tokens,
        leaf_kind=programs.leaf_kind[leaves],
        leaf_attribute=leaf_attribute.astype(np.int32),
        leaf_on_null=programs.leaf_on_null[leaves],
        range_start=range_start,
        range_facet=facets,
        range_low=np.ascontiguousarray(cuts[:, 0]),
        range_high=np.ascontiguousarray(cuts[:, 1]),
        glob_start=glob_start,
        glob_tokens=programs.glob_tokens[globs],
        texts=TextPool(text_start, programs.texts.data[data]),
        attributes=tuple(programs.attributes[number] for number in attributes.tolist()),
    )


def _renumbered(numbers: NDArray[Any], most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct numbers, all below `most`, by their first mention, and the place there of each."""
    first = np.full(most, len(numbers), np.int64)
    # Backwards, so that the earliest mention is written last and stays.
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    named = np.flatnonzero(first < len(numbers))
    distinct = named[np.argsort(first[named])]
    rank = np.empty(most, np.int64)
    rank[distinct] = np.arange(len(distinct))
    return distinct, rank[numbers]


def _move_cuts(cuts: np.ndarray, is_text: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Renumber the texts that cuts name."""
    named = is_text & (cuts != TOP)
    if not named.any():
        return cuts
    moved = cuts.copy()
    moved[named] = 2 * places[cuts[named] >> 1] + (cuts[named] & 1)
    return moved


def _joined(parts: Sequence[Programs], name: str, kind: type[np.generic]) -> np.ndarray:
    return np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in parts)])
