"""What the table of functions says of one: how many arguments, what they must be, how it is bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headgate.records.expressions.bound import lift
from headgate.records.expressions.casting import as_bool, as_date, as_double, as_int, as_text, as_timestamp
from headgate.records.expressions.model import Value
from headgate.records.language.model import LiteralType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from headgate.records.expressions.bound import Bound
    from headgate.records.expressions.model import Node
    from headgate.records.expressions.types import Type

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
            for index in places:
                if index < len(arguments):
                    given = arguments[index]
                    if not isinstance(given, Value) or given.literal.type is not wanted:
                        return f"argument {index + 1} is {kind}, and no attribute"
        return "" if self.wrong is None else self.wrong(arguments)


_CASTS = {"t": as_text, "i": as_int, "f": as_double, "b": as_bool, "d": as_date, "m": as_timestamp}


def function_of(kind: Type, function: Callable[..., Any], takes: str, least: int | None = None) -> Function:
    """Make a function of arguments that are cast, and NULL where one of them is.

    takes   by argument what it is cast to: a text, an INT, a DOUBLE (f), a Boolean, a date or a timestamp (m)
    """

    def bind(parts: Sequence[Bound]) -> Bound | None:
        return lift(kind, function, [_CASTS[to](part) for to, part in zip(takes, parts, strict=False)])

    return Function(bind, len(takes) if least is None else least, len(takes))


def text_at(arguments: Sequence[Node], index: int) -> str:
    """Return the text of an argument that is known to be one; empty if it is missing."""
    argument = arguments[index] if index < len(arguments) else None
    return str(argument.literal.value) if isinstance(argument, Value) else ""
