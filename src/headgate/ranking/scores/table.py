"""The scores of rows that depend on the event: by form, with their numbers in columns.

row       form   position         form 1: ? * price + ?         form 2: least(bid, ?)
  0        -1                     position 0    1    2          position 0
  1         1      2              numbers  0.5  0.3  2.0        numbers  7.5
  2         2      0                       1.0  2.0  0.0
  …                               block    └── 0 ──┘ └ 1 ┘      a block knows the range of each of its numbers

Where form[r] is -1, row r has a score that does not depend on the event, and is not here. Numbers are sorted
when the table is built, so that those of a block are alike; what comes later goes to the end, and widens the
ranges of its block.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.scores import Form, Scoring, Step
from headgate.ranking.answers import RankedRows
from headgate.ranking.scores.arithmetic import Range, most, scores

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from headgate.core.arrays import Ints

    Doubles = NDArray[np.float64]

NONE = -1
BLOCK = 1024
"""Rows of a form that share a bound."""
FEW = 2048
"""Rows that are computed without asking for bounds first."""


class _Numbers:
    """The numbers of a form: one line each, one place for a row; and their ranges by block."""

    def __init__(self, form: Form, numbers: Doubles, terms: Ints) -> None:
        self.form = form
        self.terms = terms
        """Which of the table's terms are those of the form."""
        self._numbers = numbers
        self.count: int = numbers.shape[1]
        blocks = -(-self.count // BLOCK)
        self._low = np.full((form.numbers, blocks), np.inf)
        self._high = np.full((form.numbers, blocks), -np.inf)
        for block in range(blocks):
            some = numbers[:, block * BLOCK : (block + 1) * BLOCK]
            self._low[:, block], self._high[:, block] = some.min(axis=1), some.max(axis=1)

    def at(self, places: Ints) -> Doubles:
        return self._numbers[:, places]

    def most(self, terms: Doubles) -> Doubles:
        return most(self.form, Range(self._low, self._high), terms[self.terms])

    def add(self, numbers: Sequence[float]) -> int:
        position = self.count
        if position == self._numbers.shape[1]:
            more = np.zeros((self.form.numbers, max(16, position)))
            self._numbers = np.concatenate([self._numbers, more], axis=1)
        given = np.array(numbers, np.float64)
        self._numbers[:, position] = given
        if position // BLOCK == self._low.shape[1]:
            self._low = np.concatenate([self._low, given[:, None]], axis=1)
            self._high = np.concatenate([self._high, given[:, None]], axis=1)
        else:
            self._low[:, -1] = np.minimum(self._low[:, -1], given)
            self._high[:, -1] = np.maximum(self._high[:, -1], given)
        self.count += 1
        return position


def split(given: Sequence[float | Scoring]) -> tuple[Doubles, EventScores]:
    """Tell scores that depend on the event from those that do not, which are 0 where it does."""
    scores = np.array([each if isinstance(each, float) else 0.0 for each in given], np.float64)
    return scores, EventScores.build([None if isinstance(each, float) else each for each in given])


class EventScores:
    """Which rows have scores that depend on the event, and what these are.

    Whoever holds it sees to it that nobody asks in the middle of a change.
    """

    def __init__(
        self, form: NDArray[np.int32], position: NDArray[np.int32], groups: Sequence[tuple[Form, Doubles]]
    ) -> None:
        self._form, self._position = form, position
        self._terms: dict[str, int] = {}
        self._groups = [_Numbers(each, numbers, self._known(each)) for each, numbers in groups]
        self._by_form = {group.form: number for number, group in enumerate(self._groups)}

    @classmethod
    def build(cls, given: Sequence[Scoring | None]) -> EventScores:
        """Make a table of scores by row; None for those that do not depend on the event."""
        by_form: dict[Form, list[tuple[tuple[float, ...], int]]] = {}
        for row, each in enumerate(given):
            if each is not None:
                by_form.setdefault(each.form, []).append((each.numbers, row))
        form, position = np.full(len(given), NONE, np.int32), np.zeros(len(given), np.int32)
        groups = []
        for number, (each_form, entries) in enumerate(by_form.items()):
            entries.sort(reverse=True)
            rows = [row for _, row in entries]
            form[rows], position[rows] = number, np.arange(len(rows))
            columns = np.array([numbers for numbers, _ in entries], np.float64)
            groups.append((each_form, columns.reshape(len(entries), each_form.numbers).T.copy()))
        return cls(form, position, groups)

    def _known(self, form: Form) -> Ints:
        """Return where the terms of a form are among all; those that are new are added."""
        return np.array([self._terms.setdefault(term, len(self._terms)) for term in form.terms], np.int64)

    @property
    def terms(self) -> list[str]:
        """Return the texts of what events are asked for."""
        return list(self._terms)

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self._groups)

    def scoring(self, row: int) -> Scoring | None:
        """Return the score of a row; None if it does not depend on the event."""
        if row >= len(self._form) or self._form[row] == NONE:
            return None
        group = self._groups[self._form[row]]
        numbers: list[float] = group.at(np.array([self._position[row]], np.int64))[:, 0].tolist()
        return Scoring(group.form, tuple(numbers))

    def put(self, row: int, scoring: Scoring | None) -> None:
        """Give a row another score."""
        if row >= len(self._form):
            if scoring is None:
                return
            more = max(64, row + 1 - len(self._form), len(self._form))
            self._form = np.concatenate([self._form, np.full(more, NONE, np.int32)])
            self._position = np.concatenate([self._position, np.zeros(more, np.int32)])
        if not self._form.flags.writeable:
            self._form, self._position = self._form.copy(), self._position.copy()
        if scoring is None:
            self._form[row] = NONE
            return
        number = self._by_form.get(scoring.form)
        if number is None:
            number = self._by_form[scoring.form] = len(self._groups)
            empty = np.zeros((scoring.form.numbers, 0))
            self._groups.append(_Numbers(scoring.form, empty, self._known(scoring.form)))
        self._form[row], self._position[row] = number, self._groups[number].add(scoring.numbers)

    def values(self, rows: Ints, constants: Doubles, terms: Doubles) -> Doubles:
        """Compute the scores of some rows; `terms` has one column for all of them, or one for each."""
        values = constants[rows]
        form = self._forms(rows)
        for number in np.unique(form[form != NONE]).tolist():
            group, here = self._groups[number], np.flatnonzero(form == number)
            given = terms[group.terms]
            if terms.shape[1] > 1:
                given = given[:, here]
            values[here] = scores(group.form, group.at(self._position[rows[here]].astype(np.int64)), given)
        return values

    def best(self, rows: Ints, constants: Doubles, terms: Doubles, k: int) -> RankedRows:
        """Compute the scores of those of some rows that may be among the best k; others are left out."""
        column = terms[:, None]
        if len(rows) <= max(FEW, 2 * k) or not k:
            return RankedRows(rows, self.values(rows, constants, column))
        bounds = self._most(rows, constants, terms)
        likely = np.argpartition(-bounds, max(k, FEW // 4))[: max(k, FEW // 4)]
        values = self.values(rows[likely], constants, column)
        last = np.partition(values, len(values) - k)[len(values) - k]
        # Equal ones go by id, so that a bound that is as good may count.
        kept = rows[bounds >= last]
        return RankedRows(kept, self.values(kept, constants, column))

    def _most(self, rows: Ints, constants: Doubles, terms: Doubles) -> Doubles:
        bounds = constants[rows]
        form = self._forms(rows)
        for number in np.unique(form[form != NONE]).tolist():
            group, here = self._groups[number], np.flatnonzero(form == number)
            bounds[here] = group.most(terms)[self._position[rows[here]] // BLOCK]
        return bounds

    def _forms(self, rows: Ints) -> NDArray[np.int32]:
        """Return the forms of rows, also of such as came since and have none."""
        if len(rows) and int(rows.max()) >= len(self._form):
            forms = np.full(len(rows), NONE, np.int32)
            known = rows < len(self._form)
            forms[known] = self._form[rows[known]]
            return forms
        return self._form[rows]

    def kept(self, rows: Ints) -> EventScores:
        """Return a table of some of the rows, in that order."""
        return EventScores.build([self.scoring(row) for row in rows.tolist()])

    def to_arrays(self) -> tuple[dict[str, NDArray[Any]], str]:
        """Return what a snapshot holds: arrays, and the forms as text."""
        arrays: dict[str, NDArray[Any]] = {"score_form": self._form, "score_place": self._position}
        told = []
        for number, group in enumerate(self._groups):
            arrays[f"score_numbers_{number}"] = group.at(np.arange(group.count))
            told.append({"steps": [list(step) for step in group.form.steps], "terms": list(group.form.terms)})
        return arrays, json.dumps(told)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], told: str) -> EventScores:
        """Take over what a snapshot holds."""
        groups = []
        for number, each in enumerate(json.loads(told)):
            numbers = arrays[f"score_numbers_{number}"]
            steps = tuple(Step(what, place) for what, place in each["steps"])
            groups.append((Form(steps, tuple(each["terms"]), len(numbers)), numbers))
        return cls(arrays["score_form"], arrays["score_place"], groups)
