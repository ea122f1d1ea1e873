"""The client for programs that wait for each answer."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.client import asking
from headgate.client.asking import Ask, Delivery, EventStream, Retries
from headgate.core.machine import need
from headgate.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator, Mapping
    from typing import Self

    from headgate.client.asking import Imported, KeptEvents, PublishedEvents

A = TypeVar("A")
SECONDS_UNACKNOWLEDGED = 0.5
"""Seconds between two acknowledgements of a listener."""
MANY_UNACKNOWLEDGED = 100
"""Deliveries after which a listener acknowledges in any case."""
SILENCE = 60.0
"""Seconds of silence after which a stream counts as lost; the service sends a comment more often."""


class Client:
    """A service, for programs that wait for each answer. It may be used by several threads.

    Without an address it is that of `HEADGATE_URL`, or http://127.0.0.1:8080; without a key that of
    `HEADGATE_KEY`. A request that gets no answer, or is told to come later, is sent again: publishing
    carries an Idempotency-Key, so that no event is taken twice.

        with Client() as client:
            client.subscribe("cheap", "price < 10", consumer="me")
            client.publish({"id": "e1", "price": 5})
            for delivery in client.listen("me"):
                print(delivery.subscriptions, delivery.data)
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        key: str | None = None,
        timeout: float = 30.0,
        retries: Retries | None = None,
    ) -> None:
        need("client")
        import urllib3

        self.address = asking.address_of(address)
        self._key = key
        self._retries = retries or Retries()
        self._timeout = urllib3.Timeout(connect=timeout, read=timeout)
        # Repeating is done here, where it is known what may be repeated.
        self._pool = urllib3.PoolManager(maxsize=8, retries=False)
        self._failures = (urllib3.exceptions.HTTPError, OSError)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._pool.clear()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Ask any operation of the API: `ask("GET", "/v1/consumers")`; returns its answer as JSON has it."""
        return self._send(asking.any_of(method, path, body))

    # Events

    def publish(
        self, events: Any, *, matches: bool = False, partial: bool = False, key: str | None = None
    ) -> PublishedEvents:
        """Publish one event or several; they are on disk when this returns.

        An event is a mapping of attributes with an `id`, or a CloudEvent. `matches` asks who matched. With
        `partial`, good events are taken although others are refused. `key` is the Idempotency-Key; one is
        made up if none is given.
        """
        return self._send(asking.publish(events, matches=matches, partial=partial, key=key))

    def match(self, events: Any) -> list[list[str]]:
        """Ask who matches each of some events; nothing is kept."""
        return [each.get("matches", []) for each in self._send(asking.match(events))["events"]]

    def explain(self, event: Any, subscription: str) -> dict[str, Any]:
        """Ask why a subscription gets an event or not; an event is given, or named by its cursor."""
        return self._send(asking.explain(event, subscription))

    def kept(self, *, after: int = 0, limit: int = 1_000) -> KeptEvents:
        """Read events that are kept and come after a cursor, in order; at most `limit`, or some megabytes."""
        return self._send(asking.kept(after, limit))

    # Subscriptions

    def subscribe(
        self,
        identity: str,
        text: str,
        *,
        revision: str | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Have a subscription; `fields` are those of the API.

        Dialect, consumer, score, weights, node, expires, limit.
        """
        return self._send(asking.put_subscription(identity, {"filter": text, **fields}, revision))

    def unsubscribe(self, identity: str) -> None:
        """Have no subscription of an id."""
        self._send(asking.delete_subscription(identity))

    def subscription(self, identity: str) -> dict[str, Any]:
        """Read a subscription."""
        return self._send(asking.get_subscription(identity))

    def subscriptions(self, search: str | None = None) -> Iterator[dict[str, Any]]:
        """List subscriptions, in the order of their ids."""
        after: str | None = ""
        while after is not None:
            page = self._send(asking.list_subscriptions(after, 1_000, search))
            yield from page.items
            after = page.next

    def import_subscriptions(self, rows: Iterable[Mapping[str, Any] | bytes]) -> Imported:
        """Have many subscriptions: mappings, or lines of JSON."""
        return self._send(asking.import_subscriptions(rows))

    # Consumers

    def consumer(self, identity: str, **fields: Any) -> dict[str, Any]:
        """Have a consumer; `fields` are those of the API: url, order, attempts, timeout, metadata."""
        return self._send(asking.put_consumer(identity, fields))

    def pull(
        self, consumer: str, *, after: int | None = None, limit: int = 100, wait: float = 0.0
    ) -> list[Delivery]:
        """Read deliveries after the consumer's cursor, or after another one.

        Waits for some if there are none.
        """
        return self._send(asking.pull(consumer, after, limit, wait)).items

    def acknowledge(self, consumer: str, cursor: int) -> None:
        """Tell that everything up to a cursor is done."""
        self._send(asking.acknowledge(consumer, cursor))

    def listen(
        self, consumer: str, *, after: int | None = None, acknowledge: bool = True
    ) -> Generator[Delivery, None, None]:
        """Give deliveries as they come, and go on after a lost connection where it was.

        One is acknowledged when the next one is asked for, together with others that came close to it:
        after a crash, the last few may come again.
        """
        done, unacked, acked = after, 0, time.monotonic()
        waits = self._retries.waits()
        try:
            while True:
                try:
                    for delivery in self._stream(asking.listen(consumer, done)):
                        yield delivery
                        waits = self._retries.waits()
                        done, unacked = delivery.cursor, unacked + 1
                        late = time.monotonic() - acked > SECONDS_UNACKNOWLEDGED
                        if acknowledge and (late or unacked >= MANY_UNACKNOWLEDGED):
                            self.acknowledge(consumer, done)
                            unacked, acked = 0, time.monotonic()
                    lost = ServiceError(f"{self.address} ended the stream")
                except ServiceError as error:
                    lost = error
                wait = next(waits, None)
                if wait is None or (lost.status is not None and lost.status not in asking.AGAIN):
                    raise lost
                time.sleep(wait)
        except GeneratorExit:
            # Whoever stops here is done with all but the last one.
            if acknowledge and unacked and done is not None:
                self.acknowledge(consumer, done)
            raise

    def _stream(self, ask: Ask[bytes]) -> Iterator[Delivery]:
        import urllib3

        stream = EventStream(Delivery)
        try:
            answer = self._pool.request(
                ask.method,
                self.address + ask.path,
                headers=asking.headers_of(self._key, ask.headers),
                timeout=urllib3.Timeout(connect=10.0, read=SILENCE),
                preload_content=False,
            )
            try:
                if answer.status >= 400:
                    asking.answer_of(ask, answer.status, answer.read())
                for piece in answer.stream(1 << 16):
                    yield from stream.feed(piece)
            finally:
                answer.close()
        except self._failures as error:
            raise ServiceError(f"{self.address} does not answer, or is lost: {error}") from None

    def _send(self, ask: Ask[A]) -> A:
        waits = iter(()) if ask.once else self._retries.waits()
        while True:
            try:
                answer = self._pool.request(
                    ask.method,
                    self.address + ask.path,
                    body=ask.body,
                    headers=asking.headers_of(self._key, ask.headers),
                    timeout=self._timeout,
                )
            except self._failures as error:
                wait = next(waits, None)
                if wait is None:
                    raise ServiceError(f"{self.address} does not answer: {error}") from None
                time.sleep(wait)
                continue
            if answer.status in asking.AGAIN and (wait := next(waits, None)) is not None:
                time.sleep(max(wait, asking.wait_of(answer.headers.get("Retry-After"))))
                continue
            return asking.answer_of(ask, answer.status, answer.data)
