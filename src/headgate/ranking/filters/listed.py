"""Rows whose clauses are sets of codes, in lists by tier and attribute (`ranking/boxes/sparse`).

    row     a IN (1, 5) AND (b = 2 OR c > 7) AND d LIKE '%x%'        weights 0.5, 1, 2
    lists   of a: codes 1 to 1 and 5 to 5   of b, and of c, in this company: what OR joins
    others  `d LIKE '%x%'` has a number; events are matched with such clauses by themselves

An *attribute* is a line of codes together with the names that a clause on it looks at, since these say which
factor it has. A clause that is on several lines may be found on more than one; tiers leave room for that in
their sums, and rows that have enough are valued clause by clause.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.ranking.boxes.sparse_build import Boxes, Lists, make_lists
from headgate.ranking.boxes.sparse_kernels import SparseQuery, make_desk
from headgate.ranking.filters.listed_kernels import CodedRows, ListedRows, Odd, listed_many
from headgate.ranking.filters.sums import Postings, Tiers, make_tiers, scales
from headgate.ranking.filters.sums_kernels import PLACE_BITS, SHORT, STRIDE, TINY, WHOLE, SumBuffers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Floats64, Ints, Ints32
    from headgate.ranking.answers import Answers
    from headgate.ranking.filters.clauses import Weighted


_PREFIXES = "tiers_", "lists_", "postings_"


class ClauseSets(NamedTuple):
    """What clauses are: see `listed_kernels.CodedRows`."""

    group: Ints32
    odd: Ints32
    set_start: Ints
    part: Ints32
    attribute: Ints32
    low: Ints32
    high: Ints32

    @property
    def ways(self) -> Ints:
        """Count for each clause the lists that it is in, 1 if it is in none."""
        owner = np.repeat(np.arange(len(self.group)), np.diff(self.set_start))
        begins = self.part == 0
        begins[1:] &= (owner[1:] != owner[:-1]) | (self.attribute[1:] != self.attribute[:-1])
        return np.maximum(np.bincount(owner[begins], minlength=len(self.group)), 1)


class HeldClauses(NamedTuple):
    """Odd clauses that hold: of question i those from start[i] up to start[i + 1], rising."""

    start: Ints
    number: Ints32


class _Plain(NamedTuple):
    """Factors of groups, and those of attributes in parts, where all are 1."""

    factor: Floats64
    scale: Ints


_NONE = np.zeros(0, np.int64)


class Listed:
    """Rows in lists, ready to be asked. Their numbers are those of the table."""

    def __init__(self, listed: ListedRows, attribute_group: Ints32) -> None:
        rows, tiers, lists, postings = listed.rows, listed.tiers, listed.lists, listed.postings
        self._listed = ListedRows(
            Tiers(*(frozen(each) for each in tiers)),
            Lists(*(frozen(each) for each in lists)),
            Postings(*(frozen(each) for each in postings)),
            CodedRows(*(frozen(each) for each in rows)),
            listed.short,
        )
        self._group = attribute_group
        sizes = np.diff(tiers.start)
        self._largest = -(-int(sizes.max(initial=0)) // STRIDE) * STRIDE
        self._plain = _Plain(
            np.ones(int(rows.group.max(initial=-1)) + 1), np.full(len(attribute_group), WHOLE, np.int64)
        )

    @classmethod
    def build(
        cls,
        table: Weighted,
        sets: ClauseSets,
        attribute_group: Ints32,
        rows: Ints,
        *,
        short: int = SHORT,
    ) -> Listed:
        """Put some rows of a table into lists, given in order; lists shorter than `short` are read once."""
        some = table.take(rows)
        tiers, tier, place, part = make_tiers(some.start, some.weight, ways=sets.ways[some.clause])
        owner = np.repeat(np.arange(some.size), np.diff(some.start))
        counts = np.diff(sets.set_start)[some.clause]
        use = np.repeat(np.arange(len(owner)), counts)
        first = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        at = np.arange(len(use)) + np.repeat(sets.set_start[:-1][some.clause] - first[:-1], counts)
        if sets.part.any():
            posted = sets.part[at] == 0
            first = np.concatenate([np.zeros(1, np.int64), np.cumsum(posted)])[first]
            use, at = use[posted], at[posted]
        boxes = Boxes(
            first[some.start],
            sets.attribute[at],
            sets.low[at].astype(np.float64),
            sets.high[at].astype(np.float64),
            some.weight[use],
        )
        lists = make_lists(boxes, len(attribute_group), len(tiers.most), tier, place, part[use])
        odd = sets.odd[some.clause]
        uses = np.flatnonzero(odd >= 0)
        spot = ((tier << PLACE_BITS) + place)[owner[uses]]
        order = np.argsort((odd[uses].astype(np.int64) << 32) + spot)
        lengths = np.bincount(odd[uses], minlength=int(sets.odd.max(initial=-1)) + 1)
        postings = Postings(
            np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]),
            spot[order],
            part[uses[order]],
            np.zeros(len(uses), np.uint16),
        )
        # Rows were numbered among themselves, in the same order as in the table.
        numbers = rows.astype(np.int32)
        tiers = tiers._replace(row=numbers[tiers.row], least=numbers[tiers.least])
        return cls(ListedRows(tiers, lists, postings, _rows_of(table, sets), short), attribute_group)

    @property
    def size(self) -> int:
        """Count the rows."""
        return len(self._listed.tiers.row)

    def top_many(
        self,
        x: Floats64,
        held: HeldClauses,
        factor: Floats64 | None,
        removed: Bytes,
        answers: Answers,
    ) -> None:
        """Find the best rows for each of many events beside those that were found, as many as there is room.

        x has the codes, by event and attribute; `factor` is by group, None if all are 1; `removed` by row.
        """
        count = len(held.number)
        if factor is None:
            (factor, scale), reach, kept = self._plain, 1.0, held
            odd_factor, odd_scale = np.ones(count), np.full(count, WHOLE, np.int64)
        else:
            by_group, reach = scales(factor)
            scale = by_group[self._group]
            group = self._odd_group[held.number]
            there = factor[group] > 0
            kept = HeldClauses(
                np.concatenate([np.zeros(1, np.int64), np.cumsum(there)])[held.start], held.number[there]
            )
            odd_factor, odd_scale = factor[group[there]], by_group[group[there]]
        if (answers.counts == answers.values.shape[1]).all():
            # All have as many as there is room for: nothing to do if none here can be worth as much.
            least = answers.values[:, -1].min(initial=np.inf)
            if least >= TINY and self._listed.tiers.most[0] * reach < least:
                return
        asked = np.empty(x.shape[1])
        listed_many(
            self._listed,
            SparseQuery(asked, asked, np.empty(0), scale, reach, removed),
            Odd(
                kept.start,
                kept.number,
                odd_factor,
                odd_scale,
                np.zeros(len(self._listed.postings.start) - 1, np.uint8),
            ),
            x,
            factor,
            *self._desks(kept),
            answers,
        )

    @property
    def _odd_group(self) -> Ints32:
        odd, group = self._listed.rows.odd, self._listed.rows.group
        groups = np.zeros(len(self._listed.postings.start) - 1, np.int32)
        groups[odd[odd >= 0]] = group[odd >= 0]
        return groups

    def _desks(self, held: HeldClauses) -> tuple[Any, SumBuffers]:
        """Make room for questions about lists, and about odd clauses; both add to the same sums."""
        desk = make_desk(len(self._group))._replace(sums=np.empty(self._largest, np.uint16))
        if not len(held.number):
            return desk, SumBuffers(desk.sums, _NONE, _NONE, _NONE, _NONE, np.zeros(0, np.uint32))
        lengths = np.diff(self._listed.postings.start)[held.number]
        lengths[lengths >= self._listed.short] = 0
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        most = int(np.diff(held.start).max(initial=0))
        return desk, SumBuffers(
            sums=desk.sums,
            at=np.empty(most, np.int64),
            stop=np.empty(most, np.int64),
            live=np.empty(most, np.int64),
            bucket=np.empty(len(self._listed.tiers.most) + 2, np.int64),
            share=np.empty(int(np.diff(before[held.start]).max(initial=0)), np.uint32),
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays, for a snapshot; without table and sets."""
        parts: tuple[NamedTuple, ...] = self._listed[:3]
        return {
            prefix + name: array
            for prefix, part in zip(_PREFIXES, parts, strict=True)
            for name, array in part._asdict().items()
        }

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[Any]], table: Weighted, sets: ClauseSets, attribute_group: Ints32
    ) -> Listed:
        """Read what `to_arrays` gave."""
        kinds: tuple[Any, ...] = (Tiers, Lists, Postings)
        tiers, lists, postings = (
            kind(*(arrays[prefix + name] for name in kind._fields))
            for prefix, kind in zip(_PREFIXES, kinds, strict=True)
        )
        return cls(ListedRows(tiers, lists, postings, _rows_of(table, sets), SHORT), attribute_group)


MOST_WAYS = 8
"""Lines that a clause may be on, to be a set of codes here."""


def _rows_of(table: Weighted, sets: ClauseSets) -> CodedRows:
    return CodedRows(**table._asdict(), **sets._asdict())


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that cannot be written to, as one that is opened cannot: kernels know one kind."""
    view = array.view()
    view.flags.writeable = False
    return view
