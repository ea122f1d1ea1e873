"""Programs in columns, made plainly of programs, and spelled out to be compared filter by filter."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.interning import TextPool
from headgate.records.programs.clauses import model_of
from headgate.records.programs.leaves import TEXT_FACETS, GlobLeaf
from headgate.records.programs.programs import GLOB, NOT_GLOB, TOP, Programs, starts
from headgate.records.programs.shapes import find_shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.values import Path
    from headgate.records.programs.intervals import Cut
    from headgate.records.programs.leaves import Leaf
    from headgate.records.programs.tokens import Program


def bindable(text: str) -> bool:
    """Tell whether a text gets by without the parser."""
    shape = find_shape(text)
    return shape is not None and all(model_of[clause] is not None for clause in shape.clauses)


def in_columns(programs: Iterable[Program]) -> Programs:
    """Put programs into columns, filter f being the f-th; equal leaves are stored once."""
    lengths: list[int] = []
    tokens: list[int] = []
    shared: dict[Leaf, int] = {}
    for program in programs:
        numbers = [shared.setdefault(leaf, len(shared)) for leaf in program.leaves]
        tokens.extend(numbers[token] if token >= 0 else token for token in program.tokens)
        lengths.append(len(program.tokens))
    return _columns(list(shared), np.array(lengths, np.int64), np.array(tokens, np.int32))


def spelled(programs: Programs) -> list[list[object]]:
    """List the tokens of every filter, with leaves in place of their numbers."""
    texts = programs.texts.texts()
    leaves = [_leaf(programs, number, texts) for number in range(programs.leaves)]
    begins = programs.token_start.tolist()
    tokens = programs.tokens.tolist()
    return [
        [leaves[token] if token >= 0 else token for token in tokens[first:last]]
        for first, last in pairwise(begins)
    ]


def sound(programs: Programs) -> None:
    """Assert the invariants; cuts are numbers of texts, which come in any order, so they are left out."""
    is_text = np.isin(programs.range_facet, list(TEXT_FACETS))
    low, high = (np.where(is_text, 0, cuts) for cuts in (programs.range_low, programs.range_high))
    programs._replace(range_low=low, range_high=high).check()
    cuts = np.concatenate([programs.range_low[is_text], programs.range_high[is_text]])
    assert bool((cuts >= 0).all())
    assert bool(((cuts == TOP) | (cuts < 2 * programs.texts.size)).all())


def _leaf(programs: Programs, number: int, texts: list[str]) -> tuple[object, ...]:
    first, last = programs.range_start[number], programs.range_start[number + 1]
    ranges = [
        (facet, *((_cut(cut, texts) if facet in TEXT_FACETS else cut) for cut in (low, high)))
        for facet, low, high in zip(
            programs.range_facet[first:last].tolist(),
            programs.range_low[first:last].tolist(),
            programs.range_high[first:last].tolist(),
            strict=True,
        )
    ]
    glob = programs.glob_tokens[programs.glob_start[number] : programs.glob_start[number + 1]]
    return (
        programs.attributes[programs.leaf_attribute[number]],
        int(programs.leaf_kind[number]),
        int(programs.leaf_on_null[number]),
        tuple(ranges),
        tuple(glob.tolist()),
    )


def _cut(cut: int, texts: list[str]) -> object:
    return TOP if cut == TOP else (texts[cut >> 1], cut & 1)


def _columns(leaves: Sequence[Leaf], lengths: NDArray[np.int64], tokens: NDArray[np.int32]) -> Programs:
    attributes: dict[Path, int] = {}
    texts: dict[str, int] = {}
    kinds, on_null, owners, range_counts, glob_counts = [], [], [], [], []
    facets: list[int] = []
    lows: list[int] = []
    highs: list[int] = []
    globs: list[int] = []
    for leaf in leaves:
        owners.append(attributes.setdefault(leaf.path, len(attributes)))
        before = len(facets)
        if isinstance(leaf, GlobLeaf):
            kinds.append(NOT_GLOB if leaf.negated else GLOB)
            on_null.append(False)
            globs.extend(leaf.tokens)
            glob_counts.append(len(leaf.tokens))
        else:
            kinds.append(int(leaf.quantifier))
            on_null.append(leaf.on_null)
            glob_counts.append(0)
            for facet, found in leaf.sets:
                for low, high in found:
                    facets.append(facet)
                    if facet in TEXT_FACETS:
                        lows.append(_text_cut(low, texts))
                        highs.append(_text_cut(high, texts))
                    else:
                        lows.append(low[0])
                        highs.append(high[0] - 1)
        range_counts.append(len(facets) - before)
    return Programs(
        token_start=starts(lengths),
        tokens=tokens,
        leaf_kind=np.array(kinds, np.uint8),
        leaf_attribute=np.array(owners, np.int32),
        leaf_on_null=np.array(on_null, np.uint8),
        range_start=starts(np.array(range_counts, np.int64)),
        range_facet=np.array(facets, np.uint8),
        range_low=np.array(lows, np.int64),
        range_high=np.array(highs, np.int64),
        glob_start=starts(np.array(glob_counts, np.int64)),
        glob_tokens=np.array(globs, np.int16),
        texts=TextPool.build(texts),
        attributes=tuple(attributes),
    )


def _text_cut(cut: Cut, texts: dict[str, int]) -> int:
    top, text, side = cut
    return TOP if top else 2 * texts.setdefault(text, len(texts)) + side
