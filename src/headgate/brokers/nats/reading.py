"""Read a range of a stream's messages, through a short-lived pull consumer that begins at a sequence number.

The consumer acknowledges nothing: what was read is remembered by those who read, never by the server. So any
range can be read again, and a lost connection or consumer only means another one from where we are.

Messages become rows of events: what their headers say goes into the row.

plain        one JSON object, as it is
binary       CloudEvents: id, source and time are headers `ce-…`, the data is the message's
structured   CloudEvents: all of it is one JSON object, `application/cloudevents+json`
a document   any other content type: its text, with an id, in a row as tables of documents have them
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from headgate.brokers.nats.connection import ANSWER, ApiError, client_library, request, until
from headgate.errors import MachineError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from headgate.brokers.nats.settings import NatsSettings


ANY = ">"
NO_MESSAGE = 10_037

_CHUNK = 5_000
_CHUNK_BYTES = 16 * 2**20
_SPARE = 64 * 1024
_IDLE = 60 * 10**9
_BEHIND, _FAREWELL = 0.05, 1.0
_NOTHING, _ENDED = {"404", "408"}, "409"
_FULL = {"batch completed", "message size exceeds maxbytes"}
"""Why a pull ends whose consumer lives on; newer servers say the first after every full one."""
_PLAIN = 9
"""Parts of the reply subject of a message; with a domain and an account it has more."""


class Message(NamedTuple):
    """A message as the stream keeps it."""

    sequence: int
    time: int
    """When the server got it, in nanoseconds since 1970."""
    subject: str
    data: bytes
    headers: dict[str, str] | None


class Range(NamedTuple):
    """Which messages: from one sequence number to before another, perhaps of one subject or pattern."""

    start: int
    stop: int
    subject: str | None = None
    bare: bool = False
    """Without their data."""


class RangeReader:
    """A range being read, from `at` on."""

    def __init__(self, settings: NatsSettings, wanted: Range) -> None:
        self.at = wanted.start
        self.over = False
        self._settings = settings
        self._wanted = wanted
        self._client: Client | None = None
        self._consumer = ""
        self._delivered = 0
        self._progress = time.monotonic()

    async def next(self, client: Client) -> list[Message]:
        """Fetch the next part; `over` says that it was the last.

        Whatever fails here is called again, so `at` and `over` change only when nothing more can fail.
        """
        wanted = self._wanted
        if client is not self._client:
            self._delivered = 0
            consumer = await add_consumer(client, self._settings, wanted._replace(start=self.at))
            self._consumer, self._client = consumer["name"], client
        messages, behind = await self._fetch(client)
        at = messages[-1].sequence + 1 if messages else self.at
        over = behind or at >= wanted.stop
        if not over and not messages:
            following = await next_sequence(client, self._settings, at, wanted.subject)
            over = following is None or following >= wanted.stop
            if not over:
                # The replica that we read from is behind the leader that said how far to read.
                await self._wait()
        if over or self._client is None:
            await delete_consumer(client, self._settings, self._consumer)
        if messages:
            self._progress = time.monotonic()
        self.at, self.over = at, over
        return messages

    async def _wait(self) -> None:
        if time.monotonic() - self._progress > max(self._settings.patience, ANSWER):
            raise MachineError(
                f"{self._settings.place}: the server holds messages from {self.at} on and does not give "
                "them: look at the health of its replicas"
            )
        await asyncio.sleep(_BEHIND)

    async def _fetch(self, client: Client) -> tuple[list[Message], bool]:
        """Pull once; also says whether a message behind the range was seen."""
        count = min(_CHUNK, self._wanted.stop - self.at)
        inbox = client.new_inbox()
        raw: list[Msg] = []
        over = asyncio.Event()

        async def arrived(message: Msg) -> None:
            raw.append(message)
            # What has no reply subject is not a message of the stream but the server's last word.
            if len(raw) == count or not message.reply:
                over.set()

        listening = await client.subscribe(inbox, cb=arrived, pending_msgs_limit=0, pending_bytes_limit=0)
        try:
            pull = {"batch": count, "no_wait": True}
            pull["max_bytes"] = max(_CHUNK_BYTES, client.max_payload + _SPARE)
            name = f"$JS.API.CONSUMER.MSG.NEXT.{self._settings.stream}.{self._consumer}"
            await client.publish(name, json.dumps(pull).encode(), reply=inbox)
            await self._all(client, raw, over)
        finally:
            if client.is_connected:
                await listening.unsubscribe()
        return self._taken(raw)

    async def _all(self, client: Client, raw: list[Msg], over: asyncio.Event) -> None:
        """Wait for the end of a pull, for as long as messages keep coming."""
        while not over.is_set():
            before = len(raw)
            try:
                await until(client, over)
            except OSError:
                if len(raw) == before or not client.is_connected:
                    raise

    def _taken(self, raw: list[Msg]) -> tuple[list[Message], bool]:
        read: list[Message] = []
        for message in raw:
            if not message.reply:
                if not _usual(message.headers or {}):
                    # The consumer is of no more use; the next part takes another.
                    self._client = None
                break
            parts = message.reply.split(".")
            _, sequence, number, stamp = parts[4:8] if len(parts) == _PLAIN else parts[6:10]
            self._delivered += 1
            if int(number) != self._delivered:
                # One was lost on the way, so whatever follows is read again.
                self._client = None
                break
            if int(sequence) >= self._wanted.stop:
                return read, True
            read.append(Message(int(sequence), int(stamp), message.subject, message.data, message.headers))
        return read, False


def _usual(last: dict[str, str]) -> bool:
    """Whether the server's last word on a pull leaves its consumer as it was."""
    status, why = last.get("Status"), last.get("Description", "").lower()
    return status in _NOTHING or (status == _ENDED and why in _FULL)


async def add_consumer(client: Client, settings: NatsSettings, wanted: Range) -> dict[str, Any]:
    """Make a consumer that the server forgets when nobody uses it; its answer counts messages, too."""
    config: dict[str, Any] = {"ack_policy": "none", "mem_storage": True, "inactive_threshold": _IDLE}
    config |= {"deliver_policy": "by_start_sequence", "opt_start_seq": max(wanted.start, 1)}
    config |= {"num_replicas": 1, "headers_only": wanted.bare}
    if wanted.subject not in {None, ANY}:
        config["filter_subject"] = wanted.subject
    body = {"stream_name": settings.stream, "config": config}
    try:
        return await request(client, f"CONSUMER.CREATE.{settings.stream}", body)
    except ApiError as error:
        raise MachineError(f"{settings.place}: the stream cannot be read: {error}") from error


async def delete_consumer(client: Client, settings: NatsSettings, name: str) -> None:
    """Remove a consumer if the server lets us: nothing is lost if not, it forgets unused ones by itself."""
    failures = (ApiError, OSError, client_library().errors.Error)
    with suppress(*failures):
        await request(client, f"CONSUMER.DELETE.{settings.stream}.{name}", within=_FAREWELL)


async def next_sequence(client: Client, settings: NatsSettings, at: int, subject: str | None) -> int | None:
    """Ask the stream's leader for the sequence number of the first message from `at` on."""
    body = {"seq": at, "next_by_subj": subject or ANY}
    try:
        answer = await request(client, f"STREAM.MSG.GET.{settings.stream}", body)
    except ApiError as error:
        if error.reason == NO_MESSAGE:
            return None
        raise MachineError(f"{settings.place}: the stream cannot be read: {error}") from error
    return int(answer["message"]["seq"])


JSON, STRUCTURED = "application/json", "application/cloudevents+json"
TYPES = ("content-type", "ce-datacontenttype", "datacontenttype")
MESSAGE_ID = "nats-msg-id"

_ENVELOPE = ("id", "source", "time")
_PREFIX = "ce-"


class Row(NamedTuple):
    """The columns of an event but for the time of its arrival."""

    value: bytes
    content_type: str | None
    origin: str


def as_row(message: Message) -> Row:
    """Make a row of a message."""
    as_it_is = Row(message.data, None, message.subject)
    if not message.headers:
        return as_it_is
    # Names of headers are written in any case.
    known = {name.lower(): value for name, value in message.headers.items()}
    kind = content_type(known)
    media = (kind or JSON).partition(";")[0].strip().lower()
    if media == STRUCTURED:
        return as_it_is._replace(value=_opened(message.data))
    envelope = {name: unquote(known[_PREFIX + name]) for name in _ENVELOPE if known.get(_PREFIX + name)}
    if media == JSON:
        return as_it_is._replace(value=_filled(message.data, envelope)) if envelope else as_it_is
    origin = f"{message.subject}/{message.sequence}"
    try:
        text = message.data.decode()
    except UnicodeDecodeError:
        # The parser knows better what it is written in; but then only its place can be its id.
        return Row(message.data, kind, origin)
    row = {"id": known.get(MESSAGE_ID) or origin, **envelope, "datacontenttype": kind, "data": text}
    return as_it_is._replace(value=_written(row))


def content_type(headers: dict[str, str]) -> str | None:
    """Find the media type among headers with names in lower case."""
    return next((headers[name] for name in TYPES if headers.get(name)), None)


def _filled(data: bytes, given: dict[str, str]) -> bytes:
    """Add to a record what it does not say of itself; what is no record stays as it is, and is refused."""
    fields = _object(data)
    return data if fields is None else _written({**given, **fields})


def _opened(data: bytes) -> bytes:
    """Take a record out of its envelope, with the envelope's id, source and time; a document stays in it.

    Where the record has an id, source or time of its own, the envelope's goes before it.
    """
    fields = _object(data)
    if fields is None or not isinstance(fields.get("data"), dict):
        return data
    return _written({**fields["data"], **{name: fields[name] for name in _ENVELOPE if name in fields}})


def _object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _written(row: dict[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()
