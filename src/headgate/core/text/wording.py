"""What says in lines for people what it is: so it is printed, and so notebooks show it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

SHOWN = 20
"""Rows of an answer that are shown."""


class Worded(ABC):
    """An explanation, or an answer."""

    @abstractmethod
    def lines(self) -> list[str]:
        """Say it for people."""

    def text(self) -> str:
        """Say it for people, in one text."""
        return "\n".join(self.lines())

    def __str__(self) -> str:
        """Say it for people: `repr` has the fields."""
        return self.text()

    def _repr_html_(self) -> str:
        return in_html(self.text())


def in_html(text: str) -> str:
    """Show lines as they are."""
    return f"<pre>{escape(text)}</pre>"


def table(names: Sequence[str], rows: Sequence[Sequence[str]], *, complete: bool) -> list[str]:
    """Write rows below the names of their columns.

    >>> table(["?x", "?name"], [["<urn:a>", '"A"']], complete=False)
    ['?x       ?name', '<urn:a>  "A"', '… and more']
    """
    shown = [names, *rows[:SHOWN]]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]
    return lines if complete and len(rows) <= SHOWN else [*lines, "… and more"]
