"""Filters that are left out of an event, because asking them would take too long for all the others.

A room that leaves a filter out tells it here, and goes on: the filter counts as one that does not hold. Who
wants to know collects; what nobody collects is logged, so that it is never silent. Rooms that keep filters
of others under numbers of their own give them the names back (`RenamedOmissions`).
"""

from __future__ import annotations

import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType
    from typing import Self

    import pyarrow as pa

    from headgate.core.event import Id


_T = TypeVar("_T")


# A generator with a `with` around a `yield` would leave the block open in whoever goes through it.
def within(block: Callable[[], AbstractContextManager[object]], items: Iterable[_T]) -> Iterator[_T]:
    """Go through items; each is made inside a block of its own.

    >>> from contextlib import nullcontext
    >>> list(within(nullcontext, iter("ab")))
    ['a', 'b']
    """
    left = iter(items)
    while True:
        with block():
            try:
                item = next(left)
            except StopIteration:
                return
        yield item


_LOG = logging.getLogger("headgate.omissions")


class Omission(NamedTuple):
    """A filter that was left out: for which event, whose it is, and why.

    `subscription` is None for the filter of a node or an edge of a graph, and for a clause; `reason` says
    then which it is.
    """

    event: Id | None
    subscription: Id | None
    reason: str


def _log(omission: Omission) -> None:
    whose = "a filter" if omission.subscription is None else f"subscription {omission.subscription!r}"
    _LOG.warning("%s is left out of event %r: %s", whose, omission.event, omission.reason)


_TOLD: ContextVar[Callable[[Omission], None]] = ContextVar("headgate-omissions", default=_log)


def tell(event: Id | None, subscription: Id | None, reason: str) -> None:
    """Tell that a filter is left out of an event."""
    _TOLD.get()(Omission(event, subscription, reason))


def tell_all(event: Id | None, left_out: Iterable[tuple[Id, str]]) -> None:
    """Tell that some filters are left out of an event, each with the reason."""
    for identity, reason in left_out:
        tell(event, identity, reason)


class _OmissionBlock:
    """Has omissions told to somebody else within a block, in this thread."""

    def __enter__(self) -> Self:
        self._before = _TOLD.set(self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _TOLD.reset(self._before)

    def _take(self, omission: Omission) -> None:
        raise NotImplementedError


class Omissions(_OmissionBlock):
    """Collects what is left out within a block, each filter once an event, instead of logging it.

    >>> with Omissions() as left_out:
    ...     tell("e1", "s1", "too much")
    >>> list(left_out)
    [Omission(event='e1', subscription='s1', reason='too much')]
    """

    def __init__(self) -> None:
        self._found: dict[Omission, None] = {}

    def __iter__(self) -> Iterator[Omission]:
        """List them, in the order in which they were told."""
        return iter(list(self._found))

    def __len__(self) -> int:
        """Count them."""
        return len(self._found)

    def _take(self, omission: Omission) -> None:
        self._found[omission] = None


class RenamedOmissions(_OmissionBlock):
    """Gives what is told within a block other names, and tells that on; None is not told."""

    def __init__(self, rename: Callable[[Omission], Omission | None]) -> None:
        self._rename = rename
        self._onward = _TOLD.get()

    def _take(self, omission: Omission) -> None:
        named = self._rename(omission)
        if named is not None:
            self._onward(named)


def by_row(ids: pa.Array[Any], begin: int = 0) -> Callable[[Omission], Omission]:
    """Give events that are told by their rows, counted from `begin`, their ids."""
    return lambda found: found._replace(event=ids[begin + int(found.event or 0)].as_py())


def renaming(rename: Callable[[Omission], Omission | None], items: Iterable[_T]) -> Iterator[_T]:
    """Go through items; what is told while one is made gets other names, and not what is told between."""
    return within(lambda: RenamedOmissions(rename), items)
