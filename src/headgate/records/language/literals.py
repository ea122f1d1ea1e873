"""Literals of the filter language, typed as Spark types them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.casts import INT64_MAX, INT64_MIN, to_date, to_timestamp
from headgate.core.values import micros
from headgate.records.language.model import Literal, LiteralType

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DIGITS = 38
"""Digits of a decimal, before and after the point together, as in Spark."""
MAX_FRACTION = 18
"""Digits after the point: with more, Spark rounds before it compares with a BIGINT and its 20 digits."""

_NUMBER = re.compile(
    r"((?:[0-9]++(?:\.([0-9]*+))?|\.([0-9]++))(?:[eE]([+-]?)0*+([0-9]*+)(?<=[0-9]))?)([lLsSyYdDfF]|[bB][dD])?"
)
EXPONENT = "the exponent is beyond 2147483647, and Spark refuses it too"
_MAX_SCALE = 2**31 - 1
"""How far an exponent may move the point: Java counts in 32 bits."""
_MAX_DOUBLE = Decimal("1.7976931348623157e308")
_MAX_FLOAT = Decimal("3.4028234663852886e38")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7][0-7])|(.))", re.DOTALL)
_NAMED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_WHOLE_SUFFIXES = {"Y": 2**7, "S": 2**15, "L": 2**63}
_FIRST, _LAST = micros(dt.datetime.min), micros(dt.datetime.max)


class LiteralError(ValueError):
    """Refuse a literal; who reads the text knows the place."""


def number_of(written: str, *, negative: bool = False) -> Literal:
    """Read a number, with its suffix.

    >>> number_of("7L").value, number_of("1.50", negative=True).value, number_of("2e0").value
    (7, Decimal('-1.50'), 2.0)
    """
    if len(written) <= 18 and written.isdigit():
        return Literal(LiteralType.INT, -int(written) if negative else int(written))
    match_ = _NUMBER.fullmatch(written)
    if not match_:
        raise LiteralError(f"{written} is not a number")
    digits, suffix = match_[1], (match_[6] or "").upper()
    _check_exponent(match_)
    whole = _whole(digits, negative) if digits.isdigit() else None
    if suffix in _WHOLE_SUFFIXES:
        if whole is None:
            raise LiteralError(f"{digits} cannot have this suffix")
        bound = _WHOLE_SUFFIXES[suffix]
        if not -bound <= whole < bound:
            raise LiteralError(f"{whole} does not fit the type that its suffix names")
        return Literal(LiteralType.INT, whole)
    if suffix == "F":
        if Decimal(digits) > _MAX_FLOAT:
            raise LiteralError("the number does not fit into a float")
        return Literal(LiteralType.DOUBLE, float(np.float32(_double(digits, negative))))
    if suffix == "D" or (not suffix and match_[5] is not None):
        return Literal(LiteralType.DOUBLE, _double(digits, negative))
    if not suffix and whole is not None and INT64_MIN <= whole <= INT64_MAX:
        return Literal(LiteralType.INT, whole)
    return Literal(LiteralType.DECIMAL, _decimal(digits, negative))


def suffix_of(written: str) -> str:
    """Return the suffix of a number, in capitals."""
    return written.lstrip("0123456789.eE+-").upper()


def negated(literal: Literal) -> Literal | None:
    """Return a number with a minus before it, as if they were written together; None if it is no number."""
    value = literal.value
    match literal.type:
        case LiteralType.INT:
            assert isinstance(value, int)
            if value == INT64_MIN:
                return Literal(LiteralType.DECIMAL, Decimal(-value))
            return Literal(LiteralType.INT, -value)
        case LiteralType.DOUBLE:
            assert isinstance(value, float)
            return Literal(LiteralType.DOUBLE, -value)
        case LiteralType.DECIMAL:
            assert isinstance(value, Decimal)
            if value == INT64_MAX + 1 and value.as_tuple().exponent == 0:
                return Literal(LiteralType.INT, INT64_MIN)
            return Literal(LiteralType.DECIMAL, value.copy_negate())
    return None


def _whole(digits: str, negative: bool) -> int | None:
    """Read a whole number unless it is long, zeros in front aside."""
    digits = digits.lstrip("0")
    if len(digits) > MAX_DIGITS:
        return None
    return -int(digits or "0") if negative else int(digits or "0")


def _check_exponent(match_: re.Match[str]) -> None:
    """Refuse exponents that Spark refuses."""
    if match_[5] is None:
        return
    exponent = int(match_[5] or "0") if len(match_[5]) <= 10 else _MAX_SCALE + 1
    fraction = len(match_[2] or match_[3] or "") if match_[4] == "-" else 0
    if exponent + fraction > _MAX_SCALE:
        raise LiteralError(EXPONENT)


def _decimal(digits: str, negative: bool) -> Decimal:
    value = Decimal(digits)
    _, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if max(len(figures), len(figures) + exponent, -exponent) > MAX_DIGITS:
        raise LiteralError(f"the number has more than {MAX_DIGITS} digits; write a double such as 1.5e0")
    if -exponent > MAX_FRACTION:
        raise LiteralError(
            f"the number has more than {MAX_FRACTION} digits after the point; write a double such as 1.5e0"
        )
    # Not `value * -1`, which rounds to 28 digits.
    return value.copy_negate() if negative else value


def fits_one_decimal(literals: Iterable[Literal]) -> bool:
    """Tell whether one decimal type holds all decimals of a list, and any BIGINT, without rounding."""
    whole, fraction = 20, 0
    for literal in literals:
        if isinstance(literal.value, Decimal):
            _, figures, exponent = literal.value.as_tuple()
            assert isinstance(exponent, int)
            fraction = max(fraction, -exponent)
            whole = max(whole, len(figures) + exponent)
    return whole + fraction <= MAX_DIGITS


def _double(digits: str, negative: bool) -> float:
    # Spark does not round to the greatest double: what is beyond it is refused.
    if Decimal(digits) > _MAX_DOUBLE:
        raise LiteralError("the number does not fit into a double")
    return -float(digits) if negative else float(digits)


def moment_of(content: str, kind: LiteralType) -> Literal:
    """Read the text of a DATE or TIMESTAMP."""
    value = to_date(content) if kind is LiteralType.DATE else to_timestamp(content)
    # A zone may move a moment out of the years that dates and we can write.
    if value is None or not _FIRST <= value <= _LAST:
        name = kind.value
        raise LiteralError(f"{content!r} is not a {name}; write {name.upper()} '2024-12-31'")
    return Literal(kind, value)


def string_of(written: str) -> str:
    r"""Read a text in quotes by Spark's rules.

    >>> string_of(r"'it\'s'"), string_of(r"r'\d'")
    ("it's", '\\d')
    """
    if written[0] in "rR":
        return written[2:-1]
    if "\\" not in written:
        return written[1:-1]
    try:
        value = _ESCAPE.sub(_unescape, written[1:-1])
    except (ValueError, OverflowError):
        raise LiteralError("the string has an escape beyond \\U0010FFFF, the last") from None
    try:
        value.encode()
    except UnicodeEncodeError:
        # A pair of \u escapes is one character, as in Java; half a pair is nothing.
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise LiteralError("the string holds a lone surrogate, which UTF-8 cannot carry") from None
    return value


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, single = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    return _NAMED.get(single, single)
