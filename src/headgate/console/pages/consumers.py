"""Consumers: who gets events and how, how far behind each is, what failed, and what is tried again."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from headgate.console.pages.now import brief
from headgate.console.session import ABSENT
from headgate.console.view import Asked, View, page, place_of
from headgate.errors import HeadgateError
from headgate.service.api.deliveries import letter_of
from headgate.service.api.operation import is_number
from headgate.service.problems import Problem, problem_of
from headgate.service.resources import ConsumerBody

if TYPE_CHECKING:
    from starlette.responses import Response

    from headgate.service.api.consumers import Consumer
    from headgate.service.api.deliveries import Letter, Letters

_LISTED = 50
_PREVIEWED = 5
"""Deliveries that are shown before they are made."""
_PREVIEW_BYTES = 256 << 10
_ATTEMPTS = 10
_LETTERS = 20
_FRESH = 300.0
"""Seconds for which a dead letter that was delivered is shown."""
_RESTORED = 1_000
"""Subscriptions that come back with their consumer, at most."""
_LETTER = "letter-"
"""What a dead letter is called in a form, before its cursor."""
_DEFAULT = ConsumerBody()


@page("GET", "/console/consumers")
async def consumers(
    view: View, given: dict[str, str] | None = None, error: HeadgateError | None = None
) -> Response:
    """List them."""
    search = view.query.get("search", "").strip()
    asked = {"after": view.query.get("after") or None, "limit": _LISTED, "search": search or None}
    listed = await view.ask("list_consumers", query=asked)
    return view.shown(
        "consumers.html.j2",
        copy=view.asked[-1],
        items=listed.items,
        next=listed.next,
        search=search,
        after=view.query.get("after", ""),
        given=given or {},
        error=error,
        default=_DEFAULT,
        scopes={"change": view.key.allows("subscribe")},
    )  # fmt: skip


@page("POST", "/console/consumers")
async def create(view: View) -> Response:
    """Make a consumer; the secret of its webhook is shown once."""
    identity = view.form.get("id", "").strip()
    try:
        made = await view.ask("put_consumer", {"id": identity}, body=_said(view), headers=ABSENT)
    except HeadgateError as error:
        # Its revision is asked for, which people who fill in a form do not know of.
        if problem_of(error).status == 412:
            error = Problem(f"there is a consumer {identity!r} already: choose another id", 409)
        return await consumers(view, dict(view.form), error)
    if made.secret is None:
        told = f"consumer {identity} is there, and begins with the next event"
        return view.went(place_of("consumers", identity), told)
    return _secret(view, made, "It is there, and begins with the next event.")


def _said(view: View) -> dict[str, Any]:
    """Read what a form says of a consumer; what is left empty is as it is by default."""
    url = view.form.get("url", "").strip()
    if not url:
        return {}
    fields: dict[str, Any] = {"url": url, "order": view.form.get("order", _DEFAULT.order)}
    for name, kind in (("parallel", int), ("attempts", int), ("timeout", float)):
        if (number := view.typed_number(name, kind)) is not None:
            fields[name] = number
    return fields


def _secret(view: View, consumer: Consumer, told: str) -> Response:
    return view.shown("consumer_secret.html.j2", copy=view.asked[-1], found=consumer, told=told)


# One consumer


@page("GET", "/console/consumers/{id}")
async def consumer(
    view: View, given: dict[str, str] | None = None, error: HeadgateError | None = None
) -> Response:
    """Show one: what waits, what failed, what it is."""
    values = await _live(view)
    asked = view.asked[0]
    identity = values["found"].id
    letters = await view.ask(
        "list_dead_letters", {"id": identity}, {"after": view.number("letters"), "limit": _LETTERS}
    )
    return view.shown(
        "consumer.html.j2",
        copy=asked,
        letters=await _letters(view, letters),
        letters_next=letters.next,
        letters_after=view.number("letters"),
        pull=Asked("GET", f"/v1/consumers/{quote(identity, safe='')}/deliveries?limit=10"),
        given=given or {},
        error=error,
        default=_DEFAULT,
        restored=_RESTORED,
        scopes={"change": view.key.allows("subscribe")},
        **values,
    )  # fmt: skip


@page("GET", "/console/consumers/{id}/live")
async def live(view: View) -> Response:
    """Give what changes by itself: lag, what waits, attempts."""
    return view.part("consumer_live.html.j2", **await _live(view))


async def _live(view: View) -> dict[str, Any]:
    identity = view.path["id"]
    consumer = await view.ask("read_consumer", {"id": identity})
    before = view.number("before")
    attempts = None
    if consumer.url is not None:
        query = {"limit": _ATTEMPTS, "before": before or None}
        attempts = await view.ask("list_attempts", {"id": identity}, query)
    state = view.dispatcher.state(identity)
    # As `pull` reads them, and not counted as delivered: nobody takes them.
    # What is delivered beside others is done before the cursor comes to it.
    beside = state.said.parallel if state.webhook else 0
    part = await view.dispatcher.pull(state, state.cursor, _PREVIEWED + beside, _PREVIEW_BYTES, 0.0)
    waiting = [
        each for each in part.deliveries if not (state.webhook and state.webhook.is_done(each.position))
    ]
    return {
        "found": consumer,
        "last": view.tenant.position,
        "attempts": attempts,
        "before": before,
        "waiting": [
            brief(msgspec.json.decode(each.text))
            | {"cursor": each.position, "time": each.time / 1e6, "subscriptions": each.subscriptions}
            for each in waiting[:_PREVIEWED]
        ],
        "gone": part.first,
        "previewed": _PREVIEWED,
    }  # fmt: skip


async def _letters(view: View, listed: Letters) -> list[dict[str, Any]]:
    """List dead letters for people; those that were delivered just now stand among them."""
    after, end, since = view.number("letters"), listed.next, 1e6 * (time.time() - _FRESH)
    state = view.dispatcher.state(view.path["id"])
    fresh = [
        letter_of(each, await view.dispatcher.event_for(state, cursor))
        for cursor, each in list(state.replayed.items())
        if not each.reason and each.time > since and after < cursor and (end is None or cursor < end)
    ]
    letters = sorted([*listed.items, *fresh], key=lambda each: each.cursor)
    return [_letter(each, tried=each.cursor in state.replayed) for each in letters]


def _letter(letter: Letter, *, tried: bool) -> dict[str, Any]:
    about = {"id": None, "text": "not kept any more, or its subscription is gone"}
    if letter.event is not None:
        about = brief(msgspec.json.decode(letter.event))
    outcome = "waits" if letter.again else "delivered" if not letter.reason else "failed" if tried else ""
    return {**msgspec.structs.asdict(letter), **about, "outcome": outcome}


@page("GET", "/console/consumers/{id}/dead-letters/{cursor}")
async def letter(view: View) -> Response:
    """Give what became of a dead letter that is tried again."""
    identity, cursor = view.path["id"], view.path["cursor"]
    if not is_number(cursor):
        raise Problem(f"cursor is {cursor!r}: give a whole number", 404)
    query = {"after": int(cursor) - 1, "limit": 1}
    listed = await view.ask("list_dead_letters", {"id": identity}, query)
    found = [each for each in await _letters(view, listed) if each["cursor"] == int(cursor)]
    return view.part("letter_outcome.html.j2", found={"id": identity}, each=found[0] if found else None)


# What is done with one


@page("POST", "/console/consumers/{id}")
async def edit(view: View) -> Response:
    """Change what is said of it."""
    identity = view.path["id"]
    try:
        fields = _said(view)
        names = ("url", "order", "parallel", "attempts", "timeout")
        known = view.form.get("revision", "")
        headers = {"If-Match": f'"{known}"'} if known else None
        body = {name: fields.get(name) for name in names}
        changed = await view.ask("patch_consumer", {"id": identity}, body=body, headers=headers)
    except HeadgateError as error:
        if problem_of(error).status == 404:
            raise
        return await consumer(view, dict(view.form), error)
    if changed.secret is not None:
        return _secret(view, changed, "It has a webhook now.")
    return view.went(place_of("consumers", identity), f"consumer {identity} is changed")


@page("POST", "/console/consumers/{id}/enabled")
async def enable(view: View) -> Response:
    """Have its webhook called, or not."""
    identity, wanted = view.path["id"], view.form.get("enabled") == "true"
    await view.ask("patch_consumer", {"id": identity}, body={"enabled": wanted})
    told = "is called again" if wanted else "is not called until you enable it; its events wait"
    return view.went(place_of("consumers", identity), f"the webhook of {identity} {told}")


@page("POST", "/console/consumers/{id}/secret")
async def rotate(view: View) -> Response:
    """Make a new secret, and show it once."""
    consumer = await view.ask("rotate_secret", {"id": view.path["id"]})
    return _secret(view, consumer, "The one before counts no more.")


@page("POST", "/console/consumers/{id}/test")
async def test(view: View) -> Response:
    """Send an event to its webhook."""
    identity = view.path["id"]
    outcome = await view.ask("send_test", {"id": identity})
    if view.in_part:
        return view.part("consumer_test.html.j2", found=outcome)
    if outcome.delivered:
        view.tell(f"the webhook answered {outcome.status} after {outcome.milliseconds} ms")
    else:
        view.tell(f"the test event was not taken: {outcome.reason}", good=False)
    return view.went(place_of("consumers", identity))


@page("POST", "/console/consumers/{id}/replay")
async def replay(view: View) -> Response:
    """Deliver again what came after a cursor, or from a time on."""
    identity = view.path["id"]
    cursor, since = view.form.get("cursor", "").strip(), view.form.get("since", "").strip()
    if cursor and not is_number(cursor):
        raise Problem(f"cursor is {cursor!r}: give a whole number", 422)
    if not cursor and not since:
        raise Problem("give a cursor or a time, from where on events are delivered again", 422)
    # The field has no zone; its label says which it is.
    body: dict[str, Any] = {"cursor": int(cursor)} if cursor else {"since": f"{since}Z"}
    moved = await view.ask("replay", {"id": identity}, body=body)
    told = f"{identity} gets again what came after cursor {moved.cursor}"
    return view.went(place_of("consumers", identity), told)


@page("POST", "/console/consumers/{id}/dead-letters")
async def letters(view: View) -> Response:
    """Try dead letters again, or drop them: one, some, all."""
    identity, what = view.path["id"], view.form.get("what", "")
    action, _, which = what.partition(" ")
    if which == "all":
        cursors = None
    elif which:
        cursors = [which]
    else:
        cursors = [name.removeprefix(_LETTER) for name in view.form if name.startswith(_LETTER)]
        if not cursors:
            raise Problem("no dead letter is chosen: tick some first", 422)
    if cursors is not None and not all(map(is_number, cursors)):
        raise Problem(f"the cursors are {', '.join(cursors)}: give whole numbers", 422)
    back = f"{place_of('consumers', identity)}#dead-letters"
    if action == "replay":
        body = {} if cursors is None else {"cursors": [int(each) for each in cursors]}
        done = await view.ask("replay_dead_letters", {"id": identity}, body=body)
        return view.went(back, f"{done.replayed:,} dead letters are tried as soon as it may be called")
    if action != "drop":
        raise Problem(f"{what!r} is nothing that is done with dead letters: replay or drop them", 422)
    query = None if cursors is None else {"cursors": ",".join(cursors)}
    gone = await view.ask("drop_dead_letters", {"id": identity}, query)
    return view.went(back, f"dead letters dropped: {gone.dropped:,}")


@page("POST", "/console/consumers/{id}/delete")
async def delete(view: View) -> Response:
    """Delete it; it can be brought back, with its secret, which stays in the memory of the service."""
    identity = view.path["id"]
    stored = view.tenant.consumer(identity)
    consumer = await view.ask("read_consumer", {"id": identity})
    back: list[tuple[Any, ...]] = []
    if stored is not None:
        back.append(("put_consumer", {"id": identity}, msgspec.to_builtins(stored.said), None, ABSENT))
    along = view.form.get("subscriptions") == "delete"
    if along and consumer.subscriptions <= _RESTORED:
        page = view.tenant.store.subscriptions.page
        back += [
            ("replace_subscription", {"id": each.id}, msgspec.to_builtins(each.said), None, ABSENT)
            for each in await asyncio.to_thread(page, "", _RESTORED, consumer=identity)
        ]
    await view.ask("delete_consumer", {"id": identity}, {"subscriptions": "delete"} if along else None)
    told = f"consumer {identity} is deleted"
    if along and consumer.subscriptions:
        told += f", with its subscriptions: {consumer.subscriptions:,}"
    if along and consumer.subscriptions > _RESTORED:
        return view.went(place_of("consumers"), told)
    return view.went(place_of("consumers"), told, back=(f"consumer {identity}", back))
