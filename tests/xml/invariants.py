"""The invariants of arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.xml.index.arrays import ANCHOR, ASKED, BEGIN, DESCENDANT_AXIS, DOCUMENT, END, FAR, KIND

if TYPE_CHECKING:
    from headgate.xml.index.arrays import XmlArrays


def check_arrays(arrays: XmlArrays) -> None:
    """Assert the invariants."""
    trie, units, tests, forests = arrays
    nodes, count = len(trie.parent), len(units.row)
    assert bool((trie.parent[1:] < np.arange(1, nodes)).all())
    assert trie.parent[DOCUMENT] == -1
    assert len(trie.table) & (len(trie.table) - 1) == 0
    assert nodes - 1 < len(trie.table)
    assert sorted(trie.table[trie.table >= 0].tolist()) == list(range(1, nodes))
    for start, size, of in (
        (trie.unit_start, count, nodes),
        (units.forest_start, len(units.forests), count),
        (forests.start, len(forests.number), len(forests.need)),
        (tests.set_start, len(tests.member), len(tests.set_start) - 1),
    ):
        assert len(start) == of + 1
        assert start[0] == 0
        assert start[-1] == size
        assert bool((np.diff(start) >= 0).all())
    at = np.repeat(np.arange(nodes), np.diff(trie.unit_start))
    begin, end = units.row[:, BEGIN], units.row[:, END]
    assert begin.tolist() == [0, *end[:-1].tolist()][:count]
    assert end[-1:].tolist() == [len(units.below)][:count]
    above = np.repeat(np.arange(count), end - begin)
    kind = np.where(trie.axis[at] == DESCENDANT_AXIS, FAR, 0)
    below = units.below >> 1
    assert bool((units.below & FAR == kind[below]).all())
    kind[below] |= ASKED
    kind[np.diff(units.forest_start) > 0] |= ANCHOR
    assert bool((units.row[:, KIND] == kind).all())
    assert bool((trie.parent[at[below]] == at[above]).all())
    assert sorted(forests.number.tolist()) == list(range(len(forests.number)))
    assert bool((np.bincount(units.forests, minlength=len(forests.need)) == forests.need).all())
    assert tests.set_start[1] == 0
