"""What a filter is worth: what is wrong with it, what it is indexed by, and how often it matches."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from headgate.backtest.checking import check_filter
from headgate.contents.protocol import EVERY_EVENT, Costs
from headgate.contents.registry import contents_of, kind_of
from headgate.core.event import JSON, Event
from headgate.core.subscription import SQL
from headgate.errors import FilterError, HeadgateError
from headgate.service.api.filters import settings_of
from headgate.service.api.operation import READ, Answer, Call, in_json, operation
from headgate.service.envelope import stored_events

if TYPE_CHECKING:
    from headgate.service.tenant.tenant import Tenant

Some = Annotated[int, msgspec.Meta(ge=0, le=10_000)]


class FilterBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A filter."""

    filter: str
    dialect: str = SQL
    id: str | None = None


class ValidateBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which filters, and over how many of the last events that are kept."""

    filters: Annotated[list[FilterBody], msgspec.Meta(min_length=1, max_length=100)]
    events: Some = 1_000


class FilterReport(msgspec.Struct, omit_defaults=True, kw_only=True):
    """What is known of a filter."""

    valid: bool
    id: str | None = None
    error: str | None = None
    place: int | None = None
    """The character of the filter where that is, from 1."""
    understood: str | None = None
    indexed_by: str | None = None
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
    "Check filters before they are used: errors, how they are understood and indexed, how often they match.",
    READ,
    {200: FilterReports},
    body=ValidateBody,
    problems=(400,),
    example=in_json('{"filters": [{"filter": "price < 20 AND topic = "}]}'),
)
async def validate_filters(call: Call) -> Answer:
    """Check filters."""
    said = call.said(ValidateBody)
    return Answer(FilterReports(filters=await asyncio.to_thread(_validate, call.tenant, said)))


def _validate(tenant: Tenant, said: ValidateBody) -> list[FilterReport]:
    log = tenant.store.log
    events: list[Event] = []
    if said.events:
        first = max(log.bounds().last - said.events + 1, 1)
        for block in log.read(first, said.events):
            events += stored_events(block.texts)
        events = events[-said.events :]
    return [_report(tenant, each, events) for each in said.filters]


def _report(tenant: Tenant, asked: FilterBody, events: list[Event]) -> FilterReport:
    most = tenant.quotas.filter_length
    try:
        if most is not None and len(asked.filter) > most:
            raise FilterError(
                f"it has {len(asked.filter):,} characters, and the quota is {most:,}", asked.filter, most
            )
        settings = settings_of(tenant, asked.dialect)
        kind = kind_of(contents_of([asked.dialect]))
        fitting = [each for each in events if _fits(kind, each)]
        check = check_filter(asked.filter, settings, fitting)
    except HeadgateError as error:
        position = getattr(error, "position", None)
        return FilterReport(
            valid=False, id=asked.id, error=str(error), place=None if position is None else position + 1
        )
    if check.refused is not None:
        return FilterReport(valid=False, id=asked.id, error=check.refused, place=check.place)
    unindexed = check.indexed_by == EVERY_EVENT and "unindexed" in kind.settings
    refused = unindexed and not tenant.quotas.unindexed
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


def _fits(kind: Any, event: Event) -> bool:
    return kind.rows if event.content_type == JSON else event.content_type in kind.types.values()
