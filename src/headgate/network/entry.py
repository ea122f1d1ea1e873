"""What stands in the log of a site: results of views, and marks of how far views have come.

Both are CloudEvents, so that everybody who may read the log can read them. A result belongs to a view and to
a document, whose number is its position in the log of the publisher. A mark says that all results of some
views, up to a document, stand before it.

What a view gives stays the text that it came as until something is computed from it: a site hands on most of
what it takes, and read, it takes ten times the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headgate.core.event import Event, Id
from headgate.service.envelope import write_envelope

if TYPE_CHECKING:
    from collections.abc import Mapping

RESULT, MARK = "headgate.result", "headgate.mark"
_SOURCE = "/headgate/network"


class Result(msgspec.Struct, frozen=True):
    """What a view gives for a document."""

    view: Id
    document: int
    text: msgspec.Raw = msgspec.field(name="result")
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
        text = write_envelope(identity, _SOURCE, RESULT, self)
        return Event(identity, {"view": self.view, "document": self.document}), text


class Mark(NamedTuple):
    """How far views have come: the last document of which all is there."""

    upto: Mapping[Id, int]

    def written(self) -> tuple[Event, bytes]:
        """Return what filters look at, and the text that is kept."""
        pairs = list(self.upto.items())
        last = max(self.upto.values(), default=0)
        text = write_envelope(f"mark {last}", _SOURCE, MARK, pairs)
        return Event(f"mark {last}", {"mark": True}), text


class _Envelope(msgspec.Struct, frozen=True):
    type: str
    data: msgspec.Raw = msgspec.Raw(b"null")


_read_envelope = msgspec.json.Decoder(_Envelope).decode
_read_result = msgspec.json.Decoder(Result).decode
_read_mark = msgspec.json.Decoder(list[tuple[Id, int]]).decode


def read_entry(event: bytes | msgspec.Raw) -> Result | Mark | None:
    """Read an entry of a site's log, a CloudEvent in JSON; None if it is something else."""
    envelope = _read_envelope(event)
    if envelope.type == RESULT:
        result = _read_result(envelope.data)
        # What it was read from is not kept in memory.
        return msgspec.structs.replace(result, text=result.text.copy())
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
