"""Every exception that Headgate raises on purpose.

    HeadgateError                 one line: what, where, why, what would be right
    ├── FilterError               a filter text was refused; knows the position in the text
    ├── EventError                an event was refused
    ├── SubscriptionError         a subscription was refused for something else than its filter
    ├── GraphError                a node, an edge or a source was refused
    ├── TaxonomyError             a statement of a taxonomy, or all of it, was refused
    ├── PlanError                 no plan can be made of this, or not as asked
    ├── SnapshotError             a snapshot is damaged, foreign, newer, or in the way
    ├── TableError                an input or output file cannot be used as asked
    ├── StorageError              what the service keeps cannot be read or written
    ├── ServiceError              a service refused a request, or cannot be reached; knows the status
    └── MachineError              the machine lacks something (Java, memory, a package)

The command line prints the message of a `HeadgateError` as one line and exits with its
`exit_code`; anything else is a defect of ours and shows its traceback.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping


__all__ = [
    "EventError",
    "FilterError",
    "GraphError",
    "HeadgateError",
    "MachineError",
    "PlanError",
    "ServiceError",
    "SnapshotError",
    "StorageError",
    "SubscriptionError",
    "TableError",
    "TaxonomyError",
]


class HeadgateError(Exception):
    """The root of the tree; its text is one line, ready to be shown."""

    exit_code = 1
    names_it = True
    """Whether the text says which subscription is refused; it does if one is at all."""
    full = False
    """Whether it tells that a disk is full."""
    refused: Mapping[Any, HeadgateError] = MappingProxyType({})
    """All subscriptions that are refused for a reason like this, by id, if they were looked at together."""


class FilterError(HeadgateError):
    """Refuse a filter text.

    `position` counts characters from 0; it is None when no single place is at fault.

    >>> str(FilterError("'+' is not part of the filter language", "a + 1 = 2", 2))
    "'+' is not part of the filter language, at character 3: a ⟪+ 1 = 2"
    """

    names_it = False

    def __init__(self, reason: str, text: str, position: int | None) -> None:
        self.reason = reason
        self.position = position
        super().__init__(reason if position is None else f"{reason}, {_place(text, position)}")


class EventError(HeadgateError):
    """Refuse an event."""


class SubscriptionError(HeadgateError):
    """Refuse a subscription for another reason than its filter's text."""

    def __init__(self, message: str, *, names_it: bool = True) -> None:
        self.names_it = names_it
        super().__init__(message)


class GraphError(HeadgateError):
    """Refuse a part of a graph, or a source that is not in it."""


class TaxonomyError(HeadgateError):
    """Refuse a statement of a taxonomy, or a taxonomy."""


class PlanError(HeadgateError):
    """Refuse a plan, or say why there is none."""


class NetworkError(HeadgateError):
    """Refuse an assignment of a site, or tell what a network of sites cannot do."""


class SnapshotError(HeadgateError):
    """Refuse a snapshot directory, or to write over something that is not one."""


class TableError(HeadgateError):
    """Refuse an input or output file."""


class StorageError(HeadgateError):
    """Refuse a data directory, or tell that it cannot be read or written; `full` if the disk is."""

    def __init__(self, message: str, *, full: bool = False) -> None:
        self.full = full
        super().__init__(message)


class ServiceError(HeadgateError):
    """Tell what a service answered instead of what was asked for; the status is None if it did not answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status = status
        super().__init__(message)


class MachineError(HeadgateError):
    """Report what the machine lacks."""


def _place(text: str, position: int) -> str:
    """Show some text around a position, on one line, with a mark before the character."""
    start, stop = max(0, position - 20), position + 20
    before = ("…" if start else "") + text[start:position]
    after = text[position:stop] + ("…" if stop < len(text) else "")
    shown = "".join(sign if sign.isprintable() else " " for sign in f"{before}⟪{after}")
    return f"at character {position + 1}: {shown}"


class _Row(Protocol):
    @property
    def id(self) -> Any: ...


RowT = TypeVar("RowT", bound=_Row)
MadeT = TypeVar("MadeT")


def raise_first(refused: Mapping[Any, HeadgateError]) -> None:
    """Raise the first of some refusals, if there are any; it knows all of them, as `refused`."""
    for error in refused.values():
        error.refused = refused
        raise error


def tried(
    rows: Iterable[RowT], make: Callable[[RowT], MadeT]
) -> tuple[list[MadeT], dict[Any, HeadgateError]]:
    """Make something of each row; returns it, and why other rows are refused, by id."""
    made: list[MadeT] = []
    refused: dict[Any, HeadgateError] = {}
    for row in rows:
        try:
            made.append(make(row))
        except HeadgateError as error:
            refused[row.id] = error
    return made, refused


def made_of(rows: Iterable[RowT], make: Callable[[RowT], MadeT]) -> list[MadeT]:
    """Do the same; if some are refused, the first of them is raised, with all of them."""
    made, refused = tried(rows, make)
    raise_first(refused)
    return made
