"""A table of changes: read, and tried on a live engine; what makes no sense is refused.

What a row may ask for is in `runtime/operations.py`, as for a stream: what was tried here can go live.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.errors import HeadgateError, SubscriptionError
from headgate.runtime import operations
from headgate.runtime.engines import Runtime
from headgate.runtime.rows import SCORE, WEIGHTS, read_line
from headgate.tables.lines import BROKEN, ORDER, VALUE
from headgate.tables.places import Format

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.core.event import Id
    from headgate.engine.engine import Engine
    from headgate.runtime.operations import Change


class Row(NamedTuple):
    """A row as it came; without `value`, a line of CSV that does not fit the header."""

    value: bytes | None
    broken: str | None = None

    @property
    def text(self) -> str:
        """Return the row for people."""
        return (self.broken or "") if self.value is None else self.value.decode(errors="replace")


class ParsedRow(NamedTuple):
    """A row that was read: the change that it asks for, or why it is none."""

    text: str
    change: Change | None
    reason: str | None = None


class RefusedRow(NamedTuple):
    """A row that is no change, and why."""

    row: str
    reason: str


class SubscriptionChange(NamedTuple):
    """What was done to a subscription, in the end."""

    op: str
    filter: str
    """The new filter; that of before if it was taken away, or only what it is ranked by changed."""


def in_order(lines: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Put the lines of a table of changes into its order; blank ones are left out."""
    ordered = sorted(lines, key=lambda row: tuple(row[name] for name in ORDER))
    rows = [Row(None if line[VALUE] is None else bytes(line[VALUE]), line[BROKEN]) for line in ordered]
    return [row for row in rows if row.value is None or row.value.strip()]


def read_changes(
    rows: Iterable[Row], form: Format, dialect: str, *, numbered: bool | None, numbered_nodes: bool = False
) -> list[ParsedRow]:
    """Read what rows ask for; `numbered` says what ids are in the snapshot, None if there are none yet.

    CSV has text only: there the ids are given their type.
    """
    parsed = []
    for row in rows:
        try:
            fields = read_line(row.value, row.broken)
            if form is Format.CSV:
                fields = operations.typed(fields, numbered=numbered, numbered_nodes=numbered_nodes)
            parsed.append(ParsedRow(row.text, operations.read_change(fields, dialect)))
        except HeadgateError as error:
            parsed.append(ParsedRow(row.text, None, str(error)))
    return parsed


class Trial:
    """Changes tried on a live engine, one after the other."""

    def __init__(self, engine: Engine, numbered: bool | None) -> None:
        self.engine = engine
        self.changes: dict[Id, SubscriptionChange] = {}
        """What was done to subscriptions."""
        self.graph: Counter[str] = Counter()
        """How often the graph was changed, by operation."""
        self.accepted: list[Change] = []
        self.refused: list[RefusedRow] = []
        self._numbered = numbered
        self._live = Runtime.of(engine.backend, whole_ids=numbered)

    def take(self, rows: Iterable[ParsedRow], texts: Mapping[Id, str]) -> None:
        """Try rows; `texts` are the filters of before, of those that had one."""
        for row in rows:
            if row.change is None:
                self.refused.append(RefusedRow(row.text, row.reason or ""))
                continue
            try:
                op = self._live.apply(row.change)
            except HeadgateError as error:
                self.refused.append(RefusedRow(row.text, str(error)))
                continue
            self.accepted.append(row.change)
            self._note(row.change, op, texts)

    def again(self, engine: Engine) -> None:
        """Do all that was accepted to another engine, with the same subscriptions and more."""
        live = Runtime.of(engine.backend, whole_ids=self._numbered)
        for change in self.accepted:
            try:
                live.apply(change)
            except HeadgateError as error:
                raise SubscriptionError(f"{error}: the snapshot changed while it was looked at") from None

    def _note(self, change: Change, op: str, texts: Mapping[Id, str]) -> None:
        identity = operations.subscription_id(change)
        if identity is None:
            self.graph[op] += 1
            return
        before = self.changes.get(identity)
        text = before.filter if before else texts.get(identity, "")
        if isinstance(change, operations.Put):
            text = change.subscription.filter
        self.changes[identity] = SubscriptionChange(_joined(before, op, existed=identity in texts), text)


def _joined(before: SubscriptionChange | None, op: str, *, existed: bool) -> str:
    """Say what several changes of one subscription come to."""
    if before is None:
        return op
    if op == operations.UNSUBSCRIBE:
        return operations.UNSUBSCRIBE
    if op in {SCORE, WEIGHTS}:
        return before.op
    return operations.REPLACE if existed else operations.SUBSCRIBE
