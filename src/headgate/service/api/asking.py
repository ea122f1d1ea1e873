"""Asking without keeping anything: who matches, and who comes first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.core.event import JSON, Event, read_object
from headgate.errors import EventError
from headgate.graph.path_cost import DECAY
from headgate.service.api.events import read_asked
from headgate.service.api.operation import READ, Answer, Call, in_json, operation
from headgate.service.envelope import BATCH, NDJSON, STRUCTURED, event_of, sent_row
from headgate.service.problems import Problem
from headgate.service.tenant.index import Ranking

if TYPE_CHECKING:
    from headgate.service.tenant.tenant import Tenant

Few = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
Cursor = Annotated[int, msgspec.Meta(ge=0, le=2**62)]


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
    example='-H \'Content-Type: application/json\' -d \'{"id": "e1", "topic": "sport", "price": 12.5}\'',
)
async def match(call: Call) -> Answer:
    """Ask who matches."""
    events = read_asked(call)
    found = await call.tenant.ask(events)
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
    mode: Literal["exact", "relaxed"] = "exact"
    factors: dict[str, float] | None = None
    by: Literal["minus", "times"] = "minus"
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
    problems=(400, 507),
    example=in_json('{"k": 3, "events": [{"topic": "sport", "price": 12.5}]}'),
)
async def top(call: Call) -> Answer:
    """Ask for the best."""
    said = call.said(TopBody)
    events = [inline_event(each) for each in said.events]
    if said.mode != "exact":
        await call.tenant.rank()
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
