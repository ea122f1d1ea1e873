"""Where values lie on a line: keys in floats, as exact as floats can be.

Rounding to the nearest float keeps the order, so two values compare as their keys do wherever these differ.
Where they are equal the values are, if both keys are exact or both values have at most 15 digits; else only
the reference can tell.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from headgate.rdf.index.arrays import DAYS, EXACT, LOCAL_DAYS, LOCAL_TIMES, NOWHERE, NUMBERS, SHORT, TIMES
from headgate.rdf.language.values import DATE_TIME, FLOAT, Moment, Number, Text, coerced, value_of

if TYPE_CHECKING:
    from headgate.rdf.language.model import Term
    from headgate.rdf.language.values import Value


DIGITS = 15
"""Decimals of so many digits are told apart by floats."""


class Place(NamedTuple):
    """A line, the key there, how well it stands for the value, and how far off a comparison may see it."""

    line: int
    key: float = 0.0
    marks: int = 0
    slack: float = 0.0


_OFF = Place(NOWHERE)
_ONE = Number("integer", 1)
_DAY = Moment("date", Fraction(0), True)
_TIME = Moment(DATE_TIME, Fraction(0), True)


def place(term: Term, coerce: bool) -> Place:
    """Find where a term lies.

    >>> place('"7"^^<http://www.w3.org/2001/XMLSchema#integer>', False)
    Place(line=1, key=7.0, marks=3, slack=0.0)
    >>> place('"7"', False).line, place('"7"', True).line, place('"seven"', True).line
    (0, 1, 0)
    """
    if term.endswith('"') and not (coerce and _VALUE.match(term)):
        # A string that does not even begin like a value: most of what is published.
        return _OFF
    return _kept(term, coerce) if len(term) <= _LONG else _found(term, coerce)


_VALUE = re.compile(r'"(?:[ ]|\\[trn])*[-+.0-9IN]')
_LONG = 200
"""Longer ones are not kept: they would fill the memory and hardly come again."""


def _found(term: Term, coerce: bool) -> Place:
    value = value_of(term)
    if coerce and isinstance(value, Text):
        for other in (_ONE, _TIME, _DAY):
            value = coerced(value, other)
    return _place(value)


_kept = lru_cache(1 << 14)(_found)


def _place(value: Value | None) -> Place:
    if isinstance(value, Moment):
        times = (LOCAL_TIMES, TIMES) if value.kind == DATE_TIME else (LOCAL_DAYS, DAYS)
        key = _rounded(value.seconds)
        return Place(times[value.zoned], key, _marks(key, value.seconds))
    if not isinstance(value, Number):
        return _OFF
    if isinstance(value.value, float):
        if math.isnan(value.value):
            # No range holds it.
            return _OFF
        # Whatever a float is compared with is rounded to a float first.
        slack = abs(value.value) * 2.0**-22 + 2.0**-140 if value.kind == FLOAT else 0.0
        return Place(NUMBERS, value.value, EXACT | SHORT, 0.0 if math.isinf(value.value) else slack)
    number = Fraction(value.value)
    key = _rounded(number)
    return Place(NUMBERS, key, _marks(key, number))


def _marks(key: float, number: Fraction) -> int:
    """Tell whether a key is the number, and whether the number has few digits."""
    exact = math.isfinite(key) and Fraction(key) == number
    size = abs(number)
    short = any((size * 10**k).denominator == 1 and size * 10**k < 10**DIGITS for k in range(DIGITS + 1))
    return EXACT * exact | SHORT * short


def _rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf
