"""Filters as rows of weighted clauses, in columns.

    row                    0          1     2
    start                  0          2     3            6
    clause                 4    0     4     1    2    0          a clause is the same wherever it is written
    weight                 1.0  2.5   1.0   1.0  1.0  0.5
    texts                  of clause 0, 1, 2 …
    name_start, name       the attributes that clause 0, 1, 2 … looks at, as places in `names`

What holds adds up its weight, in the order in which the clauses are written: sums of floats depend on it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from headgate.core.interning import TextPool
from headgate.core.ranks import check_weights
from headgate.core.values import fold
from headgate.errors import SubscriptionError
from headgate.ranking.filters.sums_kernels import MANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause
    from headgate.core.arrays import Floats64, Ints, Ints32
    from headgate.core.ranks import Weights


T = TypeVar("T", bound=np.generic)

MOST = MANY // 2
"""How many clauses a filter may have to be ranked by them."""


class Weighted(NamedTuple):
    """Rows of weighted clauses: row r has the clauses start[r] up to start[r + 1], as they are written."""

    start: Ints
    clause: Ints32
    weight: Floats64

    @property
    def size(self) -> int:
        """Count the rows."""
        return len(self.start) - 1

    def take(self, rows: Ints) -> Weighted:
        """Pick rows, in the order given."""
        counts = np.diff(self.start)[rows]
        start = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        at = np.arange(start[-1]) + np.repeat(self.start[:-1][rows] - start[:-1], counts)
        return Weighted(start, self.clause[at], self.weight[at])

    def check(self) -> None:
        """Assert the invariants."""
        assert self.start[0] == 0
        assert self.start[-1] == len(self.clause) == len(self.weight)
        assert bool((np.diff(self.start) >= 1).all()), "a filter has a clause"
        assert bool((self.weight >= 0).all())
        assert bool(np.isfinite(self.weight).all())


class Growing:
    """Rows of weighted clauses that grow at the end; what was there stays where it is.

    >>> growing = Growing()
    >>> growing.append([3, 1], [1.0, 2.0])
    >>> len(growing), growing.rows().clause.tolist()
    (1, [3, 1])
    """

    def __init__(self) -> None:
        self._count = 0
        self._start = np.zeros(64, np.int64)
        self._clause = np.zeros(256, np.int32)
        self._weight = np.zeros(256, np.float64)

    def __len__(self) -> int:
        """Count the rows."""
        return self._count

    def append(self, clauses: Sequence[int], weights: Sequence[float]) -> None:
        """Append a row."""
        first = int(self._start[self._count])
        end = first + len(clauses)
        if self._count + 2 > len(self._start):
            self._start = _longer(self._start, self._count + 2)
        if end > len(self._clause):
            self._clause, self._weight = _longer(self._clause, end), _longer(self._weight, end)
        self._clause[first:end], self._weight[first:end] = clauses, weights
        self._start[self._count + 1] = end
        self._count += 1

    def rows(self) -> Weighted:
        """Return the rows as they are now."""
        start = self._start[: self._count + 1]
        return Weighted(start, self._clause[: start[-1]], self._weight[: start[-1]])


class Named(NamedTuple):
    """The attributes that clauses look at: clause c at names[name[i]], i from start[c] up to start[c + 1]."""

    names: tuple[str, ...]
    start: Ints
    name: Ints32

    def of(self, clause: int) -> tuple[str, ...]:
        """Return the names of one clause."""
        return tuple(self.names[i] for i in self.name[self.start[clause] : self.start[clause + 1]].tolist())

    def factors(self, factors: Mapping[str, float]) -> Floats64 | None:
        """Return the factor of each clause: the product of those of its attributes; None if all are 1."""
        by_name = np.array([factors.get(name, 1.0) for name in self.names], np.float64)
        if (by_name == 1.0).all():
            return None
        counts = np.diff(self.start)
        if (counts == 1).all():
            return np.asarray(by_name[self.name])
        by_clause = np.ones(len(counts))
        # First names, second names, and so on: one after the other, in the order of the names.
        for nth in range(int(counts.max(initial=0))):
            at = np.flatnonzero(counts > nth)
            by_clause[at] *= by_name[self.name[self.start[at] + nth]]
        return by_clause


def hash_text(text: str) -> int:
    """Return 64 bits that tell texts apart nearly always, the same in every process."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def hash_texts(texts: Iterable[str]) -> Ints:
    """Hash many texts."""
    return np.fromiter(map(hash_text, texts), np.int64)


class ClauseTable(NamedTuple):
    """Rows of weighted clauses, and the distinct clauses."""

    rows: Weighted
    texts: TextPool
    named: Named


class Collector:
    """Gathers filters that were taken apart, row by row.

    >>> from headgate.contents.protocol import Clause
    >>> collector = Collector()
    >>> collector.add((Clause("a = 1", ("a",)), Clause("b = 2", ("b",))), [1.0, 2.0])
    >>> collector.add((Clause("b = 2", ("b",)),), [1.0])
    >>> table = collector.finish()
    >>> table.rows.clause.tolist(), table.texts.texts(), table.named.of(1)
    ([0, 1, 1], ['a = 1', 'b = 2'], ('b',))
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: dict[str, int] = {}
        self._named: list[tuple[int, ...]] = []
        self._counts: list[int] = []
        self._clauses: list[int] = []
        self._weights: list[float] = []

    def add(self, clauses: Sequence[Clause], weights: Sequence[float]) -> None:
        """Append a row: its clauses as they are written, and the weight of each."""
        numbers = self._numbers
        for clause in clauses:
            number = numbers.get(clause.filter)
            if number is None:
                number = numbers[clause.filter] = len(numbers)
                names = self._names
                self._named.append(tuple(names.setdefault(name, len(names)) for name in clause.names))
            self._clauses.append(number)
        self._weights.extend(weights)
        self._counts.append(len(clauses))

    def finish(self) -> ClauseTable:
        """Return all that was added."""
        rows = Weighted(
            _starts(self._counts), np.array(self._clauses, np.int32), np.array(self._weights, np.float64)
        )
        return ClauseTable(rows, TextPool.build(self._numbers), named(self._named, tuple(self._names)))


def joined(first: Weighted, second: Weighted) -> Weighted:
    """Put rows behind others."""
    return Weighted(
        np.concatenate([first.start, second.start[1:] + first.start[-1]]),
        np.concatenate([first.clause, second.clause]),
        np.concatenate([first.weight, second.weight]),
    )


def named(places: Sequence[Sequence[int]], names: tuple[str, ...]) -> Named:
    """Put the names of clauses into columns."""
    flat = [name for each in places for name in each]
    return Named(names, _starts([len(each) for each in places]), np.array(flat, np.int32))


def weigh(clauses: Sequence[Clause], weights: Weights | None, what: str) -> list[float]:
    """Return the weight of each clause; refuses weights that do not fit them.

    A clause over several attributes that have weights takes the highest; one without takes 1.

    >>> from headgate.contents.protocol import Clause
    >>> weigh((Clause("a = 1 OR b = 2", ("a", "b")), Clause("c", ("c",))), {"B": 3}, "subscription 's1'")
    [3.0, 1.0]
    """
    if len(clauses) > MOST:
        raise SubscriptionError(f"{what} has {len(clauses):,} clauses: no more than {MOST:,} are ranked")
    if weights is None:
        return [1.0] * len(clauses)
    check_weights(weights, what)
    weighed = _fitted(clauses, weights, what)
    if not math.isfinite(sum(weighed)):
        raise SubscriptionError(f"the weights of {what} add up to more than a float holds: scale them down")
    return weighed


_SHOWN = 5


def _fitted(clauses: Sequence[Clause], weights: Weights, what: str) -> list[float]:
    if not isinstance(weights, Mapping):
        if len(weights) != len(clauses):
            raise SubscriptionError(
                f"{what} has {len(weights)} weights and {len(clauses)} clauses: give one for each clause"
            )
        return [float(weight) for weight in weights]
    folded = {fold(name): float(weight) for name, weight in weights.items()}
    known = {name for clause in clauses for name in clause.names}
    for name in weights:
        if fold(name) not in known:
            there = ", ".join(map(repr, sorted(known)[:_SHOWN])) or "nothing"
            raise SubscriptionError(
                f"{what} weighs {name!r}, which its filter does not look at: it looks at {there}"
            )
    return [max((folded[name] for name in clause.names if name in folded), default=1.0) for clause in clauses]


def _starts(counts: Iterable[int]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(list(counts), dtype=np.int64)])


def _longer(values: NDArray[T], least: int) -> NDArray[T]:
    """Copy values into more room."""
    longer = np.zeros(max(2 * len(values), least), values.dtype)
    longer[: len(values)] = values
    return longer
