"""Programs to arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.records.arrays import GLOB, NOT_GLOB, RecordArrays
from headgate.records.facets import TEXT_FACETS, Facet
from headgate.records.leaves import GlobLeaf, Quantifier, SetLeaf

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.core.values import Path
    from headgate.records.intervals import Cut
    from headgate.records.leaves import Leaf
    from headgate.records.program import Program


class Built(NamedTuple):
    """The arrays, the texts of their text columns, and the attributes by number."""

    arrays: RecordArrays
    texts: TextPool
    attributes: tuple[Path, ...]


class _Column(NamedTuple):
    attribute: int
    facet: Facet
    element: bool


def build(programs: Iterable[Program]) -> Built:
    """Build the index of programs, filter f being the f-th."""
    shared: dict[Leaf, int] = {}
    lengths: list[int] = []
    tokens: list[int] = []
    for program in programs:
        numbers = [shared.setdefault(leaf, len(shared)) for leaf in program.leaves]
        tokens.extend(numbers[token] if token >= 0 else token for token in program.tokens)
        lengths.append(len(program.tokens))
    return build_arrays(np.array(lengths, np.int64), np.array(tokens, np.int32), list(shared))


def build_arrays(lengths: np.ndarray, tokens: np.ndarray, leaves: Sequence[Leaf]) -> Built:
    """Build from the programs laid end to end, their lengths, and the distinct leaves they push."""
    attributes = tuple(sorted({leaf.path for leaf in leaves}))
    numbers = {path: number for number, path in enumerate(attributes)}
    order = sorted(range(len(leaves)), key=lambda old: numbers[leaves[old].path])
    leaves = [leaves[old] for old in order]
    # renumber[old] is the leaf's new place; the tokens for AND, OR, TRUE and FALSE stay.
    renumber = np.empty(len(order), np.int32)
    renumber[order] = np.arange(len(order), dtype=np.int32)
    if order:
        tokens = np.where(tokens >= 0, renumber[np.maximum(tokens, 0)], tokens)
    columns, pools = _columns(leaves, numbers)
    firsts = np.concatenate([[0], np.cumsum([len(pool) for pool in pools])]).astype(np.int64)
    ranges = _ranges(leaves, numbers, {column: c for c, column in enumerate(columns)}, pools)
    globs = [leaf for leaf in leaves if isinstance(leaf, GlobLeaf)]
    arrays = RecordArrays(
        token_start=_starts(lengths),
        tokens=np.asarray(tokens, np.int32),
        leaf_kind=np.array([_kind(leaf) for leaf in leaves], np.uint8),
        leaf_attribute=np.array([numbers[leaf.path] for leaf in leaves], np.int32),
        leaf_on_null=np.array([isinstance(leaf, SetLeaf) and leaf.on_null for leaf in leaves], np.uint8),
        leaf_glob=_glob_numbers(leaves),
        range_start=_starts(np.array([len(found) for found in ranges], np.int64)),
        range_column=np.array([column for found in ranges for column, _, _ in found], np.int32),
        range_low=np.array([low for found in ranges for _, low, _ in found], np.int64),
        range_high=np.array([high for found in ranges for _, _, high in found], np.int64),
        glob_start=_starts(np.array([len(leaf.tokens) for leaf in globs], np.int64)),
        glob_tokens=np.array([token for leaf in globs for token in leaf.tokens], np.int16),
        glob_attribute=np.array([numbers[leaf.path] for leaf in globs], np.int32),
        column_attribute=np.array([column.attribute for column in columns], np.int32),
        column_facet=np.array([column.facet for column in columns], np.uint8),
        column_element=np.array([column.element for column in columns], np.uint8),
        text_first=firsts[:-1],
        text_last=firsts[1:],
    )
    return Built(arrays, TextPool.build(text for pool in pools for text in pool), attributes)


def _starts(lengths: np.ndarray) -> np.ndarray:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _kind(leaf: Leaf) -> int:
    if isinstance(leaf, GlobLeaf):
        return NOT_GLOB if leaf.negated else GLOB
    return int(leaf.quantifier)


def _glob_numbers(leaves: Sequence[Leaf]) -> np.ndarray:
    is_glob = np.array([isinstance(leaf, GlobLeaf) for leaf in leaves], bool)
    return np.where(is_glob, np.cumsum(is_glob) - 1, -1).astype(np.int32)


def _columns(leaves: Sequence[Leaf], numbers: dict[Path, int]) -> tuple[list[_Column], list[list[str]]]:
    """List the columns that leaves look at, and for each the sorted texts that they name."""
    texts: dict[_Column, set[str]] = {}
    for leaf in leaves:
        if isinstance(leaf, SetLeaf):
            for facet, found in leaf.sets:
                column = _Column(numbers[leaf.path], facet, leaf.quantifier is not Quantifier.VALUE)
                named = texts.setdefault(column, set())
                if facet in TEXT_FACETS:
                    named.update(cut[1] for interval in found for cut in interval if cut[0] == 0)
    columns = sorted(texts)
    return columns, [sorted(texts[column]) for column in columns]


def _ranges(
    leaves: Sequence[Leaf], numbers: dict[Path, int], columns: dict[_Column, int], pools: list[list[str]]
) -> list[list[tuple[int, int, int]]]:
    """List each leaf's (column, lowest key, highest key)."""
    ranks = [{text: rank for rank, text in enumerate(pool)} for pool in pools]
    result: list[list[tuple[int, int, int]]] = []
    for leaf in leaves:
        found: list[tuple[int, int, int]] = []
        if isinstance(leaf, SetLeaf):
            for facet, intervals in leaf.sets:
                c = columns[_Column(numbers[leaf.path], facet, leaf.quantifier is not Quantifier.VALUE)]
                for low, high in intervals:
                    if facet in TEXT_FACETS:
                        found.append((c, _text_key(low, ranks[c]), _text_key(high, ranks[c]) - 1))
                    else:
                        found.append((c, low[0], high[0] - 1))
        result.append(found)
    return result


def _text_key(cut: Cut, ranks: dict[str, int]) -> int:
    """Return the first key after a cut: 2r + 1 is the r-th text itself, 2r + 2 is after it."""
    top, text, side = cut
    if top:
        return 2 * len(ranks) + 1
    return 2 * ranks[text] + 1 + side
