"""The client for programs on asyncio."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from headgate.client import asking
from headgate.client.asking import Ask, Delivery, EventStream, Retries
from headgate.client.client import MANY_UNACKNOWLEDGED, SECONDS_UNACKNOWLEDGED, SILENCE
from headgate.core.machine import need
from headgate.errors import ServiceError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
    from typing import Self

    from headgate.client.asking import Imported, KeptEvents, PublishedEvents


class _HasCursor(Protocol):
    @property
    def cursor(self) -> int: ...


A = TypeVar("A")
T = TypeVar("T", bound=_HasCursor)


class AsyncClient:
    """A service, for programs on asyncio. Its calls are those of `Client`, where it is said what they mean.

    async with AsyncClient() as client:
        await client.publish({"id": "e1", "price": 5})
        async for delivery in client.listen("me"):
            print(delivery.data)
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
        import aiohttp

        self.address = asking.address_of(address)
        self._key = key
        self._retries = retries or Retries()
        self._timeout = aiohttp.ClientTimeout(timeout)
        self._session: aiohttp.ClientSession | None = None
        self._failures = (aiohttp.ClientError, asyncio.TimeoutError, OSError)

    async def __aenter__(self) -> Self:
        """Return the client."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.close()

    async def close(self) -> None:
        """Close its connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        """Ask any operation of the API: `ask("GET", "/v1/consumers")`; returns its answer as JSON has it."""
        return await self.send(asking.any_of(method, path, body))

    async def publish(
        self, events: Any, *, matches: bool = False, partial: bool = False, key: str | None = None
    ) -> PublishedEvents:
        """Publish one event or several; they are on disk when this returns."""
        return await self.send(asking.publish(events, matches=matches, partial=partial, key=key))

    async def match(self, events: Any) -> list[list[str]]:
        """Ask who matches each of some events; nothing is kept."""
        return [each.get("matches", []) for each in (await self.send(asking.match(events)))["events"]]

    async def explain(self, event: Any, subscription: str) -> dict[str, Any]:
        """Ask why a subscription gets an event or not."""
        return await self.send(asking.explain(event, subscription))

    async def kept(self, *, after: int = 0, limit: int = 1_000) -> KeptEvents:
        """Read events that are kept and come after a cursor, in order."""
        return await self.send(asking.kept(after, limit))

    async def subscribe(
        self,
        identity: str,
        text: str,
        *,
        revision: str | None = None,
        **fields: Any,
    ) -> dict[str, Any]:
        """Have a subscription."""
        return await self.send(asking.put_subscription(identity, {"filter": text, **fields}, revision))

    async def unsubscribe(self, identity: str) -> None:
        """Have no subscription of an id."""
        await self.send(asking.delete_subscription(identity))

    async def subscription(self, identity: str) -> dict[str, Any]:
        """Read a subscription."""
        return await self.send(asking.get_subscription(identity))

    async def subscriptions(self, search: str | None = None) -> AsyncIterator[dict[str, Any]]:
        """List subscriptions, in the order of their ids."""
        after: str | None = ""
        while after is not None:
            page = await self.send(asking.list_subscriptions(after, 1_000, search))
            for each in page.items:
                yield each
            after = page.next

    async def import_subscriptions(self, rows: Iterable[Mapping[str, Any] | bytes]) -> Imported:
        """Have many subscriptions."""
        return await self.send(asking.import_subscriptions(rows))

    async def consumer(self, identity: str, **fields: Any) -> dict[str, Any]:
        """Have a consumer."""
        return await self.send(asking.put_consumer(identity, fields))

    async def pull(
        self, consumer: str, *, after: int | None = None, limit: int = 100, wait: float = 0.0
    ) -> list[Delivery]:
        """Read deliveries after the consumer's cursor, or after another one."""
        return (await self.send(asking.pull(consumer, after, limit, wait))).items

    async def acknowledge(self, consumer: str, cursor: int) -> None:
        """Tell that everything up to a cursor is done."""
        await self.send(asking.acknowledge(consumer, cursor))

    def listen(
        self, consumer: str, *, after: int | None = None, acknowledge: bool = True
    ) -> AsyncGenerator[Delivery, None]:
        """Give deliveries as they come, and go on after a lost connection where it was."""
        return self.listen_as(Delivery, consumer, after=after, acknowledge=acknowledge)

    async def listen_as(
        self, form: type[T], consumer: str, *, after: int | None = None, acknowledge: bool = True
    ) -> AsyncGenerator[T, None]:
        """Give deliveries as `listen` does, each in a form: a struct of `cursor` and other fields of it."""
        done, unacked, acked = after, 0, time.monotonic()
        waits = self._retries.waits()
        try:
            while True:
                try:
                    async for delivery in self._stream(form, asking.listen(consumer, done)):
                        yield delivery
                        waits = self._retries.waits()
                        done, unacked = delivery.cursor, unacked + 1
                        late = time.monotonic() - acked > SECONDS_UNACKNOWLEDGED
                        if acknowledge and (late or unacked >= MANY_UNACKNOWLEDGED):
                            await self.acknowledge(consumer, done)
                            unacked, acked = 0, time.monotonic()
                    lost = ServiceError(f"{self.address} ended the stream")
                except ServiceError as error:
                    lost = error
                wait = next(waits, None)
                if wait is None or (lost.status is not None and lost.status not in asking.AGAIN):
                    raise lost
                await asyncio.sleep(wait)
        except GeneratorExit:
            # Whoever stops here is done with all but the last one.
            if acknowledge and unacked and done is not None:
                await self.acknowledge(consumer, done)
            raise

    async def _stream(self, form: type[T], ask: Ask[bytes]) -> AsyncIterator[T]:
        import aiohttp

        stream = EventStream(form)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=SILENCE)
        try:
            async with self._open().request(
                ask.method,
                self.address + ask.path,
                headers=asking.headers_of(self._key, ask.headers),
                timeout=timeout,
            ) as answer:
                if answer.status >= 400:
                    asking.answer_of(ask, answer.status, await answer.read())
                async for piece in answer.content.iter_any():
                    for delivery in stream.feed(piece):
                        yield delivery
        except self._failures as error:
            raise ServiceError(f"{self.address} does not answer, or is lost: {error}") from None

    def _open(self) -> Any:
        import aiohttp

        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout)
        return self._session

    async def send(self, ask: Ask[A]) -> A:
        """Ask something; what can be repeated is, where the service does not answer."""
        waits = iter(()) if ask.once else self._retries.waits()
        while True:
            try:
                async with self._open().request(
                    ask.method,
                    self.address + ask.path,
                    data=ask.body,
                    headers=asking.headers_of(self._key, ask.headers),
                ) as answer:
                    body, status, later = (
                        await answer.read(),
                        answer.status,
                        answer.headers.get("Retry-After"),
                    )
            except self._failures as error:
                wait = next(waits, None)
                if wait is None:
                    raise ServiceError(f"{self.address} does not answer: {error}") from None
                await asyncio.sleep(wait)
                continue
            if status in asking.AGAIN and (wait := next(waits, None)) is not None:
                await asyncio.sleep(max(wait, asking.wait_of(later)))
                continue
            return asking.answer_of(ask, status, body)
