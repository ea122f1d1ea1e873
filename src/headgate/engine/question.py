"""What is asked about events besides which subscriptions match: the best of them, and by what."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.core.ranks import EXACT, RELAXED, check_asked, read_factors
from headgate.errors import GraphError, TableError
from headgate.graph.path_cost import DEFAULT_PATH_COST, PathCost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from headgate.core.event import Event

NO_WAY = (
    "`by`, `decay` and `hops` say what the way through a graph costs: leave them out without a graph, and in "
    "mode 'relaxed'"
)


class Top(NamedTuple):
    """How many are wanted of each event, and what makes one better than another."""

    k: int
    mode: str = EXACT
    factors: tuple[tuple[str, float], ...] = ()
    """What the weights of attributes are multiplied by, if it is not 1; relaxed only."""
    path: PathCost = DEFAULT_PATH_COST
    """What the way through a graph takes off a score; exact only."""
    column: str | None = None
    """The attribute by which each event says how many it wants, at most k; one that does not wants k."""

    @classmethod
    def of(
        cls,
        k: int,
        mode: str = EXACT,
        factors: Mapping[str, float] | None = None,
        path: PathCost = DEFAULT_PATH_COST,
        column: str | None = None,
    ) -> Top:
        """Refuse what cannot be asked for.

        >>> Top.of(3, "relaxed", {"age": 0}).factors
        (('age', 0.0),)
        """
        check_asked(k, mode, factors)
        if path != DEFAULT_PATH_COST and mode != EXACT:
            raise GraphError(NO_WAY)
        return cls(k, mode, tuple(read_factors(factors).items()), path, checked_column(column))

    def wanted(self, events: pa.RecordBatch | Sequence[Event]) -> NDArray[np.int64] | None:
        """Return how many each of some events wants; None if all want k.

        >>> from headgate.core.event import Event
        >>> Top(3, column="slots").wanted([Event(1, {"Slots": 2}), Event(2, {"slots": "x"}), Event(3, {})])
        array([2, 3, 3])
        """
        if self.column is None:
            return None
        import numpy as np
        import pyarrow as pa

        from headgate.core.values import Kind, fold
        from headgate.records.events.columns import BatchColumns, EventColumns

        columns = (
            BatchColumns(events)
            if isinstance(events, pa.RecordBatch)
            # Documents have no attributes.
            else EventColumns(events)
        )
        counts = columns(tuple(map(fold, self.column.split("."))))
        return np.where(counts.kind == Kind.INT, np.clip(counts.number, 0, self.k), self.k)

    def check_way(self, *, routed: bool) -> None:
        """Refuse to be told of a way where there is none."""
        if self.path != DEFAULT_PATH_COST and not routed:
            raise GraphError(NO_WAY)

    @property
    def weighing(self) -> dict[str, float] | None:
        """Return the factors as indexes want them: none where nothing is weighed."""
        return dict(self.factors) if self.mode == RELAXED else None


def checked_column(name: str | None) -> str | None:
    """Refuse what is no name of a column."""
    given: object = name
    if given is not None and not (isinstance(given, str) and all(given.split("."))):
        raise TableError(f"{name!r} is not a name of a column: give a name, or names with dots")
    return name
