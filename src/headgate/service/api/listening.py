"""Consuming by connection: server-sent events, and WebSocket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from starlette.responses import Response
from starlette.websockets import WebSocketDisconnect

from headgate.errors import HeadgateError
from headgate.service.api.operation import READ, SUBSCRIBE, Call, is_number, operation, read_query
from headgate.service.delivery.hub import Closed
from headgate.service.problems import Conflict, Problem
from headgate.service.resources import Cursor
from headgate.service.security.keys import check_scope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import HTTPConnection
    from starlette.websockets import WebSocket

    from headgate.service.delivery.dispatcher import Dispatcher
    from headgate.service.delivery.state import Listener, LiveConsumer
    from headgate.service.security.keys import Key
    from headgate.service.server import Server
    from headgate.service.tenant.names import Delivery


HEARTBEAT = b":\n\n"
"""A comment: it says that the connection is alive, and is no event."""
_encode = msgspec.json.Encoder().encode
_KEPT = 128
"""Events whose frames are kept in part, at most."""
_SMALL = 2 << 10
"""Bytes of such an event, at most."""
_AROUND: dict[int, tuple[bytes, bytes, bytes]] = {}
"""By position: the text of which it is (another tenant's event may have the position), and two parts."""


def message(delivery: Delivery) -> bytes:
    """Write a delivery as JSON; the event's text is as it was kept.

    >>> from headgate.service.tenant.names import Delivery
    >>> message(Delivery(7, 0, b'{"id":"e"}', ["s"])).decode()
    '{"cursor":7,"subscriptions":["s"],"event":{"id":"e"}}'
    """
    return b'{"cursor":%d,"subscriptions":%b,"event":%b}' % (
        delivery.position,
        _encode(delivery.subscriptions),
        delivery.text,
    )


def frame(delivery: Delivery) -> bytes:
    """Write a delivery as a server-sent event; a text of many lines is many lines of data.

    >>> from headgate.service.tenant.names import Delivery
    >>> print(frame(Delivery(7, 0, b'{}', ["s"])).decode(), end="")
    id: 7
    data: {"cursor":7,"subscriptions":["s"],"event":{}}
    <BLANKLINE>
    """
    # What one gets is what others get but for the subscriptions: one after another, mostly.
    known = _AROUND.get(delivery.position)
    if known is None or known[0] is not delivery.text:
        known = _around(delivery)
    return b"".join((known[1], _encode(delivery.subscriptions), known[2]))


def _around(delivery: Delivery) -> tuple[bytes, bytes, bytes]:
    """Write what stands before and behind the subscriptions in an event's frames; keeps small ones."""
    text = delivery.text
    if b"\n" in text or b"\r" in text:
        # Line ends stand between the tokens of JSON only, so that any of them will do.
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    position = delivery.position
    head = b'id: %d\ndata: {"cursor":%d,"subscriptions":' % (position, position)
    parts = delivery.text, head, b',"event":%b}\n\n' % text
    if len(text) <= _SMALL:
        if len(_AROUND) >= _KEPT:
            _AROUND.clear()
        _AROUND[position] = parts
    return parts


def notice(event: str, **members: object) -> bytes:
    r"""Write something that is no delivery as a server-sent event.

    >>> notice("end", reason="stopping")
    b'event: end\ndata: {"reason":"stopping"}\n\n'
    """
    return b"event: %b\ndata: %b\n\n" % (event.encode(), _encode(members))


EVENTS = "text/event-stream"
_MESSAGE = 64 << 10
"""Bytes of a message that a client sends."""
_IN_JSON = {"contentMediaType": "application/json", "contentSchema": {"type": "object"}}
_WRONG, _TOO_LARGE, _AWAY = 1008, 1009, 1001


class ListenQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """Where a listener begins, and who acknowledges."""

    after: Cursor | None = None
    """After a cursor; after what is acknowledged, if none is given. `Last-Event-ID` comes first."""
    acknowledge: Literal["manual", "auto"] = "manual"
    """`auto` moves the consumer's cursor as events are sent."""


class SentEvent(msgspec.Struct, kw_only=True):
    """One event of the stream, as a client of server-sent events reads it; comments say that it is alive."""

    id: str = ""
    """The cursor of a delivery: `Last-Event-ID` of who connects again."""
    event: Literal["message", "passed", "end"] = "message"
    """A delivery; or that events before it are not kept any more; or why the stream ends."""
    data: Annotated[str, msgspec.Meta(extra_json_schema=_IN_JSON)]


class Said(msgspec.Struct, forbid_unknown_fields=True):
    """A message of a client."""

    acknowledge: Cursor


@operation(
    "GET",
    "/v1/consumers/{id}/listen",
    READ,
    answers={200: SentEvent},
    problems=(409,),
    answer_media=EVENTS,
    example="-N",
)
async def listen(call: Call, query: ListenQuery) -> Response:
    """Listen to a consumer's deliveries as server-sent events."""
    state, after, acknowledges = _begin(call.dispatcher, call.request, query, call.key)
    if call.request.method == "HEAD":
        return Response(headers=_HEADERS, media_type=EVENTS)
    return EventStream(call.dispatcher, state, after, acknowledges=acknowledges)


_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def _begin(
    dispatcher: Dispatcher, connection: HTTPConnection, query: ListenQuery, key: Key
) -> tuple[LiveConsumer, int, bool]:
    """Return the consumer, the cursor that a listener begins after, and whether sending acknowledges."""
    state, after = dispatcher.state(connection.path_params["id"]), query.after
    acknowledges = query.acknowledge == "auto"
    if acknowledges:
        check_scope(key, SUBSCRIBE)
        if state.said.url is not None:
            raise Conflict(f"consumer {state.id!r} has a webhook, which acknowledges by its answers")
    last = connection.headers.get("last-event-id", "").strip()
    if last:
        if not is_number(last):
            raise Problem(f"Last-Event-ID is {last!r}: give the id of an event that came", 400)
        after = int(last)
    cursor = state.cursor if after is None else after
    dispatcher.check_after(cursor)
    return state, cursor, acknowledges


class EventStream(Response):
    """An answer that goes on as long as somebody listens."""

    media_type = EVENTS

    def __init__(
        self, dispatcher: Dispatcher, state: LiveConsumer, after: int, *, acknowledges: bool
    ) -> None:
        super().__init__(None, 200, _HEADERS)
        self._dispatcher = dispatcher
        self._state = state
        self._after = after
        self._acknowledges = acknowledges

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Send deliveries until the client goes, or is cut off."""
        del scope
        # Middleware wraps `send` twice, and has nothing to do here.
        send = getattr(getattr(receive, "__self__", None), "send", send)
        listener = self._dispatcher.listen(
            "server-sent events", self._state, self._after, receive, acknowledges=self._acknowledges
        )
        headers = [pair for pair in self.raw_headers if pair[0] != b"content-length"]
        gone = asyncio.ensure_future(_gone(receive))
        gone.add_done_callback(lambda _: listener.feed.close("the client is gone"))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": headers})

            async def write(body: bytes) -> None:
                listener.sent += len(body)
                await send({"type": "http.response.body", "body": body, "more_body": True})

            await write(HEARTBEAT)
            listener.feed.direct = _directly(self._dispatcher, listener)
            reason = await _send(self._dispatcher, listener, write, frame, b"".join, _passed_frame)
            last = notice("end", reason=reason)
            await send({"type": "http.response.body", "body": last, "more_body": False})
        finally:
            gone.cancel()
            self._dispatcher.unlisten(listener)


def _directly(dispatcher: Dispatcher, listener: Listener) -> Callable[[list[Delivery]], bool] | None:
    """Make what sends at once while nothing waits, past the steps of ASGI; None where that is not possible.

    What does not go out at once is left to the coroutine, which waits as long as the client makes it wait.
    """
    put = listener.writer()
    if put is None:
        return None
    counts, way, time = dispatcher.counts, listener.way, dispatcher.hub.loop.time

    def direct(deliveries: list[Delivery]) -> bool:
        body = frame(deliveries[0]) if len(deliveries) == 1 else b"".join(map(frame, deliveries))
        if not put(body):
            return False
        listener.sent += len(body)
        listener.last = time()
        counts[way] += len(deliveries)
        if listener.acknowledges:
            dispatcher.journal.advance(listener.state, deliveries[-1].position)
        return True

    return direct


async def _gone(receive: Any) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _send(
    dispatcher: Dispatcher,
    listener: Listener,
    write: Callable[[Any], Awaitable[None]],
    form: Callable[[Any], bytes],
    join: Callable[[list[bytes]], Any],
    tell: Callable[[int, int], bytes],
) -> str:
    """Hand what a feed has to a connection, until it ends; returns why."""
    feed, state = listener.feed, listener.state
    try:
        while True:
            deliveries = await feed.next()
            passed = feed.take_passed()
            if passed is not None:
                await write(tell(*passed))
            moved = state.moved
            if deliveries:
                await write(join([form(each) for each in deliveries]))
                _sent(dispatcher, listener, deliveries if moved == state.moved and not feed.closed else [])
            elif passed is None:
                await write(HEARTBEAT)
                listener.last = dispatcher.hub.loop.time()
    except Closed as error:
        return str(error)


def _sent(dispatcher: Dispatcher, listener: Listener, deliveries: list[Delivery]) -> None:
    """Note what was sent."""
    dispatcher.counts[listener.way] += len(deliveries)
    listener.last = dispatcher.hub.loop.time()
    if listener.acknowledges and deliveries:
        dispatcher.journal.advance(listener.state, deliveries[-1].position)


def _passed_frame(after: int, first: int) -> bytes:
    return notice("passed", after=after, first=first)


def _passed_message(after: int, first: int) -> bytes:
    return b'{"passed":{"after":%d,"first":%d}}' % (after, first)


def socket_of(server: Server) -> Any:
    """Make what answers at a WebSocket."""

    async def endpoint(websocket: WebSocket) -> None:
        from headgate.service.api.app import refusal, who_asks

        try:
            key = who_asks(server, websocket)
            check_scope(key, READ)
            await server.tenant(key.tenant)
            dispatcher = server.dispatchers[key.tenant]
            query = read_query(websocket, ListenQuery)
            state, after, acknowledges = _begin(dispatcher, websocket, query, key)
        except HeadgateError as error:
            await websocket.send_denial_response(refusal(websocket, error))
            return
        await websocket.accept()
        await _talk(websocket, dispatcher, state, key, after, acknowledges=acknowledges)

    return endpoint


async def _talk(
    websocket: WebSocket,
    dispatcher: Dispatcher,
    state: LiveConsumer,
    key: Key,
    after: int,
    *,
    acknowledges: bool,
) -> None:
    """Send and hear, until one side ends."""
    listener = dispatcher.listen("WebSocket", state, after, websocket._receive, acknowledges=acknowledges)  # noqa: SLF001
    hearing = asyncio.ensure_future(_hear(websocket, dispatcher, state, key))
    hearing.add_done_callback(lambda _: listener.feed.close("the client is gone"))

    async def write(messages: bytes | list[bytes]) -> None:
        for each in messages if isinstance(messages, list) else [messages]:
            if each is HEARTBEAT:
                # The server's own pings are the signs of life here.
                return
            listener.sent += len(each)
            await websocket.send({"type": "websocket.send", "text": each.decode()})

    try:
        reason = await _send(dispatcher, listener, write, message, list, _passed_message)
        if hearing.done():
            code, reason = (_AWAY, "") if hearing.exception() else hearing.result()
        else:
            code = _AWAY
        if code is not None:
            await websocket.close(code, reason[:100])
    except (WebSocketDisconnect, RuntimeError):
        # It was closed by the other side meanwhile.
        return
    finally:
        hearing.cancel()
        dispatcher.unlisten(listener)


async def _hear(
    websocket: WebSocket, dispatcher: Dispatcher, state: LiveConsumer, key: Key
) -> tuple[int | None, str]:
    """Hear what a client says; returns the code and the reason to end with, or None if it has ended."""
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return None, ""
        text = message.get("text") or message.get("bytes") or b""
        if len(text) > _MESSAGE:
            return _TOO_LARGE, f"a message has more than {_MESSAGE} bytes"
        try:
            check_scope(key, SUBSCRIBE)
            asked = msgspec.json.decode(text, type=Said)
            cursor = await dispatcher.acknowledge(state, asked.acknowledge)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return _WRONG, f'send {{"acknowledge": cursor}}: {error}'
        except HeadgateError as error:
            return _WRONG, str(error)
        await websocket.send({"type": "websocket.send", "text": f'{{"acknowledged":{cursor}}}'})
