"""The scored interval indexes by name: those of the paper, and the one that the product takes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.core.papers import of_papers
from headgate.errors import SubscriptionError
from headgate.ranking.intervals.cells import Auto
from headgate.ranking.intervals.rtree import RTree
from headgate.ranking.intervals.sopt import SoptTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.ranking.intervals.scored import Scored, ScoredIndex

    Structure = Callable[[Scored], ScoredIndex]


STRUCTURES: dict[str, Structure] = {
    "interval-tree": partial(of_papers, "interval_tree:IntervalTree"),
    "r-tree": RTree,
    "segment-tree": partial(of_papers, "segment_tree:SegmentTree"),
    "ir-tree": partial(of_papers, "interval_tree:IrTree"),
    "sopt-r-tree": SoptTree,
    **dict.fromkeys(("scan", "cells", "auto"), Auto),
}
"""The first five are the paper's; `scan` and `cells` are other names of `auto`."""


def structure(name: str) -> Structure:
    """Find a structure."""
    if name not in STRUCTURES:
        raise SubscriptionError(f"there is no structure {name!r}: use {', '.join(STRUCTURES)}")
    return STRUCTURES[name]
