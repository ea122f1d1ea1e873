"""Asking without keeping anything: who matches, who comes first, and why."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.contents.registry import contents_of, kind_of
from headgate.core.arguments import did_you_mean
from headgate.core.event import JSON, Event, read_object
from headgate.core.ranks import EXACT
from headgate.core.subscription import SQL, Subscription
from headgate.errors import EventError
from headgate.service.api.events import event_at, find, read_request
from headgate.service.api.operation import READ, Call, in_json, operation
from headgate.service.api.validating import settings_of
from headgate.service.envelope import BATCH, NDJSON, STRUCTURED, event_of, read_events, sent_row
from headgate.service.problems import NotFound, Problem, existing
from headgate.service.resources import Cursor, RankBody

if TYPE_CHECKING:
    from headgate.client.asking import KeptEvent
    from headgate.engine.engine import Engine
    from headgate.service.tenant.tenant import Tenant


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
    READ,
    media=(STRUCTURED, BATCH, JSON, NDJSON),
    body=Any,
    example='-H \'Content-Type: application/json\' -d \'{"id": "e1", "topic": "sport", "price": 12.5}\'',
)
async def match(call: Call) -> MatchedEvents:
    """Ask who matches events; nothing is kept or delivered."""
    events = read_request(call, read_events)
    matches = await call.tenant.ask(events)
    total = 0
    answers = []
    for event, answer in zip(events, matches, strict=True):
        if isinstance(answer, EventError):
            answers.append(MatchedEvent(id=str(event.id), refused=str(answer)))
        else:
            total += len(answer)
            answers.append(MatchedEvent(id=str(event.id), matches=answer))  # type: ignore[arg-type]
    return MatchedEvents(matched=total, events=answers)


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
    READ,
    problems=(507,),
    example=in_json('{"k": 3, "events": [{"topic": "sport", "price": 12.5}]}'),
)
async def top(call: Call, body: TopBody) -> TopAnswer:
    """Ask for the best k subscriptions of events, by score or by what holds of them."""
    events = [inline_event(each) for each in body.events]
    if body.mode != "exact":
        await call.tenant.rank()
    return TopAnswer(events=await asyncio.to_thread(_top, call.tenant, events, body))


def _top(tenant: Tenant, events: list[Event], asked: RankBody) -> list[BestOfEvent]:
    answers = []
    for event in events:
        try:
            best = tenant.index.top(event, asked)
        except EventError as error:
            answers.append(BestOfEvent(id=str(event.id), refused=str(error)))
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
        answers.append(BestOfEvent(id=str(event.id), best=ranked))
    return answers


def inline_event(fields: dict[str, Any]) -> Event:
    """Return an event that is given inside a request: an envelope, or a row."""
    try:
        decoded = read_object(msgspec.json.encode(fields))
        return event_of(decoded) if "specversion" in decoded else sent_row(decoded).event
    except EventError as error:
        raise Problem(f"the event cannot be read: {error}", 422) from None


_NEAR = 10
"""Near misses that are shown."""


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
    """For machines: clauses that held and failed with their values, the nearest miss, the path."""
    rank: dict[str, Any] | None = None
    near: list[NearMissed] | None = None
    delivered: Literal["matched", "held", "not matched"] | None = None
    """What became of the event when it was published, if it is a kept one."""
    notes: list[str] = []


@operation(
    "POST",
    "/v1/explain",
    READ,
    problems=(404, 507),
    example=in_json('{"event": {"topic": "sport", "price": 25}, "filter": "price < 20"}'),
)
async def explain(call: Call, body: ExplainBody) -> Explanation:
    """Say why an event matches a subscription or a filter, or why not, and what was nearest."""
    event, kept = asked_event(call, body.event, body.cursor, body.event_id)
    if body.subscription is not None and body.filter is not None:
        raise Problem("there are both `subscription` and `filter`: give one of them", 422)
    if body.rank is not None and body.subscription is None:
        raise Problem("`rank` is about a subscription: give one", 422)
    if body.rank is not None and body.rank.mode != EXACT:
        await call.tenant.rank()
    return await asyncio.to_thread(_explain, call.tenant, body, event, kept)


def asked_event(
    call: Call, inline: dict[str, Any] | None, cursor: int | None, identity: str | None
) -> tuple[Event, KeptEvent | None]:
    """Return the event that is asked about: one of the request, or one that is kept."""
    named = [each for each in (inline, cursor, identity) if each is not None]
    if len(named) != 1:
        raise Problem("give one of `event`, `cursor` and `event_id`", 422)
    if inline is not None:
        return inline_event(inline), None
    kept = event_at(call, cursor) if cursor is not None else next(find(call, str(identity)), None)
    there = existing(kept, f"event {named[0]!r}: it was never there, or is not kept any more")
    return event_of(msgspec.json.decode(there.event)), there


def _explain(tenant: Tenant, body: ExplainBody, event: Event, kept: KeptEvent | None) -> Explanation:
    if body.filter is not None:
        return _alone(tenant, body.filter, body.dialect, event)
    if body.subscription is None:
        return _nearest(tenant, event, body.near)
    identity = body.subscription
    stored = tenant.store.subscriptions.get(identity)
    if stored is None:
        known = list(tenant.registry.revisions) if len(tenant.registry.revisions) <= 20_000 else []
        raise NotFound(f"there is no subscription {identity!r}{did_you_mean(identity, known)}")
    engine = tenant.index.engine_of(identity)
    if engine is None:
        # It has expired, or is just being changed: its filter can be explained all the same.
        explanation = _alone(tenant, stored.indexed.filter, stored.indexed.dialect, event)
        explanation.notes.append("the subscription has expired: it gets nothing until `expires` is renewed")
    else:
        explanation = _explained(engine, event, identity)
        if body.rank is not None and explanation.verdict is not None:
            explanation.rank = _rank(engine, event, identity, body.rank.said)
    if kept is not None:
        explanation.delivered = (
            "matched" if identity in kept.matches else "held" if identity in kept.held else "not matched"
        )
        if explanation.delivered == "held" and stored.said.limit is not None:
            limit = stored.said.limit
            explanation.notes.append(
                f"it was held back: the limit is {limit.events} events in {limit.period:g} seconds"
                + (", and a digest tells of the rest" if limit.digest else "")
            )
        elif explanation.delivered != "matched" and explanation.matches:
            explanation.notes.append(
                "it matches now, and did not when it was published: the subscription was not as it is now"
            )
    return explanation


def _alone(tenant: Tenant, text: str, dialect: str, event: Event) -> Explanation:
    """Explain a filter that is in no index."""
    room = kind_of(contents_of([dialect])).room(settings_of(tenant, dialect))
    return _told(room.build([Subscription(0, text, dialect)]).explain(event, 0))


def _explained(engine: Engine, event: Event, identity: str) -> Explanation:
    if engine.backend.routed and (event.source is None or event.source not in engine.graph):
        return Explanation(
            matches=False,
            lines=[
                f"the event's source {event.source!r} is no node of the graph, and the subscription is at one"
            ],
        )
    return _told(engine.explain(event, identity))


def _rank(engine: Engine, event: Event, identity: str, asked: dict[str, Any]) -> dict[str, Any]:
    if not engine.backend.routed:
        asked = {name: asked[name] for name in ("k", "mode", "factors")}
    explanation = engine.explain_rank(event, identity, **asked)
    about = plain(explanation)
    return {
        "rank": explanation.rank,
        "entered": explanation.entered,
        "short": explanation.short,
        "lines": explanation.lines(),
        **about,
    }


def _told(verdict: Any) -> Explanation:
    return Explanation(matches=bool(verdict.matches), lines=verdict.lines(), verdict=plain(verdict))


def plain(value: Any) -> Any:
    """Return an explanation as JSON has it."""
    about = asdict(value) if is_dataclass(value) and not isinstance(value, type) else value
    return msgspec.json.decode(msgspec.json.encode(about, enc_hook=str))


def _nearest(tenant: Tenant, event: Event, most: int) -> Explanation:
    index: Any = tenant.index.engines[0].index
    if not hasattr(index, "why_not"):
        raise Problem("near misses are known of filters over records: ask about one `subscription`", 422)
    misses = index.why_not(event, most, None)
    near = [
        NearMissed(
            subscription=str(each.id), filter=each.filter, failed=[plain(clause) for clause in each.failed]
        )
        for each in misses
    ]
    lines = [f"{each.subscription}: {len(each.failed)} failed" for each in near]
    return Explanation(lines=lines or ["no subscription nearly matched"], near=near)
