"""What the page of a what-if says, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

__all__ = ["Changed", "Costs", "WhatIfPage"]


@dataclass(frozen=True)
class Changed:
    """A subscription before and after; `op` is empty for one that is only pushed out of the best."""

    id: str
    op: str
    before: int
    after: int
    gained: int
    lost: int
    share: float
    flag: str
    filter: str


@dataclass(frozen=True)
class Costs:
    """Bytes of the snapshot and microseconds an event, before and after."""

    bytes_before: int
    bytes_after: int
    micros_before: float | None
    micros_after: float | None
    sample: int
    build_seconds: float


@dataclass(frozen=True)
class WhatIfPage:
    """Hold all that the page shows; `subscriptions` are noisiest first."""

    title: str
    created: datetime
    events: int
    rejected_events: int
    changes: tuple[tuple[str, int], ...]
    """Changed subscriptions by what was done to them, such as ("replace", 3)."""
    rejected: int
    gained: int
    lost: int
    subscriptions: tuple[Changed, ...]
    noise: float
    """The share of events above which a subscription is noisy."""
    deliveries_a_day: float | None = None
    costs: Costs | None = None
    top: int | None = None
    """How many the best are, if only those were asked for."""
    rejected_path: str | None = None
    command: str = ""
