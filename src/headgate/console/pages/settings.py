"""Settings: keys, the tenant and its quotas, what the service was told, what it keeps, who changed what."""

from __future__ import annotations

import asyncio
import datetime as dt
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.console.templates import span
from headgate.console.view import View, page, place_of
from headgate.core.settings import SettingKind, plain, settings_of
from headgate.errors import HeadgateError
from headgate.report.words import size
from headgate.service.api.operation import is_number
from headgate.service.problems import Problem
from headgate.service.security.keys import SCOPES, check_scope
from headgate.service.settings import QuotaSettings

if TYPE_CHECKING:
    from starlette.responses import Response

    from headgate.core.settings import Setting

_KEYS = 100
_AUDITED = 50
_LONGEST = 36_500
"""Days that a key may count."""
_ADMIN = "admin"
_ABOUT = {
    "publish": "send events",
    "subscribe": "make and change subscriptions and consumers",
    "read": "look at everything but keys and the audit log",
    "admin": "all of it, with the graph, keys and the audit log",
}
_SIZES = ("body", "import_body", "waiting", "spare", "retention_bytes")
"""Settings that are numbers of bytes."""


class Told(NamedTuple):
    """A setting of the service."""

    flag: str
    value: str
    changed: bool
    """Whether it is another than the default."""
    about: str


@page("GET", "/console/settings")
async def settings(view: View, **more: Any) -> Response:
    """Show how the service is, its keys, and what it was told."""
    info = await view.ask("info")
    asked = view.asked[-1]
    admin = view.key.allows(_ADMIN)
    keys = (
        await view.ask("list_keys", query={"limit": _KEYS, "search": view.query.get("search") or None})
        if admin
        else None
    )
    values = {
        "made": None, "error": None, "given": {}, "info": info, "admin": admin, "keys": keys,
        "search": view.query.get("search", ""),
        "storage": await view.ask("read_storage"),
        "quotas": await _quotas(view),
        "told": told(view.server.settings) if admin else (),
        "data": view.server.settings.data if admin else "DIRECTORY",
        "scopes": {name: _ABOUT[name] for name in SCOPES},
        "open": not len(view.server.keys),
    }  # fmt: skip
    return view.shown("settings.html.j2", copy=asked, **(values | more))


async def _quotas(view: View) -> list[tuple[str, Any, str]]:
    quotas = await view.ask("read_quotas")
    return [(each.name, getattr(quotas, each.name), each.help) for each in settings_of(QuotaSettings)]


def told(settings: Any) -> list[Told]:
    """List the settings of a service, with what each means."""
    rows = []
    for each in settings_of(type(settings)):
        about = plain(each.help)
        text = _written(each, getattr(settings, each.name))
        rows.append(Told(each.flag, text, each.given(settings), f"{about[:1].upper()}{about[1:]}."))
    return rows


def _written(setting: Setting, value: Any) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if setting.name in _SIZES:
        return size(value)
    if setting.kind is SettingKind.SECONDS:
        return span(value)
    return f"{value:,}" if isinstance(value, int) and setting.name != "port" else str(value)


@page("POST", "/console/settings/keys")
async def create_key(view: View) -> Response:
    """Make a key; its text is in this answer alone."""
    form = view.form
    body: dict[str, Any] = {"scopes": [name for name in SCOPES if form.get(f"scope-{name}")]}
    body["note"] = form.get("note", "").strip()
    days = form.get("days", "").strip()
    first = not len(view.server.keys)
    try:
        if not body["scopes"]:
            raise Problem("no scope is chosen: a key without one could do nothing", 422)
        if days:
            # A key that was to end must never be one that does not.
            if not is_number(days) or not 1 <= int(days) <= _LONGEST:
                raise Problem(f"it expires after {days!r} days: give 1 to {_LONGEST:,}, or nothing", 422)
            body["expires"] = dt.datetime.now(dt.UTC) + dt.timedelta(days=int(days))
        made = await view.ask("create_key", body=body)
    except HeadgateError as error:
        check_scope(view.key, _ADMIN)
        return await settings(view, error=error, given=dict(form))
    # Who asked without a key is nobody from now on, and signs in with this one.
    return view.shown("key.html.j2", copy=view.asked[-1], made=made, first=first)


@page("POST", "/console/settings/keys/{id}/delete")
async def delete_key(view: View) -> Response:
    """Have a key count no more."""
    identity = view.path["id"]
    await view.ask("delete_key", {"id": identity})
    return view.went(f"{place_of('settings')}#keys", f"key {identity} counts no more")


@page("POST", "/console/settings/snapshot")
async def snapshot(view: View) -> Response:
    """Write a snapshot of the index now."""
    storage = await view.ask("write_snapshot")
    return view.went(f"{place_of('settings')}#storage", f"the snapshot is written: {size(storage.index)}")


@page("GET", "/console/settings/health")
async def health(view: View) -> Response:
    """Give what changes by itself."""
    info, storage = await asyncio.gather(view.ask("info"), view.ask("read_storage"))
    return view.part("settings_health.html.j2", info=info, storage=storage)


@page("GET", "/console/settings/audit")
async def audit(view: View) -> Response:
    """List who changed what, the latest first."""
    search = view.query.get("search", "").strip()
    after = view.number("after")
    query = {"latest": "true", "limit": _AUDITED, "search": search or None, "after": after or None}
    listed = await view.ask("list_audit", query=query)
    return view.shown(
        "audit.html.j2", copy=view.asked[-1], items=listed.items, next=listed.next, search=search, after=after
    )
