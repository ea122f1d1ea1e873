"""A stream of JetStream: what it holds, its messages by sequence number, and publishing to it.

Many messages are published with thousands on their way at once, and each one's answer is looked at.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple

from headgate.brokers.nats.connection import ApiError, Connection, until
from headgate.brokers.nats.reading import Range, RangeReader, add_consumer, delete_consumer
from headgate.errors import MachineError, TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nats.aio.client import Client
    from nats.aio.msg import Msg

    from headgate.brokers.nats.reading import Message
    from headgate.brokers.nats.settings import NatsSettings


MESSAGE_ID = "Nats-Msg-Id"

_UNANSWERED = 4_000
_KEPT = b'{"stream":"'


class Outgoing(NamedTuple):
    """A message to publish."""

    subject: str
    data: bytes
    headers: dict[str, str]


class PublishResult(NamedTuple):
    """What became of messages: all are in the stream, some were there before."""

    messages: int
    duplicates: int


class Publisher:
    """Messages on their way over one connection."""

    def __init__(self, settings: NatsSettings, client: Client) -> None:
        self._settings = settings
        self._client = client
        self._answered = 0
        self._duplicates = 0
        self._refused: Exception | None = None
        self._moved = asyncio.Event()

    async def all(self, messages: Sequence[Outgoing]) -> PublishResult:
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
        return PublishResult(len(messages), self._duplicates)

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
        address = self._settings.place
        if (message.headers or {}).get("Status") == "503":
            return TableError(
                f"{address}: no stream takes {self._settings.subject}: add it to the subjects of the stream"
            )
        error = json.loads(message.data or b"{}").get("error", {})
        return MachineError(
            f"{address}: the server does not keep matches: {error.get('description', 'no reason given')}"
        )


def _size(headers: dict[str, str]) -> int:
    return 12 + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())


NO_STREAM = 10_059


class StreamState(NamedTuple):
    """What a stream holds: sequence numbers from `first` to before `end`, some of which may be gone."""

    first: int
    end: int
    """The sequence number that the next message will have."""
    deleted: int
    """Numbers between the two whose messages are gone."""
    subjects: tuple[str, ...]
    window: float
    """Seconds for which the server knows message ids."""
    created: str
    """When the stream was made: another time, another stream."""

    @property
    def position(self) -> str:
        """Return the position after all that is there: of changes that are read from it."""
        return f"{self.end} {self.created}"


class Loss(NamedTuple):
    """Messages that were there when a range was planned, and that the server removed before they were read.

    They are at most so many: numbers of other subjects and those deleted before are not told apart.
    """

    at: int
    """The sequence number that was the next to be read."""
    first: int
    """The one that the stream begins at now."""
    most: int


class Stream:
    """One stream, over one connection."""

    def __init__(self, settings: NatsSettings) -> None:
        self.settings = settings
        self.place = settings.place
        self._link = Connection(settings)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._link.close()

    def state(self) -> StreamState:
        """Ask what the stream holds now."""
        state = self.look()
        if state is None:
            name = self.settings.stream
            raise TableError(
                f"{self.place}: the server has no stream {name}: create it, as with nats stream add {name}, "
                "or name another"
            )
        return state

    def look(self) -> StreamState | None:
        """Ask what the stream holds now, if there is one."""
        try:
            info = self._link.ask(f"STREAM.INFO.{self.settings.stream}")
        except ApiError as error:
            if error.reason == NO_STREAM:
                return None
            raise MachineError(f"{self.place}: {error}") from error
        held, config = info["state"], info["config"]
        end = held["last_seq"] + 1
        return StreamState(
            # An empty stream begins where its next message will be.
            max(held["first_seq"], 1) if held["messages"] else end,
            end,
            held.get("num_deleted", 0),
            tuple(config.get("subjects") or ()),
            config.get("duplicate_window", 0) / 1e9,
            info["created"],
        )

    def create(self, subject: str) -> None:
        """Make the stream, kept in files; when it is full, it refuses what is new and drops nothing."""
        body = {"name": self.settings.stream, "subjects": [subject], "storage": "file", "discard": "new"}
        window = {"duplicate_window": int(self.settings.window * 1e9)}
        try:
            self._link.ask(f"STREAM.CREATE.{self.settings.stream}", {**body, **window})
        except ApiError as error:
            raise TableError(f"{self.place}: the stream cannot be made: {error}") from error

    def count(self, start: int) -> int:
        """Count the messages from a sequence number on."""

        async def counted(client: Client) -> int:
            consumer = await add_consumer(client, self.settings, Range(start, start))
            await delete_consumer(client, self.settings, consumer["name"])
            return int(consumer["num_pending"])

        return self._link.call(counted)

    def deleted(self) -> list[int]:
        """List the sequence numbers whose messages are gone, behind the first that is there."""
        info = self._link.ask(f"STREAM.INFO.{self.settings.stream}", {"deleted_details": True})
        return list(info["state"].get("deleted") or ())

    def messages(self, wanted: Range) -> Iterator[list[Message]]:
        """Read a range that lies before the stream's end, in order, in parts.

        The next part is on its way while the caller looks at one.
        """
        if wanted.start >= wanted.stop:
            return
        reading = RangeReader(self.settings, wanted)
        ahead = self._link.begin(reading.next)
        try:
            while True:
                messages, over = ahead.result(), reading.over
                if not over:
                    ahead = self._link.begin(reading.next)
                if messages:
                    yield messages
                if over:
                    return
        finally:
            ahead.cancel()

    def watched(self, wanted: Range, created: str, lost: Callable[[Loss], None]) -> Iterator[list[Message]]:
        """Read a range of the stream that was made at `created`, and tell what of it was removed meanwhile.

        Numbers without a message are no loss as such: other subjects have them, or they were deleted. But a
        stream that now begins behind them may have had them.
        """
        at = wanted.start
        for messages in self.messages(wanted):
            stop = messages[-1].sequence + 1
            if stop - at > len(messages):
                self._compare(at, stop, messages, created, lost)
            yield messages
            at = stop
        self._compare(at, wanted.stop, (), created, lost)

    def _compare(
        self, at: int, stop: int, messages: Sequence[Message], created: str, lost: Callable[[Loss], None]
    ) -> None:
        """Ask whether the stream still holds what a range has besides the messages found in it."""
        state = self.state()
        if state.created != created:
            raise TableError(
                f"{self.place}: the stream was deleted and created again while it was read: start again with "
                "another state directory"
            )
        gone = min(state.first, stop)
        count = gone - at - sum(one.sequence < gone for one in messages)
        if count > 0:
            lost(Loss(at, state.first, count))

    def publish(self, messages: Sequence[Outgoing]) -> PublishResult:
        """Publish messages, and wait until the server keeps them all.

        They are published again on another connection if one is lost, so they need message ids.
        """
        return self._link.call(lambda client: Publisher(self.settings, client).all(messages))
