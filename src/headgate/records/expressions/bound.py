"""A typed part of an expression, ready to run, and what makes functions of values into such parts.

A part runs over a row: a list of the values of the expression's attributes, of elements that functions of
elements are called with, and first how many such calls are left. Dates are days and timestamps microseconds
since 1970.

Where Spark would raise, the part is NULL, and the reason is kept for whoever explains it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.records.expressions.types import VOID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.types import Type

    Run = Callable[[list[Any]], Any]

NOT_CONSTANT = object()


class Bound(NamedTuple):
    """A part of an expression.

    constant   its value if it is a literal
    body       of a function of elements: their type to the place of the variable and the part to run
    """

    type: Type
    run: Run
    constant: Any = NOT_CONSTANT
    body: Callable[[Type], tuple[int, Bound] | None] | None = None


class _Trouble(threading.local):
    reason: str = ""


_trouble = _Trouble()


def fail(reason: str) -> Any:
    """Be NULL where Spark raises."""
    _trouble.reason = reason
    return None


def take_trouble() -> str:
    """Return why something failed since this was last asked; empty if nothing did."""
    reason, _trouble.reason = _trouble.reason, ""
    return reason


def null(_row: list[Any]) -> None:
    """Be NULL."""


def nothing(kind: Type = VOID) -> Bound:
    """Return the NULL of a type."""
    return Bound(kind, null)


def constant(kind: Type, value: Any) -> Bound:
    """Return a value that no event changes."""
    return Bound(kind, lambda _row: value, value)


def runs_of(parts: Sequence[Bound | None]) -> list[Run] | None:
    """Return what computes parts; None if one of them is None, because it could not be cast."""
    runs = [part.run for part in parts if part is not None]
    return runs if len(runs) == len(parts) else None


def lift(kind: Type, function: Callable[..., Any], parts: Sequence[Bound | None]) -> Bound | None:
    """Apply a function to values; NULL if one of them is NULL. None if a part is None.

    All are computed, also behind one that is NULL: which of them Spark computes first is its own affair.
    """
    runs = runs_of(parts)
    if runs is None:
        return None
    if len(runs) == 1:
        return Bound(kind, _one(function, *runs))
    if len(runs) == 2:
        return Bound(kind, _two(function, *runs))

    def run(row: list[Any]) -> Any:
        values = [each(row) for each in runs]
        return None if None in values else function(*values)

    return Bound(kind, run)


def _one(function: Callable[[Any], Any], first: Run) -> Run:
    def run(row: list[Any]) -> Any:
        value = first(row)
        return None if value is None else function(value)

    return run


def _two(function: Callable[[Any, Any], Any], first: Run, second: Run) -> Run:
    def run(row: list[Any]) -> Any:
        left, right = first(row), second(row)
        return None if left is None or right is None else function(left, right)

    return run
