"""Server-sent events: lines to deliveries, whatever pieces the lines come in."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headgate.client.model import Delivery

if TYPE_CHECKING:
    from collections.abc import Iterator

_decode = msgspec.json.Decoder(Delivery).decode


class EventStream:
    r"""Reads the body of a stream piece by piece.

    >>> stream = EventStream()
    >>> list(stream.feed(b'id: 7\ndata: {"cursor":7,"subscriptions":["a"],'))
    []
    >>> [delivery.cursor for delivery in stream.feed(b'"event":{}}\n\n')]
    [7]
    """

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._name = b"delivery"

    def feed(self, piece: bytes) -> Iterator[Delivery]:
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
                    yield _decode(b"\n".join(self._data))
                self._data.clear()
                self._name = b"delivery"
