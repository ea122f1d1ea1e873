"""Live subscriptions: a snapshot with the changes since, up to a version; the driver and workers have them.

Changes are applied by one function and in one order, so all of them answer alike.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from headgate.contents.registry import kind_at
from headgate.core.subscription import Subscription
from headgate.errors import SubscriptionError
from headgate.runtime.pieces import Pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from headgate.core.event import Id
    from headgate.core.ranks import Weights

SUBSCRIBE, UNSUBSCRIBE, SCORE, WEIGHTS = OPERATIONS = ("subscribe", "unsubscribe", "score", "weights")


class Version(NamedTuple):
    """The subscriptions at one moment."""

    snapshot: str
    """A directory that does not change."""
    since: int
    """The version of the log that it holds already."""
    version: int
    """The version that is meant."""
    log: str
    """The directory of the log."""
    owner: str
    """The state that it is of: another one may have had the same place."""


class Changing(Protocol):
    """What changes are applied to."""

    def subscribe(self, subscription: Subscription) -> None: ...
    def unsubscribe(self, identity: Id) -> None: ...
    def set_score(self, identity: Id, score: float) -> None: ...
    def set_weights(self, identity: Id, weights: Weights | None) -> None: ...


class _Held(NamedTuple):
    at: Version
    pieces: Pieces


_held: dict[str, _Held] = {}


def pieces_at(wanted: Version) -> Pieces:
    """Return the subscriptions at a version: those of the last call, with what is new, if that will do."""
    # Taken out: of one that did not catch up it is not known how far it came.
    held = _held.pop(wanted.snapshot, None)
    if held is None or held.at.version > wanted.version or _lineage(held.at) != _lineage(wanted):
        # At most one is kept. The driver has verified the snapshot.
        _held.clear()
        held = _Held(wanted._replace(version=wanted.since), Pieces.open(Path(wanted.snapshot), verify=False))
    catch_up(held.pieces, Path(wanted.snapshot), Path(wanted.log), held.at.version, wanted.version)
    _held[wanted.snapshot] = _Held(wanted, held.pieces)
    return held.pieces


def _lineage(at: Version) -> tuple[int, str]:
    return at.since, at.owner


def catch_up(pieces: Pieces, snapshot: Path, log: Path, have: int, want: int) -> None:
    """Apply the versions of a log after one, up to another."""
    dialect = default_dialect(snapshot)
    for version in range(have + 1, want + 1):
        for change in read_segment(log, version):
            apply(pieces, change, dialect)


def segment(log: Path, version: int) -> Path:
    """Name the file of a version."""
    return log / f"{version:010d}.jsonl"


def read_segment(log: Path, version: int) -> Iterator[dict[str, Any]]:
    """Read the changes of a version; its first line is about them."""
    with segment(log, version).open("rb") as file:
        next(file)
        for line in file:
            yield json.loads(line)


def default_dialect(snapshot: Path) -> str:
    """Return the dialect of filters that name none: the first of the snapshot's content room."""
    return kind_at(snapshot).dialects[0]


def apply(engine: Changing, change: Mapping[str, Any], dialect: str) -> None:
    """Apply one change; refuses what makes no sense, and then nothing has changed."""
    operation, identity = change.get("op"), change.get("id")
    if operation not in OPERATIONS:
        known = ", ".join(map(repr, OPERATIONS))
        raise SubscriptionError(f"op is {operation!r}: use one of {known}")
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise SubscriptionError(f"id is {identity!r}: give text or a whole number")
    if operation == UNSUBSCRIBE:
        engine.unsubscribe(identity)
    elif operation == SCORE:
        score = change.get("score")
        if isinstance(score, bool) or not isinstance(score, int | float):
            raise SubscriptionError(f"the score of subscription {identity!r} is {score!r}: give a number")
        engine.set_score(identity, score)
    elif operation == WEIGHTS:
        engine.set_weights(identity, change.get("weights"))
    else:
        engine.subscribe(_subscription(change, identity, dialect))


def _subscription(change: Mapping[str, Any], identity: str | int, dialect: str) -> Subscription:
    text = change.get("filter")
    if not isinstance(text, str):
        raise SubscriptionError(f"subscription {identity!r} has no filter: give one as text")
    spoken, score, node = change.get("dialect"), change.get("score"), change.get("node")
    if spoken is not None and not isinstance(spoken, str):
        raise SubscriptionError(f"the dialect of subscription {identity!r} is {spoken!r}: give its name")
    if isinstance(node, bool) or not isinstance(node, str | int | None):
        raise SubscriptionError(f"the node of subscription {identity!r} is {node!r}: give a node's id")
    return Subscription(
        identity, text, spoken or dialect, node, 0.0 if score is None else score, change.get("weights")
    )
