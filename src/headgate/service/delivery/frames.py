"""A delivery as it is sent: a JSON object, or a frame of server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
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
    found = delivery.text, head, b',"event":%b}\n\n' % text
    if len(text) <= _SMALL:
        if len(_AROUND) >= _KEPT:
            _AROUND.clear()
        _AROUND[position] = found
    return found


def notice(event: str, **members: object) -> bytes:
    r"""Write something that is no delivery as a server-sent event.

    >>> notice("end", reason="stopping")
    b'event: end\ndata: {"reason":"stopping"}\n\n'
    """
    return b"event: %b\ndata: %b\n\n" % (event.encode(), _encode(members))
