"""What a filter is worth: what is wrong with it, how it is indexed, what it would match of what is kept."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.backtest.checking import check_filters
from headgate.contents.kind import FilterSettings
from headgate.contents.protocol import EVERY_EVENT, Costs
from headgate.contents.registry import contents_of, kind_of
from headgate.core.event import JSON, Event, Id
from headgate.core.subscription import SQL, Subscription, check_dialect
from headgate.errors import FilterError, HeadgateError
from headgate.records.kind import KIND
from headgate.service.api.operation import READ, Call, in_json, operation
from headgate.service.envelope import stored_events
from headgate.service.problems import Problem
from headgate.service.resources import Cursor, SubscriptionBody
from headgate.service.tenant.contents import Contents, read_taxonomy
from headgate.service.tenant.index import Index
from headgate.service.tenant.past import Comparison, SampleMatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.backtest.checking import FilterCheck
    from headgate.contents.kind import Kind
    from headgate.service.tenant.tenant import Tenant


def settings_of(tenant: Tenant, dialect: str) -> FilterSettings:
    """Return the settings of a filter that is asked about; one without an index is told, not refused."""
    check_dialect(dialect)
    known = kind_of(contents_of([dialect])).settings
    text = tenant.store.graph.taxonomy() if "taxonomy" in known else None
    return FilterSettings(
        dialect,
        taxonomy=None if text is None else read_taxonomy(text),
        unindexed="allow" if "unindexed" in known else None,
    )


Some = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class FilterBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A filter."""

    filter: str
    dialect: str = SQL
    id: str | None = None
    node: str | None = None
    """The node of the graph where it hangs, or would."""


TRIED = 1_000
"""Events that filters are tried over, unless somebody says how many."""


class ValidateBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which filters, and over how many of the last events that are kept."""

    filters: Annotated[list[FilterBody], msgspec.Meta(min_length=1, max_length=100)]
    events: Some = TRIED


class FilterReport(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What is known of a filter."""

    valid: bool
    id: str | None = None
    error: str | None = None
    place: int | None = None
    """The character of the filter where that is, from 1."""
    understood: str | None = None
    indexed_by: str | None = None
    """By what events come to it in the running index, or would, among the filters that are there."""
    unindexed: bool = False
    """Whether it must be evaluated for every event."""
    costs: Costs | None = None
    """Of records: what of it is indexed, what is verified event by event, and what is computed for that."""
    notes: list[str] = []
    """What is odd about it, what is verified event by event, and what that costs."""
    events: int = 0
    """How many of the events that are kept were tried."""
    reached: float | None = None
    """The share of these for which it is looked at."""
    matched: float | None = None
    """The share of these that match."""


class FilterReports(msgspec.Struct, kw_only=True):
    """What is known of filters, in their order."""

    filters: list[FilterReport]


@operation(
    "POST",
    "/v1/filters:validate",
    READ,
    example=in_json('{"filters": [{"filter": "price < 20 AND topic = "}]}'),
)
async def validate_filters(call: Call, body: ValidateBody) -> FilterReports:
    """Check filters before use: errors, how they are understood and indexed, how often they match."""
    return FilterReports(filters=await asyncio.to_thread(_validate, call.tenant, body))


def _validate(tenant: Tenant, body: ValidateBody) -> list[FilterReport]:
    events = last_events(tenant, body.events)
    return [report_of(tenant, each, events) for each in body.filters]


def report_of(tenant: Tenant, asked: FilterBody, events: list[Event]) -> FilterReport:
    """Say what is known of a filter, that of a subscription or one that may come."""
    most = tenant.registry.quotas.filter_length
    try:
        if most is not None and len(asked.filter) > most:
            raise FilterError(
                f"it has {len(asked.filter):,} characters, and the quota is {most:,}", asked.filter, most
            )
        kind, fitting = _fitting(asked.dialect, events)
        (check,) = checks_of(tenant, asked.dialect, [asked.filter], [asked.node], events)
    except HeadgateError as error:
        position = getattr(error, "position", None)
        return FilterReport(
            valid=False, id=asked.id, error=str(error), place=None if position is None else position + 1
        )
    if check.refused is not None:
        return FilterReport(valid=False, id=asked.id, error=check.refused, place=check.place)
    unindexed = check.indexed_by == EVERY_EVENT and "unindexed" in kind.settings
    refused = unindexed and not tenant.registry.quotas.unindexed
    return FilterReport(
        valid=not refused,
        id=asked.id,
        error="it must be evaluated for every event, which the quotas do not allow" if refused else None,
        understood=None if check.filter is None else kind.plain(check.filter),
        indexed_by=check.indexed_by,
        unindexed=unindexed,
        costs=check.costs,
        notes=list(check.notes),
        events=len(fitting),
        reached=check.reached,
        matched=check.matched,
    )


def checks_of(
    tenant: Tenant, dialect: str, texts: Sequence[str], nodes: Sequence[str | None], events: list[Event]
) -> list[FilterCheck]:
    """Check filters of a dialect among those of the running index, each with the node where it hangs.

    No index leads to what hangs at a node: it is checked for all events that come there.
    """
    kind, fitting = _fitting(dialect, events)
    index = tenant.index
    checks = check_filters(texts, settings_of(tenant, dialect), fitting, index.filters_of(kind))
    comers = index.comers(fitting) if any(nodes) else Counter[Id]()
    return [
        check
        if node is None or check.refused is not None
        else replace(
            check,
            indexed_by=f"node {node} of the graph",
            reached=comers[node] / len(fitting) if fitting else None,
            costs=check.costs and check.costs.unled(),
        )
        for check, node in zip(checks, nodes, strict=True)
    ]


def _fitting(dialect: str, events: list[Event]) -> tuple[Kind, list[Event]]:
    """Return the kind of a dialect, and the events that it is about."""
    check_dialect(dialect)
    kind = kind_of(contents_of([dialect]))
    types = {*kind.types.values(), *([JSON] if kind.rows else ())}
    return kind, [each for each in events if each.content_type in types]


def last_events(tenant: Tenant, most: int) -> list[Event]:
    """Read the last events that are kept."""
    log = tenant.store.log
    events: list[Event] = []
    for block in log.read(max(log.bounds().last - most + 1, 1), most):
        events += stored_events(block.texts)
    return events[-most:]


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
    refused: int
    """How many of these could not be matched, before or after: they count as matching nothing there."""
    first: int
    last: int
    """The cursors of the first and the last of these."""
    cut: str | None
    """Why not all that were asked for were tried; go on with `after` = `last`."""
    filters: list[BacktestReport]


@operation(
    "POST", "/v1/backtest", READ, example=in_json('{"filters": [{"filter": "price < 20"}], "events": 1000}')
)
async def backtest(call: Call, body: BacktestBody) -> BacktestAnswer:
    """Try filters, or changed subscriptions, over events that are kept: how many would match, and which."""
    if not body.filters and not body.subscriptions:
        raise Problem("there is nothing to try: give `filters` or `subscriptions`", 422)
    meaning, own = body.meaning.said, KIND.dialects
    if meaning and body.subscriptions:
        raise Problem(f"`{meaning[0]}` is about `filters`: leave out `subscriptions`", 422)
    if meaning and not any(each.dialect in own for each in body.filters):
        raise Problem(f"`{meaning[0]}` is for filters of records, and there are none", 422)
    return await asyncio.to_thread(_backtest, call.tenant, body)


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


def _alone(body: SubscriptionBody, name: str) -> Subscription:
    """Return a subscription as its filter is, whatever the graph and the ranks."""
    body.check()
    whole = body.subscription(name)
    return Subscription(name, whole.filter, whole.dialect)


def _index(
    tenant: Tenant, wanted: list[Subscription], reports: dict[str, BacktestReport], settings: FilterSettings
) -> Index:
    for dialect in {each.dialect for each in wanted}:
        of_dialect = settings_of(tenant, dialect)
        settings = replace(settings, **{name: getattr(of_dialect, name) for name in of_dialect.said})
    index, refused = Index.collect(Contents(wanted, settings=settings))
    for identity, reason in refused.items():
        reports[str(identity)].refused = reason
    return index


def _compared(
    tenant: Tenant, asked: BacktestBody, before: Index, after: Index, reports: dict[str, BacktestReport]
) -> BacktestAnswer:
    log = tenant.store.log
    bounds = log.bounds()
    first = max((asked.after or 0) + 1, bounds.first)
    if asked.since is not None:
        first = max(first, log.at_time(_micros(asked.since)))
    end = bounds.last if asked.to is None else min(asked.to, bounds.last)
    if asked.until is not None:
        end = min(end, log.at_time(_micros(asked.until)) - 1)
    comparison = Comparison(first=first, end=end, most=asked.events, patience=_PATIENCE)
    comparison.run(log, before.match, after.match)
    for report in reports.values():
        tally = comparison.tally(report.id)
        report.matched = tally.after
        report.sample = tally.sample
        if report.before is not None:
            report.before, report.gained, report.lost = tally.before, tally.gained, tally.lost
    cut = None
    if comparison.late:
        cut = f"{_PATIENCE:g} seconds are over"
    elif comparison.last < end and comparison.events >= asked.events:
        cut = f"{asked.events:,} events were tried, as many as were asked for"
    return BacktestAnswer(
        events=comparison.events,
        refused=comparison.refused_events,
        first=first,
        last=comparison.last,
        cut=cut,
        filters=list(reports.values()),
    )


def _micros(seconds: float) -> int:
    return max(0, min(int(seconds * 1e6), 2**62))
