"""Frames of server-sent events: what a reader makes of them is the delivery, whatever was framed before."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headgate.service.api.listening import frame
from headgate.service.delivery.state import Connection
from headgate.service.tenant.names import Delivery

SPACES = st.sampled_from([b"", b" ", b"\n", b"\r\n", b"\r", b"\n\n"])
TEXTS = st.builds(
    lambda space, value: b"{" + space + b'"v":' + space + json.dumps(value).encode() + b"}",
    SPACES,
    st.text(max_size=5) | st.integers() | st.just("x" * 5_000),
)
DELIVERIES = st.builds(
    Delivery, st.integers(1, 3), st.just(0), TEXTS, st.lists(st.text(max_size=3), min_size=1, max_size=3)
)


def _read(framed: bytes) -> tuple[str, Any]:
    assert framed.endswith(b"\n\n")
    fields = [line.split(b": ", 1) for line in framed[:-2].split(b"\n")]
    assert [name for name, _ in fields] == [b"id"] + [b"data"] * (len(fields) - 1)
    return fields[0][1].decode(), json.loads(b"\n".join(value for _, value in fields[1:]))


@given(st.lists(DELIVERIES, max_size=8))
def test_a_frame_is_its_delivery(deliveries: list[Delivery]) -> None:
    """Also where events of several tenants have one position."""
    for each in [*deliveries, *deliveries]:
        said = {
            "cursor": each.position,
            "subscriptions": each.subscriptions,
            "event": json.loads(each.text),
        }
        assert _read(frame(each)) == (str(each.position), said)


class _Exchange:
    """What a server has of a request, and its transport."""

    def __init__(self) -> None:
        self.transport = self
        self.chunked_encoding: bool | None = True
        self.waits, self.closed, self.written = 0, False, b""

    async def receive(self) -> None:
        """Receive nothing."""

    def get_extra_info(self, _: str) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return self.waits

    def write(self, part: bytes) -> None:
        self.written += part


def test_what_is_written_at_once() -> None:
    exchange = _Exchange()
    write = Connection(exchange.receive).writer()
    assert write is not None
    assert write(b"x" * 17)
    assert exchange.written == b"11\r\n" + b"x" * 17 + b"\r\n"
    exchange.waits = 1
    assert not write(b"more than a client that stalls may have")
    exchange.waits, exchange.closed = 0, True
    assert not write(b"and nothing after the end")
    assert exchange.written.count(b"\r\n") == 2
    exchange.chunked_encoding = False
    assert Connection(exchange.receive).writer() is None
    assert Connection(None).writer() is None
