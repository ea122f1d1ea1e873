"""What is asked of a service, what it answers, and how that is read; without any connection.

Ask ──► a client sends it, and again where that does no harm ──► answer_of
"""

from __future__ import annotations

import os
import random
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from headgate.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping


class PublishedEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What became of one event."""

    id: str
    cursor: int | None = None
    """Its position in the log; none if it was refused."""
    matched: int = 0
    """How many subscriptions matched."""
    matches: list[str] | None = None
    """Which ones, if that was asked for."""
    refused: str | None = None


class PublishedEvents(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the events of a request."""

    accepted: int
    refused: int
    matched: int
    events: list[PublishedEvent]


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """An event for a consumer, and those of its subscriptions that matched."""

    cursor: int
    """Acknowledge this, and all up to it is done."""
    subscriptions: list[str]
    event: dict[str, Any]
    """The CloudEvent."""

    @property
    def data(self) -> Any:
        """Return the data of the event."""
        return self.event.get("data")


class Deliveries(msgspec.Struct, frozen=True, kw_only=True):
    """Some deliveries of a consumer, in order."""

    items: list[Delivery]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an import of subscriptions."""

    accepted: int
    refused: int
    errors: list[dict[str, Any]]
    """The line, the id and the reason of each that was refused."""


class Items(msgspec.Struct, frozen=True, kw_only=True):
    """Some of a list."""

    items: list[dict[str, Any]]
    next: str | None = None


class KeptEvent(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An event that is kept."""

    cursor: int
    """Its position in the log."""
    time: float
    """When it was committed, in seconds since 1970."""
    matches: list[str]
    held: list[str] = []
    """Subscriptions that it matched, and that did not get it because of their limit."""
    event: msgspec.Raw
    """The CloudEvent, as JSON."""


class KeptEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Some of the events that are kept."""

    items: list[KeptEvent]
    next: str | None
    """What to give as `after` for those that follow; None at the end."""
    first: int
    """All before this cursor were forgotten."""
    last: int
    """The cursor of the last one; one less than `first` if there are none."""
    log: str
    """Which log it is: another one after a restore. Cursors of one mean nothing in another."""


T = TypeVar("T")


class EventStream(Generic[T]):
    r"""Reads the body of a stream piece by piece, each delivery in a form: all of it, or some of its fields.

    >>> from headgate.client.asking import Delivery
    >>> stream = EventStream(Delivery)
    >>> list(stream.feed(b'id: 7\ndata: {"cursor":7,"subscriptions":["a"],'))
    []
    >>> [delivery.cursor for delivery in stream.feed(b'"event":{}}\n\n')]
    [7]
    """

    def __init__(self, form: type[T]) -> None:
        self._decode = msgspec.json.Decoder(form).decode
        self._rest = b""
        self._data: list[bytes] = []
        self._name = b"delivery"

    def feed(self, piece: bytes) -> Iterator[T]:
        """Take a piece, and give the deliveries that it completes."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            name, _, value = line.removesuffix(b"\r").partition(b":")
            value = value.removeprefix(b" ")
            if name == b"data":
                self._data.append(value)
            elif name == b"event":
                self._name = value
            elif not line.strip():
                if self._data and self._name in {b"delivery", b"message"}:
                    yield self._decode(b"\n".join(self._data))
                self._data.clear()
                self._name = b"delivery"


JSON = "application/json"
NDJSON = "application/x-ndjson"
AGAIN = frozenset({429, 502, 503, 504, 507})
"""The answers after which a request is sent again."""
ADDRESS, KEY = "HEADGATE_URL", "HEADGATE_KEY"
"""The environment's address and key of the service."""
DEFAULT_ADDRESS = "http://127.0.0.1:8080"


@dataclass(frozen=True)
class Ask(Generic[T]):
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


def wait_of(header: str | None) -> float:
    """Read how long a service asks to wait, up to a minute."""
    return min(float(header), 60.0) if header is not None and header.isascii() and header.isdigit() else 0.0


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


def answer_of(ask: Ask[T], status: int, body: bytes) -> T:
    """Read an answer; raises what was refused."""
    if status >= 400:
        raise ServiceError(f"{ask.method} {ask.path.partition('?')[0]}: {_reason(status, body)}", status)
    read: Any = body if ask.kind is bytes else None
    try:
        if ask.kind not in (None, bytes) and status != 204:
            read = msgspec.json.decode(body, type=ask.kind)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise ServiceError(f"{ask.method} {ask.path}: the answer cannot be read: {error}", status) from None
    answer: T = read
    return answer


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
    values = {name: value for name, value in given.items() if value is not None}
    return f"{path}?{urlencode(values)}" if values else path


def any_of(method: str, path: str, body: object) -> Ask[Any]:
    """Ask an operation that has no function of its own; one that is not repeatable is sent once."""
    sent = {} if body is None else _json(body)
    return Ask(method, path, Any, **sent, once=method.upper() not in {"GET", "PUT", "DELETE"})


# Events


def publish(events: Any, *, matches: bool, partial: bool, key: str | None) -> Ask[PublishedEvents]:
    """Publish one event or several.

    Rows, or CloudEvents with a `specversion`. A key makes it safe to repeat.
    """
    rows = [events] if isinstance(events, dict) else list(events)
    body = b"\n".join(msgspec.json.encode(row) for row in rows)
    path = _query("/v1/events", matches="true" if matches else None, partial="true" if partial else None)
    headers = {"Content-Type": NDJSON, "Idempotency-Key": key or str(uuid.uuid4())}
    return Ask("POST", path, PublishedEvents, body, headers)


def match(events: Any) -> Ask[dict[str, Any]]:
    """Ask who matches, and keep nothing."""
    rows = [events] if isinstance(events, dict) else list(events)
    return Ask(
        "POST",
        "/v1/match",
        dict[str, Any],
        b"\n".join(map(msgspec.json.encode, rows)),
        {"Content-Type": NDJSON},
    )


def kept(after: int, limit: int) -> Ask[KeptEvents]:
    """Read events that are kept."""
    return Ask("GET", _query("/v1/events", after=after, limit=limit), KeptEvents)


# Subscriptions


def put_subscription(identity: str, fields: Mapping[str, Any], revision: str | None) -> Ask[dict[str, Any]]:
    """Have a subscription."""
    sent = _json(dict(fields))
    if revision is not None:
        sent["headers"] = {**sent["headers"], "If-Match": revision}
    return Ask("PUT", _path("subscriptions", identity), dict[str, Any], **sent)


def get_subscription(identity: str) -> Ask[dict[str, Any]]:
    """Read a subscription."""
    return Ask("GET", _path("subscriptions", identity), dict[str, Any])


def delete_subscription(identity: str) -> Ask[None]:
    """Have no subscription of an id."""
    return Ask("DELETE", _path("subscriptions", identity))


def list_subscriptions(after: str, limit: int, search: str | None) -> Ask[Items]:
    """List subscriptions."""
    path = _query("/v1/subscriptions", after=after or None, limit=limit, search=search)
    return Ask("GET", path, Items)


def import_subscriptions(rows: Iterable[Mapping[str, Any] | bytes]) -> Ask[Imported]:
    """Have many subscriptions."""
    lines = [row if isinstance(row, bytes) else msgspec.json.encode(dict(row)) for row in rows]
    return Ask("POST", "/v1/subscriptions:import", Imported, b"\n".join(lines), {"Content-Type": NDJSON})


def explain(event: Any, subscription: str) -> Ask[dict[str, Any]]:
    """Ask why a subscription gets an event or not."""
    fields = {"cursor": event} if isinstance(event, int) else {"event": event}
    return Ask("POST", "/v1/explain", dict[str, Any], **_json({**fields, "subscription": subscription}))


# Consumers


def put_consumer(identity: str, fields: Mapping[str, Any]) -> Ask[dict[str, Any]]:
    """Have a consumer."""
    return Ask("PUT", _path("consumers", identity), dict[str, Any], **_json(dict(fields)))


def pull(consumer: str, after: int | None, limit: int, wait: float) -> Ask[Deliveries]:
    """Read deliveries after the consumer's cursor, or after another one."""
    path = _query(_path("consumers", consumer, "deliveries"), after=after, limit=limit, wait=wait or None)
    return Ask("GET", path, Deliveries)


def acknowledge(consumer: str, cursor: int) -> Ask[None]:
    """Tell that everything up to a cursor is done."""
    return Ask("POST", _path("consumers", consumer, "acknowledge"), **_json({"cursor": cursor}))


def listen(consumer: str, after: int | None) -> Ask[bytes]:
    """Have deliveries sent as they come."""
    headers = {"Accept": "text/event-stream"}
    if after is not None:
        headers["Last-Event-ID"] = str(after)
    return Ask("GET", _path("consumers", consumer, "listen"), bytes, None, headers)
