"""Server-sent events: lines to deliveries, whatever pieces the lines come in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


class EventStream(Generic[T]):
    r"""Reads the body of a stream piece by piece, each delivery in a form: all of it, or some of its fields.

    >>> from headgate.client.model import Delivery
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
