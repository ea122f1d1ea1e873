"""Access to LIKE patterns: a text that fits one holds every three bytes in a row that the pattern names.

An attribute with patterns has one more line, whose codes are the *grams*, three bytes each, that its patterns
name. An event has the codes of all grams of its text, as it has those of all elements of an array, and a
pattern is found under its rarest gram. Patterns that name no three bytes in a row have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.core.jit import kernel
from headgate.records.programs.programs import GLOB, starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.interning import TextPool
    from headgate.records.index.lines import Lines, Parts
    from headgate.records.programs.programs import Programs

    Ints = NDArray[np.int64]

GRAMS = 2
"""What `line_multi` says of a line of grams."""


class PartGrams(NamedTuple):
    """The grams of each part that is a pattern: line[p] and the codes code[start[p]:start[p + 1]]."""

    start: Ints
    line: NDArray[np.int32]
    code: NDArray[np.int32]


def add_grams(programs: Programs, lines: Lines, parts: Parts) -> tuple[Lines, PartGrams]:
    """Add the lines of grams behind all others."""
    is_glob = (programs.leaf_kind[parts.part_leaf] == GLOB) if len(parts.part_leaf) else np.zeros(0, bool)
    found = [_grams(programs, int(leaf)) for leaf in parts.part_leaf[is_glob]]
    owners = programs.leaf_attribute[parts.part_leaf[is_glob]] if found else np.zeros(0, np.int32)
    counts = np.zeros(len(parts.part_leaf), np.int64)
    line = np.full(len(parts.part_leaf), -1, np.int32)
    keys: list[NDArray[np.int32]] = []
    codes = [np.zeros(0, np.int32)] * len(found)
    places = np.flatnonzero(is_glob)
    attributes: list[int] = []
    for attribute in np.unique(owners).tolist():
        mine = np.flatnonzero(owners == attribute).tolist()
        known = np.unique(np.concatenate([found[place] for place in mine]))
        if not len(known):
            continue
        for place in mine:
            codes[place] = (np.searchsorted(known, found[place]) + 1).astype(np.int32)
            counts[places[place]] = len(codes[place])
            line[places[place]] = lines.size + len(attributes)
        attributes.append(attribute)
        keys.append(known)
    more = len(attributes)
    lengths = np.array([0] * lines.size + [len(known) for known in keys], np.int64)
    grown = lines._replace(
        line_attribute=np.concatenate([lines.line_attribute, np.array(attributes, np.int32)]),
        line_multi=np.concatenate([lines.line_multi, np.full(more, GRAMS, np.uint8)]),
        line_codes=np.concatenate([lines.line_codes, (lengths[lines.size :] + 1).astype(np.int32)]),
        cell_base=np.concatenate([lines.cell_base, np.full(more, lines.cell_base[-1], np.int64)]),
        gram_start=starts(lengths),
        grams=np.concatenate([np.zeros(0, np.int32), *keys]),
    )
    return grown, PartGrams(starts(counts), line, np.concatenate([np.zeros(0, np.int32), *codes]))


def _grams(programs: Programs, leaf: int) -> NDArray[np.int32]:
    """List the grams of a pattern."""
    tokens = programs.glob_tokens[programs.glob_start[leaf] : programs.glob_start[leaf + 1]].astype(np.int32)
    if len(tokens) < 3:
        return np.zeros(0, np.int32)
    first, second, third = tokens[:-2], tokens[1:-1], tokens[2:]
    named = (first >= 0) & (second >= 0) & (third >= 0)
    return np.unique(((first << 16) | (second << 8) | third)[named])


def rarest(grams: PartGrams, line_base: NDArray[np.int32], weight: NDArray[np.float64]) -> NDArray[np.int64]:
    """Choose the atom of each part's rarest gram, -1 for parts without."""
    best = np.full(len(grams.line), -1, np.int64)
    for p in np.flatnonzero(np.diff(grams.start)).tolist():
        atoms = line_base[grams.line[p]] + grams.code[grams.start[p] : grams.start[p + 1]]
        best[p] = atoms[np.argmin(weight[atoms])]
    return best


def event_grams(
    code: NDArray[np.int32], texts: TextPool, known: NDArray[np.int32]
) -> tuple[Ints, NDArray[np.int32]]:
    """List the codes of the grams of each event's text (place code[e] of texts, -1 for none)."""
    room = max(0, len(texts.data))
    found = np.zeros(room, np.int32)
    ends = np.zeros(texts.size + 1, np.int64)
    _find_grams(texts.offsets, texts.data, known, ends, found)
    return by_event(code, ends, found)


def by_event(code: NDArray[np.int32], ends: Ints, found: NDArray[np.int32]) -> tuple[Ints, NDArray[np.int32]]:
    """Lay out by events what was found in texts: found[ends[t]:ends[t + 1]] in text t = code[e]."""
    counts = np.where(code >= 0, np.append(np.diff(ends), 0)[code], 0)
    begin = starts(counts)
    at = np.repeat(ends[np.maximum(code, 0)] - begin[:-1], counts) + np.arange(begin[-1])
    return begin, found[at]


@kernel
def _find_grams(
    offsets: Ints,
    data: NDArray[np.uint8],
    known: NDArray[np.int32],
    ends: Ints,
    found: NDArray[np.int32],
) -> None:
    """Look up every three bytes of every text."""
    n = 0
    for t in range(len(offsets) - 1):
        for at in range(offsets[t], offsets[t + 1] - 2):
            gram = (np.int32(data[at]) << 16) | (np.int32(data[at + 1]) << 8) | np.int32(data[at + 2])
            low, high = 0, len(known)
            while low < high:
                middle = (low + high) >> 1
                if known[middle] < gram:
                    low = middle + 1
                else:
                    high = middle
            if low < len(known) and known[low] == gram:
                found[n] = low + 1
                n += 1
        ends[t + 1] = n
