"""A stream of JetStream: what it holds, its messages by sequence number, and publishing to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.brokers.nats.link import ApiError, Link
from headgate.brokers.nats.publishing import Publishing
from headgate.brokers.nats.reading import Range, Reading, add_consumer, delete_consumer
from headgate.errors import MachineError, TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from nats.aio.client import Client

    from headgate.brokers.nats.publishing import Outgoing, Published
    from headgate.brokers.nats.reading import Message
    from headgate.brokers.nats.settings import NatsSettings

NO_STREAM = 10_059


class State(NamedTuple):
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
        self._link = Link(settings)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Hang up."""
        self._link.close()

    def state(self) -> State:
        """Ask what the stream holds now."""
        found = self.look()
        if found is None:
            name = self.settings.stream
            raise TableError(
                f"{self.place}: the server has no stream {name}: create it, as with nats stream add {name}, "
                "or name another"
            )
        return found

    def look(self) -> State | None:
        """Ask what the stream holds now, if there is one."""
        try:
            said = self._link.ask(f"STREAM.INFO.{self.settings.stream}")
        except ApiError as error:
            if error.reason == NO_STREAM:
                return None
            raise MachineError(f"{self.place}: {error}") from error
        held, config = said["state"], said["config"]
        end = held["last_seq"] + 1
        return State(
            # An empty stream begins where its next message will be.
            max(held["first_seq"], 1) if held["messages"] else end,
            end,
            held.get("num_deleted", 0),
            tuple(config.get("subjects") or ()),
            config.get("duplicate_window", 0) / 1e9,
            said["created"],
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
            said = await add_consumer(client, self.settings, Range(start, start))
            await delete_consumer(client, self.settings, said["name"])
            return int(said["num_pending"])

        return self._link.call(counted)

    def deleted(self) -> list[int]:
        """List the sequence numbers whose messages are gone, behind the first that is there."""
        said = self._link.ask(f"STREAM.INFO.{self.settings.stream}", {"deleted_details": True})
        return list(said["state"].get("deleted") or ())

    def messages(self, wanted: Range) -> Iterator[list[Message]]:
        """Read a range that lies before the stream's end, in order, in parts.

        The next part is on its way while the caller looks at one.
        """
        if wanted.start >= wanted.stop:
            return
        reading = Reading(self.settings, wanted)
        ahead = self._link.begin(reading.next)
        try:
            while True:
                found, over = ahead.result(), reading.over
                if not over:
                    ahead = self._link.begin(reading.next)
                if found:
                    yield found
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
        for found in self.messages(wanted):
            stop = found[-1].sequence + 1
            if stop - at > len(found):
                self._compare(at, stop, found, created, lost)
            yield found
            at = stop
        self._compare(at, wanted.stop, (), created, lost)

    def _compare(
        self, at: int, stop: int, found: Sequence[Message], created: str, lost: Callable[[Loss], None]
    ) -> None:
        """Ask whether the stream still holds what a range has besides the messages found in it."""
        state = self.state()
        if state.created != created:
            raise TableError(
                f"{self.place}: the stream was deleted and made anew while it was read: begin anew with "
                "another state directory"
            )
        gone = min(state.first, stop)
        count = gone - at - sum(one.sequence < gone for one in found)
        if count > 0:
            lost(Loss(at, state.first, count))

    def publish(self, messages: Sequence[Outgoing]) -> Published:
        """Publish messages, and wait until the server keeps them all.

        They are published again on another connection if one is lost, so they need message ids.
        """
        return self._link.call(lambda client: Publishing(self.settings, client).all(messages))
