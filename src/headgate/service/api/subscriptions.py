"""Subscriptions as resources: made, read, replaced, patched, deleted, listed, and many at once."""

from __future__ import annotations

import asyncio
import datetime as dt
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec

from headgate.backtest.checking import check_filter
from headgate.contents.protocol import EVERY_EVENT
from headgate.core.event import JSON
from headgate.errors import HeadgateError
from headgate.service.api.filters import settings_of
from headgate.service.api.operation import READ, SUBSCRIBE, Answer, Call, Page, in_json, operation
from headgate.service.api.ordering import ordered
from headgate.service.envelope import NDJSON
from headgate.service.problems import Conflict, NotFound, Problem
from headgate.service.resources import Name, SubscriptionBody
from headgate.service.storage.audit import noted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from headgate.service.storage.subscriptions import Stored

MERGE = "application/merge-patch+json"
_EXPORTED = 1_000
"""Subscriptions of an export that are read together."""


class MatchStatistics(msgspec.Struct, kw_only=True):
    """What a subscription got since the service runs."""

    matches: int
    last_match: dt.datetime | None
    held: int
    """What its limit held back, since it has one."""


class SubscriptionResource(SubscriptionBody, kw_only=True, omit_defaults=True):
    """A subscription, and what is known of it. Fields that have their default are left out."""

    revision: int
    """Rises with each change; its entity tag."""
    state: Literal["active", "expired"]
    statistics: MatchStatistics
    indexed_by: str | None = None
    """By what events come to it; only where one subscription is read."""
    unindexed: bool = False
    """Whether it is evaluated for every event."""
    notes: list[str] = msgspec.field(default_factory=list)
    """What is odd about its filter, and what it costs."""


class SubscriptionPage(msgspec.Struct, kw_only=True):
    """Some subscriptions, in the order that was asked for."""

    items: list[SubscriptionResource]
    next: str | None
    """What `after` is for those that follow; none at the end."""


class SubscriptionQuery(Page, forbid_unknown_fields=True, kw_only=True):
    """Which subscriptions are wanted."""

    consumer: str | None = None
    sort: Literal["id", "newest", "most", "least"] = "id"
    """By id; those made last first; or by how often they matched since the service runs."""
    matched: Literal["never", "always"] | None = None
    """Those that matched no event since the service runs, or all of them; None for any."""


class RefusedLine(msgspec.Struct, kw_only=True):
    """A line of an import that was refused."""

    line: int
    """Counted from 1."""
    id: str | None
    reason: str


class Imported(msgspec.Struct, kw_only=True):
    """What became of an import."""

    accepted: int
    refused: int
    errors: list[RefusedLine]


_EXAMPLE = in_json("""{"filter": "topic = '"'sport'"' AND price < 20"}""")
_CHANGES = (400, 403, 409, 412, 422, 429, 507)


@operation(
    "POST",
    "/v1/subscriptions",
    "Make a subscription; one without an id gets one.",
    SUBSCRIBE,
    {201: SubscriptionResource},
    body=SubscriptionBody,
    problems=_CHANGES,
    example=_EXAMPLE.replace('{"filter"', '{"id": "cheap-sport", "filter"'),
)
async def create_subscription(call: Call) -> Answer:
    """Make a subscription."""
    said = call.said(SubscriptionBody)
    identity = said.id or str(uuid.uuid4())
    stored, _ = await call.tenant.put(
        identity, said, create=True, also=[noted(call.key.id, "create subscription", identity)]
    )
    return _answer(call, stored, 201)


@operation(
    "GET",
    "/v1/subscriptions/{id}",
    "Read a subscription: what it says, its state and statistics, and what its filter is indexed by.",
    READ,
    {200: SubscriptionResource, 304: None},
    problems=(404,),
    headers=("If-None-Match",),
)
async def read_subscription(call: Call) -> Answer:
    """Read a subscription."""
    stored = _found(call)
    if tag_of(stored.revision) in _tags(call.headers.get("if-none-match", "")):
        return Answer(None, 304, {"ETag": tag_of(stored.revision)})
    answer = _answer(call, stored, 200)
    indexed = stored.indexed
    check = await asyncio.to_thread(_checked, call, indexed.filter, indexed.dialect)
    if check is not None:
        resource: SubscriptionResource = answer.value
        resource.indexed_by, resource.notes = check.indexed_by, list(check.notes)
        resource.unindexed = check.indexed_by == EVERY_EVENT
    return answer


def _checked(call: Call, text: str, dialect: str) -> Any:
    try:
        return check_filter(text, settings_of(call.tenant, dialect))
    except HeadgateError:
        return None


@operation(
    "PUT",
    "/v1/subscriptions/{id}",
    "Have a subscription, in the place of another or not; If-Match and If-None-Match are understood.",
    SUBSCRIBE,
    {200: SubscriptionResource, 201: SubscriptionResource},
    body=SubscriptionBody,
    problems=_CHANGES,
    headers=("If-Match", "If-None-Match"),
    example=_EXAMPLE,
)
async def replace_subscription(call: Call) -> Answer:
    """Replace a subscription."""
    identity = name_of(call.path["id"])
    said = call.said(SubscriptionBody)
    if said.id is not None and said.id != identity:
        raise Problem(f"the body has the id {said.id!r}, and the path {identity!r}: leave `id` out", 422)
    stored, new = await call.tenant.put(
        identity,
        said,
        expected=expected(call, call.tenant.revisions.get(identity, 0)),
        also=[noted(call.key.id, "replace subscription", identity)],
    )
    return _answer(call, stored, 201 if new else 200)


@operation(
    "PATCH",
    "/v1/subscriptions/{id}",
    "Change fields of a subscription, as a JSON merge patch: null takes a field away.",
    SUBSCRIBE,
    {200: SubscriptionResource},
    body=dict[str, Any],
    media=(MERGE, JSON),
    problems=(*_CHANGES, 404),
    headers=("If-Match",),
    example="""-H 'Content-Type: application/merge-patch+json' -d '{"expires": "2030-01-01T00:00:00Z"}'""",
)
async def patch_subscription(call: Call) -> Answer:
    """Change a subscription."""
    patch = call.said(dict[str, Any])
    stored = _found(call)
    wanted = expected(call, stored.revision)
    merged = _merged(msgspec.json.decode(stored.body), patch)
    if merged.pop("id", stored.id) != stored.id:
        raise Problem("the id of a subscription cannot be changed: make another one", 422)
    try:
        said = msgspec.convert(merged, SubscriptionBody)
    except msgspec.ValidationError as error:
        raise Problem(f"the body does not fit: {error}", 422) from None
    # What was patched is what was read, or nothing.
    found, _ = await call.tenant.put(
        stored.id,
        said,
        expected=stored.revision if wanted is None else wanted,
        also=[noted(call.key.id, "patch subscription", stored.id)],
    )
    return _answer(call, found, 200)


def _merged(target: Any, patch: Any) -> Any:
    """Apply a merge patch (RFC 7396).

    >>> _merged({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"c": 4}})
    {'b': {'c': 4, 'd': 3}}
    """
    if not isinstance(patch, dict):
        return patch
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = _merged(found.get(name), value)
    return found


@operation(
    "DELETE",
    "/v1/subscriptions/{id}",
    "Delete a subscription: it gets nothing more, not even what it matched and was not delivered yet.",
    SUBSCRIBE,
    {204: None},
    problems=(404, 412, 507),
    headers=("If-Match",),
)
async def delete_subscription(call: Call) -> Answer:
    """Delete a subscription."""
    stored = _found(call)
    await call.tenant.remove(
        stored.id,
        expected=expected(call, stored.revision),
        also=[noted(call.key.id, "delete subscription", stored.id)],
    )
    return Answer(None, 204)


@operation(
    "GET",
    "/v1/subscriptions",
    "List subscriptions by id, by age or by how often they match; `search` looks into ids and texts.",
    READ,
    {200: SubscriptionPage},
    query=SubscriptionQuery,
    problems=(400, 404),
    example="-G -d search=sport -d limit=10",
)
async def list_subscriptions(call: Call) -> Answer:
    """List subscriptions."""
    query = call.query(SubscriptionQuery)
    most = query.most()
    if query.sort != "id" or query.matched is not None:
        listed, more = await asyncio.to_thread(ordered, call.tenant, query)
        return Answer(SubscriptionPage(items=[resource_of(call, each) for each in listed], next=more))
    stored = await asyncio.to_thread(
        call.tenant.store.subscriptions.page,
        query.after,
        most + 1,
        search=query.search,
        consumer=query.consumer,
    )
    items = [resource_of(call, each) for each in stored[:most]]
    return Answer(SubscriptionPage(items=items, next=stored[most - 1].id if len(stored) > most else None))


@operation(
    "POST",
    "/v1/subscriptions:import",
    "Have many subscriptions, a line of JSON each; those that are refused are listed, and the others taken.",
    SUBSCRIBE,
    {200: Imported},
    body=SubscriptionBody,
    media=(NDJSON,),
    problems=(400, 403, 429, 507),
    large=True,
    example="-H 'Content-Type: application/x-ndjson' --data-binary @subscriptions.jsonl",
)
async def import_subscriptions(call: Call) -> Answer:
    """Have many subscriptions."""
    media = call.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if media != NDJSON:
        raise Problem(f"the content type is {media!r}: send {NDJSON}", 415)
    rows, refused = await asyncio.to_thread(_read_lines, call.body)
    what = f"{len(rows):,} lines"
    accepted, more = await call.tenant.import_(rows, [noted(call.key.id, "import subscriptions", what)])
    refused += [RefusedLine(line=each.line, id=each.id, reason=each.reason) for each in more]
    refused.sort(key=lambda each: each.line)
    return Answer(Imported(accepted=accepted, refused=len(refused), errors=refused))


def _read_lines(body: bytes) -> tuple[list[tuple[int, str, SubscriptionBody]], list[RefusedLine]]:
    decode = msgspec.json.Decoder(SubscriptionBody).decode
    rows, refused = [], []
    for line, text in enumerate(body.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            said = decode(text)
            rows.append((line, said.id or str(uuid.uuid4()), said))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            refused.append(RefusedLine(line=line, id=None, reason=f"the line does not fit: {error}"))
    return rows, refused


@operation(
    "GET",
    "/v1/subscriptions:export",
    "Write all subscriptions, a line of JSON each, as an import reads them.",
    READ,
    {200: SubscriptionBody},
    answer_media=NDJSON,
)
async def export_subscriptions(call: Call) -> Answer:
    """Write all subscriptions."""
    return Answer(parts=_lines(call), media_type=NDJSON)


async def _lines(call: Call) -> AsyncIterator[bytes]:
    after: str | None = ""
    while after is not None:
        page = await asyncio.to_thread(call.tenant.store.subscriptions.page, after, _EXPORTED)
        yield b"".join(msgspec.json.encode(_exported(each)) + b"\n" for each in page)
        after = page[-1].id if len(page) == _EXPORTED else None


def _exported(stored: Stored) -> SubscriptionBody:
    return msgspec.structs.replace(stored.said, id=stored.id)


# What they have in common


def name_of(given: str) -> str:
    """Return an id of a path; refuses one that is none."""
    try:
        return msgspec.convert(given, Name)
    except msgspec.ValidationError as error:
        raise Problem(f"{given!r} cannot be an id: {error}", 422) from None


def tag_of(revision: int) -> str:
    """Return the entity tag of a revision."""
    return f'"{revision}"'


def _tags(header: str) -> set[str]:
    return {each.strip() for each in header.split(",") if each.strip()}


def expected(call: Call, revision: int) -> int | None:
    """Return the revision that a request expects, 0 for none, None for any; `revision` is what there is."""
    match, none = call.headers.get("if-match"), call.headers.get("if-none-match")
    if none is not None:
        if none.strip() != "*" or match is not None:
            raise Problem(f"If-None-Match is {none!r}: give * alone, to make what is not there", 400)
        return 0
    if match is None:
        return None
    tags = _tags(match)
    if not revision or (tag_of(revision) not in tags and "*" not in tags):
        now = f"it has the entity tag {tag_of(revision)} now" if revision else "there is none"
        raise Conflict(f"{call.request.url.path} is not as you know it: {now}; read it again", 412)
    return revision


def _found(call: Call) -> Stored:
    identity = call.path["id"]
    found = call.tenant.store.subscriptions.get(identity)
    if found is None:
        raise NotFound(f"there is no subscription {identity!r}")
    return found


def resource_of(call: Call, stored: Stored) -> SubscriptionResource:
    """Return a subscription and what is known of it."""
    fields = msgspec.structs.asdict(stored.said) | {"id": stored.id}
    if stored.said.sink is None:
        fields["consumer"] = stored.consumer
    matches, last = call.tenant.counts.of(stored.number)
    ended = stored.expires is not None and stored.expires <= time.time_ns() // 1_000
    return SubscriptionResource(
        **fields,
        revision=stored.revision,
        state="expired" if ended else "active",
        statistics=MatchStatistics(
            matches=matches,
            last_match=None if last is None else dt.datetime.fromtimestamp(last / 1e6, dt.UTC),
            held=call.tenant.limits.held(stored.number),
        ),
    )


def _answer(call: Call, stored: Stored, status: int) -> Answer:
    headers = {"ETag": tag_of(stored.revision)}
    if status == 201:
        headers["Location"] = f"/v1/subscriptions/{quote(stored.id)}"
    return Answer(resource_of(call, stored), status, headers)
