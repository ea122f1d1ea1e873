"""SQL that importers write: conditions with parentheses where they are needed, names and literals quoted.

    every, some          AND and OR of conditions
    equal, text_equal    values of one type, without the casts that `=` would do
    like                 texts by a pattern

A name here is the text of an attribute, `` detail.`detail-type` ``, or of the variable of a lambda.
"""

from __future__ import annotations

import math
import re
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.casts import INT64_MAX, INT64_MIN, to_bool, to_double, to_int, to_timestamp
from headgate.core.values import PRESENT
from headgate.records.language.literals import MAX_DIGITS, MAX_FRACTION
from headgate.records.language.model import Attribute, Literal, LiteralType
from headgate.records.language.patterns import escaped
from headgate.records.language.printing import print_attribute, print_literal
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from headgate.records.names import NameSettings

    Number = int | Decimal

_OR, _AND, _NOT, _ATOM = range(4)
_DECIMAL = re.compile(r"-?[0-9]*\.[0-9]+")


class Sql(NamedTuple):
    """A condition, how strongly its outermost operator binds, and its negation if that is written shorter."""

    text: str
    level: int = _ATOM
    opposite: str = ""

    def inside(self, level: int) -> str:
        """Write it as an operand of something that binds as strongly."""
        return self.text if self.level > level else f"({self.text})"


TRUE, FALSE = Sql("TRUE"), Sql("FALSE")


def every(parts: Iterable[Sql]) -> Sql:
    """Join conditions by AND; those that say nothing are left out.

    >>> every([some([Sql("a"), Sql("b")]), Sql("c"), TRUE]).text
    '(a OR b) AND c'
    """
    return _joined(parts, _AND, " AND ", neutral=TRUE, final=FALSE)


def some(parts: Iterable[Sql]) -> Sql:
    """Join conditions by OR."""
    return _joined(parts, _OR, " OR ", neutral=FALSE, final=TRUE)


def _joined(parts: Iterable[Sql], level: int, sign: str, *, neutral: Sql, final: Sql) -> Sql:
    own = [part for part in dict.fromkeys(parts) if part != neutral]
    if final in own:
        return final
    if len(own) < 2:
        return own[0] if own else neutral
    # AND in AND needs no parentheses.
    return Sql(sign.join(part.text if part.level == level else part.inside(level) for part in own), level)


def parenthesised(written: str) -> Sql:
    """Take a condition whose operators are not known."""
    return Sql(written, _OR)


def negated(part: Sql) -> Sql:
    """Write NOT: NULL stays NULL."""
    if part in (TRUE, FALSE):
        return FALSE if part == TRUE else TRUE
    if part.opposite:
        return Sql(part.opposite, part.level, part.text)
    return Sql(f"NOT {part.inside(_NOT)}", _NOT)


def unless(part: Sql) -> Sql:
    """Write that a condition is not TRUE: FALSE or NULL.

    >>> unless(Sql("a = 1")).text
    'NOT coalesce(a = 1, FALSE)'
    """
    if part in (TRUE, FALSE):
        return negated(part)
    return Sql(f"NOT coalesce({part.text}, FALSE)", _NOT)


_SETTINGS: ContextVar[NameSettings] = ContextVar("settings", default=USUAL)


@contextmanager
def naming(settings: NameSettings) -> Iterator[None]:
    """Write names by the settings of a set of filters, as long as it is open.

    Converters have many functions between the text and its names, and the settings are the same for all.
    """
    token = _SETTINGS.set(settings)
    try:
        yield
    finally:
        _SETTINGS.reset(token)


def told() -> bool:
    """Tell whether null is told from missing in the set of filters."""
    return _SETTINGS.get().told


def name(*parts: str) -> str:
    """Write an attribute.

    >>> name("detail", "detail-type")
    'detail.`detail-type`'
    """
    return _name(_SETTINGS.get(), parts)


@lru_cache(maxsize=4_096)
def _name(settings: NameSettings, parts: tuple[str, ...]) -> str:
    return print_attribute(Attribute.of(*settings.spelled(parts)))


def present(attribute: str) -> Sql:
    """Write that an event has an attribute, which is given by its name."""
    return Sql(f"`{PRESENT}`.{attribute}")


def text(value: str) -> str:
    """Write a string."""
    return print_literal(Literal(LiteralType.STRING, value))


def number(value: Number) -> str:
    """Write a number by its value: whole, decimal, or a double where neither has room for its digits.

    >>> number(Decimal("5.0")), number(Decimal("0.25")), number(10**20), number(Decimal("1e-30"))
    ('5', '0.25', '1e+20', '1e-30')
    """
    decimal = Decimal(value)
    if decimal == decimal.to_integral_value() and INT64_MIN <= decimal <= INT64_MAX:
        return str(int(decimal))
    decimal = decimal.normalize()
    _, digits, exponent = decimal.as_tuple()
    assert isinstance(exponent, int)
    if (
        0 < -exponent <= MAX_FRACTION
        and max(len(digits), -exponent) <= MAX_DIGITS
        and abs(decimal) <= INT64_MAX
    ):
        return f"{decimal:f}"
    double = repr(float(decimal))
    return double if "e" in double else f"{double}e0"


def is_double(value: Number) -> bool:
    """Tell whether a number is one that a double can come near to."""
    return math.isfinite(float(value))


def numbers(values: Iterable[Number]) -> list[str]:
    """Write numbers of a list: decimals come first, because a list may not begin with whole numbers then."""
    return sorted(
        dict.fromkeys(map(number, values)), key=lambda written: "." not in written and "e" not in written
    )


def one_of(operand: str, literals: Sequence[str]) -> Sql:
    """Write that a value equals one of literals.

    >>> one_of("a", ["1"]).text, one_of("a", ["1", "2"]).text
    ('a = 1', 'a IN (1, 2)')
    """
    if len(literals) == 1:
        return Sql(f"{operand} = {literals[0]}", opposite=f"{operand} != {literals[0]}")
    listed = f"IN ({', '.join(literals)})"
    return Sql(f"{operand} {listed}", opposite=f"{operand} NOT {listed}")


def element_of(operand: str, literals: Sequence[str]) -> Sql:
    """Write that an array has one of literals as an element.

    Decimals become doubles: Spark compares no decimal with the elements of an array of doubles.

    >>> element_of("a", ["2.5", "1"]).text
    'arrays_overlap(a, array(2.5e0, 1))'
    """
    literals = [f"{each}e0" if _DECIMAL.fullmatch(each) else each for each in literals]
    if len(literals) == 1:
        return Sql(f"array_contains({operand}, {literals[0]})")
    return Sql(f"arrays_overlap({operand}, array({', '.join(literals)}))")


def is_text(operand: str) -> Sql:
    """Write that a value is a string: of others, none can be compared with the empty string."""
    return Sql(f"{operand} >= ''")


@lru_cache(maxsize=4_096)
def casts(value: str) -> bool:
    """Tell whether a string beside a number, a Boolean or a moment is cast to it.

    >>> casts("1e3"), casts("yes"), casts("2024-01-01"), casts("news")
    (True, True, True, False)
    """
    return any(cast(value) is not None for cast in (to_int, to_double, to_bool, to_timestamp))


def texts(operand: str, values: Sequence[str]) -> Sql:
    """Write that a value is one of strings, and not a number or a Boolean that they could be cast to.

    >>> texts("a", ["x", "1"]).text
    "a IN ('x', '1') AND a >= ''"
    """
    condition = one_of(operand, [text(value) for value in dict.fromkeys(values)])
    return every([condition, is_text(operand)]) if any(map(casts, values)) else condition


def like(operand: str, pattern: str) -> Sql:
    """Write that a text fits a pattern."""
    written = text(pattern)
    return Sql(f"{operand} LIKE {written}", opposite=f"{operand} NOT LIKE {written}")


def whole_regex(operand: str, pattern: str, flags: str = "") -> Sql:
    """Write that all of a text fits a regular expression.

    `$` may stand before a line break at the end, so a full stop is put behind the text: it ends there.
    """
    return Sql(f"concat({operand}, '.') RLIKE {text(f'{flags}^(?:{pattern})[.]$')}")


def some_element(operand: str, test: Sql) -> Sql:
    """Write that a test of `x` holds for an element of an array."""
    return Sql(f"exists({operand}, x -> {test.text})")


def as_pattern(value: str) -> str:
    """Write a text so that LIKE means it and nothing else."""
    return escaped(value)


def tested(operand: str, test: Callable[[str], Sql]) -> Sql:
    """Apply a test to a value and to the elements of an array."""
    return some([test(operand), some_element(operand, test("x"))])
