"""Literals of the filter language, typed as Spark types them."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np
from sqlglot import exp

from headgate.core.casts import INT64_MAX, INT64_MIN, to_date, to_timestamp
from headgate.core.values import micros
from headgate.records.language.model import NULL, Literal, LiteralType
from headgate.records.language.refusal import refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_DIGITS = 38
"""Digits of a decimal, before and after the point together, as in Spark."""
MAX_FRACTION = 18
"""Digits after the point: with more, Spark rounds before it compares with a BIGINT and its 20 digits."""

_DIGITS = re.compile(r"(?:[0-9]+\.?([0-9]*)|\.([0-9]+))(?:[eE]([+-]?)0*+([0-9]*+)(?<=[0-9]))?\Z")
EXPONENT = "the exponent is beyond 2147483647, and Spark refuses it too"
_MAX_SCALE = 2**31 - 1
"""How far an exponent may move the point: Java counts in 32 bits."""
_MAX_DOUBLE = Decimal("1.7976931348623157e308")
_MAX_FLOAT = Decimal("3.4028234663852886e38")
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([01][0-7][0-7])|(.))", re.DOTALL)
_NAMED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_INT_SUFFIXES = {exp.DType.TINYINT: 2**7, exp.DType.SMALLINT: 2**15, exp.DType.BIGINT: 2**63}
_FIRST, _LAST = micros(dt.datetime.min), micros(dt.datetime.max)
_MOMENTS = {exp.DType.DATE, exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMP}


def literal_of(node: exp.Expr, text: str) -> Literal:
    """Translate a literal node; refuse anything else."""
    sign = 1
    while isinstance(node, exp.Neg | exp.Paren):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return _number(str(node.this), sign, node, text)
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        written = _written(node.this, text)
        # 5L knows its place with the suffix, 5BD knows none, the 5 in CAST(5 AS BIGINT) only its own.
        if isinstance(node, exp.TryCast) and (not written or written[-1].isalpha()):
            return _suffixed(node, sign, text)
        moment = node.this.is_string and node.to.this in _MOMENTS
        if moment and not isinstance(node, exp.TryCast) and sign == 1:
            return _moment(node, text)
    if sign == -1:
        raise refusal("a minus sign may stand before a number only", text, node)
    if isinstance(node, exp.Literal):
        return Literal(LiteralType.STRING, _string(node, text))
    if isinstance(node, exp.RawString):
        return Literal(LiteralType.STRING, str(node.this))
    if isinstance(node, exp.Boolean):
        return Literal(LiteralType.BOOL, bool(node.this))
    if isinstance(node, exp.Null):
        return NULL
    raise refusal("", text, node)


def _written(node: exp.Expr, text: str) -> str:
    start, end = node.meta.get("start"), node.meta.get("end")
    return text[start : end + 1] if isinstance(start, int) and isinstance(end, int) else ""


def _number(digits: str, sign: int, node: exp.Expr, text: str) -> Literal:
    _check_number(digits, text, node)
    if "e" in digits or "E" in digits:
        return _double(digits, sign, node, text)
    if digits.isdigit():
        value = _whole(digits, sign)
        if value is not None and INT64_MIN <= value <= INT64_MAX:
            return Literal(LiteralType.INT, value)
    return _decimal(digits, sign, node, text)


def _whole(digits: str, sign: int) -> int | None:
    """Read a whole number unless it is long, zeros in front aside."""
    digits = digits.lstrip("0")
    return sign * int(digits or "0") if len(digits) <= MAX_DIGITS else None


def _check_number(digits: str, text: str, node: exp.Expr) -> None:
    """Refuse 1.2.3 and the like, which the tokenizer lets through, and exponents that Spark refuses."""
    found = _DIGITS.match(digits)
    if not found:
        raise refusal(f"{digits} is not a number", text, node)
    figures = found[4] or "0"
    exponent = int(figures) if len(figures) <= 10 else _MAX_SCALE + 1
    fraction = len(found[1] or found[2] or "") if found[3] == "-" else 0
    if exponent + fraction > _MAX_SCALE:
        raise refusal(EXPONENT, text, node)


def _decimal(digits: str, sign: int, node: exp.Expr, text: str) -> Literal:
    value = Decimal(digits)
    _, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if max(len(figures), len(figures) + exponent, -exponent) > MAX_DIGITS:
        raise refusal(
            f"the number has more than {MAX_DIGITS} digits; write a double such as 1.5e0", text, node
        )
    if -exponent > MAX_FRACTION:
        raise refusal(
            f"the number has more than {MAX_FRACTION} digits after the point; write a double such as 1.5e0",
            text,
            node,
        )
    # Not `value * sign`, which rounds to 28 digits.
    return Literal(LiteralType.DECIMAL, value.copy_negate() if sign < 0 else value)


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


def _double(digits: str, sign: int, node: exp.Expr, text: str) -> Literal:
    # Spark does not round to the greatest double: what is beyond it is refused.
    if Decimal(digits) > _MAX_DOUBLE:
        raise refusal("the number does not fit into a double", text, node)
    return Literal(LiteralType.DOUBLE, float(digits) * sign)


def _suffixed(node: exp.TryCast, sign: int, text: str) -> Literal:
    """Translate 5L, 5S, 5Y, 5D, 5F and 5BD, which sqlglot reads as casts."""
    digits, kind = str(node.this.this), node.to.this
    _check_number(digits, text, node)
    value = _whole(digits, sign) if digits.isdigit() else None
    if kind in _INT_SUFFIXES and value is not None:
        bound = _INT_SUFFIXES[kind]
        if -bound <= value < bound:
            return Literal(LiteralType.INT, value)
        raise refusal(f"{value} does not fit the type that its suffix names", text, node)
    if kind is exp.DType.DOUBLE:
        return _double(digits, sign, node, text)
    if kind is exp.DType.FLOAT:
        if Decimal(digits) > _MAX_FLOAT:
            raise refusal("the number does not fit into a float", text, node)
        return Literal(LiteralType.DOUBLE, float(np.float32(_double(digits, sign, node, text).value)))
    if kind is exp.DType.DECIMAL:
        return _decimal(digits, sign, node, text)
    raise refusal(f"{digits} cannot have this suffix", text, node)


def _moment(node: exp.Cast, text: str) -> Literal:
    content = _string(node.this, text)
    if node.to.this is exp.DType.DATE:
        value, kind = to_date(content), LiteralType.DATE
    else:
        value, kind = to_timestamp(content), LiteralType.TIMESTAMP
    # A zone may move a moment out of the years that dates and we can write.
    if value is None or not _FIRST <= value <= _LAST:
        name = kind.value
        raise refusal(f"{content!r} is not a {name}; write {name.upper()} '2024-12-31'", text, node)
    return Literal(kind, value)


def _string(node: exp.Expr, text: str) -> str:
    """Read a quoted string by Spark's rules, from the text itself: sqlglot's differ in the corners."""
    written = _written(node, text)
    try:
        value = _ESCAPE.sub(_unescape, written[1:-1])
    except (ValueError, OverflowError):
        raise refusal("the string has an escape beyond \\U0010FFFF, the last", text, node) from None
    try:
        value.encode()
    except UnicodeEncodeError:
        # A pair of \u escapes is one character, as in Java; half a pair is nothing.
        try:
            return value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise refusal("the string holds a lone surrogate, which UTF-8 cannot carry", text, node) from None
    return value


def _unescape(match: re.Match[str]) -> str:
    short, long, octal, single = match.groups()
    if short or long:
        return chr(int(short or long, 16))
    if octal:
        return chr(int(octal, 8))
    return _NAMED.get(single, single)
