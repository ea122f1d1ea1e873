"""Events: found, with who got each and in which order, and why somebody did not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from headgate.console.pages.now import recent
from headgate.console.view import View, page, place_of
from headgate.errors import HeadgateError
from headgate.service.api.operation import is_number
from headgate.service.problems import NotFound, Problem

if TYPE_CHECKING:
    from starlette.responses import Response

_PAGE = 50
_BEST = 20
_NAMED = 200
"""Matches that are listed by name."""
_NEAR = 5
_SAMPLE = '{"id": "try-1", "topic": "sport", "price": 12.5}'


@page("GET", "/console/events")
async def events(view: View) -> Response:
    """List events that are kept, the newest first; or go to the one that is asked for."""
    find, subscription = view.query.get("find", "").strip(), view.query.get("subscription", "")
    if find:
        return await _found(view, find, subscription)
    bounds = await asyncio.to_thread(view.tenant.store.log.bounds)
    before = view.number("before", bounds.last + 1)
    after = max(before - 1 - _PAGE, bounds.first - 1, 0)
    rows = await asyncio.to_thread(recent, view.tenant, after, _PAGE)
    rows = [each for each in rows if each["cursor"] < before][::-1]
    await view.ask("list_events", query={"after": after, "limit": _PAGE})
    return view.shown(
        "events.html.j2",
        copy=view.asked[-1],
        rows=rows,
        bounds=bounds,
        older=rows[-1]["cursor"] if rows and rows[-1]["cursor"] > bounds.first else None,
        newer=view.query.get("before"),
        subscription=subscription,
        find=find,
        found=None,
    )


async def _found(view: View, find: str, subscription: str) -> Response:
    """Go to the event of an id or a cursor; list them if there are several of an id."""
    answer = await view.ask("list_events", query={"id": find})
    cursors = [each.cursor for each in answer.items]
    if not cursors and is_number(find):
        try:
            cursors = [(await view.ask("read_event", {"cursor": find})).cursor]
        except NotFound:
            cursors = []
    after = f"?subscription={quote(subscription, safe='')}" if subscription else ""
    if len(cursors) == 1:
        return view.went(place_of("events", cursors[0]) + after)
    rows = [row for each in cursors for row in await asyncio.to_thread(recent, view.tenant, each - 1, 1)]
    bounds = await asyncio.to_thread(view.tenant.store.log.bounds)
    return view.shown(
        "events.html.j2",
        copy=view.asked[0],
        rows=rows,
        bounds=bounds,
        older=None,
        newer=None,
        subscription=subscription,
        find=find,
        found=len(cursors),
    )


@page("GET", "/console/events/new")
async def new(view: View) -> Response:
    """Show the form for an event."""
    return view.shown("event_new.html.j2", text=view.query.get("event", _SAMPLE), error=None)


@page("POST", "/console/events/try")
async def try_event(view: View) -> Response:
    """Say who would get an event, without keeping it."""
    try:
        event = _read(view.form.get("event", ""))
        answer = await view.ask("top", body={"k": _BEST, "events": [event]})
        best = answer.events[0]
        matched = (await view.ask("match", body=event)).events[0]
        error = best.refused or matched.refused
    except HeadgateError as failed:
        return view.part("event_try.html.j2", error=str(failed), best=None, matched=None)
    return view.part("event_try.html.j2", error=error, best=best, matched=matched)


@page("POST", "/console/events/new")
async def publish(view: View) -> Response:
    """Publish an event."""
    text = view.form.get("event", "")
    try:
        answer = await view.ask("publish", body=_read(text))
    except HeadgateError as error:
        return view.shown("event_new.html.j2", text=text, error=Problem(str(error), 422))
    made = answer.events[0]
    return view.went(place_of("events", made.cursor), f"event {made.id} is on disk, {made.matched} matched")


def _read(text: str) -> dict[str, Any]:
    try:
        event = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Problem(f"the event is not valid JSON: {error}", 422) from None
    if not isinstance(event, dict):
        raise Problem('the event is no object: write {"name": value, …}', 422)
    return event


@page("GET", "/console/events/{cursor}")
async def event(view: View) -> Response:
    """Show an event: who got it, in which order, who nearly did, and why not."""
    kept = await view.ask("read_event", {"cursor": view.path["cursor"]})
    asked = view.asked[-1]
    fields = msgspec.json.decode(kept.event)
    best, unranked = await _best(view, fields)
    subscription, text = view.query.get("subscription", "").strip(), view.query.get("filter", "").strip()
    explained, refused = None, None
    if subscription or text:
        explained, refused = await _explained(view, kept.cursor, subscription, text)
        asked = view.asked[-1]
    near, lacking = await _nearest(view, kept.cursor)
    return view.shown(
        "event.html.j2",
        copy=asked,
        kept=kept,
        fields=fields,
        attributes=attributes_of(fields),
        best=best,
        unranked=unranked,
        named=kept.matches[:_NAMED],
        subscription=subscription,
        filter=text,
        explained=explained,
        refused=refused,
        near=near,
        lacking=lacking,
        bounds=await asyncio.to_thread(view.tenant.store.log.bounds),
        graph=bool(view.tenant.store.graph.nodes(most=1)),
    )


async def _best(view: View, fields: dict[str, Any]) -> tuple[Any, str | None]:
    """Rank who matches now; what cannot be ranked is told."""
    answer, refused = await view.tried("top", {"k": _BEST, "events": [fields]})
    return (None, refused) if answer is None else (answer.events[0].best, answer.events[0].refused)


async def _explained(view: View, cursor: int, subscription: str, text: str) -> tuple[Any, str | None]:
    """Say why, and the rank; without the rank where there is none to be had."""
    body: dict[str, Any] = {"cursor": cursor}
    if not subscription:
        body |= {"filter": text, "dialect": view.query.get("dialect") or "sql"}
        return await view.tried("explain", body)
    body["subscription"] = subscription
    explanation, refused = await view.tried("explain", body | {"rank": {"k": _BEST}})
    return (explanation, None) if refused is None else await view.tried("explain", body)


async def _nearest(view: View, cursor: int) -> tuple[list[Any], str | None]:
    answer, refused = await view.tried("explain", {"cursor": cursor, "near": _NEAR})
    return [] if answer is None else answer.near or [], refused


def attributes_of(fields: dict[str, Any]) -> list[tuple[str, Any]]:
    """List what filters of records see of an event: of its data first, then of the envelope.

    >>> attributes_of({"id": "e", "data": {"price": 3, "shop": {"city": "Rome"}}})
    [('price', 3), ('shop.city', 'Rome'), ('id', 'e')]
    """
    attributes: list[tuple[str, Any]] = []

    def walk(name: str, value: Any) -> None:
        if isinstance(value, dict) and value:
            for each, inner in value.items():
                walk(f"{name}.{each}" if name else str(each), inner)
        else:
            attributes.append((name, value))

    data = fields.get("data")
    if isinstance(data, dict):
        walk("", data)
    told = {name for name, _ in attributes}
    attributes += [(name, value) for name, value in fields.items() if name != "data" and name not in told]
    return attributes
