"""A delivery as it is sent: a JSON object, or a frame of server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from headgate.service.tenant.names import Delivery

HEARTBEAT = b":\n\n"
"""A comment: it says that the connection is alive, and is no event."""
_encode = msgspec.json.Encoder().encode


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
    text = delivery.text
    if b"\n" in text or b"\r" in text:
        # Line ends stand between the tokens of JSON only, so that any of them will do.
        text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").replace(b"\n", b"\ndata: ")
    return b'id: %d\ndata: {"cursor":%d,"subscriptions":%b,"event":%b}\n\n' % (
        delivery.position,
        delivery.position,
        _encode(delivery.subscriptions),
        text,
    )


def notice(event: str, **members: object) -> bytes:
    r"""Write something that is no delivery as a server-sent event.

    >>> notice("end", reason="stopping")
    b'event: end\ndata: {"reason":"stopping"}\n\n'
    """
    return b"event: %b\ndata: %b\n\n" % (event.encode(), _encode(members))
