"""Why a subscription has its rank: its value, who is before it, and what it lacked to enter the best k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headgate.contents.protocol import alone
from headgate.core.ranks import Best
from headgate.core.text.wording import Worded
from headgate.ranking.rows import best

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.contents.protocol import Verdict
    from headgate.core.event import Id
    from headgate.ranking.answers import RankedRows
from headgate.ranking.rows import RowIds

BY_RANK = "filters by rank: the first that match are the best"
BOXED = "boxes: its clauses are intervals of codes, in tiers and blocks"
LISTED = "lists: its clauses are sets of codes, in lists by attribute and tier"
LISTED_IN_PART = "lists: some of its clauses are sets of codes, the others are asked by themselves"
SUMMED = "sums: its clauses are asked by themselves, and what holds is added up"
"""How a subscription is ranked."""
_TOLD = (BOXED, LISTED, LISTED_IN_PART)
"""What lines say; that clauses are asked one by one is nothing to tell."""


class ClauseValue(NamedTuple):
    """A clause of one filter and one event: its text, what it counts, and whether it held."""

    filter: str
    weight: float
    factor: float
    held: bool

    @property
    def value(self) -> float:
        """Return what it would add, or adds."""
        return self.weight * self.factor


@dataclass(frozen=True)
class RankExplanation(Worded):
    """A subscription, an event, and the best k.

    runs       whether it is in the running: it matches (exact), or anything of it holds (relaxed)
    value      what it is ranked by: its score (exact), or the weights of what holds (relaxed)
    before     how many of those in the running come before it; for one that is not, would come
    last       who has place k, if there are that many in the running
    verdict    exact: why the filter holds or not
    clauses    relaxed: each clause, with what it counts and whether it held
    blocked    what keeps the event from it, whatever its filter: why no node is reached where it hangs
    enough     relaxed: the fewest clauses that failed and would have brought it in; None if all would not
    through    the structure that ranks it
    """

    subscription: Id
    mode: str
    k: int
    runs: bool
    value: float
    before: int
    last: Best | None
    verdict: Verdict | None = None
    clauses: tuple[ClauseValue, ...] = ()
    enough: tuple[ClauseValue, ...] | None = None
    blocked: tuple[str, ...] = ()
    through: str = ""

    @property
    def rank(self) -> int | None:
        """Return its rank, from 1; None if it is not in the running."""
        return self.before + 1 if self.runs else None

    @property
    def entered(self) -> bool:
        """Tell whether it is among the best k."""
        return self.runs and self.before < self.k

    @property
    def short(self) -> float | None:
        """Return how much more it needs to reach the value of place k; None if that is not what it lacks."""
        if self.entered or self.last is None or self.last.value < self.value:
            return None
        return self.last.value - self.value

    def lines(self) -> list[str]:
        """Say it for people: the rank, place k, and what was missing."""
        through = [f"ranked through {self.through}"] if self.through in _TOLD else []
        return [self._first(), *self._place(), *self._parts(), *self._missing(), *through]

    def _first(self) -> str:
        if self.entered:
            return f"rank {self.before + 1} of the best {self.k}, {self._valued()}"
        if self.runs:
            return f"not among the best {self.k}: rank {self.before + 1}, {self._valued()}"
        why = "no match" if self.verdict is not None else "no clause holds"
        if self.blocked:
            why = "the event does not get there"
        return f"not among the best {self.k}: {why}"

    def _valued(self) -> str:
        return f"{'score' if self.verdict is not None else 'sum'} {self.value:g}"

    def _place(self) -> list[str]:
        if self.k == 0:
            return []
        if self.last is None:
            return [f"  place {self.k} is free"]
        return [f"  place {self.k} is {self.last.subscription!r} with {self.last.value:g}"]

    def _parts(self) -> list[str]:
        if self.verdict is not None:
            return [] if self.runs else [f"  {line}" for line in alone(self.verdict).lines()]
        width = max((len(clause.filter) for clause in self.clauses), default=0)
        return [_clause_line(clause, width) for clause in self.clauses]

    def _missing(self) -> list[str]:
        if self.blocked:
            return list(self.blocked)
        if self.entered or self.k == 0:
            return []
        if self.verdict is not None and not self.runs:
            there = "among" if self.before < self.k else "not among"
            return [f"with a match it would have rank {self.before + 1}, {there} the best {self.k}"]
        short = self.short
        lines = []
        if short is not None and self.runs:
            lines.append(
                f"{short:g} short of place {self.k}"
                if short
                else f"as much as place {self.k}, which comes first by id"
            )
        if self.verdict is None:
            if self.enough is None:
                lines.append("not even all clauses would have been enough")
            else:
                lines.append("enough would have been: " + " AND ".join(each.filter for each in self.enough))
        return lines


def explain_exact(running: Sequence[Best], own: Best, k: int, verdict: Verdict) -> RankExplanation:
    """Explain a rank among all that are in the running, the best first; `own` is what it would be at best."""
    here = next((at for at, each in enumerate(running) if each.subscription == own.subscription), None)
    if here is not None:
        own = running[here]
    before = sum((-each.value, each.subscription) < (-own.value, own.subscription) for each in running)
    return RankExplanation(
        subscription=own.subscription,
        mode="exact",
        k=k,
        runs=here is not None,
        value=own.value,
        before=before,
        last=running[k - 1] if 0 < k <= len(running) else None,
        verdict=verdict,
    )


def explain_relaxed(
    running: RankedRows, row: int, clauses: Sequence[ClauseValue], k: int, rows: RowIds
) -> RankExplanation:
    """Explain the rank of a row, given all rows of which anything holds and their values."""
    order, value = rows.order(), total(clauses)
    before = (running.values > value) | ((running.values == value) & (order[running.rows] < order[row]))
    top = best(running, k, rows)
    last = (int(top.rows[-1]), float(top.values[-1])) if k and len(top.rows) == k else None

    def enters(reached: float) -> bool:
        if last is None:
            return k > 0
        return reached > last[1] or (reached == last[1] and bool(order[row] < order[last[0]]))

    return RankExplanation(
        subscription=rows.id(row),
        mode="relaxed",
        k=k,
        runs=bool((running.rows == row).any()),
        value=value,
        before=int(before.sum()),
        last=None if last is None else Best(rows.id(last[0]), last[1]),
        clauses=tuple(clauses),
        enough=enough(clauses, enters),
    )


def enough(clauses: Sequence[ClauseValue], enters: Callable[[float], bool]) -> tuple[ClauseValue, ...] | None:
    """Find the fewest clauses that failed and would have brought the sum in; None if not even all would.

    As many as the heaviest take, and the last of them as light as it may be. Clauses that the event drops
    cannot help.
    """
    failed = [i for i, clause in enumerate(clauses) if not clause.held and clause.factor > 0]
    failed.sort(key=lambda i: -clauses[i].value)
    for count in range(1, len(failed) + 1):
        heaviest, rest = failed[: count - 1], failed[count - 1 :]
        able = [i for i in rest if enters(total(clauses, {*heaviest, i}))]
        if able:
            return tuple(clauses[i] for i in sorted([*heaviest, able[-1]]))
    return None


def total(clauses: Sequence[ClauseValue], also: frozenset[int] | set[int] = frozenset()) -> float:
    """Sum what held, and what else is to count, in the order of the clauses."""
    value = 0.0
    for i, clause in enumerate(clauses):
        if (clause.held or i in also) and clause.factor > 0:
            value += clause.value
    return value


def _clause_line(clause: ClauseValue, width: int) -> str:
    state = "held" if clause.held else "failed"
    if clause.factor == 0:
        state = "dropped"
    counts = f"{clause.weight:g}" if clause.factor in {0.0, 1.0} else f"{clause.weight:g} * {clause.factor:g}"
    return f"  {state:8}{clause.filter:{width}}   weight {counts}"
