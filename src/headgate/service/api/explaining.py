"""Why an event matches, and why not."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from headgate.contents.registry import contents_of, kind_of
from headgate.core.likeliest import did_you_mean
from headgate.core.ranks import EXACT
from headgate.core.subscription import SQL, Subscription
from headgate.service.api.asking import Cursor, RankBody, inline_event
from headgate.service.api.events import KeptEvent, event_at
from headgate.service.api.filters import settings_of
from headgate.service.api.operation import READ, Answer, Call, in_json, operation
from headgate.service.envelope import event_of
from headgate.service.problems import NotFound, Problem

if TYPE_CHECKING:
    from headgate.core.event import Event
    from headgate.engine.engine import Engine
    from headgate.service.tenant.tenant import Tenant

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
    "Say why an event matches a subscription or a filter, or why not, and what was nearest.",
    READ,
    {200: Explanation},
    body=ExplainBody,
    problems=(400, 404, 507),
    example=in_json('{"event": {"topic": "sport", "price": 25}, "filter": "price < 20"}'),
)
async def explain(call: Call) -> Answer:
    """Say why."""
    said = call.said(ExplainBody)
    event, kept = asked_event(call, said.event, said.cursor, said.event_id)
    if said.subscription is not None and said.filter is not None:
        raise Problem("there are both `subscription` and `filter`: give one of them", 422)
    if said.rank is not None and said.subscription is None:
        raise Problem("`rank` is about a subscription: give one", 422)
    if said.rank is not None and said.rank.mode != EXACT:
        await call.tenant.rank()
    return Answer(await asyncio.to_thread(_explain, call.tenant, said, event, kept))


def asked_event(
    call: Call, inline: dict[str, Any] | None, cursor: int | None, identity: str | None
) -> tuple[Event, KeptEvent | None]:
    """Return the event that is asked about: one of the request, or one that is kept."""
    given = [each for each in (inline, cursor, identity) if each is not None]
    if len(given) != 1:
        raise Problem("give one of `event`, `cursor` and `event_id`", 422)
    if inline is not None:
        return inline_event(inline), None
    positions = [cursor] if cursor is not None else call.tenant.store.log.find(str(identity))
    for position in positions:
        kept = event_at(call, position)
        if kept is None:
            continue
        fields = msgspec.json.decode(kept.event)
        if identity is None or fields.get("id") == identity:
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
            found.notes.append(
                "it matches now, and did not when it was published: the subscription was not as it is now"
            )
    return found


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
    found = engine.explain_rank(event, identity, **asked)
    about = plain(found)
    return {
        "rank": found.rank,
        "entered": found.entered,
        "short": found.short,
        "lines": found.lines(),
        **about,
    }


def _told(found: Any) -> Explanation:
    return Explanation(matches=bool(found.matches), lines=found.lines(), verdict=plain(found))


def plain(found: Any) -> Any:
    """Return an explanation as JSON has it."""
    about = asdict(found) if is_dataclass(found) and not isinstance(found, type) else found
    return msgspec.json.decode(msgspec.json.encode(about, enc_hook=str))


def _nearest(tenant: Tenant, event: Event, most: int) -> Explanation:
    index: Any = tenant.index.engines[0].index
    if not hasattr(index, "why_not"):
        raise Problem("near misses are known of filters over records: ask about one `subscription`", 422)
    found = index.why_not(event, most, None)
    near = [
        NearMissed(
            subscription=str(each.id), filter=each.filter, failed=[plain(clause) for clause in each.failed]
        )
        for each in found
    ]
    lines = [f"{each.subscription}: {len(each.failed)} failed" for each in near]
    return Explanation(lines=lines or ["no subscription nearly matched"], near=near)
