"""Which subscriptions cost most: how often each is looked at, and what is checked then.

The filters of a tenant are tried over the last events, some hundreds at a time, in a thread. Of very many,
the index says first which it checks most. What was found is kept for a while.
"""

from __future__ import annotations

import asyncio
import logging
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.backtest.checking import check_filters
from headgate.contents.registry import contents_of, kind_of
from headgate.errors import HeadgateError
from headgate.service.api.validating import fits, last_events, settings_of
from headgate.service.worker import telling

if TYPE_CHECKING:
    from headgate.core.event import Event
    from headgate.service.storage.subscriptions import Stored
    from headgate.service.tenant.tenant import Tenant

_LOG = logging.getLogger("headgate.console")
MOST = 20_000
"""Filters that a survey tries one by one."""
EVENTS = 500
"""Events that they are tried over."""
LISTED = 100
_TOGETHER = 500
_FRESH = 300.0
"""Seconds that a survey counts."""
_AT_ONCE = 2
"""Surveys of a server that run at the same time; others wait."""


class Surveyed(NamedTuple):
    """What a subscription costs."""

    id: str
    filter: str
    checks: float
    """Checks an event, on average: one if it is looked at, and one for each clause verified then."""
    reached: float
    """The share of events for which it is looked at."""
    matched: float
    indexed_by: str
    verified: tuple[str, ...]


@dataclass
class Survey:
    """A survey that runs, or has ended."""

    wanted: int
    of: int
    """How many subscriptions there are."""
    done: int = 0
    events: int = 0
    began: float = field(default_factory=time.monotonic)
    ended: float | None = None
    refused: str | None = None
    """Why it could not be ended."""
    by_chance: bool = False
    """Whether those that were tried were chosen by chance."""
    found: list[Surveyed] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self, tenant: Tenant) -> None:
        """Look at filters; runs in a thread."""
        self.refused = "the survey failed: the log of the service says why"
        try:
            self._run(tenant)
            self.refused = "the service stops" if self.stop.is_set() else None
        except HeadgateError as error:
            self.refused = str(error)
        finally:
            self.ended = time.monotonic()

    def _run(self, tenant: Tenant) -> None:
        events = last_events(tenant, EVENTS)
        self.events = len(events)
        numbers = tenant.names.present().tolist()
        if len(numbers) > MOST:
            numbers = self._chosen(tenant, numbers, events)
        self.wanted = len(numbers)
        for begin in range(0, len(numbers), _TOGETHER):
            if self.stop.is_set():
                return
            some = [
                each
                for each in map(tenant.store.subscriptions.by_number, numbers[begin : begin + _TOGETHER])
                if each is not None
            ]
            self.found += _surveyed(tenant, some, events)
            self.found.sort(key=lambda each: (-each.checks, each.id))
            del self.found[LISTED:]
            self.done = min(begin + _TOGETHER, len(numbers))

    def _chosen(self, tenant: Tenant, numbers: list[int], events: list[Event]) -> list[int]:
        """Choose among more filters than can be tried one by one: those that the index checks most, or some.

        An index of ranks or in a graph does not count what it checks.
        """
        costs = [each.backend.check_costs(events) for each in tenant.index.engines]
        known = tenant.names.numbers
        chosen: list[int] = []
        for each in costs:
            if each is None:
                self.by_chance = True
                return sorted(random.sample(numbers, MOST))
            most = np.argsort(-each.work, kind="stable")[: 2 * LISTED]
            chosen += [known[name] for name in map(each.ids.__getitem__, most.tolist()) if name in known]
        return chosen


def _surveyed(tenant: Tenant, some: list[Stored], events: list[Event]) -> list[Surveyed]:
    by_dialect: dict[str, list[tuple[str, str]]] = {}
    for each in some:
        indexed = each.indexed
        by_dialect.setdefault(indexed.dialect, []).append((each.id, indexed.filter))
    surveyed = []
    for dialect, rows in by_dialect.items():
        kind = kind_of(contents_of([dialect]))
        fitting = [each for each in events if fits(kind, each)]
        checks = check_filters([text for _, text in rows], settings_of(tenant, dialect), fitting)
        for (identity, text), check in zip(rows, checks, strict=True):
            reached = 1.0 if check.reached is None else check.reached
            verified = () if check.costs is None else check.costs.verified
            surveyed.append(
                Surveyed(
                    identity,
                    text,
                    reached * (1 + len(verified)),
                    reached,
                    check.matched or 0.0,
                    check.indexed_by or "",
                    tuple(verified),
                )
            )
    return surveyed


class Surveys:
    """Those of all tenants."""

    def __init__(self) -> None:
        self._by_tenant: dict[str, Survey] = {}
        self._running: set[asyncio.Future[None]] = set()
        # Threads of their own: those that all requests share are never all taken.
        self._threads = ThreadPoolExecutor(_AT_ONCE, "headgate-survey")

    def of(self, tenant: Tenant, *, again: bool = False) -> Survey:
        """Return the survey of a tenant; begins one if there is none that counts."""
        survey = self._by_tenant.get(tenant.name)
        ended = survey is not None and survey.ended is not None
        old = ended and survey is not None and time.monotonic() - (survey.ended or 0) > _FRESH
        if survey is None or old or (ended and again):
            there = len(tenant.names)
            survey = self._by_tenant[tenant.name] = Survey(min(there, MOST), there)
            running = asyncio.get_running_loop().run_in_executor(self._threads, survey.run, tenant)
            self._running.add(running)
            running.add_done_callback(self._running.discard)
            running.add_done_callback(telling(_LOG, "a survey failed"))
        return survey

    async def close(self) -> None:
        """Have all end: what they read is closed next."""
        for survey in self._by_tenant.values():
            survey.stop.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._running:
            await asyncio.wait(self._running)
