"""What is made of events once, though several indexes are asked about them.

Indexes of one kind, such as the shards of a snapshot in one memory, begin alike: they read columns, or parse.
Who asks several of them about the same events opens a `Sharing` around it; what a kind makes `once` is then
kept until the block ends.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.core.stepping import within

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

    from headgate.core.event import Event

    Events = pa.RecordBatch | Sequence[Event]

_T = TypeVar("_T")
_KEPT: ContextVar[dict[tuple[int, object], tuple[object, Any]] | None] = ContextVar(
    "headgate-sharing", default=None
)


class Sharing:
    """Keeps what is made of events while it is open, in this thread; may be opened again and again.

    >>> rows, made = [1, 2], []
    >>> with Sharing():
    ...     once(rows, made.append), once(rows, made.append)
    (None, None)
    >>> made
    [[1, 2]]
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[int, object], tuple[object, Any]] = {}

    def __enter__(self) -> Self:
        self._before = _KEPT.set(self._kept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _KEPT.reset(self._before)

    def each(self, items: Iterable[_T]) -> Iterator[_T]:
        """Go through items; it is open while one is made, and not between."""
        return within(lambda: self, items)


def once(events: Any, make: Callable[[Any], _T]) -> _T:
    """Make something of events, or return what was made of the same ones before.

    The events are kept with it, so that no others are taken for them.
    """
    kept = _KEPT.get()
    if kept is None:
        return make(events)
    key = id(events), make
    found = kept.get(key)
    if found is None:
        found = kept[key] = (events, make(events))
    made: _T = found[1]
    return made


def slice_of(events: Any, begin: int, end: int) -> Any:
    """Take events from one to another; all of them are the same ones, not a copy."""
    return events if begin == 0 and end >= len(events) else events[begin:end]
