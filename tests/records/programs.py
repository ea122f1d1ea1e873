"""Programs in columns, spelled out so that two of them can be compared filter by filter."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from headgate.records.programs.leaves import TEXT_FACETS
from headgate.records.programs.programs import TOP

if TYPE_CHECKING:
    from headgate.records.programs.programs import Programs


def spelled(programs: Programs) -> list[list[object]]:
    """List the tokens of every filter, with leaves in place of their numbers."""
    texts = programs.texts.texts()
    leaves = [_leaf(programs, number, texts) for number in range(programs.leaves)]
    starts = programs.token_start.tolist()
    tokens = programs.tokens.tolist()
    return [
        [leaves[token] if token >= 0 else token for token in tokens[first:last]]
        for first, last in pairwise(starts)
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
