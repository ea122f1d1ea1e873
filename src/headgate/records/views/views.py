"""`RecordViews`: what the plan room asks about views over records.

A view is a filter. What it gives for an event depends on what is sent between sites:

    ROW    the whole event: any view that embeds can compute another, by testing the rest again
    KEY    only the event's id: views that together imply all clauses compute another, joined by the id
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from headgate.contents.views import Pairs, Views
from headgate.core.event import Event
from headgate.errors import PlanError
from headgate.records.computed import marked_as
from headgate.records.language.model import predicates
from headgate.records.language.printing import print_filter
from headgate.records.names import plain_text
from headgate.records.programs.binding import parse_text
from headgate.records.reference import matches
from headgate.records.views.coverage import Conjunctions, clauses_of, cover, implied, sign, tree_implies

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    from headgate.core.arrays import Ints, Ints32
    from headgate.core.event import Id
    from headgate.records.language.model import Expression
    from headgate.records.views.coverage import Tree, ViewClause

    Given: TypeAlias = Event | Id | None

ROW = "row"
KEY = "key"
MAX_CLAUSES = 64
"""Clauses of a view that takes part in a plan: one word."""


class Rewriting(NamedTuple):
    """Events that inputs give, of which some clauses must be tested again."""

    left: tuple[Expression, ...]
    mark: str
    """Of the names that these clauses have."""

    def run(self, results: Sequence[Given]) -> Given:
        """Compute what the view gives from what its inputs give for one event."""
        if any(each is None for each in results):
            return None
        given = results[0]
        if isinstance(given, Event):
            flat = given.attributes_as(self.mark)
            if not all(matches(one, flat) for one in self.left):
                return None
        return given


class RecordViews(Views):
    """Views over records by number; `carries` says what they give: ROW or KEY.

    Labels are attributes, items the clauses of a view: one that has none needs bit 0, one of more than 64
    cannot be rewritten.
    """

    def __init__(
        self, filters: Sequence[Expression], clauses: Sequence[Sequence[ViewClause]], carries: str
    ) -> None:
        """Lay out views that are taken apart."""
        self.carries = carries
        self._filters = tuple(filters)
        self._mark = marked_as(part.attribute.key for each in filters for part in predicates(each))
        self._clauses = tuple(tuple(each) for each in clauses)
        numbers: dict[Tree, int] = {}
        distinct: list[ViewClause] = []
        for clause in (one for each in clauses for one in each):
            if clause.tree not in numbers:
                numbers[clause.tree] = len(numbers)
                distinct.append(clause)
        owned = [[numbers[clause.tree] for clause in each] for each in self._clauses]
        firsts: dict[tuple[int, ...], int] = {}
        self.equals = np.array(
            [firsts.setdefault(tuple(sorted(each)), view) for view, each in enumerate(owned)], np.int32
        )
        small = [each if len(each) <= MAX_CLAUSES else None for each in owned]
        offsets, weaker = _rows(implied(distinct))
        starts, flat = _rows([each or [] for each in small])
        needed = [0 if each is None else (1 << len(each)) - 1 or 1 for each in small]
        self.needed = np.array(needed, np.uint64)
        self._rows = Conjunctions(starts, flat, self.needed, offsets, weaker)
        self.names = sorted({name for clause in distinct for name in clause.names})
        places = {name: place for place, name in enumerate(self.names)}
        self.label_offsets, self.labels = _rows(
            [
                sorted({places[name] for number in each or () for name in distinct[number].names})
                for each in small
            ]
        )
        self.demands, self.offers = np.zeros((2, 2 * len(self)), np.uint64)
        sign(self._rows, self.demands, self.offers)

    @classmethod
    def build(cls, texts: Sequence[str], carries: str = ROW) -> RecordViews:
        """Take filters of the dialect SQL; one of more than 64 clauses feeds no other and is fed by none."""
        if carries not in (ROW, KEY):
            raise PlanError(f"views cannot carry {carries!r}: give {ROW!r} or {KEY!r}")
        return cls([parse_text(text) for text in texts], [clauses_of(text) for text in texts], carries)

    def __len__(self) -> int:
        """Count the views."""
        return len(self._filters)

    def _cover(self, pairs: Pairs) -> None:
        cover(self._rows, self.carries == ROW, *pairs)

    def result(self, view: int, event: Event) -> Given:
        """Return the event, or its id, if the view's filter is TRUE for it; else None."""
        if not matches(self._filters[view], event.attributes_as(self._mark)):
            return None
        return event if self.carries == ROW else event.id

    def rewriting(self, view: int, inputs: Sequence[int]) -> Rewriting:
        """Make what computes a view from others; refuses inputs that do not cover it."""
        return Rewriting(tuple(one.expression for one in self._left(view, inputs)), self._mark)

    def pack(self, result: Given) -> Any:
        """Return an event as its id, data and time, or an id as it is."""
        if isinstance(result, Event):
            return [result.id, result.data, None if result.time is None else result.time.isoformat()]
        return result

    def unpack(self, view: int, packed: Any) -> Given:
        """Return the result of a view that was packed."""
        del view
        if self.carries == KEY or packed is None:
            given: Given = packed
            return given
        identity, data, time = packed
        return Event(identity, data, None if time is None else dt.datetime.fromisoformat(time))

    def plan_of(self, view: int, inputs: Sequence[int]) -> list[str]:
        """Say in lines how a view is computed from others."""
        left = self._left(view, inputs)
        lines = [f"take the {self.carries} of view {each}: {self._written(each)}" for each in inputs]
        if len(inputs) > 1:
            lines.append("keep it if all of them have it")
        lines += [f"select {plain_text(clause.text)}" for clause in left]
        return lines

    def size(self, result: Given) -> tuple[int, int]:
        """Count 1 or 0 rows, and the bytes of the event as JSON, or of its id."""
        if result is None:
            return 0, 0
        if isinstance(result, Event):
            return 1, len(msgspec.json.encode(result.data, enc_hook=str))
        return 1, len(result.encode()) if isinstance(result, str) else 8

    def _written(self, view: int) -> str:
        return plain_text(print_filter(self._filters[view]))

    def _left(self, view: int, inputs: Sequence[int]) -> list[ViewClause]:
        """List the clauses that inputs do not guarantee; refuse inputs that cannot compute the view."""
        if not self.needed[view]:
            raise PlanError(
                f"view {view} has {len(self._clauses[view])} clauses, too many to be computed from others: "
                "feed it by the source"
            )
        embeds, masks = self.coverage(np.array(inputs, np.int32), np.full(len(inputs), view, np.int32))
        for one, embedded in zip(inputs, embeds.tolist(), strict=True):
            if not embedded:
                raise PlanError(
                    f"view {view} cannot be computed from view {one}, which may lack events of it: "
                    f"{self._written(one)} is not implied by {self._written(view)}"
                )
        missing = int(self.needed[view]) & ~int(np.bitwise_or.reduce(masks, initial=0))
        if missing or not len(inputs):
            lost = [c.text for place, c in enumerate(self._clauses[view]) if missing >> place & 1] or ["TRUE"]
            raise PlanError(
                f"view {view} cannot be computed from views {list(inputs)}: nothing covers {', '.join(lost)}"
                "; add a view that does"
            )
        own = [clause for each in inputs for clause in self._clauses[each]]
        return [
            clause
            for clause in self._clauses[view]
            if not any(tree_implies(each.tree, clause.tree) for each in own)
        ]


def _rows(rows: Sequence[Sequence[int] | Ints32]) -> tuple[Ints, Ints32]:
    """Lay rows end to end: where each begins, one more at the end, and what they hold."""
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return offsets, np.concatenate([np.zeros(0, np.int32), *(np.asarray(row, np.int32) for row in rows)])
