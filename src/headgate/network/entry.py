"""What stands in the log of a site: results of views, and marks of how far views have come.

Both are CloudEvents, so that everybody who may read the log can read them. A result belongs to a view and to
a document, whose number is its position in the log of the publisher. A mark says that all results of some
views, up to a document, stand before it.

What a view gives stays the text that it came as until something is computed from it: a site hands on most of
what it takes, and read, it takes ten times the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.core.event import Event, Id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULT, MARK = "headgate.result", "headgate.mark"
_SOURCE = "/headgate/network"
_encode = msgspec.json.Encoder().encode


class Result(NamedTuple):
    """What a view gives for a document."""

    view: Id
    document: int
    text: bytes
    """That, packed, in JSON."""
    event: Id
    """The id of the document."""
    began: int
    """When the source took the document up, in microseconds since 1970."""
    path: Sequence[Sequence[Any]] = ()
    """The sites that it went through, and when each had it, in microseconds since it began."""

    def written(self) -> tuple[Event, bytes]:
        """Return what filters look at, and the text that is kept."""
        identity = f"{self.document}/{self.view}"
        data = {
            "view": self.view,
            "document": self.document,
            "event": self.event,
            "began": self.began,
            "path": self.path,
            "result": msgspec.Raw(self.text),
        }
        text = _encode(
            {"specversion": "1.0", "id": identity, "source": _SOURCE, "type": RESULT, "data": data}
        )
        return Event(identity, {"view": self.view, "document": self.document}), text


class Mark(NamedTuple):
    """How far views have come: the last document of which all is there."""

    upto: Mapping[Id, int]

    def written(self) -> tuple[Event, bytes]:
        """Return what filters look at, and the text that is kept."""
        pairs = list(self.upto.items())
        last = max(self.upto.values(), default=0)
        text = _encode(
            {"specversion": "1.0", "id": f"mark {last}", "source": _SOURCE, "type": MARK, "data": pairs}
        )
        return Event(f"mark {last}", {"mark": True}), text


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    data: msgspec.Raw = msgspec.Raw(b"null")


class _Result(msgspec.Struct, frozen=True):
    view: Id
    document: int
    result: msgspec.Raw
    event: Id
    began: int
    path: list[list[Any]]


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_result = msgspec.json.Decoder(_Result).decode
_read_mark = msgspec.json.Decoder(list[tuple[Id, int]]).decode


def read_entry(event: bytes | msgspec.Raw) -> Result | Mark | None:
    """Read an entry of a site's log, a CloudEvent in JSON; None if it is something else."""
    envelope = _read_envelope(event)
    if envelope.type == RESULT:
        found = _read_result(envelope.data)
        return Result(found.view, found.document, bytes(found.result), found.event, found.began, found.path)
    return Mark(dict(_read_mark(envelope.data))) if envelope.type == MARK else None


def filter_of(views: Sequence[Id]) -> str:
    """Write the filter of a site that takes views from another: their results, and all marks."""
    texts = [str(each) if isinstance(each, int) else "'" + each.replace("'", "''") + "'" for each in views]
    kinds = [
        [text for text, each in zip(texts, views, strict=True) if isinstance(each, int) is whole]
        for whole in (True, False)
    ]
    wanted = [f"view IN ({', '.join(some)})" for some in kinds if some]
    return " OR ".join(["mark", *wanted])
