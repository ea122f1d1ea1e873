"""Subscriptions that are looked at together: all that are refused are told, not the first alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headgate.core.event import Id


class _Row(Protocol):
    @property
    def id(self) -> Id: ...


RowT = TypeVar("RowT", bound=_Row)
MadeT = TypeVar("MadeT")


def raise_first(refused: Mapping[Id, HeadgateError]) -> None:
    """Raise the first of some refusals, if there are any; it knows all of them, as `refused`."""
    for error in refused.values():
        error.refused = refused
        raise error


def tried(rows: Iterable[RowT], make: Callable[[RowT], MadeT]) -> tuple[list[MadeT], dict[Id, HeadgateError]]:
    """Make something of each row; returns it, and why other rows are refused, by id."""
    made: list[MadeT] = []
    refused: dict[Id, HeadgateError] = {}
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
