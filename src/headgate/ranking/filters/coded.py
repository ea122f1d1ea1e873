"""Rows whose clauses are sets of codes: boxes if most are single intervals of few attributes, else lists.

`make_coded` chooses. What holds for an event is then read from its codes, which are found once; clauses that
are no sets of codes (patterns, elements of arrays, AND inside OR) are asked by themselves, and counted with
the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.ranking.answers import Answers, no_answers
from headgate.ranking.filters.boxed import Boxed, make_boxes
from headgate.ranking.filters.clauses import Named, named
from headgate.ranking.filters.listed import MOST_WAYS, ClauseSets, HeldClauses, Listed
from headgate.ranking.filters.sums_kernels import MANY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from headgate.contents.protocol import CodedClauses, EventCoder
    from headgate.core.arrays import Bytes, Ints, Ints32
    from headgate.ranking.filters.clauses import Weighted


LEAST = 256
"""Rows that are worth codes: fewer are summed up clause by clause."""
CODED = 0.25
"""The part of all clauses that must be sets of codes: bounds of `Sums` are better for many that are not."""
MOST_ATTRIBUTES = 4096
"""Attributes, at most: those with most clauses. An event looks at all of them."""
MOST_INTERVALS = 256
"""Intervals of a clause, at most: whoever is valued has all of its clauses gone through."""
_SMALL = 1 << 20
"""Numbers below this are told apart by a table."""
_SETS, _NAMES, _BOXED, _LISTED = "sets_", "group_", "boxed", "listed"


class Attributes(NamedTuple):
    """The line of each attribute, and its group of names; `named` has the names of groups."""

    line: Ints32
    group: Ints32
    named: Named


class Coded:
    """All rows of a table, as boxes or in lists, and what finds the codes of events."""

    def __init__(
        self,
        coder: EventCoder,
        attributes: Attributes,
        sets: ClauseSets,
        boxed: Boxed | None,
        listed: Listed | None,
    ) -> None:
        self.coder, self.attributes, self.sets = coder, attributes, sets
        self.boxed, self.listed = boxed, listed
        self.size = (0 if boxed is None else len(boxed.rows)) + (0 if listed is None else listed.size)
        self.odd = np.flatnonzero(sets.odd >= 0)
        """The clauses that are no sets of codes, and are asked by themselves."""

    def held(self, start: Ints, numbers: Ints) -> HeldClauses:
        """Pick odd clauses from those that hold for some events: of event i, start[i] up to start[i + 1]."""
        if not len(self.odd):
            return HeldClauses(np.zeros(len(start), np.int64), np.zeros(0, np.int32))
        # Clauses of rows that came later have numbers behind.
        odd = self.sets.odd[np.minimum(numbers, len(self.sets.odd) - 1)]
        kept = (odd >= 0) & (numbers < len(self.sets.odd))
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept)])
        return HeldClauses(before[start], odd[kept].astype(np.int32))

    def top_many(
        self, codes: Ints32, held: HeldClauses, k: int, factors: Mapping[str, float], removed: Bytes
    ) -> Answers:
        """Find the best k rows for each of some events, given by codes and odd clauses that hold."""
        by_group = self.attributes.named.factors(factors) if factors else None
        x = codes[:, self.attributes.line].astype(np.float64, order="C")
        width = min(k, self.size)
        if self.boxed is None:
            answers = no_answers(len(x), width)
        else:
            by_attribute = None if by_group is None else by_group[self.attributes.group]
            answers = self.boxed.top_many(x, k, by_attribute, removed)
        if self.listed is None or not width:
            return answers
        if answers.values.shape[1] < width:
            wide = ((0, 0), (0, width - answers.values.shape[1]))
            answers = Answers(np.pad(answers.numbers, wide), np.pad(answers.values, wide), answers.counts)
        self.listed.top_many(x, held, by_group, removed, answers)
        return answers

    def is_box(self, row: int) -> bool:
        """Tell whether a row is a box."""
        if self.boxed is None:
            return False
        at = int(np.searchsorted(self.boxed.rows, row))
        return at < len(self.boxed.rows) and bool(self.boxed.rows[at] == row)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return it as arrays, for a snapshot."""
        arrays: dict[str, NDArray[Any]] = dict(self.coder.to_arrays())
        arrays.update({_SETS + name: array for name, array in self.sets._asdict().items()})
        groups = self.attributes.named
        arrays[_NAMES + "offsets"], arrays[_NAMES + "data"] = TextPool.build(groups.names)
        arrays[_NAMES + "start"], arrays[_NAMES + "name"] = groups.start, groups.name
        arrays["attribute_line"], arrays["attribute_group"] = self.attributes.line, self.attributes.group
        parts = {_BOXED: self.boxed, _LISTED: self.listed}
        for name, part in parts.items():
            arrays[name] = np.array([part is not None], np.uint8)
            arrays.update({} if part is None else part.to_arrays())
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], coder: EventCoder, table: Weighted) -> Coded:
        """Read what `to_arrays` gave, of a table."""
        names = TextPool(arrays[_NAMES + "offsets"], arrays[_NAMES + "data"]).texts()
        attributes = Attributes(
            arrays["attribute_line"],
            arrays["attribute_group"],
            Named(tuple(names), arrays[_NAMES + "start"], arrays[_NAMES + "name"]),
        )
        sets = ClauseSets(*(arrays[_SETS + name] for name in ClauseSets._fields))
        boxed = Boxed.from_arrays(arrays) if arrays[_BOXED][0] else None
        listed = Listed.from_arrays(arrays, table, sets, attributes.group) if arrays[_LISTED][0] else None
        return cls(coder, attributes, sets, boxed, listed)


def make_coded(table: Weighted, clauses: CodedClauses, names: Named) -> Coded | None:
    """Put rows into boxes and lists; None if they are few, or if few of their clauses are sets of codes."""
    if table.size < LEAST:
        return None
    sets, attributes = _make_sets(table, clauses, names)
    if (sets.odd[table.clause] < 0).mean() < CODED:
        return None
    boxed = make_boxes(table, sets)
    rest = np.ones(table.size, np.bool_)
    if boxed is not None:
        rest[boxed.rows] = False
    rows = np.flatnonzero(rest)
    listed = Listed.build(table, sets, attributes.group, rows) if len(rows) else None
    return Coded(clauses.coder, attributes, sets, boxed, listed)


def _make_sets(table: Weighted, clauses: CodedClauses, names: Named) -> tuple[ClauseSets, Attributes]:
    """Choose what is a set of codes, and number attributes and odd clauses."""
    group, groups = _group_names(names)
    counts = np.diff(clauses.start)
    owner = np.repeat(np.arange(len(counts)), counts)
    width = len(groups.start) - 1
    pairs, attribute = _numbered(clauses.line.astype(np.int64) * width + group[owner])
    uses = np.bincount(table.clause, minlength=len(counts))
    sets = ClauseSets(
        group,
        np.full(len(counts), -1, np.int32),
        clauses.start,
        clauses.part,
        attribute,
        clauses.low,
        clauses.high,
    )
    ways = sets.ways
    good = clauses.coded & (counts <= MOST_INTERVALS) & (ways <= MOST_WAYS)
    if len(pairs) > MOST_ATTRIBUTES:
        by_attribute = np.bincount(attribute, uses[owner], minlength=len(pairs))
        rare = np.ones(len(pairs), np.bool_)
        rare[np.argsort(-by_attribute, kind="stable")[:MOST_ATTRIBUTES]] = False
        good[owner[rare[attribute]]] = False
    if np.add.reduceat(ways[table.clause], table.start[:-1]).max() > MANY // 2:
        good &= ways == 1
    kept = good[owner]
    numbers, renumbered = _numbered(attribute[kept])
    odd = np.full(len(counts), -1, np.int32)
    # A clause that no row has any more need not be asked.
    asked = ~good & (uses > 0)
    odd[asked] = np.arange(asked.sum(), dtype=np.int32)
    start = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.where(good, counts, 0))])
    line, own = np.divmod(pairs[numbers], max(1, width))
    return (
        ClauseSets(group, odd, start, clauses.part[kept], renumbered, clauses.low[kept], clauses.high[kept]),
        Attributes(line.astype(np.int32), own.astype(np.int32), groups),
    )


def _numbered(values: NDArray[np.integer[Any]]) -> tuple[NDArray[np.integer[Any]], Ints32]:
    """List the distinct ones of some numbers from 0 on, rising, and which of these each is."""
    most = int(values.max(initial=-1)) + 1
    if most > _SMALL:
        distinct, number = np.unique(values, return_inverse=True)
        return distinct, number.astype(np.int32)
    there = np.zeros(most, np.bool_)
    there[values] = True
    return np.flatnonzero(there), (np.cumsum(there, dtype=np.int32) - np.int32(1))[values]


def _group_names(names: Named) -> tuple[Ints32, Named]:
    """Number the groups of names that clauses look at; returns that of each clause, and their names."""
    counts = np.diff(names.start)
    alone = counts == 1
    group = np.zeros(len(counts), np.int32)
    group[alone] = names.name[names.start[:-1][alone]]
    groups: dict[tuple[int, ...], int] = {(number,): number for number in range(len(names.names))}
    for clause in np.flatnonzero(~alone).tolist():
        own = tuple(names.name[names.start[clause] : names.start[clause + 1]].tolist())
        group[clause] = groups.setdefault(own, len(groups))
    return group, named(list(groups), names.names)
