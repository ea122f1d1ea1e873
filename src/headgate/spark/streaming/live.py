"""A live engine: a snapshot with the changes since, up to a version. The driver and every worker have one.

Changes are applied by one function and in one order, so all of them answer alike.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents import CONTENTS, content_at
from headgate.core.subscription import Subscription
from headgate.engine import Engine
from headgate.errors import SubscriptionError
from headgate.graph.index import GraphIndex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


class _Held(NamedTuple):
    at: Version
    engine: Engine


_held: dict[str, _Held] = {}


def engine_at(wanted: Version) -> Engine:
    """Return the engine at a version: the one of the last call, with what is new applied, if that will do."""
    held = _held.get(wanted.snapshot)
    if held is None or held.at.version > wanted.version or held.at.since != wanted.since:
        # At most one is kept. The driver has verified the snapshot.
        _held.clear()
        held = _Held(wanted._replace(version=wanted.since), Engine.open(Path(wanted.snapshot), verify=False))
    catch_up(held.engine, Path(wanted.snapshot), Path(wanted.log), held.at.version, wanted.version)
    _held[wanted.snapshot] = _Held(wanted, held.engine)
    return held.engine


def catch_up(engine: Engine, snapshot: Path, log: Path, have: int, want: int) -> None:
    """Apply the versions of a log after one, up to another."""
    dialect = default_dialect(snapshot)
    for version in range(have + 1, want + 1):
        for change in read_segment(log, version):
            apply(engine, change, dialect)


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
    return CONTENTS[content_at(snapshot)][0]


def apply(engine: Engine, change: Mapping[str, Any], dialect: str) -> None:
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
        subscription = _subscription(change, identity, dialect)
        if subscription.node is not None and not isinstance(engine.index, GraphIndex):
            raise SubscriptionError(
                f"subscription {identity!r} hangs at node {subscription.node!r}, and there is no graph here: "
                "leave `node` out"
            )
        engine.subscribe(subscription)


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
