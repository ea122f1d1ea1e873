"""Asking without keeping anything: who matches, who comes first, why, and what a filter is worth."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.backtest.checking import check_filter
from headgate.contents.protocol import EVERY_EVENT
from headgate.contents.registry import contents_of, kind_of
from headgate.core.event import JSON, Event, read_object
from headgate.core.likeliest import did_you_mean
from headgate.core.subscription import SQL, Subscription
from headgate.errors import EventError, FilterError, HeadgateError
from headgate.graph.path_cost import DECAY, MINUS
from headgate.ranking.model import EXACT
from headgate.service.api.events import KeptEvent, event_at, read_request
from headgate.service.api.filters import settings_of
from headgate.service.api.operation import READ, Answer, Call, operation
from headgate.service.envelope import BATCH, NDJSON, STRUCTURED, event_of, sent_row, stored_events
from headgate.service.problems import NotFound, Problem
from headgate.service.resources import SubscriptionBody
from headgate.service.tenant.index import Contents, Index
from headgate.service.tenant.indexes import Ranking

if TYPE_CHECKING:
    from headgate.engine.engine import Engine
    from headgate.service.storage.block import Block
    from headgate.service.tenant.tenant import Tenant

Few = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Some = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Many = Annotated[int, msgspec.Meta(ge=1, le=100_000)]
Cursor = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_PATIENCE = 10.0
"""Seconds that a backtest may take."""
_SAMPLE = 5
"""Events that are shown of those that a filter would have matched."""
_NEAR = 10
"""Near misses that are shown."""


class MatchedEvent(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Who matches an event."""

    id: str
    matches: list[str] = []
    refused: str | None = None


class MatchedEvents(msgspec.Struct, kw_only=True):
    """Who matches the events of a request."""

    matched: int
    events: list[MatchedEvent]


@operation(
    "POST",
    "/v1/match",
    "Ask who matches events; nothing is kept or delivered.",
    READ,
    {200: MatchedEvents},
    media=(STRUCTURED, BATCH, JSON, NDJSON),
    body=Any,
    problems=(400,),
    example="-H 'Content-Type: application/json' -d '{\"id\": \"e1\", \"topic\": \"sport\", \"price\": 12.5}'",
)
async def match(call: Call) -> Answer:
    """Ask who matches."""
    sent = read_request(call)
    events = [each.event for each in sent]
    found = await asyncio.to_thread(call.tenant.index.match, events)
    total = 0
    answers = []
    for event, answer in zip(events, found, strict=True):
        if isinstance(answer, EventError):
            answers.append(MatchedEvent(id=str(event.id), refused=str(answer)))
        else:
            total += len(answer)
            answers.append(MatchedEvent(id=str(event.id), matches=answer))  # type: ignore[arg-type]
    return Answer(MatchedEvents(matched=total, events=answers))


class RankBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """How the best are asked for."""

    k: Few = 10
    mode: Literal["exact", "relaxed"] = EXACT
    factors: dict[str, float] | None = None
    by: Literal["minus", "times"] = MINUS
    decay: Annotated[float, msgspec.Meta(gt=0, le=1)] = DECAY
    hops: bool = False

    def ranking(self) -> Ranking:
        """Return the question."""
        return Ranking(self.k, self.mode, self.factors, self.by, self.decay, self.hops)


class TopBody(RankBody, forbid_unknown_fields=True, kw_only=True):
    """Of which events the best are wanted."""

    events: Annotated[list[dict[str, Any]], msgspec.Meta(min_length=1, max_length=1_000)]


class BestMatch(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One of the best."""

    subscription: str
    value: float
    """What it is ranked by."""
    rank: int
    path: list[str] = []
    """In a graph, the way that leads there."""


class BestOfEvent(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The best of one event."""

    id: str
    best: list[BestMatch] = []
    refused: str | None = None


class TopAnswer(msgspec.Struct, kw_only=True):
    """The best of each event."""

    events: list[BestOfEvent]


@operation(
    "POST",
    "/v1/top",
    "Ask for the best k subscriptions of events, by score or by what holds of them.",
    READ,
    {200: TopAnswer},
    body=TopBody,
    problems=(400,),
    example="""-H 'Content-Type: application/json' -d '{"k": 3, "events": [{"topic": "sport", "price": 12.5}]}'""",
)
async def top(call: Call) -> Answer:
    """Ask for the best."""
    said = call.said(TopBody)
    events = [inline_event(each) for each in said.events]
    return Answer(TopAnswer(events=await asyncio.to_thread(_top, call.tenant, events, said.ranking())))


def _top(tenant: Tenant, events: list[Event], asked: Ranking) -> list[BestOfEvent]:
    found = []
    for event in events:
        try:
            best = tenant.index.top(event, asked)
        except EventError as error:
            found.append(BestOfEvent(id=str(event.id), refused=str(error)))
            continue
        ranked = [
            BestMatch(
                subscription=str(each.subscription),
                value=float(each.value),
                rank=rank,
                path=list(map(str, getattr(each, "path", ()))),
            )
            for rank, each in enumerate(best, 1)
        ]
        found.append(BestOfEvent(id=str(event.id), best=ranked))
    return found


def inline_event(fields: dict[str, Any]) -> Event:
    """Return an event that is given inside a request: an envelope, or a row."""
    try:
        given = read_object(msgspec.json.encode(fields))
        return event_of(given) if "specversion" in given else sent_row(given).event
    except EventError as error:
        raise Problem(f"the event cannot be read: {error}", 422) from None


# Why


class ExplainBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which event, and which subscription or filter; without these, what was nearest to matching."""

    event: dict[str, Any] | None = None
    cursor: Cursor | None = None
    """The event that is kept at a cursor."""
    event_id: str | None = None
    """The newest event that is kept of an id."""
    subscription: str | None = None
    filter: str | None = None
    dialect: str = SQL
    rank: RankBody | None = None
    """Say also why the subscription is among the best, or not."""
    near: Annotated[int, msgspec.Meta(ge=1, le=100)] = _NEAR
    """How many near misses are listed, where neither a subscription nor a filter is given."""


class NearMissed(msgspec.Struct, kw_only=True):
    """A subscription that nearly matched."""

    subscription: str
    filter: str
    failed: list[dict[str, Any]]


class Explanation(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Why an event matches, or why not."""

    matches: bool | None = None
    lines: list[str]
    """For people."""
    verdict: dict[str, Any] | None = None
    """For machines: clauses that held and failed with their values, the nearest miss, the path through the graph."""
    rank: dict[str, Any] | None = None
    near: list[NearMissed] | None = None
    delivered: Literal["matched", "held", "not matched"] | None = None
    """What became of the event when it was published, if it is a kept one."""
    notes: list[str] = []


@operation(
    "POST",
    "/v1/explain",
    "Say why an event matches a subscription or a filter, or why not, and what was nearest.",
    READ,
    {200: Explanation},
    body=ExplainBody,
    problems=(400, 404),
    example="""-H 'Content-Type: application/json' -d '{"event": {"topic": "sport", "price": 25}, "filter": "price < 20"}'""",
)
async def explain(call: Call) -> Answer:
    """Say why."""
    said = call.said(ExplainBody)
    event, kept = _event(call, said)
    if said.subscription is not None and said.filter is not None:
        raise Problem("there are both `subscription` and `filter`: give one of them", 422)
    if said.rank is not None and said.subscription is None:
        raise Problem("`rank` is about a subscription: give one", 422)
    return Answer(await asyncio.to_thread(_explain, call.tenant, said, event, kept))


def _event(call: Call, said: ExplainBody) -> tuple[Event, KeptEvent | None]:
    given = [each for each in (said.event, said.cursor, said.event_id) if each is not None]
    if len(given) != 1:
        raise Problem("give one of `event`, `cursor` and `event_id`", 422)
    if said.event is not None:
        return inline_event(said.event), None
    positions = [said.cursor] if said.cursor is not None else call.tenant.store.log.find(str(said.event_id))
    for position in positions:
        kept = event_at(call, position)
        if kept is None:
            continue
        fields = msgspec.json.decode(kept.event)
        if said.event_id is None or fields.get("id") == said.event_id:
            return event_of(fields), kept
    raise NotFound(f"there is no event {given[0]!r}: it was never there, or is not kept any more")


def _explain(tenant: Tenant, said: ExplainBody, event: Event, kept: KeptEvent | None) -> Explanation:
    if said.filter is not None:
        settings = settings_of(tenant, said.dialect)
        room = kind_of(contents_of([said.dialect])).room(settings)
        return _told(room.build([Subscription(0, said.filter, said.dialect)]).explain(event, 0))
    if said.subscription is None:
        return _nearest(tenant, event, said.near)
    identity = said.subscription
    stored = tenant.store.subscriptions.get(identity)
    if stored is None:
        known = list(tenant.revisions) if len(tenant.revisions) <= 20_000 else []
        raise NotFound(f"there is no subscription {identity!r}{did_you_mean(identity, known)}")
    engine = tenant.index.engine_of(identity)
    if engine is None:
        # It has expired, or is just being changed: its filter can be explained all the same.
        wanted = stored.indexed
        room = kind_of(contents_of([wanted.dialect])).room(settings_of(tenant, wanted.dialect))
        found = _told(room.build([Subscription(0, wanted.filter, wanted.dialect)]).explain(event, 0))
        found.notes.append("the subscription has expired: it gets nothing until `expires` is renewed")
    else:
        found = _explained(engine, event, identity)
        if said.rank is not None and found.verdict is not None:
            ranking = said.rank.ranking()._asdict()
            found.rank = _rank(engine, event, identity, ranking)
    if kept is not None:
        found.delivered = (
            "matched" if identity in kept.matches else "held" if identity in kept.held else "not matched"
        )
        if found.delivered == "held" and stored.said.limit is not None:
            limit = stored.said.limit
            found.notes.append(
                f"it was held back: the limit is {limit.events} events in {limit.period:g} seconds"
                + (", and a digest tells of the rest" if limit.digest else "")
            )
        elif found.delivered != "matched" and found.matches:
            found.notes.append("it matches now, and did not when it was published: the subscription was not as it is now")
    return found


def _explained(engine: Engine, event: Event, identity: str) -> Explanation:
    if engine.backend.routed and (event.source is None or event.source not in engine.graph):
        return Explanation(
            matches=False,
            lines=[f"the event's source {event.source!r} is no node of the graph, and the subscription is at one"],
        )
    return _told(engine.explain(event, identity))


def _rank(engine: Engine, event: Event, identity: str, asked: dict[str, Any]) -> dict[str, Any]:
    if not engine.backend.routed:
        asked = {name: asked[name] for name in ("k", "mode", "factors")}
    found = engine.explain_rank(event, identity, **asked)
    about = _plain(found)
    return {"rank": found.rank, "entered": found.entered, "short": found.short, "lines": found.lines(), **about}


def _told(found: Any) -> Explanation:
    return Explanation(matches=bool(found.matches), lines=found.lines(), verdict=_plain(found))


def _plain(found: Any) -> Any:
    """Return an explanation as JSON has it."""
    about = asdict(found) if is_dataclass(found) and not isinstance(found, type) else found
    return msgspec.json.decode(msgspec.json.encode(about, enc_hook=str))


def _nearest(tenant: Tenant, event: Event, most: int) -> Explanation:
    index: Any = tenant.index.alone.engine.index
    if not hasattr(index, "why_not"):
        raise Problem(
            "near misses are known of filters over records without ranks: ask about one `subscription`", 422
        )
    found = index.why_not(event, most, None)
    near = [
        NearMissed(subscription=str(each.id), filter=each.filter, failed=[_plain(clause) for clause in each.failed])
        for each in found
    ]
    lines = [f"{each.subscription}: {len(each.failed)} failed" for each in near]
    return Explanation(lines=lines or ["no subscription nearly matched"], near=near)


# What a filter is worth


class FilterBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A filter."""

    filter: str
    dialect: str = SQL
    id: str | None = None


class ValidateBody(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Which filters, and over how many of the last events that are kept."""

    filters: Annotated[list[FilterBody], msgspec.Meta(min_length=1, max_length=1_000)]
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
    "Check filters before they are used: where an error is, how they are understood, indexed, and how often they match.",
    READ,
    {200: FilterReports},
    body=ValidateBody,
    problems=(400,),
    example="""-H 'Content-Type: application/json' -d '{"filters": [{"filter": "price < 20 AND topic = "}]}'""",
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
            raise FilterError(f"it has {len(asked.filter):,} characters, and the quota is {most:,}", asked.filter, most)
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
        notes=list(check.notes),
        events=len(fitting),
        reached=check.reached,
        matched=check.matched,
    )


def _fits(kind: Any, event: Event) -> bool:
    return kind.rows if event.content_type == JSON else event.content_type in kind.types.values()


# Over events of the past


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
    "Try filters, or changed subscriptions, over the events that are kept: how many they would have matched, and which.",
    READ,
    {200: BacktestAnswer},
    body=BacktestBody,
    problems=(400,),
    example="""-H 'Content-Type: application/json' -d '{"filters": [{"filter": "price < 20"}], "events": 1000}'""",
)
async def backtest(call: Call) -> Answer:
    """Try filters over events of the past."""
    said = call.said(BacktestBody)
    if not said.filters and not said.subscriptions:
        raise Problem("there is nothing to try: give `filters` or `subscriptions`", 422)
    return Answer(await asyncio.to_thread(_backtest, call.tenant, said))


def _backtest(tenant: Tenant, said: BacktestBody) -> BacktestAnswer:
    reports: dict[str, BacktestReport] = {}
    wanted: list[Subscription] = []
    for number, each in enumerate(said.filters):
        name = each.id or f"filter {number + 1}"
        _collect(name, lambda each=each, name=name: Subscription(name, each.filter, each.dialect), reports, wanted)
    before: list[Subscription] = []
    for number, body in enumerate(said.subscriptions):
        name = body.id or f"subscription {number + 1}"
        _collect(name, lambda body=body, name=name: _alone(body, name), reports, wanted)
        stored = tenant.store.subscriptions.get(name)
        if stored is not None and reports[name].refused is None:
            before.append(_alone(stored.said, name))
            report = reports[name]
            report.before = report.gained = report.lost = 0
    trial = _Trial(reports, _index(tenant, wanted, reports), _index(tenant, before, reports))
    return trial.run(tenant, said)


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


def _index(tenant: Tenant, wanted: list[Subscription], reports: dict[str, BacktestReport]) -> Index:
    settings: dict[str, Any] = {}
    for dialect in {each.dialect for each in wanted}:
        found = settings_of(tenant, dialect)
        settings |= {name: getattr(found, name) for name in found.said}
    index, refused = Index.collect(Contents(wanted, settings=settings))
    for identity, reason in refused.items():
        reports[str(identity)].refused = reason
    return index


class _Trial:
    """Filters tried over blocks of events."""

    def __init__(self, reports: dict[str, BacktestReport], after: Index, before: Index) -> None:
        self._reports = reports
        self._after = after
        self._before = before
        self._tried = 0

    def run(self, tenant: Tenant, said: BacktestBody) -> BacktestAnswer:
        log, began = tenant.store.log, time.monotonic()
        bounds = log.bounds()
        first = max((said.after or 0) + 1, bounds.first)
        if said.since is not None:
            first = max(first, log.at_time(_micros(said.since)))
        end = bounds.last if said.to is None else min(said.to, bounds.last)
        if said.until is not None:
            end = min(end, log.at_time(_micros(said.until)) - 1)
        last, cut = first - 1, None
        for block in log.read(first, said.events) if end >= first else ():
            if time.monotonic() - began > _PATIENCE:
                cut = f"{_PATIENCE:g} seconds are over"
                break
            begin, stop = max(first, block.first), min(end, block.last, last + said.events - self._tried)
            if stop >= begin:
                last = stop
                self._try(block, begin - block.first, stop - block.first + 1)
        if cut is None and last < end and self._tried >= said.events:
            cut = f"{said.events:,} events were tried, as many as were asked for"
        return BacktestAnswer(
            events=self._tried, first=first, last=last, cut=cut, filters=list(self._reports.values())
        )

    def _try(self, block: Block, begin: int, stop: int) -> None:
        events = stored_events(block.texts[begin:stop])
        self._tried += len(events)
        before = self._before.match(events) if len(self._before.engine) else [[] for _ in events]
        for row, (event, then, now) in enumerate(zip(events, before, self._after.match(events), strict=True)):
            old = set() if isinstance(then, EventError) else set(then)
            new = set() if isinstance(now, EventError) else set(now)
            for identity in new:
                report = self._reports[str(identity)]
                report.matched += 1
                if len(report.sample) < _SAMPLE:
                    cursor = block.first + begin + row
                    report.sample.append(SampleMatch(cursor=cursor, id=str(event.id)))
                if report.gained is not None and identity not in old:
                    report.gained += 1
            for identity in old:
                report = self._reports[str(identity)]
                report.before = (report.before or 0) + 1
                if identity not in new:
                    report.lost = (report.lost or 0) + 1


def _micros(seconds: float) -> int:
    return max(0, min(int(seconds * 1e6), 2**62))
