"""Publish many messages to a stream, with thousands on their way at once, and each one's answer looked at."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple

from headgate.brokers.nats.link import until
from headgate.errors import MachineError, TableError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from headgate.brokers.nats.settings import NatsSettings

MESSAGE_ID = "Nats-Msg-Id"

_UNANSWERED = 4_000
_KEPT = b'{"stream":"'


class Outgoing(NamedTuple):
    """A message to publish."""

    subject: str
    data: bytes
    headers: dict[str, str]


class Published(NamedTuple):
    """What became of messages: all are in the stream, some were there before."""

    messages: int
    duplicates: int


class Publishing:
    """Messages on their way over one connection."""

    def __init__(self, settings: NatsSettings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self._answered = 0
        self._duplicates = 0
        self._refused: Exception | None = None
        self._moved = asyncio.Event()

    async def all(self, messages: Sequence[Outgoing]) -> Published:
        """Publish messages, and wait until the server has said of each that it keeps it."""
        client = self._client
        inbox = client.new_inbox()
        largest = client.max_payload
        listening = await client.subscribe(inbox, cb=self._answer, pending_msgs_limit=0)
        try:
            for sent, (subject, data, headers) in enumerate(messages):
                if len(data) + 1_024 > largest and len(data) + _size(headers) > largest:
                    raise TableError(
                        f"{self._settings.place}: a message of {len(data):,} bytes is larger than the "
                        f"{largest:,} that the server takes: raise max_payload there"
                    )
                await client.publish(subject, data, reply=inbox, headers=headers)
                if sent - self._answered >= _UNANSWERED:
                    await self._until(sent + 1 - _UNANSWERED // 2)
            await self._until(len(messages))
        finally:
            if client.is_connected:
                await listening.unsubscribe()
        return Published(len(messages), self._duplicates)

    async def _until(self, count: int) -> None:
        """Wait for answers, for as long as they keep coming."""
        while self._answered < count:
            self._moved.clear()
            if self._refused is not None:
                raise self._refused
            await until(self._client, self._moved)
        if self._refused is not None:
            raise self._refused

    async def _answer(self, message: Msg) -> None:
        self._answered += 1
        self._moved.set()
        data = message.data
        if not data.startswith(_KEPT):
            self._refused = self._refused or self._told(message)
        elif b'"duplicate"' in data:
            self._duplicates += 1

    def _told(self, message: Msg) -> Exception:
        place = self._settings.place
        if (message.headers or {}).get("Status") == "503":
            return TableError(
                f"{place}: no stream takes {self._settings.subject}: add it to the subjects of the stream"
            )
        said = json.loads(message.data or b"{}").get("error", {})
        return MachineError(
            f"{place}: the server does not keep matches: {said.get('description', 'no reason given')}"
        )


def _size(headers: dict[str, str]) -> int:
    return 12 + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())
