"""What is ranked by its clauses, as it is at one moment: rows over codes, or over an index of clauses.

table        the rows that were built
coded        these in boxes and lists of codes, where that is worth it; otherwise there are `Sums` over them
content      an index of the clauses that are asked by themselves: all, or those that are no sets of codes,
             and those of late rows; a clause's id is its number, which it keeps
late         the rows that came since, summed up one by one
named        the attributes that clauses look at; those of later clauses in `late_names`
texts        of clauses, by number
hashes       of the texts of clauses in the index, to find the number of one that is written again
"""

from __future__ import annotations

import threading
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.omission import Omission, RenamedOmissions
from headgate.core.subscription import Subscription
from headgate.ranking.answers import RankedRows
from headgate.ranking.filters.clauses import Growing, hash_text, hash_texts, joined, named
from headgate.ranking.filters.sums import Sums
from headgate.ranking.rows import admit, best

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.contents.protocol import Clause, Content
    from headgate.core.arrays import Ints
    from headgate.core.event import Event, Id
    from headgate.core.interning import TextPool
    from headgate.ranking.answers import Answers
    from headgate.ranking.filters.clauses import Named, Weighted
    from headgate.ranking.filters.coded import Coded
    from headgate.ranking.rows import Admitted, RowIds

    Factors = NDArray[np.float64]


def summed(
    table: Weighted,
    held: NDArray[np.bool_],
    factors: NDArray[np.float64] | None,
    alive: NDArray[np.bool_],
) -> RankedRows:
    """Sum what holds, row by row in the order of the clauses; only rows of which anything does."""
    holds = held[table.clause]
    weight = table.weight[holds]
    if factors is not None:
        weight = weight * factors[table.clause[holds]]
    row = np.repeat(np.arange(table.size), np.diff(table.start))[holds]
    # In the order of the clauses: bincount adds one after the other.
    values = np.asarray(np.bincount(row, weight, minlength=table.size), np.float64)
    some = np.zeros(table.size, np.bool_)
    some[row] = True
    rows = np.flatnonzero(some & alive)
    return RankedRows(rows, values[rows])


class Held:
    """What holds for an event, found when it is asked for."""

    def __init__(self, state: ClauseState, event: Event) -> None:
        self._state, self._event = state, event

    @cached_property
    def codes(self) -> NDArray[np.int32]:
        """Return the codes of the event on the lines of clauses, as one row."""
        coded = self._state.coded
        return NO_CODES if coded is None else coded.coder.codes(self._event)[None, :]

    @cached_property
    def numbers(self) -> Ints:
        """List the clauses of the index that hold."""
        if not self._state.asking:
            return NO_NUMBERS
        with self._state.naming():
            return self._state.content.numbers(self._event)


NO_NUMBERS = np.zeros(0, np.int64)
NO_CODES = np.zeros((1, 0), np.int32)
_SAFE = 1 + 1e-9
"""What rounding may take from a bound, and more."""


class ClauseState:
    """What is asked and changed; whoever holds it sees to it that nobody asks in the middle of a change."""

    def __init__(
        self,
        rows: RowIds,
        table: Weighted,
        names: Named,
        hashes: Ints,
        content: Content,
        texts: TextPool,
        coded: Coded | None = None,
    ) -> None:
        self.rows = rows
        self.hashes = hashes
        self.table = table
        self.content = content
        self.named = names
        self.texts = texts
        self.coded = coded
        self.late = Growing()
        self._late_names: list[tuple[str, ...]] = []
        self._late_numbers: dict[str, int] = {}
        self._by_hash: Ints | None = None
        self._sums: Sums | None = None
        self._summing = threading.Lock()
        self._nobody = np.zeros(table.size, np.uint8)
        self._late_most = 0.0

    @property
    def count(self) -> int:
        """Count the clauses, also those that were dropped."""
        return len(self.named.start) - 1 + len(self._late_names)

    @property
    def asking(self) -> bool:
        """Tell whether any row has clauses that are asked by themselves."""
        return bool(self.late) or self.coded is None or len(self.coded.odd) > 0

    # Asking

    def late_most(self, factors: Mapping[str, float]) -> float:
        """Bound what a late row can be worth; -inf if there is none."""
        if not self.late:
            return -np.inf
        most = self._late_most
        # A clause may look at several attributes, and each factor multiplies it.
        for factor in factors.values():
            most *= max(1.0, factor)
        return most * _SAFE

    def factors(self, factors: Mapping[str, float]) -> Factors | None:
        """Return the factor of each clause; None if all are 1."""
        if not factors or not self.asking:
            return None
        first = self.named.factors(factors)
        if not self._late_names:
            return first
        if first is None:
            first = np.ones(len(self.named.start) - 1)
        late = [np.prod([factors.get(name, 1.0) for name in names]) for names in self._late_names]
        return np.concatenate([first, np.array(late, np.float64)])

    def best(self, held: Held, k: int, factors: Mapping[str, float], admitted: Admitted | None) -> RankedRows:
        """Find the best k rows."""
        if callable(admitted):
            return best(self.found(held, factors, admitted), k, self.rows)
        mask = None if admitted is None else admitted.admitted(self.rows)
        if self.coded is None:
            return self.sums(held.numbers, k, self.factors(factors), mask)
        ranked = self._coded_best(self.coded, held, k, factors, mask)
        if not self.late or (
            len(ranked.rows) == k and (not k or self.late_most(factors) < ranked.values[-1])
        ):
            return ranked
        return self.with_late(ranked, held.numbers, k, self.factors(factors), mask)

    def sums(
        self, numbers: Ints, k: int, by_clause: Factors | None, mask: NDArray[np.bool_] | None
    ) -> RankedRows:
        """Find the best k rows, given the clauses that hold, where no row is coded."""
        rows, first = self.rows, self.table.size
        at, values = self._base_sums().top(
            numbers,
            k,
            factors=by_clause,
            admitted=None if mask is None else mask[:first].view(np.uint8),
            removed=rows.gone[:first].view(np.uint8) if rows.changed else None,
        )
        ranked = RankedRows(at.astype(np.int64), values)
        return ranked if not self.late else self.with_late(ranked, numbers, k, by_clause, mask)

    def with_late(
        self,
        early: RankedRows,
        numbers: Ints,
        k: int,
        by_clause: Factors | None,
        mask: NDArray[np.bool_] | None = None,
    ) -> RankedRows:
        """Find the best k of some rows and those that came late, given the clauses that hold."""
        late = self._late_sums(self._held(numbers, by_clause), by_clause)
        return best(early.with_(late if mask is None else late.where(mask[late.rows])), k, self.rows)

    def coded_many(
        self, codes: NDArray[np.int32], start: Ints, numbers: Ints, k: int, factors: Mapping[str, float]
    ) -> Answers:
        """Find the best k coded rows for each of some events, given the clauses that hold."""
        assert self.coded is not None
        return self.coded.top_many(codes, self.coded.held(start, numbers), k, factors, self._removed(None))

    def _coded_best(
        self,
        coded: Coded,
        held: Held,
        k: int,
        factors: Mapping[str, float],
        mask: NDArray[np.bool_] | None,
    ) -> RankedRows:
        numbers = held.numbers if len(coded.odd) else NO_NUMBERS
        asked = coded.held(np.array([0, len(numbers)]), numbers)
        answers = coded.top_many(held.codes, asked, k, factors, self._removed(mask))
        count = int(answers.counts[0])
        return RankedRows(answers.numbers[0, :count].astype(np.int64), answers.values[0, :count])

    def _removed(self, mask: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
        """Mark the rows that were built and may not be in an answer."""
        first = self.table.size
        if mask is not None:
            return (self.rows.gone[:first] | ~mask[:first]).view(np.uint8)
        return self.rows.gone[:first].view(np.uint8) if self.rows.changed else self._nobody

    def found(self, held: Held, factors: Mapping[str, float], admitted: Admitted | None) -> RankedRows:
        """Value all rows of which anything holds."""
        by_clause = self.factors(factors)
        flags = self._held(held.numbers, by_clause)
        if self.coded is None:
            running = summed(self.table, flags, by_clause, ~self.rows.gone[: self.table.size])
        else:
            running = self._coded_best(self.coded, held, self.table.size, factors, None)
        if self.late:
            running = running.with_(self._late_sums(flags, by_clause))
        return running if admitted is None else running.where(admit(self.rows, running.rows, admitted))

    def row(self, row: int) -> tuple[list[int], list[float]]:
        """Return the clauses and weights of a row."""
        table, first = self.table, self.table.size
        if row >= first:
            table, row = self.late.rows(), row - first
        here = slice(int(table.start[row]), int(table.start[row + 1]))
        return table.clause[here].tolist(), table.weight[here].tolist()

    def names_of(self, clause: int) -> tuple[str, ...]:
        """Return the attributes that a clause looks at."""
        first = len(self.named.start) - 1
        return self.named.of(clause) if clause < first else self._late_names[clause - first]

    def _held(self, numbers: Ints, factors: Factors | None) -> NDArray[np.bool_]:
        """Tell of each clause whether it holds, and is not dropped."""
        held = np.zeros(self.count, np.bool_)
        held[numbers] = True
        return held if factors is None else held & (factors > 0)

    def _base_sums(self) -> Sums:
        """Return the sums over what was built; made when first asked for."""
        sums = self._sums
        if sums is None:
            with self._summing:
                sums = self._sums
                if sums is None:
                    sums = self._sums = Sums.build(*self.table)
        return sums

    def _late_sums(self, held: NDArray[np.bool_], factors: Factors | None) -> RankedRows:
        first = self.table.size
        late = summed(self.late.rows(), held, factors, ~self.rows.gone[first:])
        return RankedRows(late.rows + first, late.values)

    # Changing

    def add(self, identity: Id, clauses: Sequence[int], weights: Sequence[float]) -> None:
        """Append a row."""
        self.rows.add(identity)
        self.late.append(clauses, weights)
        self._late_most = max(self._late_most, sum(weights))

    def naming(self) -> RenamedOmissions:
        """Tell of clauses that the content leaves out by their text: many subscriptions may have one."""

        def by_text(omission: Omission) -> Omission:
            text = self.content.filter(omission.subscription if omission.subscription is not None else -1)
            return omission._replace(subscription=None, reason=f"the clause {text}: {omission.reason}")

        return RenamedOmissions(by_text)

    def text(self, clause: int) -> str:
        """Return the text of a clause."""
        first = len(self.named.start) - 1
        return self.texts.text(clause) if clause < first else self.content.filter(clause)

    def index(self, clause: int, dialect: str) -> None:
        """See to it that a clause is in the index: those that are sets of codes are not."""
        if clause not in self.content:
            self.content.subscribe(Subscription(clause, self.text(clause), dialect))

    def prepare(self, clause: Clause, dialect: str) -> Any:
        """Compile a clause for `number`, or refuse it; returns nothing of one that is indexed."""
        if self._find(clause.filter) is None:
            return self.content.prepare(Subscription(self.count, clause.filter, dialect))
        return None

    def number(self, clause: Clause, dialect: str, prepared: Any) -> int:
        """Return the number of a clause; a new one is indexed."""
        number = self._find(clause.filter)
        if number is None:
            number = self.count
            self.content.subscribe(Subscription(number, clause.filter, dialect), prepared)
            self._late_numbers[clause.filter] = number
            self._late_names.append(clause.names)
        return number

    def _find(self, text: str) -> int | None:
        """Find the number of a clause that is indexed."""
        if text in self._late_numbers:
            return self._late_numbers[text]
        if self._by_hash is None:
            self._by_hash = np.argsort(self.hashes)
        wanted = hash_text(text)
        first = int(np.searchsorted(self.hashes, wanted, sorter=self._by_hash))
        for number in map(int, self._by_hash[first:]):
            if self.hashes[number] != wanted:
                break
            if number in self.content and self.content.filter(number) == text:
                return number
        return None

    def folded(self, code: Callable[[Weighted, TextPool, Named], Coded | None], dialect: str) -> ClauseState:
        """Return a state with all rows that are left built anew; answers of this one are not changed.

        `code` puts rows into boxes and lists, given the texts and names of clauses.
        """
        rows, kept = self.rows.folded()
        table = (joined(self.table, self.late.rows()) if self.late else self.table).take(kept)
        names, texts = self.named, self.texts
        if self._late_names:
            places: dict[str, int] = {}
            each = [self.names_of(clause) for clause in range(self.count)]
            names = named(
                [[places.setdefault(name, len(places)) for name in of] for of in each], tuple(places)
            )
            texts = texts.with_(self._late_numbers)
        hashes = np.concatenate([self.hashes, hash_texts(self._late_numbers)])
        fresh = ClauseState(rows, table, names, hashes, self.content, texts, code(table, texts, names))
        for clause in fresh.asked().tolist():
            fresh.index(clause, dialect)
        if self._sums is not None and fresh.coded is None:
            fresh._base_sums()
        return fresh

    def asked(self) -> Ints:
        """List the clauses of rows that were built that are asked by themselves."""
        return np.unique(self.table.clause).astype(np.int64) if self.coded is None else self.coded.odd

    def drop_unused(self) -> int:
        """Take clauses out of the index that no row there has; returns how many. Only after `folded`."""
        used = np.zeros(self.count, np.bool_)
        used[self.asked()] = True
        dropped = [clause for clause in np.flatnonzero(~used).tolist() if clause in self.content]
        for clause in dropped:
            self.content.unsubscribe(clause)
        return len(dropped)
