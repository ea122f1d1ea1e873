"""What the table of functions says of one: how many arguments, what they must be, how it is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.records.expressions.model import Value
from headgate.records.language.model import LiteralType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.bound import Bound
    from headgate.records.expressions.model import Node

    Bind = Callable[[Sequence[Bound]], Bound | None]

MANY = 10_000


class Function(NamedTuple):
    """A function; `bind` makes a part of typed arguments, and None of those that Spark refuses.

    texts, wholes   places of arguments that are a literal text, or a literal whole number
    """

    bind: Bind
    least: int
    most: int
    texts: tuple[int, ...] = ()
    wholes: tuple[int, ...] = ()
    wrong: Callable[[Sequence[Node]], str] | None = None

    @property
    def takes(self) -> str:
        """Say how many arguments it takes."""
        if self.most == MANY:
            return f"{self.least} arguments or more"
        if self.least == self.most:
            return (
                "no argument"
                if not self.most
                else "1 argument"
                if self.most == 1
                else f"{self.most} arguments"
            )
        return f"{self.least} to {self.most} arguments"

    def check(self, arguments: Sequence[Node]) -> str:
        """Say what is wrong with arguments, or nothing."""
        for places, wanted, kind in (
            (self.texts, LiteralType.STRING, "a text in quotes"),
            (self.wholes, LiteralType.INT, "a whole number"),
        ):
            for place in places:
                if place < len(arguments):
                    given = arguments[place]
                    if not isinstance(given, Value) or given.literal.type is not wanted:
                        return f"argument {place + 1} is {kind}, and no attribute"
        return "" if self.wrong is None else self.wrong(arguments)
