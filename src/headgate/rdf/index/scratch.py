"""What one thread needs to match: marks, room for what is found, and how far a join may go."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FULL = -1
"""There is no room for more doubts: decide those that there are, and go on."""
TOO_MUCH = -2
"""A join has taken more steps than it may, or asked and searched more."""
START, ROW, PASS, ONLY, ONLY_ROW = range(5)
"""How a run goes on: from the start; at the row for which there was no room; behind the pattern that was too
much; with that pattern and nothing else, from its start or at the row for which there was no room."""
BUDGET = 50_000_000
"""Steps for one pattern: about half a second. A row in doubt counts as `DOUBT` of them."""
LEAST = 1 << 20
"""Steps that every filter has, however much others have taken of the event's time."""
ROWS, READINGS = 1 << 16, 4
"""How many rows each filter of a pattern may be asked about, and how often it may search all texts of an
event, beside as many rows and letters as the pattern may take steps."""
DOUBT = 512
LONG = 1024
"""A join of more steps remembers what failed."""
EVERYTHING = np.uint64(0xFFFFFFFFFFFFFFFF)


class Scratch(NamedTuple):
    """What one thread needs: marks by edge and filter, and room for what is found.

    `mark[e]` holds the epoch in its upper half and the edge's last hit in its lower; `hit_count` is how many
    hits there are from one on. A doubt is a filter, the place of its row in `rows`, and what must be asked.

    For a join: `conflict[d]` are the steps that failures behind step d depend on, a bit each; `setter` the
    step that sets a slot; `failed` keeps pairs of a step and a node from which it is known to fail.

    `counts`: 0 hits, 1 edges touched, 2 filters out, 3 doubts, 4 words of rows, 5 whether the row is among
    them, 6 entries of the pattern that are open, 7 steps taken, 8 the edge and 9 the pattern that the loop is
    at, 10 the steps that a pattern may take.

    `blame`: 0 the slots that checks have failed for, 1 the entries that were asked and the letters that
    were searched, 2 how many may be.
    """

    mark: NDArray[np.int64]
    seen: NDArray[np.int32]
    hit_next: NDArray[np.int32]
    hit_triple: NDArray[np.int32]
    hit_count: NDArray[np.int32]
    touched: NDArray[np.int32]
    at: NDArray[np.int32]
    mode: NDArray[np.int32]
    row: NDArray[np.int32]
    taken: NDArray[np.int32]
    out: NDArray[np.int32]
    doubts: NDArray[np.int32]
    rows: NDArray[np.int32]
    counts: NDArray[np.int64]
    conflict: NDArray[np.uint64]
    setter: NDArray[np.int32]
    blame: NDArray[np.uint64]
    failed: NDArray[np.int64]
    failed_when: NDArray[np.int32]
