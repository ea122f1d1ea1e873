"""The invariants of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.rdf.index.arrays import BLOCK, BY_HIGH, BY_HITS, END, MODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.rdf.index.arrays import RdfArrays
    from headgate.rdf.taxonomy.taxonomy import Closure


def check_arrays(arrays: RdfArrays) -> None:
    """Assert the invariants."""
    edges, patterns, entries, groups = arrays.edges, arrays.patterns, arrays.entries, arrays.groups
    _check_table(arrays.dictionary.table, len(arrays.dictionary.offsets) - 1)
    _check_table(edges.table, len(edges.s))
    count = len(patterns.next)
    for start, size in (
        (patterns.step_start, len(patterns.step_edge)),
        (patterns.entry_start, len(entries.number)),
        (patterns.group_start, len(groups.slot)),
    ):
        assert len(start) == count + 1
        assert start[0] == 0
        assert start[-1] == size
        assert bool((np.diff(start) >= 0).all())
    assert sorted(entries.number.tolist()) == list(range(len(entries.number)))
    hanging = 0
    for e in np.flatnonzero(edges.first >= 0).tolist():
        pattern = int(edges.first[e])
        while pattern >= 0:
            # It hangs at the edge of its first step, which nothing leads to.
            assert patterns.step_edge[patterns.step_start[pattern]] == e
            assert patterns.step_code[patterns.step_start[pattern], MODE] == BY_HITS
            hanging += 1
            pattern = int(patterns.next[pattern])
    assert hanging == count
    for g in range(len(groups.slot)):
        inside = slice(groups.range_at[g], groups.range_at[g] + groups.size[g])
        ends = groups.high[inside] if groups.order[g] == BY_HIGH else groups.low[inside]
        assert bool((np.diff(ends) >= 0).all())
        assert groups.top[groups.block_at[g]] == groups.high[inside][:BLOCK].max()
    # Checks end where the next ones begin.
    begin = entries.checks[entries.checks > 0]
    assert bool((arrays.checks.words[begin[1:] - 1] == END).all())
    assert len(begin) == 0 or (begin[0] == 1 and arrays.checks.words[-1] == END)


def _check_table(table: NDArray[np.int32], count: int) -> None:
    """Assert that a table finds each number once, and that some of it is free."""
    assert len(table) & (len(table) - 1) == 0
    assert count < len(table)
    assert sorted(table[table >= 0].tolist()) == list(range(count))


def check_closure(closure: Closure) -> None:
    """Check the invariants."""
    terms = closure.terms.split(b"\n") if closure.terms else []
    assert terms == sorted(set(terms))
    for start, items in (
        (closure.class_start, closure.class_up),
        (closure.property_start, closure.property_up),
        (closure.type_start, closure.type_of),
    ):
        assert start.dtype == np.int64
        assert items.dtype == np.int32
        assert len(start) == len(terms) + 1
        assert start[0] == 0
        assert start[-1] == len(items)
        rows = [items[start[t] : start[t + 1]].tolist() for t in range(len(terms))]
        assert all(row == sorted(set(row)) for row in rows)
        if items is not closure.type_of:
            assert all(t in row for t, row in enumerate(rows))
    assert closure.type_of.min(initial=0) >= 0
    assert closure.type_of.max(initial=-1) < len(terms)
