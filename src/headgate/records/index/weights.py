"""How often events have each code: counted in a sample of events, or guessed from the filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from headgate.records.events.columns import BatchColumns
from headgate.records.events.encode import encode

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.records.events.columns import Columns
    from headgate.records.index.arrays import Events
    from headgate.records.index.build import Built
    from headgate.records.index.lines import Parts
    from headgate.records.index.terms import Terms

Weigh: TypeAlias = Callable[["Built", "Parts", "Terms"], "NDArray[np.float64]"]

_PRESENT = 0.9
"""The share of events that have an attribute, when nothing is known."""
_GUESSED = 256
"""The guess from the filters counts as much as so many events."""


def by_filters(built: Built, parts: Parts, terms: Terms) -> NDArray[np.float64]:
    """Guess from the filters: the values that many of them name are the ones that many events have."""
    lines = built.lines
    base = built.arrays.line_base
    weights = np.zeros(int(base[-1]))
    width = np.diff(parts.set_start)
    uses = np.bincount(terms.part, minlength=len(parts.part_line))
    of_set = np.repeat(np.arange(len(parts.part_line)), width)
    point = (parts.set_low == parts.set_high) & (parts.part_line[of_set] >= 0)
    atoms = base[parts.part_line[of_set[point]]] + parts.set_low[point]
    weights += np.bincount(atoms, uses[of_set[point]], minlength=len(weights))
    weights += 1.0
    weights[base[:-1]] = 0.0
    totals = np.add.reduceat(weights, base[:-1]) if lines.size else np.zeros(0)
    weights /= np.repeat(np.maximum(totals, 1.0), lines.line_codes) / _PRESENT
    weights[base[:-1]] = 1 - _PRESENT
    return weights


def by_events(sample: pa.RecordBatch | Columns) -> Weigh:
    """Count in a sample of events; of codes that it hardly has, the guess from the filters tells more."""
    columns = BatchColumns(sample) if isinstance(sample, pa.RecordBatch) else sample

    def weigh(built: Built, parts: Parts, terms: Terms) -> NDArray[np.float64]:
        guess = by_filters(built, parts, terms)
        seen = count_codes(built, encode(columns, built))
        return (seen + _GUESSED * guess) / (columns.count + _GUESSED)

    return weigh


def count_codes(built: Built, events: Events) -> NDArray[np.float64]:
    """Count how often each code of each line occurs in some events."""
    base = built.arrays.line_base
    seen = np.zeros(int(base[-1]))
    for line in range(built.lines.size):
        own = events.codes[:, line]
        if built.lines.line_multi[line]:
            own = events.multi_codes[events.multi_start[line, 0] : events.multi_start[line, -1]]
        seen[base[line] : base[line + 1]] = np.bincount(own, minlength=int(built.lines.line_codes[line]))
    return seen
