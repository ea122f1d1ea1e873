"""Filters and changed subscriptions over events that are kept."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.contents.kind import FilterSettings
from headgate.core.subscription import Subscription
from headgate.errors import HeadgateError
from headgate.records.kind import KIND
from headgate.service.api.asking import Cursor  # noqa: TC001 -- msgspec reads it
from headgate.service.api.filters import settings_of
from headgate.service.api.operation import READ, Answer, Call, in_json, operation
from headgate.service.api.validating import FilterBody  # noqa: TC001 -- msgspec reads it
from headgate.service.problems import Problem
from headgate.service.resources import SubscriptionBody  # noqa: TC001 -- msgspec reads it
from headgate.service.tenant.contents import Contents
from headgate.service.tenant.index import Index
from headgate.service.tenant.past import Comparison

if TYPE_CHECKING:
    from headgate.service.tenant.tenant import Tenant

Many = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
_PATIENCE = 10.0
"""Seconds that a backtest may take."""


class BacktestBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What is tried over events that are kept: filters, or subscriptions as they would be."""

    filters: Annotated[list[FilterBody], msgspec.Meta(max_length=1_000)] = []
    subscriptions: Annotated[list[SubscriptionBody], msgspec.Meta(max_length=1_000)] = []
    after: Cursor | None = None
    """From the event after a cursor; else from the first that is kept."""
    to: Cursor | None = None
    """Up to the event at a cursor; else to the last."""
    since: float | None = None
    """Those committed at a time or later, in seconds since 1970."""
    until: float | None = None
    """Those committed before a time."""
    events: Many = 10_000
    """How many events are tried at most."""
    nulls: Literal["missing", "told"] | None = None
    """What names mean in `filters` of records; in subscriptions of the service they mean the usual."""
    names: Literal["any_case", "exact"] | None = None
    dots: Literal["path", "name", "either"] | None = None

    @property
    def meaning(self) -> FilterSettings:
        """Return what is said of names."""
        return FilterSettings(nulls=self.nulls, names=self.names, dots=self.dots)


class SampleMatch(msgspec.Struct, kw_only=True):
    """An event that would have matched."""

    cursor: int
    id: str


class BacktestReport(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What a filter would have matched."""

    id: str
    matched: int = 0
    sample: list[SampleMatch] = []
    before: int | None = None
    """What the subscription matches as it is, if it is there."""
    gained: int | None = None
    lost: int | None = None
    refused: str | None = None


class BacktestAnswer(msgspec.Struct, kw_only=True):
    """What filters would have matched."""

    events: int
    """How many events were tried."""
    first: int
    last: int
    """The cursors of the first and the last of these."""
    cut: str | None
    """Why not all that were asked for were tried; go on with `after` = `last`."""
    filters: list[BacktestReport]


@operation(
    "POST",
    "/v1/backtest",
    "Try filters, or changed subscriptions, over events that are kept: how many would match, and which.",
    READ,
    {200: BacktestAnswer},
    body=BacktestBody,
    problems=(400,),
    example=in_json('{"filters": [{"filter": "price < 20"}], "events": 1000}'),
)
async def backtest(call: Call) -> Answer:
    """Try filters over events of the past."""
    said = call.said(BacktestBody)
    if not said.filters and not said.subscriptions:
        raise Problem("there is nothing to try: give `filters` or `subscriptions`", 422)
    meaning, own = said.meaning.said, KIND.dialects
    if meaning and said.subscriptions:
        raise Problem(f"`{meaning[0]}` is about `filters`: leave out `subscriptions`", 422)
    if meaning and not any(each.dialect in own for each in said.filters):
        raise Problem(f"`{meaning[0]}` is for filters of records, and there are none", 422)
    return Answer(await asyncio.to_thread(_backtest, call.tenant, said))


def _backtest(tenant: Tenant, said: BacktestBody) -> BacktestAnswer:
    reports: dict[str, BacktestReport] = {}
    wanted: list[Subscription] = []
    for number, each in enumerate(said.filters):
        name = each.id or f"filter {number + 1}"
        _collect(
            name, lambda each=each, name=name: Subscription(name, each.filter, each.dialect), reports, wanted
        )
    before: list[Subscription] = []
    for number, body in enumerate(said.subscriptions):
        name = body.id or f"subscription {number + 1}"
        _collect(name, lambda body=body, name=name: _alone(body, name), reports, wanted)
        stored = tenant.store.subscriptions.get(name)
        if stored is not None and reports[name].refused is None:
            before.append(_alone(stored.said, name))
            report = reports[name]
            report.before = report.gained = report.lost = 0
    after = _index(tenant, wanted, reports, said.meaning)
    return _compared(tenant, said, _index(tenant, before, reports, FilterSettings()), after, reports)


def _collect(name: str, make: Any, reports: dict[str, BacktestReport], wanted: list[Subscription]) -> None:
    if name in reports:
        raise Problem(f"the id {name!r} is there twice: each has its own", 422)
    reports[name] = BacktestReport(id=name)
    try:
        wanted.append(make())
    except HeadgateError as error:
        reports[name].refused = str(error)


def _alone(said: SubscriptionBody, name: str) -> Subscription:
    """Return a subscription as its filter is, whatever the graph and the ranks."""
    said.check()
    whole = said.subscription(name)
    return Subscription(name, whole.filter, whole.dialect)


def _index(
    tenant: Tenant, wanted: list[Subscription], reports: dict[str, BacktestReport], settings: FilterSettings
) -> Index:
    for dialect in {each.dialect for each in wanted}:
        found = settings_of(tenant, dialect)
        settings = replace(settings, **{name: getattr(found, name) for name in found.said})
    index, refused = Index.collect(Contents(wanted, settings=settings))
    for identity, reason in refused.items():
        reports[str(identity)].refused = reason
    return index


def _compared(
    tenant: Tenant, said: BacktestBody, before: Index, after: Index, reports: dict[str, BacktestReport]
) -> BacktestAnswer:
    log = tenant.store.log
    bounds = log.bounds()
    first = max((said.after or 0) + 1, bounds.first)
    if said.since is not None:
        first = max(first, log.at_time(_micros(said.since)))
    end = bounds.last if said.to is None else min(said.to, bounds.last)
    if said.until is not None:
        end = min(end, log.at_time(_micros(said.until)) - 1)
    found = Comparison(first=first, end=end, most=said.events, patience=_PATIENCE)
    found.run(log, before.match, after.match)
    for report in reports.values():
        tally = found.tally(report.id)
        report.matched = tally.after
        report.sample = [SampleMatch(cursor=each.cursor, id=each.id) for each in tally.sample]
        if report.before is not None:
            report.before, report.gained, report.lost = tally.before, tally.gained, tally.lost
    cut = None
    if found.late:
        cut = f"{_PATIENCE:g} seconds are over"
    elif found.last < end and found.events >= said.events:
        cut = f"{said.events:,} events were tried, as many as were asked for"
    return BacktestAnswer(
        events=found.events, first=first, last=found.last, cut=cut, filters=list(reports.values())
    )


def _micros(seconds: float) -> int:
    return max(0, min(int(seconds * 1e6), 2**62))
