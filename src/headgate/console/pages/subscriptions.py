"""Subscriptions: found, sorted, made and changed with what a filter is worth beside it."""

from __future__ import annotations

from heapq import nsmallest
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from headgate.console.session import ABSENT
from headgate.console.survey import EVENTS, MOST
from headgate.console.view import Asked, View, page, place_of
from headgate.contents.registry import kinds
from headgate.core.subscription import SQL
from headgate.errors import HeadgateError
from headgate.service.api.operation import READ, SUBSCRIBE
from headgate.service.api.validating import TRIED
from headgate.service.problems import NotFound, Problem, problem_of
from headgate.service.resources import SubscriptionBody
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from starlette.responses import Response

_PAGE = 50
_NAMED = 200
"""Consumers that are offered in the form."""
_SORTS = {"id": "by id", "newest": "newest first", "most": "most matches", "least": "fewest matches"}
_WHICH = {
    "": "All",
    "never": "Never matched",
    "always": "Matched everything",
    "cost": "Cost most",
}
FIELDS = ("filter", "dialect", "consumer", "score", "node", "weights", "expires", "limit", "metadata", "sink")
_AS_JSON = ("weights", "limit", "metadata", "filters", "types", "config")


def dialects() -> list[str]:
    """List the dialects of filters that there are."""
    return [dialect for kind in kinds().values() for dialect in kind.dialects]


@page("GET", "/console/subscriptions")
async def subscriptions(view: View) -> Response:
    """List subscriptions."""
    search, sort = view.query.get("search", ""), view.query.get("sort", "id")
    which, consumer = view.query.get("which", ""), view.query.get("consumer", "")
    if sort not in _SORTS or which not in _WHICH:
        raise Problem(f"there is no order {sort!r} or choice {which!r}: choose from the page", 400)
    values: dict[str, Any] = {
        "search": search,
        "sort": sort,
        "which": which,
        "consumer": consumer,
        "sorts": _SORTS,
        "choices": _WHICH,
        "in_all": len(view.tenant.names),
        "events": view.tenant.counters.events,
    }
    if which == "cost":
        check_scope(view.key, READ)
        survey = view.console.surveys.of(view.tenant, again="again" in view.query)
        values |= {"survey": survey, "most": MOST, "tried": EVENTS}
        template = "survey_part.html.j2" if view.in_part else "subscriptions.html.j2"
        return _list(view, template, **values, found=None, copy=None)
    query = {
        "limit": _PAGE,
        "after": view.query.get("after") or None,
        "search": search or None,
        "consumer": consumer or None,
        "sort": None if sort == "id" else sort,
        "matched": which or None,
    }
    listed = await view.ask("list_subscriptions", query=query)
    template = "subscription_rows.html.j2" if view.in_part else "subscriptions.html.j2"
    return _list(view, template, **values, found=listed, survey=None, copy=view.asked[-1])


def _list(view: View, template: str, *, copy: Asked | None, **values: Any) -> Response:
    return view.part(template, **values) if view.in_part else view.shown(template, copy=copy, **values)


# One of them


@page("GET", "/console/new-subscription")
async def new(view: View) -> Response:
    """Show the form for a new one; it may be filled in by a link."""
    check_scope(view.key, SUBSCRIBE)
    fields = {name: view.query[name] for name in ("id", *FIELDS) if name in view.query}
    return _edit(view, None, {"filter": "", "dialect": SQL, **fields})


@page("POST", "/console/check-filter")
async def check(view: View) -> Response:
    """Say what a filter is worth, while it is written."""
    text, dialect = view.form.get("filter", ""), view.form.get("dialect", SQL)
    if not text.strip():
        return view.part("check.html.j2", report=None, text="")
    asked = {"filter": text, "dialect": dialect, "node": view.form.get("node", "").strip() or None}
    answer = await view.ask("validate_filters", body={"filters": [asked]})
    return view.part("check.html.j2", report=answer.filters[0], text=text)


@page("POST", "/console/new-subscription")
async def create(view: View) -> Response:
    """Make one."""
    try:
        body = read_body(view)
        if view.form.get("id", "").strip():
            body["id"] = view.form["id"].strip()
        made = await view.ask("create_subscription", body=body)
    except HeadgateError as error:
        return _edit(view, None, dict(view.form), error)
    return view.went(place_of("subscriptions", made.id), f"subscription {made.id} gets events from now on")


@page("GET", "/console/subscriptions/{id}")
async def subscription(view: View) -> Response:
    """Show one: what it says, what it gets, what it costs."""
    identity = view.path["id"]
    resource = await view.ask("read_subscription", {"id": identity})
    asked = view.asked[-1]
    indexed = view.tenant.store.subscriptions.get(identity)
    if indexed is None:
        raise NotFound(f"there is no subscription {identity!r}")
    wanted = indexed.indexed
    filters = [{"id": identity, "filter": wanted.filter, "dialect": wanted.dialect}]
    body = {"filters": filters, "after": max(view.tenant.position - TRIED, 0), "events": TRIED}
    tried, refused = await view.tried("backtest", body)
    return view.shown(
        "subscription.html.j2",
        copy=asked,
        found=resource,
        filter=wanted.filter,
        dialect=wanted.dialect,
        tried=tried,
        refused=refused,
        said=written_fields(resource),
    )


@page("GET", "/console/subscriptions/{id}/edit")
async def edit(view: View) -> Response:
    """Show the form of one that is there."""
    resource = await view.ask("read_subscription", {"id": view.path["id"]})
    return _edit(view, resource, form_of(resource))


@page("POST", "/console/subscriptions/{id}")
async def save(view: View) -> Response:
    """Replace one, if it is as it was when the form was shown."""
    identity = view.path["id"]
    resource = await view.ask("read_subscription", {"id": identity})
    try:
        body = {**_unshown(resource), **read_body(view)}
        headers = {"If-Match": f'"{view.form.get("revision", "")}"'}
        await view.ask("replace_subscription", {"id": identity}, body=body, headers=headers)
    except HeadgateError as error:
        return _edit(view, resource, dict(view.form), error)
    return view.went(place_of("subscriptions", identity), f"subscription {identity} is changed")


@page("POST", "/console/subscriptions/{id}/delete")
async def delete(view: View) -> Response:
    """Delete one; it can be brought back."""
    identity = view.path["id"]
    resource = await view.ask("read_subscription", {"id": identity})
    body = written_fields(resource)
    await view.ask("delete_subscription", {"id": identity})
    told = f"subscription {identity} is deleted: it gets nothing more"
    back = [("replace_subscription", {"id": identity}, body, None, ABSENT)]
    return view.went(place_of("subscriptions"), told, back=(f"subscription {identity}", back))


def _edit(view: View, resource: Any, form: dict[str, Any], error: HeadgateError | None = None) -> Response:
    problem = None if error is None else problem_of(error)
    position = None if problem is None else problem.more.get("position")
    return view.shown(
        "edit.html.j2",
        found=resource,
        form=form,
        error=problem,
        error_at=position,
        dialects=dialects(),
        consumers=nsmallest(_NAMED, view.tenant.names.consumers) if view.key.allows(READ) else (),
        copy=_asked(resource, form) if resource is not None else None,
    )


def _asked(resource: Any, form: dict[str, Any]) -> Asked:
    fields = {name: form[name] for name in ("filter", "dialect", "consumer") if form.get(name)}
    return Asked("PUT", f"/v1/subscriptions/{quote(resource.id, safe='')}", fields)


def written_fields(resource: Any) -> dict[str, Any]:
    """Return what a client said of a subscription, as it is sent."""
    names = {each for each in SubscriptionBody.__struct_fields__ if each != "id"}
    fields = {name: getattr(resource, name) for name in names}
    defaults = msgspec.structs.asdict(SubscriptionBody())
    kept = {name: value for name, value in fields.items() if value != defaults[name]}
    return dict(sorted(msgspec.to_builtins(kept).items(), key=lambda each: each[0] != "filter"))


def form_of(resource: Any) -> dict[str, str]:
    """Return the fields of the form for a subscription."""
    fields = written_fields(resource)
    form = {
        name: msgspec.json.encode(value).decode() if name in _AS_JSON else str(value)
        for name, value in fields.items()
    }
    if resource.cloudevents:
        # In the form a filter is a text, whatever it was said as.
        form |= {"dialect": "cloudevents"}
    return {"dialect": SQL, **form}


def _unshown(resource: Any) -> dict[str, Any]:
    """Return what the form does not show and a change keeps."""
    return {name: value for name, value in written_fields(resource).items() if name not in FIELDS}


def read_body(view: View) -> dict[str, Any]:
    """Read a subscription from the form; refuses what is no JSON where it must be."""
    body: dict[str, Any] = {}
    for name in FIELDS:
        text = view.form.get(name, "").strip()
        if not text:
            continue
        if name in _AS_JSON:
            body[name] = _json(name, text)
        elif name == "score":
            body[name] = _score(text)
        else:
            body[name] = text
    return body


def _json(name: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise Problem(f"{name} is not valid JSON: {error}", 422) from None


def _score(text: str) -> float | str:
    """Read a score: a number, or an expression over the event."""
    try:
        return float(text)
    except ValueError:
        return text
