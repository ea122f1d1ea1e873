"""Which subscriptions cost most: how often each is looked at, and what is checked then.

The filters of a tenant are tried over the last events, some hundreds at a time, in a thread. Of very many,
the index says first which it checks most. What was found is kept for a while.
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.console.beside import Beside, Work
from headgate.service.api.validating import checks_of, last_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.backtest.checking import FilterCheck
    from headgate.core.event import Event
    from headgate.service.storage.subscriptions import Stored
    from headgate.service.tenant.tenant import Tenant

MOST = 20_000
"""Filters that a survey tries one by one."""
EVENTS = 500
"""Events that they are tried over."""
LISTED = 100
_TOGETHER = 500
_FRESH = 300.0
"""Seconds that a survey counts."""


class Surveyed(NamedTuple):
    """What a subscription costs."""

    id: str
    checks: float
    """Checks an event, on average: one if it is looked at, and one for each clause verified then."""
    found: FilterCheck


class Survey(Work):
    """A survey that runs, or has ended."""

    def __init__(self, tenant: Tenant) -> None:
        super().__init__("survey")
        self._tenant = tenant
        self.of = len(tenant.names)
        """How many subscriptions there are."""
        self.wanted = min(self.of, MOST)
        self.done = self.events = 0
        self.by_chance = False
        """Whether those that were tried were chosen by chance."""
        self.found: list[Surveyed] = []

    def _work(self) -> None:
        tenant = self._tenant
        events = last_events(tenant, EVENTS)
        self.events = len(events)
        numbers = tenant.names.present().tolist()
        if len(numbers) > MOST:
            numbers = self._chosen(tenant, numbers, events)
        self.wanted = len(numbers)
        for begin in range(0, len(numbers), _TOGETHER):
            if self.cancelled:
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


def _surveyed(tenant: Tenant, some: list[Stored], events: list[Event]) -> Iterator[Surveyed]:
    by_dialect: dict[str, list[Stored]] = {}
    for each in some:
        by_dialect.setdefault(each.indexed.dialect, []).append(each)
    for dialect, rows in by_dialect.items():
        texts, nodes = [each.indexed.filter for each in rows], [each.said.node for each in rows]
        for each, check in zip(rows, checks_of(tenant, dialect, texts, nodes, events), strict=True):
            reached = 1.0 if check.reached is None else check.reached
            verified = () if check.costs is None else check.costs.verified
            yield Surveyed(each.id, reached * (1 + len(verified)), check)


class Surveys(Beside[Survey]):
    """Those of all tenants."""

    def __init__(self) -> None:
        super().__init__()
        self._by_tenant: dict[str, Survey] = {}

    def of(self, tenant: Tenant, *, again: bool = False) -> Survey:
        """Return the survey of a tenant; begins one if there is none that counts."""
        survey = self._by_tenant.get(tenant.name)
        ended = None if survey is None else survey.ended
        if survey is None or (ended is not None and (again or time.monotonic() - ended > _FRESH)):
            survey = self._by_tenant[tenant.name] = Survey(tenant)
            self.begin(survey)
        return survey
