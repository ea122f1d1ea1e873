"""What a set of changes would do: to each subscription, and in all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.backtest.difference import AFTER, BEFORE, GAINED, LOST
from headgate.contents.protocol import SUBSCRIPTION_ID
from headgate.runtime.operations import OPERATIONS, UNSUBSCRIBE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headgate.backtest.changes import Trial
    from headgate.backtest.cost import Cost
    from headgate.backtest.trial import TrialResult
    from headgate.core.event import Id

NOTHING, NOISY = "matches nothing", "noisy"


@dataclass(frozen=True)
class Effect:
    """What the changes do to one subscription; `op` is empty for one that no row names."""

    id: Id
    op: str
    before: int
    after: int
    gained: int
    lost: int
    share: float
    """Matches after, by events."""
    flag: str
    filter: str


@dataclass(frozen=True)
class WhatIf:
    """What would change."""

    events: int
    rejected_events: int
    changes: dict[str, int]
    """Changed subscriptions, and changes of the graph, by what was done."""
    rejected: int
    """Rows of changes that were refused."""
    gained: int
    lost: int
    effects: tuple[Effect, ...]
    """Noisiest first."""
    days: float | None
    """From the first event to the last, if they have times."""
    cost: Cost | None
    seconds: float

    @property
    def deliveries_a_day(self) -> float | None:
        """Return how many more matches a day there would be; None if events have no times."""
        return (self.gained - self.lost) / self.days if self.days else None


def wanted_ids(tried: TrialResult, *, ranked: bool) -> pa.Array[Any] | None:
    """Name the subscriptions whose matches can differ; None for all, as in a graph and among the best."""
    if ranked or tried.trial.graph:
        return None
    ids: list[Any] = list(tried.trial.changes)
    return pa.array(ids, pa.int64() if tried.numbered else pa.string())


def concerned(trial: Trial, moved: Mapping[Id, Mapping[str, int]]) -> list[Any]:
    """Name the subscriptions that are to be told of."""
    return list(dict.fromkeys([*trial.changes, *moved]))


def share_and_flag(after: int, events: int, noise: float) -> tuple[float, str]:
    """Return the share of events that a subscription matches, and what is odd about that.

    >>> share_and_flag(3, 10, 0.2), share_and_flag(1, 10, 0.2), share_and_flag(0, 10, 0.2)
    ((0.3, 'noisy'), (0.1, ''), (0.0, 'matches nothing'))
    """
    share = after / events if events else 0.0
    return share, NOTHING if not after else NOISY if share > noise else ""


def effects_of(
    trial: Trial,
    moved: Mapping[Id, Mapping[str, int]],
    matches: Mapping[Id, tuple[int, int]],
    events: int,
    noise: float,
) -> tuple[Effect, ...]:
    """Say what the changes do to each subscription, noisiest first.

    `moved` says how many matches of each are gained and lost, `matches` how many it has before and after.
    """
    effects = []
    for identity in concerned(trial, moved):
        before, after = matches.get(identity, (0, 0))
        change = trial.changes.get(identity)
        op, text = (change.op, change.filter) if change else ("", "")
        share, flag = share_and_flag(after, events, noise)
        if change is None or op == UNSUBSCRIBE:
            flag = ""
        gained, lost = (moved.get(identity, {}).get(way, 0) for way in (GAINED, LOST))
        effects.append(Effect(identity, op, before, after, gained, lost, share, flag, text))
    return tuple(sorted(effects, key=lambda each: (-each.after, -each.before, each.id)))


def effects_table(effects: tuple[Effect, ...], *, numbered: bool) -> pa.Table:
    """Return the effects as a table."""
    kinds: dict[str, pa.DataType] = {
        SUBSCRIPTION_ID: pa.int64() if numbered else pa.string(),
        "op": pa.string(),
        BEFORE: pa.int64(),
        AFTER: pa.int64(),
        GAINED: pa.int64(),
        LOST: pa.int64(),
        "share": pa.float64(),
        "flag": pa.string(),
        "filter": pa.string(),
    }
    columns: list[Any] = [
        pa.array([getattr(each, "id" if name == SUBSCRIPTION_ID else name) for each in effects], kind)
        for name, kind in kinds.items()
    ]
    return pa.table(columns, names=list(kinds))


def by_operation(trial: Trial) -> dict[str, int]:
    """Count the changed subscriptions, and the changes of the graph, by what was done."""
    counts = Counter(change.op for change in trial.changes.values()) + trial.graph
    return {op: counts[op] for op in OPERATIONS if counts[op]}
