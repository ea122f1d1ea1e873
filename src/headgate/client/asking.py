"""What is asked of a service and how its answers are read: the same for both clients, without any connection.

Ask ──► a client sends it, and again where that does no harm ──► answer_of
"""

from __future__ import annotations

import os
import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from headgate.client.model import Deliveries, Imported, Items, KeptEvents, Published
from headgate.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

JSON = "application/json"
NDJSON = "application/x-ndjson"
AGAIN = frozenset({429, 502, 503, 504, 507})
"""The answers after which a request is sent again."""
ADDRESS, KEY = "HEADGATE_URL", "HEADGATE_KEY"
"""The environment's address and key of the service."""
DEFAULT_ADDRESS = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Ask:
    """A request, and the type of its answer. Sending one twice does no harm, unless it says so."""

    method: str
    path: str
    kind: Any = None
    """What the answer is read as; None for an answer without a body."""
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    once: bool = False
    """Whether it must not be sent again."""


@dataclass(frozen=True)
class Retries:
    """How often a request is sent again, and after how long."""

    attempts: int = 6
    first: float = 0.1
    longest: float = 10.0

    def waits(self) -> Iterator[float]:
        """List how long to wait before each further attempt: twice as long each time, and not all at once."""
        wait = self.first
        for _ in range(self.attempts - 1):
            yield wait * random.uniform(0.5, 1.0)
            wait = min(2 * wait, self.longest)


def wait_of(given: str | None) -> float:
    """Read how long a service asks to wait, up to a minute."""
    return min(float(given), 60.0) if given is not None and given.isascii() and given.isdigit() else 0.0


def address_of(given: str | None) -> str:
    """Return the address of a service: the given one, that of the environment, or the usual one."""
    address = given or os.environ.get(ADDRESS) or DEFAULT_ADDRESS
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ServiceError(f"the address {address!r} is none of a service: give one like {DEFAULT_ADDRESS}")
    return address.rstrip("/")


def headers_of(key: str | None, more: Mapping[str, str]) -> dict[str, str]:
    """Return the headers of a request."""
    key = key or os.environ.get(KEY)
    known = {"Authorization": f"Bearer {key}"} if key else {}
    return {**known, **more}


def answer_of(ask: Ask, status: int, body: bytes) -> Any:
    """Read an answer; raises what was refused."""
    if status >= 400:
        raise ServiceError(f"{ask.method} {ask.path.partition('?')[0]}: {_reason(status, body)}", status)
    if ask.kind is None or status == 204:
        return None
    if ask.kind is bytes:
        return body
    try:
        return msgspec.json.decode(body, type=ask.kind)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ServiceError(f"{ask.method} {ask.path}: the answer cannot be read: {error}", status) from None


def _reason(status: int, body: bytes) -> str:
    try:
        return str(msgspec.json.decode(body)["detail"])
    except (msgspec.DecodeError, UnicodeError, KeyError, TypeError):
        return f"the service answered {status}"


def _json(value: object) -> dict[str, Any]:
    return {"body": msgspec.json.encode(value), "headers": {"Content-Type": JSON}}


def _path(*parts: str) -> str:
    return "/v1/" + "/".join(quote(part, safe=":") for part in parts)


def _query(path: str, **given: object) -> str:
    found = {name: value for name, value in given.items() if value is not None}
    return f"{path}?{urlencode(found)}" if found else path


def any_of(method: str, path: str, body: object) -> Ask:
    """Ask an operation that has no function of its own; one that is not repeatable is sent once."""
    said = {} if body is None else _json(body)
    return Ask(method, path, Any, **said, once=method.upper() not in {"GET", "PUT", "DELETE"})


# Events


def publish(events: Any, *, matches: bool, partial: bool, key: str | None) -> Ask:
    """Publish one event or several.

    Rows, or CloudEvents with a `specversion`. A key makes it safe to repeat.
    """
    rows = [events] if isinstance(events, dict) else list(events)
    body = b"\n".join(msgspec.json.encode(row) for row in rows)
    path = _query("/v1/events", matches="true" if matches else None, partial="true" if partial else None)
    headers = {"Content-Type": NDJSON, "Idempotency-Key": key or str(uuid.uuid4())}
    return Ask("POST", path, Published, body, headers)


def match(events: Any) -> Ask:
    """Ask who matches, and keep nothing."""
    rows = [events] if isinstance(events, dict) else list(events)
    return Ask(
        "POST",
        "/v1/match",
        dict[str, Any],
        b"\n".join(map(msgspec.json.encode, rows)),
        {"Content-Type": NDJSON},
    )


def kept(after: int, limit: int) -> Ask:
    """Read events that are kept."""
    return Ask("GET", _query("/v1/events", after=after, limit=limit), KeptEvents)


# Subscriptions


def put_subscription(identity: str, fields: Mapping[str, Any], revision: str | None) -> Ask:
    """Have a subscription."""
    said = _json(dict(fields))
    if revision is not None:
        said["headers"] = {**said["headers"], "If-Match": revision}
    return Ask("PUT", _path("subscriptions", identity), dict[str, Any], **said)


def get_subscription(identity: str) -> Ask:
    """Read a subscription."""
    return Ask("GET", _path("subscriptions", identity), dict[str, Any])


def delete_subscription(identity: str) -> Ask:
    """Have no subscription of an id."""
    return Ask("DELETE", _path("subscriptions", identity))


def list_subscriptions(after: str, limit: int, search: str | None) -> Ask:
    """List subscriptions."""
    path = _query("/v1/subscriptions", after=after or None, limit=limit, search=search)
    return Ask("GET", path, Items)


def import_subscriptions(rows: Iterable[Mapping[str, Any] | bytes]) -> Ask:
    """Have many subscriptions."""
    lines = [row if isinstance(row, bytes) else msgspec.json.encode(dict(row)) for row in rows]
    return Ask("POST", "/v1/subscriptions:import", Imported, b"\n".join(lines), {"Content-Type": NDJSON})


def explain(event: Any, subscription: str) -> Ask:
    """Ask why a subscription gets an event or not."""
    said = {"cursor": event} if isinstance(event, int) else {"event": event}
    return Ask("POST", "/v1/explain", dict[str, Any], **_json({**said, "subscription": subscription}))


# Consumers


def put_consumer(identity: str, fields: Mapping[str, Any]) -> Ask:
    """Have a consumer."""
    return Ask("PUT", _path("consumers", identity), dict[str, Any], **_json(dict(fields)))


def pull(consumer: str, after: int | None, limit: int, wait: float) -> Ask:
    """Read deliveries after the consumer's cursor, or after another one."""
    path = _query(_path("consumers", consumer, "deliveries"), after=after, limit=limit, wait=wait or None)
    return Ask("GET", path, Deliveries)


def acknowledge(consumer: str, cursor: int) -> Ask:
    """Tell that everything up to a cursor is done."""
    return Ask("POST", _path("consumers", consumer, "acknowledge"), **_json({"cursor": cursor}))


def listen(consumer: str, after: int | None) -> Ask:
    """Have deliveries sent as they come."""
    headers = {"Accept": "text/event-stream"}
    if after is not None:
        headers["Last-Event-ID"] = str(after)
    return Ask("GET", _path("consumers", consumer, "listen"), bytes, None, headers)
