"""The scored interval indexes, by name."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from headgate.errors import SubscriptionError
from headgate.ranking.intervals.auto import Auto
from headgate.ranking.intervals.interval_tree import IntervalTree
from headgate.ranking.intervals.ir_tree import IrTree
from headgate.ranking.intervals.rtree import RTree
from headgate.ranking.intervals.scan import Scan
from headgate.ranking.intervals.segment_tree import SegmentTree
from headgate.ranking.intervals.sopt import SoptTree

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.ranking.intervals.scored import Scored, ScoredIndex

STRUCTURES: dict[str, Callable[[Scored], ScoredIndex]] = {
    "interval-tree": IntervalTree,
    "r-tree": RTree,
    "segment-tree": SegmentTree,
    "ir-tree": IrTree,
    "sopt-r-tree": SoptTree,
    "scan": Scan,
    "cells": partial(Auto, scans=True),
    "auto": Auto,
}
"""The first five are the paper's; `cells` is prefix lists before a scan."""


def structure(name: str) -> Callable[[Scored], ScoredIndex]:
    """Find a structure."""
    if name not in STRUCTURES:
        raise SubscriptionError(f"there is no structure {name!r}: use {', '.join(STRUCTURES)}")
    return STRUCTURES[name]
