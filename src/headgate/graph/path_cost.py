"""What the way through a graph takes off a score; imports nothing heavy."""

from __future__ import annotations

from typing import NamedTuple

from headgate.core.ranks import double
from headgate.errors import GraphError

MINUS, TIMES = "minus", "times"
"""How the way takes off a score: its cost is subtracted, or every step multiplies."""
DECAY = 0.9


class PathCost(NamedTuple):
    """What the way through a graph takes off a score: how, how much, and whether only edges count."""

    by: str = MINUS
    decay: float = DECAY
    hops: bool = False

    @classmethod
    def of(cls, by: str = MINUS, decay: float = DECAY, *, hops: bool = False) -> PathCost:
        """Refuse what is no cost.

        >>> PathCost.of("times", 0.5)
        PathCost(by='times', decay=0.5, hops=False)
        """
        if by not in (MINUS, TIMES):
            raise GraphError(f"there is no ranking by {by!r}: use {MINUS!r} or {TIMES!r}")
        number = double(decay)
        if number is None or not 0 < number <= 1:
            raise GraphError(f"decay is {decay!r}: give a number above 0, 1 at most")
        if not isinstance(hops, bool):
            raise GraphError(f"hops is {hops!r}: give True or False")
        return cls(by, number, hops)


DEFAULT_PATH_COST = PathCost()
"""What is meant if nothing is said of the way."""
