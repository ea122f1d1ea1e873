"""The values of literals, and how two terms compare.

What SPARQL 1.1 (section 17.3) and XML Schema 1.1 say, exactly: whole numbers and decimals have no limit but
that of `LONGEST`, floats and doubles are IEEE's, times keep all digits of their seconds. A literal whose text
its datatype does not allow, be it for blanks around a number, has no value: to compare it is an error.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from headgate.rdf.language import model
from headgate.rdf.language.model import XSD
from headgate.rdf.language.searches import search_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headgate.rdf.language.model import Expression, Options, Term


LONGEST = 4000  # digits: reading more takes time that grows with their square
INTEGER, DECIMAL, FLOAT, DOUBLE = "integer", "decimal", "float", "double"
DATE_TIME, DATE = "dateTime", "date"


class Number(NamedTuple):
    """A number; `value` of a float is the double that is equal to it."""

    kind: str
    value: int | Decimal | float


class Text(NamedTuple):
    """A string, with its language or ""."""

    text: str
    language: str


class Truth(NamedTuple):
    """A truth value."""

    holds: bool


class Moment(NamedTuple):
    """A dateTime, or a date by its first moment: seconds since 1970 in its own zone, UTC if it has none."""

    kind: str
    seconds: Fraction
    zoned: bool


Value: TypeAlias = Number | Text | Truth | Moment

_RANGES: dict[str, tuple[int | None, int | None]] = {
    f"{XSD}integer": (None, None),
    f"{XSD}long": (-(2**63), 2**63 - 1),
    f"{XSD}int": (-(2**31), 2**31 - 1),
    f"{XSD}short": (-(2**15), 2**15 - 1),
    f"{XSD}byte": (-(2**7), 2**7 - 1),
    f"{XSD}nonNegativeInteger": (0, None),
    f"{XSD}positiveInteger": (1, None),
    f"{XSD}nonPositiveInteger": (None, 0),
    f"{XSD}negativeInteger": (None, -1),
    f"{XSD}unsignedLong": (0, 2**64 - 1),
    f"{XSD}unsignedInt": (0, 2**32 - 1),
    f"{XSD}unsignedShort": (0, 2**16 - 1),
    f"{XSD}unsignedByte": (0, 2**8 - 1),
}
NUMERIC = frozenset(_RANGES) | {f"{XSD}decimal", f"{XSD}float", f"{XSD}double"}

_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_DAY = r"(-?(?:[1-9][0-9]{3,}|0[0-9]{3}))-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_CLOCK = r"(?:([01][0-9]|2[0-3]):([0-5][0-9]):([0-5][0-9](?:\.[0-9]+)?)|(24):00:00(?:\.0+)?)"
_ZONE = r"(Z|[+-](?:(?:0[0-9]|1[0-3]):[0-5][0-9]|14:00))?"
_DATE = re.compile(f"{_DAY}{_ZONE}")
_DATE_TIME = re.compile(f"{_DAY}T{_CLOCK}{_ZONE}")
_TRUTHS = {"true": Truth(True), "1": Truth(True), "false": Truth(False), "0": Truth(False)}
_BLANKS = " \t\r\n"
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_SHORT = 200
_WIDEST = 14 * 3600  # a time without a zone may be meant in any, and those reach 14 hours either way


def value_of(term: Term) -> Value | None:
    """Return the value of a literal; None for IRIs, unknown datatypes and texts that are no value.

    >>> value_of('"007"^^<http://www.w3.org/2001/XMLSchema#integer>'), value_of('"chat"@fr')
    (Number(kind='integer', value=7), Text(text='chat', language='fr'))
    """
    # Giant literals would fill the cache with megabytes.
    return _cached(term) if len(term) <= _SHORT else _value(term)


def compare(sign: str, left: Term, right: Term, coerce: bool = False) -> bool | None:
    """Compare two terms as SPARQL does; None is its type error.

    >>> compare("<", '"2001"', '"2000"^^<http://www.w3.org/2001/XMLSchema#integer>')
    >>> compare(">", '"2001"', '"2000"^^<http://www.w3.org/2001/XMLSchema#integer>', coerce=True)
    True
    """
    one, other = value_of(left), value_of(right)
    if coerce:
        one, other = coerced(one, other), coerced(other, one)
    order = None if one is None or other is None else _order(one, other)
    if order is not None:
        return order in _HOLDS[sign]
    if sign not in {"=", "!="}:
        return None
    # RDFterm-equal: two literals that are different terms may have the same value, for all that is known.
    if left != right and model.is_literal(left) and model.is_literal(right):
        return None
    return (left == right) is (sign == "=")


def coerced(value: Value | None, other: Value | None) -> Value | None:
    """Read a string that meets a number, a time or a truth value as one of those, if it has the form of one.

    A number is read as what it is written as: an integer, a decimal or a double.
    """
    if not isinstance(value, Text) or value.language:
        return value
    text = value.text.strip(_BLANKS)
    read: Value | None = None
    if isinstance(other, Number):
        read = _integer(text) or _decimal(text) or _double(text)
    elif isinstance(other, Truth):
        read = _TRUTHS.get(text)
    elif isinstance(other, Moment):
        read = _moment(text) if other.kind == DATE_TIME else _date(text)
    return value if read is None else read


_LESS, _EQUAL, _MORE, _UNORDERED = -1, 0, 1, 2
_HOLDS = {
    "=": {_EQUAL},
    "!=": {_LESS, _MORE, _UNORDERED},
    "<": {_LESS},
    "<=": {_LESS, _EQUAL},
    ">": {_MORE},
    ">=": {_MORE, _EQUAL},
}


def _order(one: Value, other: Value) -> int | None:
    """Order two values; None if SPARQL has no operator for them, or XML Schema no answer."""
    match one, other:
        case Number(), Number():
            return _numbers(one, other)
        case Text(left, ""), Text(right, ""):
            return (left > right) - (left < right)
        case Truth(left), Truth(right):
            return left - right
        case Moment(), Moment() if one.kind == other.kind:
            return _moments(one, other)
    return None


def _numbers(one: Number, other: Number) -> int:
    kinds = {one.kind, other.kind}
    left, right = one.value, other.value
    if DOUBLE in kinds:
        left, right = to_double(left), to_double(right)
    elif FLOAT in kinds:
        left, right = _to_float(left), _to_float(right)
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return _UNORDERED
    return (left > right) - (left < right)


def _moments(one: Moment, other: Moment) -> int | None:
    """Order two times as XML Schema does: one without a zone only if it would be the same in all zones."""
    apart = one.seconds - other.seconds
    if one.zoned is other.zoned:
        return (apart > 0) - (apart < 0)
    if abs(apart) <= _WIDEST:
        return None
    return _MORE if apart > 0 else _LESS


def to_double(number: int | Decimal | float) -> float:
    """Round to the nearest double, as XPath promotes a number that meets one."""
    try:
        return float(number)
    except OverflowError:
        return np.inf if number > 0 else -np.inf


def _to_float(number: int | Decimal | float) -> float:
    return number if isinstance(number, float) else _nearest_float(to_double(number), str(number))


def _nearest_float(double: float, text: str) -> float:
    """Round a number, which is written as `text` and nearest to a double, to the nearest float.

    A double that is not exact is moved to an odd one first: then rounding it again does no harm.
    """
    if np.isfinite(double) and double and int(np.float64(double).view(np.int64)) % 2 == 0:
        exact = Decimal(text)
        if exact != Decimal(double):
            double = float(np.nextafter(double, np.inf if exact > Decimal(double) else -np.inf))
    with np.errstate(over="ignore", under="ignore"):
        return float(np.float32(double))


def _value(term: Term) -> Value | None:
    if not model.is_literal(term):
        return None
    lexical, datatype, language = model.parts(term)
    if datatype in {model.STRING, model.LANG_STRING}:
        return Text(lexical, language)
    reader = _READERS.get(datatype)
    if reader is not None:
        return reader(lexical)
    if datatype not in _RANGES:
        return None
    number = _integer(lexical)
    low, high = _RANGES[datatype]
    if (
        number is None
        or (low is not None and number.value < low)
        or (high is not None and number.value > high)
    ):
        return None
    return number


_cached = lru_cache(maxsize=1 << 16)(_value)


def _integer(text: str) -> Number | None:
    return Number(INTEGER, int(text)) if len(text) <= LONGEST and _INTEGER.fullmatch(text) else None


def _decimal(text: str) -> Number | None:
    return Number(DECIMAL, Decimal(text)) if len(text) <= LONGEST and _DECIMAL.fullmatch(text) else None


def _double(text: str) -> Number | None:
    return Number(DOUBLE, float(text)) if len(text) <= LONGEST and _DOUBLE.fullmatch(text) else None


def _float(text: str) -> Number | None:
    double = _double(text)
    return None if double is None else Number(FLOAT, _nearest_float(float(double.value), text))


def _moment(text: str) -> Moment | None:
    match_ = _DATE_TIME.fullmatch(text) if len(text) <= LONGEST else None
    if match_ is None:
        return None
    year, month, day, hour, minute, second, midnight, zone = match_.groups()
    clock = Fraction(24 * 3600) if midnight else int(hour) * 3600 + int(minute) * 60 + Fraction(second)
    return _timed(DATE_TIME, (int(year), int(month), int(day)), clock, zone)


def _stamp(text: str) -> Moment | None:
    moment = _moment(text)
    return moment if moment is not None and moment.zoned else None


def _date(text: str) -> Moment | None:
    match_ = _DATE.fullmatch(text) if len(text) <= LONGEST else None
    if match_ is None:
        return None
    year, month, day, zone = match_.groups()
    return _timed(DATE, (int(year), int(month), int(day)), Fraction(0), zone)


def _timed(kind: str, date: tuple[int, int, int], clock: Fraction, zone: str | None) -> Moment | None:
    year, month, day = date
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if day > (29 if month == 2 and leap else _DAYS[month - 1]):
        return None
    ahead = 0 if zone in {None, "Z"} else int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[4:6]) * 60)
    return Moment(kind, _days(year, month, day) * 86400 + clock - ahead, zone is not None)


def _days(year: int, month: int, day: int) -> int:
    """Count the days since 1970-01-01 in the Gregorian calendar, which XML Schema uses for all years."""
    # Years from March: the odd day of leap years is then the last.
    year -= month <= 2
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719468


def _truth(text: str) -> Truth | None:
    return _TRUTHS.get(text)


_READERS: dict[str, Callable[[str], Value | None]] = {
    f"{XSD}decimal": _decimal,
    f"{XSD}float": _float,
    f"{XSD}double": _double,
    f"{XSD}boolean": _truth,
    f"{XSD}dateTime": _moment,
    f"{XSD}dateTimeStamp": _stamp,
    f"{XSD}date": _date,
}


BOOLEAN = f"{XSD}boolean"


def holds(expression: Expression, binding: Mapping[Term, Term], options: Options) -> bool:
    """Tell whether a FILTER lets a binding pass: its effective boolean value is true.

    >>> from headgate.rdf.language.model import Compare, Options, literal
    >>> two, three = (literal(text, f"{XSD}integer") for text in ("2", "3"))
    >>> holds(Compare("<", "?x", three), {"?x": two}, Options())
    True
    """
    return truth(evaluate(expression, binding, options)) is True


def evaluate(expression: Expression, binding: Mapping[Term, Term], options: Options) -> Term | bool | None:
    """Evaluate an expression: a term, a truth value, or None for an error."""
    match expression:
        case str():
            return binding.get(expression) if model.is_variable(expression) else expression
        case model.Compare(sign, left, right):
            return _compared(
                sign, evaluate(left, binding, options), evaluate(right, binding, options), options.coerce
            )
        case model.Member(item, among):
            one = evaluate(item, binding, options)
            if one is None:
                return None  # also if nothing is listed: an operator needs a term to operate on
            return _any(
                _compared("=", one, evaluate(other, binding, options), options.coerce) for other in among
            )
        case model.And(parts_):
            some_false = _any(_opposite(truth(evaluate(part, binding, options))) for part in parts_)
            return _opposite(some_false)
        case model.Or(parts_):
            return _any(truth(evaluate(part, binding, options)) for part in parts_)
        case model.Not(part):
            return _opposite(truth(evaluate(part, binding, options)))
        case model.Call(name, arguments):
            return call(name, [as_term(evaluate(argument, binding, options)) for argument in arguments])


def truth(value: Term | bool | None) -> bool | None:
    """Take the effective boolean value (SPARQL 1.1, section 17.2.2); None is an error.

    A number or truth value whose text is none of its datatype's counts as false; so says the specification.
    """
    if value is None or isinstance(value, bool):
        return value
    match value_of(value):
        case Truth(held):
            return held
        case Number(_, number):
            return bool(number) and number == number  # noqa: PLR0124 - NaN is false
        case Text(text, _):
            return text != ""
    if model.is_literal(value) and model.parts(value).datatype in {BOOLEAN, *NUMERIC}:
        return False
    return None


def as_term(value: Term | bool | None) -> Term | None:
    """Write a truth value as the literal that it is."""
    return model.literal("true" if value else "false", BOOLEAN) if isinstance(value, bool) else value


def call(name: str, arguments: list[Term | None]) -> Term | bool | None:
    """Call a function; an error among the arguments makes an error."""
    terms = [argument for argument in arguments if argument is not None]
    if len(terms) < len(arguments):
        return None
    first = terms[0]
    match name:
        case "ISIRI":
            return model.is_iri(first)
        case "ISLITERAL":
            return model.is_literal(first)
        case "STR":
            if model.is_blank(first):
                return None
            return model.literal(first[1:-1] if model.is_iri(first) else model.parts(first).lexical)
        case "LANG":
            return model.literal(model.parts(first).language) if model.is_literal(first) else None
        case "DATATYPE":
            return model.iri(model.parts(first).datatype) if model.is_literal(first) else None
        case "LCASE":
            value = value_of(first)
            return (
                model.literal(value.text.lower(), language=value.language)
                if isinstance(value, Text)
                else None
            )
        case "REGEX":
            return _regex(*terms)
        case "STRSTARTS":
            return _texts(first, terms[1], str.startswith)
        case "STRENDS":
            return _texts(first, terms[1], str.endswith)
        case "CONTAINS":
            return _texts(first, terms[1], str.__contains__)
    raise AssertionError(f"the grammar lets no function {name} through")


def _texts(one: Term, other: Term, test: Callable[[str, str], bool]) -> bool | None:
    """Compare two strings; the second must have no language or that of the first (section 17.4.3.1.2)."""
    match value_of(one), value_of(other):
        case Text(text, language), Text(wanted, second) if second in {"", language}:
            return test(text, wanted)
    return None


def _regex(text: Term, pattern: Term, flags: Term = '""') -> bool | None:
    value, search = value_of(text), search_of(model.plain(pattern), model.plain(flags))
    return search.found_in(value.text) if isinstance(value, Text) and search is not None else None


def _compared(sign: str, one: Term | bool | None, other: Term | bool | None, coerce: bool) -> bool | None:
    left, right = as_term(one), as_term(other)
    return None if left is None or right is None else compare(sign, left, right, coerce)


def _any(truths: Iterable[bool | None]) -> bool | None:
    """Say OR of three values: an error only if no part is true."""
    unsure = False
    for one in truths:
        if one is True:
            return True
        unsure |= one is None
    return None if unsure else False


def _opposite(truth_: bool | None) -> bool | None:
    return None if truth_ is None else not truth_
