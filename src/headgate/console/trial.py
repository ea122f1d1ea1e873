"""A draft tried over events that are kept: what would be matched before and after, event by event.

    read      what the index is built of; without ranks only what the draft can concern
    build     two indexes, before and after
    events    the last ones that are kept, matched by both, until the time is over or somebody cancels

It runs in a thread of its own; the page asks how far it came.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from headgate.backtest.effects import share_and_flag
from headgate.console.beside import AT_ONCE, Beside, Work
from headgate.console.draft import Planned, Refused, Row, changes_graph, ids_of, plan
from headgate.errors import EventError, SubscriptionError
from headgate.runtime.operations import UNSUBSCRIBE
from headgate.service.problems import Busy
from headgate.service.resources import DEFAULT, RankBody
from headgate.service.tenant.index import Index
from headgate.service.tenant.past import Comparison, Tally

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Event, Id
    from headgate.service.tenant.contents import Contents
    from headgate.service.tenant.tenant import Tenant

PATIENCE = 60.0
"""Seconds that events are tried at most."""
NOISE = 0.1
"""The share of events from which on a subscription is noisy."""
WHOLE = 200_000
"""Subscriptions of a tenant up to which a trial that concerns all of them is made beside the service."""
_DAY = 86_400.0
_LEAST = 600.0
"""Seconds of events from which on it is said what comes in a day."""


class Question(NamedTuple):
    """What is tried."""

    rows: tuple[Row, ...]
    events: int
    """How many of the last events."""
    since: float | None = None
    """Only those committed at a time or later, in seconds since 1970."""
    best: int | None = None
    """Who would be among the best so many, in the place of who matches."""


@dataclass(kw_only=True)
class Effect(Tally):
    """What a draft does to one subscription."""

    id: str
    op: str
    """Empty for one that no row names."""
    filter: str
    share: float
    """Matches after, by events."""
    flag: str
    consumer: str


@dataclass(kw_only=True)
class Result(Comparison):
    """What a draft does."""

    planned: Planned
    revisions: dict[str, int]
    """Of the subscriptions that the draft names, when it was tried."""
    refused: list[Refused]
    effects: list[Effect] = field(default_factory=list)
    """Of subscriptions that are named, or that gain or lose anything; most changed first."""
    seconds: float = 0.0

    @property
    def cut(self) -> str:
        """Say why not all that were asked for were tried."""
        return (
            f"{PATIENCE:g} seconds were over: the first events of those that were asked for"
            if self.late
            else ""
        )

    @property
    def gained(self) -> int:
        """Count the matches that come."""
        return sum(each.gained for each in self.effects)

    @property
    def lost(self) -> int:
        """Count the matches that go."""
        return sum(each.lost for each in self.effects)

    @property
    def daily(self) -> float | None:
        """Return how many matches more there would be a day; None if the events came within minutes."""
        return self._a_day(self.gained - self.lost)

    def _a_day(self, count: int) -> float | None:
        return None if self.seconds_of_events < _LEAST else count * _DAY / self.seconds_of_events

    def by_consumer(self) -> list[tuple[str, int, float | None]]:
        """List consumers, how many matches more each has, and how many that is a day."""
        more: dict[str, int] = {}
        for each in self.effects:
            if each.gained or each.lost:
                more[each.consumer] = more.get(each.consumer, 0) + each.gained - each.lost
        return [(name, count, self._a_day(count)) for name, count in sorted(more.items())]


class Run(Work):
    """A trial, while it runs and after."""

    def __init__(self, tenant: Tenant, question: Question) -> None:
        super().__init__("trial")
        self.question = question
        self.phase = "reading what there is"
        self.trying: Result | None = None
        """What is known so far."""
        self.result: Result | None = None
        self.tenant = tenant

    def _work(self) -> None:
        rows, tenant = self.question.rows, self.tenant
        named = ids_of(rows)
        whole = self.question.best is not None or changes_graph(rows)
        if whole and len(tenant.names) > WHOLE:
            raise SubscriptionError(
                f"ranks and changes of the graph concern all {len(tenant.names):,} subscriptions, and at "
                f"most {WHOLE:,} are tried here: use `headgate backtest --changes`"
            )
        revisions = {
            each: tenant.registry.revisions[each] for each in named if each in tenant.registry.revisions
        }
        planned = plan(tenant.contents(None if whole else named), rows)
        if self._stop.is_set():
            return
        self.phase = "building two indexes"
        concerned = {*named}
        before, after = (
            Index.collect(self._narrowed(each, concerned)) for each in (planned.before, planned.after)
        )
        refused = [
            Refused(planned.rows.get(str(each), {"id": str(each)}), reason)
            for each, reason in after[1].items()
            if str(each) in planned.ops
        ]
        if self._stop.is_set():
            return
        self.phase = "trying events"
        log, question = tenant.store.log, self.question
        bounds = log.bounds()
        first = max(bounds.first, bounds.last - question.events + 1)
        if question.since is not None:
            first = max(first, log.at_time(max(0, int(question.since * 1e6))))
        self.trying = result = Result(
            first=first,
            end=bounds.last,
            most=question.events,
            patience=PATIENCE,
            ranked=question.best is not None,
            planned=planned,
            revisions=revisions,
            refused=[*planned.refused, *refused],
        )
        old, new = (partial(self._asked, each) for each, _ in (before, after))
        result.run(log, old, new, self._stop.is_set)
        result.effects = self._told(result)
        result.seconds = time.monotonic() - self.began
        if not self._stop.is_set():
            self.result = result

    def _narrowed(self, contents: Contents, named: set[str]) -> Contents:
        """Leave out subscriptions that the draft cannot concern; those outside a graph match whatever is."""
        if self.question.best is not None:
            return contents
        kept = [each for each in contents.subscriptions if each.node is not None or each.id in named]
        return contents._replace(subscriptions=kept)

    # Events

    def _asked(self, index: Index, events: Sequence[Event]) -> Sequence[Sequence[Id] | EventError]:
        if self.question.best is None:
            return index.match(events)
        lists: list[list[Id] | EventError] = []
        for event in events:
            try:
                lists.append([each.subscription for each in index.top(event, RankBody(k=self.question.best))])
            except EventError as error:
                lists.append(error)
        return lists

    # What it comes to

    def _told(self, result: Result) -> list[Effect]:
        planned = result.planned
        refused = {str(each.row.get("id")) for each in result.refused}
        for identity in planned.ops.keys() - refused:
            result.tally(identity)
        filters = {str(each.id): each.filter for each in planned.before.subscriptions}
        filters |= {str(each.id): each.filter for each in planned.after.subscriptions}
        effects = []
        for identity, each in result.tallies.items():
            op = planned.ops.get(identity, "")
            if not (op or each.gained or each.lost or each.higher or each.lower):
                continue
            share, flag = share_and_flag(each.after, result.events, NOISE)
            stored = self.tenant.store.subscriptions.get(identity)
            consumer = planned.rows.get(identity, {}).get("consumer")
            effects.append(
                Effect(
                    **vars(each),
                    id=identity,
                    op=op,
                    filter=filters.get(identity, ""),
                    share=share,
                    flag="" if op == UNSUBSCRIBE else flag,
                    consumer=str(consumer or (DEFAULT if stored is None else stored.consumer)),
                )
            )
        return sorted(effects, key=lambda each: (-each.gained - each.lost, not each.op, each.id))


class Trials(Beside[Run]):
    """Those of a server that run, each of another tenant."""

    def start(self, run: Run) -> None:
        """Begin one; refuses while too many run."""
        if any(each.tenant is run.tenant for each in self.running):
            raise Busy("a trial of this tenant runs already: wait until it ends", 10)
        if len(self.running) >= AT_ONCE:
            raise Busy(f"{AT_ONCE} trials run already: wait until one of them ends", 10)
        self.begin(run)
