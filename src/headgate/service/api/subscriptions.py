"""Subscriptions as resources: made, read, replaced, patched, deleted, listed, and many at once."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
import time
import uuid
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

import msgspec
import numpy as np

from headgate.contents.protocol import EVERY_EVENT
from headgate.core.event import JSON
from headgate.service.api.operation import (
    READ,
    SUBSCRIBE,
    Answer,
    Call,
    Items,
    Page,
    fit,
    in_json,
    merged,
    operation,
    read_name,
    tag_of,
    tags_of,
)
from headgate.service.api.validating import TRIED, FilterBody, FilterReport, last_events, report_of
from headgate.service.envelope import NDJSON
from headgate.service.problems import Problem, existing
from headgate.service.resources import SubscriptionBody, moment_of
from headgate.service.storage.audit import noted
from headgate.service.tenant.building import RefusedLine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from headgate.core.arrays import Ints
    from headgate.service.storage.subscriptions import Stored
    from headgate.service.tenant.tenant import Tenant


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


class SubscriptionPage(Items[SubscriptionResource], kw_only=True):
    """Some subscriptions, in the order that was asked for."""


class SubscriptionQuery(Page, forbid_unknown_fields=True, kw_only=True):
    """Which subscriptions are wanted."""

    consumer: str | None = None
    sort: Literal["id", "newest", "most", "least"] = "id"
    """By id; those made last first; or by how often they matched since the service runs."""
    matched: Literal["never", "always"] | None = None
    """Those that matched no event since the service runs, or all of them; None for any."""


class Imported(msgspec.Struct, kw_only=True):
    """What became of an import."""

    accepted: int
    refused: int
    errors: list[RefusedLine]


_EXAMPLE = in_json("""{"filter": "topic = '"'sport'"' AND price < 20"}""")
_CHANGES = (409, 412, 507)


@operation(
    "POST",
    "/v1/subscriptions",
    SUBSCRIBE,
    answers={201: SubscriptionResource},
    problems=_CHANGES,
    example=_EXAMPLE.replace('{"filter"', '{"id": "cheap-sport", "filter"'),
)
async def create_subscription(call: Call, body: SubscriptionBody) -> Answer:
    """Make a subscription; one without an id gets one."""
    identity = body.id or str(uuid.uuid4())
    stored, _ = await call.tenant.put(
        identity, body, create=True, also=[noted(call.key.id, "create subscription", identity)]
    )
    return _answer(call, stored, 201)


@operation(
    "GET",
    "/v1/subscriptions/{id}",
    READ,
    answers={200: SubscriptionResource, 304: None},
    headers=("If-None-Match",),
)
async def read_subscription(call: Call) -> Answer:
    """Read a subscription: what it says, its state and statistics, and what its filter is indexed by."""
    stored = _found(call)
    if tag_of(stored.revision) in tags_of(call.headers.get("if-none-match", "")):
        return Answer(None, 304, {"ETag": tag_of(stored.revision)})
    report = await asyncio.to_thread(_reported, call.tenant, stored)
    about = {
        "indexed_by": report.indexed_by,
        "notes": report.notes,
        "unindexed": report.indexed_by == EVERY_EVENT,
    }
    return Answer(msgspec.structs.replace(resource_of(call, stored), **about))


def _reported(tenant: Tenant, stored: Stored) -> FilterReport:
    wanted = stored.indexed
    asked = FilterBody(filter=wanted.filter, dialect=wanted.dialect, node=stored.said.node)
    return report_of(tenant, asked, last_events(tenant, TRIED))


@operation(
    "PUT",
    "/v1/subscriptions/{id}",
    SUBSCRIBE,
    answers={200: SubscriptionResource, 201: SubscriptionResource},
    problems=_CHANGES,
    headers=("If-Match", "If-None-Match"),
    example=_EXAMPLE,
)
async def replace_subscription(call: Call, body: SubscriptionBody) -> Answer:
    """Have a subscription, in the place of another or not; If-Match and If-None-Match are understood."""
    identity = read_name(call.path["id"], "subscription", body.id)
    stored, new = await call.tenant.put(
        identity,
        body,
        expected=call.expected(call.tenant.registry.revisions.get(identity, 0)),
        also=[noted(call.key.id, "replace subscription", identity)],
    )
    return _answer(call, stored, 201 if new else 200)


@operation(
    "PATCH",
    "/v1/subscriptions/{id}",
    SUBSCRIBE,
    media=(MERGE, JSON),
    problems=_CHANGES,
    headers=("If-Match",),
    example="""-H 'Content-Type: application/merge-patch+json' -d '{"expires": "2030-01-01T00:00:00Z"}'""",
)
async def patch_subscription(call: Call, body: dict[str, Any]) -> SubscriptionResource:
    """Change fields of a subscription, as a JSON merge patch: null takes a field away."""
    stored = _found(call)
    wanted = call.expected(stored.revision)
    members = merged(msgspec.json.decode(stored.body), body)
    if members.pop("id", stored.id) != stored.id:
        raise Problem("the id of a subscription cannot be changed: make another one", 422)
    # What was patched is what was read, or nothing.
    patched, _ = await call.tenant.put(
        stored.id,
        fit(members, SubscriptionBody),
        expected=stored.revision if wanted is None else wanted,
        also=[noted(call.key.id, "patch subscription", stored.id)],
    )
    return resource_of(call, patched)


@operation("DELETE", "/v1/subscriptions/{id}", SUBSCRIBE, problems=(412, 507), headers=("If-Match",))
async def delete_subscription(call: Call) -> None:
    """Delete a subscription: it gets nothing more, not even what it matched and was not delivered yet."""
    stored = _found(call)
    await call.tenant.remove(
        stored.id,
        expected=call.expected(stored.revision),
        also=[noted(call.key.id, "delete subscription", stored.id)],
    )


@operation("GET", "/v1/subscriptions", READ, problems=(404,), example="-G -d search=sport -d limit=10")
async def list_subscriptions(call: Call, query: SubscriptionQuery) -> SubscriptionPage:
    """List subscriptions by id, by age or by how often they match; `search` looks into ids and texts."""
    if query.sort != "id" or query.matched is not None:
        listed, more = await asyncio.to_thread(ordered, call.tenant, query)
        return SubscriptionPage(items=[resource_of(call, each) for each in listed], next=more)
    stored, more = query.cut(
        await asyncio.to_thread(
            call.tenant.store.subscriptions.page,
            query.after,
            query.limit + 1,
            search=query.search,
            consumer=query.consumer,
        )
    )
    return SubscriptionPage(items=[resource_of(call, each) for each in stored], next=more)


@operation(
    "POST",
    "/v1/subscriptions:import",
    SUBSCRIBE,
    body=SubscriptionBody,
    media=(NDJSON,),
    problems=(507,),
    large=True,
    example="-H 'Content-Type: application/x-ndjson' --data-binary @subscriptions.jsonl",
)
async def import_subscriptions(call: Call) -> Imported:
    """Have many subscriptions, a line of JSON each; those refused are listed, and the others taken."""
    call.check_media(NDJSON)
    rows, refused = await asyncio.to_thread(_read_lines, call.body)
    what = f"{len(rows):,} lines"
    accepted, more = await call.tenant.import_(rows, [noted(call.key.id, "import subscriptions", what)])
    refused = sorted([*refused, *more])
    return Imported(accepted=accepted, refused=len(refused), errors=refused)


def _read_lines(body: bytes) -> tuple[list[tuple[int, str, SubscriptionBody]], list[RefusedLine]]:
    decode = msgspec.json.Decoder(SubscriptionBody).decode
    rows, refused = [], []
    for line, text in enumerate(body.split(b"\n"), 1):
        if not text.strip():
            continue
        try:
            decoded = decode(text)
            rows.append((line, decoded.id or str(uuid.uuid4()), decoded))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            refused.append(RefusedLine(line, None, f"the line does not fit: {error}"))
    return rows, refused


@operation("GET", "/v1/subscriptions:export", READ, answers={200: SubscriptionBody}, answer_media=NDJSON)
async def export_subscriptions(call: Call) -> Answer:
    """Write all subscriptions, a line of JSON each, as an import reads them."""
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


def _found(call: Call) -> Stored:
    identity = call.path["id"]
    return existing(call.tenant.store.subscriptions.get(identity), f"subscription {identity!r}")


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
            last_match=None if last is None else moment_of(last),
            held=call.tenant.registry.limits.held(stored.number),
        ),
    )


def _answer(call: Call, stored: Stored, status: int) -> Answer:
    headers = {"Location": f"/v1/subscriptions/{quote(stored.id)}"} if status == 201 else {}
    return Answer(resource_of(call, stored), status, headers)


_CURSOR = re.compile(r"(-?\d{1,18}):(\d{1,18})")
"""What a page ended with: the value it is sorted by, and the number. Counts rise while pages are read."""


def ordered(tenant: Tenant, query: SubscriptionQuery) -> tuple[list[Stored], str | None]:
    """List some subscriptions in an order, and say after what the next page begins."""
    numbers = _wanted(tenant, query)
    if query.sort == "id":
        return _by_id(tenant, query, numbers)
    values = _values(tenant, query, numbers)
    if query.after:
        after = _CURSOR.fullmatch(query.after)
        if after is None:
            raise Problem(f"after is {query.after!r}: give what `next` was in the part before", 400)
        value, number = int(after[1]), int(after[2])
        rest = (values > value) | ((values == value) & (numbers > number))
        numbers, values = numbers[rest], values[rest]
    order = np.lexsort((numbers, values))
    listed: list[Stored] = []
    last = ""
    for position in order.tolist():
        if len(listed) == query.limit:
            return listed, last
        # One that has just gone is passed over.
        stored = tenant.store.subscriptions.by_number(int(numbers[position]))
        if stored is not None:
            listed.append(stored)
            last = f"{values[position]}:{numbers[position]}"
    return listed, None


def _by_id(tenant: Tenant, query: SubscriptionQuery, numbers: Ints) -> tuple[list[Stored], str | None]:
    ids, more = query.cut(
        sorted(each for each in tenant.names.ids_of(numbers.tolist()) if each > query.after), str
    )
    listed = [tenant.store.subscriptions.get(each) for each in ids]
    return [each for each in listed if each is not None], more


def _wanted(tenant: Tenant, query: SubscriptionQuery) -> Ints:
    names = tenant.names
    consumer = query.consumer
    numbers = names.present(
        None if consumer is None else existing(names.consumers.get(consumer), f"consumer {consumer!r}")
    )
    if query.search is not None:
        numbers = np.intersect1d(numbers, np.array(tenant.store.subscriptions.found(query.search), np.int64))
    if query.matched is not None:
        counts, events = tenant.counts.counts(numbers), tenant.counters.events
        numbers = numbers[counts == 0 if query.matched == "never" else (counts >= events) & (counts > 0)]
    return numbers


def _values(tenant: Tenant, query: SubscriptionQuery, numbers: Ints) -> Ints:
    """Return what each is sorted by, the smallest first."""
    if query.sort == "most":
        return -tenant.counts.counts(numbers)
    if query.sort == "least":
        return tenant.counts.counts(numbers)
    # Numbers are given one after another.
    return -numbers
