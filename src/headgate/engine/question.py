"""What is asked about events: all matches or the best of them, and what is told of each.

A question goes whole from whoever asks, through tasks and calls, to what obeys it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.arguments import told
from headgate.core.ranks import EXACT, RELAXED, check_asked, read_factors
from headgate.core.settings import Request, setting
from headgate.errors import GraphError, TableError
from headgate.graph.path_cost import DEFAULT_PATH_COST, PathCost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from headgate.contents.portions import Portion
    from headgate.contents.results import Home
    from headgate.core.arrays import Ints
    from headgate.core.event import Event, Id
    from headgate.engine.backend import Backend, Column, Events

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

    def wanted(self, events: pa.RecordBatch | Sequence[Event]) -> Ints | None:
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


RESULTS, MOST_RESULTS = 1_000, 1_000_000
"""Rows of what a match gives: unless another number is asked for, and at most."""
TOGETHER = 256
"""Events asked about together, at most, where what their matches give must fit into memory."""


@dataclass(frozen=True, kw_only=True)
class MatchSettings(Request):
    """Settings of matching that are the same in programs, in files and on the command line.

    A field is all that a setting needs but for what obeys it, as one of `PlainSettings` is.
    """

    results: bool = setting(
        "also what each match gives, [`results` and `complete`](engine.md#results-in-bulk): bindings of RDF, "
        "tuples of XML",
        False,
    )
    results_limit: int | None = setting(
        "rows of a match, at most",
        needs="results",
        metavar="N",
        least=1,
        most=MOST_RESULTS,
        shown=f"{RESULTS:,}",
    )

    @property
    def lists(self) -> tuple[str, ...]:
        """Name those whose columns are lists: CSV has none."""
        return ("results",) if self.results else ()


@dataclass(frozen=True)
class Question(MatchSettings):
    """What is asked about each of some events; what a match is, the columns of answers say."""

    top: Top | None = None
    """How many of the best are wanted; None for all matches."""

    def __post_init__(self) -> None:
        """Refuse what means nothing."""
        if self.results_limit is not None and not self.results:
            raise TableError("results_limit says how many rows of a match are wanted: ask for results, too")

    @classmethod
    def of(cls, top: Top | None = None, results: object = False) -> Question:
        """Take what programs say: `results` may be how many rows of a match are wanted.

        >>> Question.of(results=20).results_limit, Question.of().results
        (20, False)
        """
        if top is None and results is False:
            return ALL
        if results is None or isinstance(results, bool):
            return cls(top, results=bool(results))
        if not isinstance(results, int) or not 1 <= results <= MOST_RESULTS:
            shown = results if isinstance(results, int | float | str) else told(results)
            most = f"from 1 to {MOST_RESULTS:,}"
            raise TableError(f"results is {shown!r}: give True, or how many rows of a match, {most}")
        return cls(top, results=True, results_limit=results)

    def together(self, most: int) -> int:
        """Say how many events are read together, of at most so many."""
        return min(most, TOGETHER) if self.results else most

    def columns(self, *, numbered: bool) -> dict[str, pa.DataType]:
        """Return the columns of a match beside its event; `numbered` says what ids of subscriptions are."""
        import pyarrow as pa

        from headgate.contents.protocol import RANK, SCORE, SUBSCRIPTION_ID

        columns: dict[str, pa.DataType] = {SUBSCRIPTION_ID: pa.int64() if numbered else pa.string()}
        if self.top is not None:
            columns |= {SCORE: pa.float64(), RANK: pa.int32()}
        if self.results:
            from headgate.contents.results import RESULT_COLUMNS

            columns |= RESULT_COLUMNS
        return columns

    def batches(
        self,
        ask: Callable[[Events], Iterable[Portion]],
        events: Events,
        ids: Column,
        backend: Backend,
        homes: Callable[[Sequence[Id]], Iterable[Home | None]],
    ) -> Iterator[pa.RecordBatch]:
        """Make tables of the portions that `ask` finds, with their columns; `homes` finds filters by id."""
        if not self.results:
            for portion in ask(events):
                yield from portion.batches(ids)
            return
        from headgate.contents.results import with_results
        from headgate.engine.answers import read_events

        read = read_events(backend, events, ids)
        yield from with_results(ask(read), read, ids, homes, self.results_limit or RESULTS)


ALL = Question()
"""All matches, and nothing besides."""
