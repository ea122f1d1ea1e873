"""A table of changed subscriptions: read, and tried on a live engine; what makes no sense is refused.

op            the id must be     the row has
subscribe     new                the whole subscription
replace       there              the whole subscription
unsubscribe   there              the id
score         there              the id and a score
(none)        either             the whole subscription: a replacement if the id is there, else a new one
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.core.event import ID
from headgate.core.id_types import fit_id
from headgate.core.subscription import Subscription
from headgate.core.values import fold
from headgate.errors import HeadgateError, SubscriptionError
from headgate.graph.index import GraphIndex
from headgate.spark.compile.ranked_rows import read_score, read_weights
from headgate.spark.tables.places import Format, check_input
from headgate.spark.tables.tables import BROKEN, ORDER, VALUE, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession

    from headgate.core.event import Id
    from headgate.engine.engine import Engine

SUBSCRIBE, REPLACE, UNSUBSCRIBE, SCORE = OPERATIONS = ("subscribe", "replace", "unsubscribe", "score")
_MISFIT = "the line does not fit the header"


class Row(NamedTuple):
    """A row as it came: its text, and its fields by folded name, or why there are none."""

    text: str
    fields: Mapping[str, Any]
    refusal: str | None = None


class Refused(NamedTuple):
    """A row that is no change, and why."""

    row: str
    reason: str


class Change(NamedTuple):
    """What was done to a subscription, in the end."""

    op: str
    filter: str
    """The new filter; that of before if it was taken away or only its score changed."""


def read_rows(session: SparkSession, path: str) -> list[Row]:
    """Read a table of changes, in its order. They come to the driver: a set of changes is small."""
    lines = read_lines(session, path, ID).collect()
    ordered = sorted(lines, key=lambda row: tuple(row[name] for name in ORDER))
    return [row for row in (_row(line[VALUE], line[BROKEN]) for line in ordered) if row is not None]


def fitted(
    rows: Iterable[Row], form: Format, *, numbered: bool | None, numbered_nodes: bool = False
) -> list[Row]:
    """Refuse ids of another type than those of the snapshot; `numbered` is None if there are none yet.

    CSV has text only: there the ids are given their type.
    """
    found = []
    for row in rows:
        fields, refusal = dict(row.fields), row.refusal
        if form is Format.CSV:
            for name, whole in ((ID, numbered), ("node", numbered_nodes)):
                if isinstance(fields.get(name), str) and whole is not None:
                    fields[name] = _or_itself(fields[name], numbered=whole)
        identity = fields.get(ID)
        if numbered is not None and isinstance(identity, str | int) and isinstance(identity, int) != numbered:
            wanted = "a whole number" if numbered else "text"
            refusal = refusal or f"id {identity!r} is not one of these: ids here are {wanted}"
        found.append(Row(row.text, fields, refusal))
    return found


def form_of(path: str) -> Format:
    """Tell the format of a table of changes; refuses one that is not there."""
    return check_input(path)


class Trial:
    """Changes tried on a live engine, one after the other."""

    def __init__(self, engine: Engine, dialect: str) -> None:
        self.engine = engine
        self.changes: dict[Id, Change] = {}
        self.accepted: list[Row] = []
        self.refused: list[Refused] = []
        self._dialect = dialect

    def take(self, rows: Iterable[Row], texts: Mapping[Id, str]) -> None:
        """Try rows; `texts` are the filters of before, of those that had one."""
        for row in rows:
            try:
                if row.refusal is not None:
                    raise SubscriptionError(row.refusal)
                self._try(row, texts)
            except HeadgateError as error:
                self.refused.append(Refused(row.text, str(error)))
            else:
                self.accepted.append(row)

    def again(self, engine: Engine) -> None:
        """Do all that was accepted to another engine, with the same subscriptions and more."""
        other = Trial(engine, self._dialect)
        other.take(self.accepted, {})
        for refused in other.refused:
            raise SubscriptionError(f"{refused.reason}: the snapshot changed while it was looked at")

    def _try(self, row: Row, texts: Mapping[Id, str]) -> None:
        identity = _identity(row)
        there = has(self.engine, identity)
        op = row.fields.get("op") or (REPLACE if there else SUBSCRIBE)
        if op not in OPERATIONS:
            raise SubscriptionError(f"op is {op!r}: use one of {', '.join(map(repr, OPERATIONS))}, or none")
        if op != SUBSCRIBE and not there:
            raise SubscriptionError(f"there is no subscription {identity!r} to {_DOING[op]}")
        if op == SUBSCRIBE and there:
            raise SubscriptionError(f"id {identity!r} is subscribed already: use the op 'replace'")
        before = self.changes.get(identity)
        text = before.filter if before else texts.get(identity, "")
        if op == UNSUBSCRIBE:
            self.engine.unsubscribe(identity)
        elif op == SCORE:
            if row.fields.get("score") is None:
                raise SubscriptionError(f"subscription {identity!r} is given no score: give a number")
            self.engine.set_score(identity, read_score(row.fields["score"]))
        else:
            wanted = self._subscription(row, identity)
            if op == REPLACE:
                self._probe(wanted)
                self.engine.unsubscribe(identity)
            self.engine.subscribe(wanted)
            text = wanted.filter
        self.changes[identity] = Change(_joined(before, op, existed=identity in texts), text)

    def _subscription(self, row: Row, identity: Id) -> Subscription:
        fields = row.fields
        text, dialect, node = fields.get("filter"), fields.get("dialect"), fields.get("node")
        if not isinstance(text, str):
            raise SubscriptionError(f"subscription {identity!r} has no filter: give one as text")
        if not isinstance(dialect, str | None):
            raise SubscriptionError(f"the dialect of subscription {identity!r} is {dialect!r}: give its name")
        if isinstance(node, bool) or not isinstance(node, str | int | None):
            raise SubscriptionError(f"the node of subscription {identity!r} is {node!r}: give a node's id")
        if node is not None and not isinstance(self.engine.index, GraphIndex):
            raise SubscriptionError(
                f"subscription {identity!r} hangs at node {node!r}, and there is no graph: leave `node` out"
            )
        score, weights = read_score(fields.get("score")), read_weights(fields.get("weights"))
        return Subscription(identity, text, dialect or self._dialect, node, score, weights)

    def _probe(self, wanted: Subscription) -> None:
        """Find out whether a subscription will be taken, before the one that it replaces is gone."""
        probe: Id = f"{wanted.id}\N{SYMBOL FOR NULL}" if isinstance(wanted.id, str) else -(2**62)
        while has(self.engine, probe):
            probe = f"{probe}\N{SYMBOL FOR NULL}" if isinstance(probe, str) else probe - 1
        try:
            self.engine.subscribe(replace(wanted, id=probe))
        except HeadgateError as error:
            # It is about the row, and the row does not know of the probe.
            raise SubscriptionError(str(error).replace(repr(probe), repr(wanted.id))) from error
        self.engine.unsubscribe(probe)


_DOING = {REPLACE: "replace", UNSUBSCRIBE: "take away", SCORE: "give a score to"}


def has(engine: Engine, identity: Id) -> bool:
    """Tell whether a subscription is there; refuses an id of the other type."""
    if not isinstance(engine.index, GraphIndex):
        return identity in engine.index
    try:
        engine.index.score(identity)
    except HeadgateError:
        return False
    return True


def _joined(before: Change | None, op: str, *, existed: bool) -> str:
    """Say what several changes of one subscription come to."""
    if before is None:
        return op
    if op == UNSUBSCRIBE:
        return UNSUBSCRIBE
    if op == SCORE:
        return before.op
    return REPLACE if existed else SUBSCRIBE


def _row(value: bytes | bytearray | None, broken: str | None) -> Row | None:
    if value is None:
        return Row(broken or "", {}, _MISFIT)
    text = bytes(value).decode(errors="replace")
    if not text.strip():
        return None
    try:
        read = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        return Row(text, {}, f"the row is no JSON: {error}")
    if not isinstance(read, dict):
        return Row(text, {}, f"the row is JSON and no object: {type(read).__name__}")
    return Row(text, {fold(str(name)): field for name, field in read.items()})


def _identity(row: Row) -> Id:
    identity = row.fields.get(ID)
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise SubscriptionError(f"id is {identity!r}: give text or a whole number")
    return identity


def _or_itself(text: str, *, numbered: bool) -> Id:
    found = fit_id(text, numbered=numbered)
    return text if found is None else found
