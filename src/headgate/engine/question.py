"""What is asked about events besides which subscriptions match: the best of them, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.core.ranks import check_k, read_factors
from headgate.errors import GraphError, TableError
from headgate.graph.path_cost import DEFAULT_PATH_COST, PathCost
from headgate.ranking.model import EXACT, MODES, RELAXED

if TYPE_CHECKING:
    from collections.abc import Mapping

NO_WAY = (
    "`by`, `decay` and `hops` say what the way through a graph costs: leave them out without a graph, and in "
    "mode 'relaxed'"
)
SCORE, RANK = "score", "rank"
"""The columns of the best, besides those of all matches."""


class Top(NamedTuple):
    """How many are wanted of each event, and what makes one better than another."""

    k: int
    mode: str = EXACT
    factors: tuple[tuple[str, float], ...] = ()
    """What the weights of attributes are multiplied by, if it is not 1; relaxed only."""
    path: PathCost = DEFAULT_PATH_COST
    """What the way through a graph takes off a score; exact only."""

    @classmethod
    def of(
        cls,
        k: int,
        mode: str = EXACT,
        factors: Mapping[str, float] | None = None,
        path: PathCost = DEFAULT_PATH_COST,
    ) -> Top:
        """Refuse what cannot be asked for.

        >>> Top.of(3, "relaxed", {"age": 0}).factors
        (('age', 0.0),)
        """
        check_k(k)
        if path != DEFAULT_PATH_COST and mode != EXACT:
            raise GraphError(NO_WAY)
        if mode not in MODES:
            raise TableError(f"there is no mode {mode!r}: use {' or '.join(map(repr, MODES))}")
        if factors and mode != RELAXED:
            raise TableError("factors weigh clauses that hold, and exact matching weighs none: use relaxed")
        return cls(k, mode, tuple(read_factors(factors).items()), path)

    def check_way(self, *, routed: bool) -> None:
        """Refuse to be told of a way where there is none."""
        if self.path != DEFAULT_PATH_COST and not routed:
            raise GraphError(NO_WAY)

    @property
    def weighing(self) -> dict[str, float] | None:
        """Return the factors as indexes want them: none where nothing is weighed."""
        return dict(self.factors) if self.mode == RELAXED else None
