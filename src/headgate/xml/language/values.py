"""What tests mean, and which tests follow from others."""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.text.alphabets import PYTHON
from headgate.xml.language.model import CONTAINS, STARTS_WITH, WORD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.xml.language.model import Test

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")
_IN_NUMBERS = frozenset("0123456789.- \t\r\n")
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def number(text: str) -> float:
    """Read a text as a number, as XPath 1.0 does: NaN if it is none.

    >>> number(" -2.50 "), number(".5"), number("+1"), number("1e3")
    (-2.5, 0.5, nan, nan)
    """
    match_ = _NUMBER.fullmatch(text)
    return float(match_[1]) if match_ else math.nan


_WORDS = re.compile(r"\\b([^\\]+)\\b|\(\^\|\\W\)([^\\]+)\(\\W\|\$\)")


def wanted_word(pattern: str) -> str | None:
    r"""Return the word, folded, that a regular expression looks for; None if it looks for something else.

    >>> wanted_word(r"\bNews\b"), wanted_word(r"(^|\W)news(\W|$)"), wanted_word("news")
    ('news', 'news', None)
    """
    match_ = _WORDS.fullmatch(pattern)
    word = match_ and (match_[1] or match_[2])
    return PYTHON.fold(word) if word and PYTHON.is_word(word) else None


def holds(test: Test, val: str) -> bool:
    """Tell whether a test holds for the `val` of a node."""
    sign, value = test.sign, test.value
    if isinstance(value, str):
        if sign == "=":
            return val == value
        if sign == "!=":
            return val != value
        if sign == CONTAINS:
            return value in val
        if sign == STARTS_WITH:
            return val.startswith(value)
        if sign == WORD:
            return value in PYTHON.words(val)
    elif sign in COMPARE:
        return COMPARE[sign](number(val), value)
    raise ValueError(f"{sign!r} does not go with {value!r}: texts have no order, functions take texts")


def implies(tests: Sequence[Test], test: Test) -> bool:
    """Tell whether a test holds wherever all of some tests hold.

    Never true without reason. It misses nothing that follows from equalities, inequalities and the order of
    numbers; of `contains` and `starts-with` it sees what one of them says alone.
    """
    if test in tests:
        return True
    pinned = next((each.value for each in tests if each.sign == "=" and isinstance(each.value, str)), None)
    if isinstance(pinned, str):
        return not all(holds(each, pinned) for each in tests) or holds(test, pinned)
    allowed = _allowed(tests)
    if allowed is None:
        return True
    if isinstance(test.value, str):
        return _implies_text(tests, test.sign, test.value)
    return _implies_number(allowed, test.sign, test.value)


class _Allowed(NamedTuple):
    """The numbers that some tests allow: from low to high, without some. `nan` is what is no number."""

    nan: bool
    numbers: bool
    low: float
    high: float
    without: frozenset[float]


def _allowed(tests: Sequence[Test]) -> _Allowed | None:
    """Find the numbers that tests allow; None if nothing satisfies them.

    Between two neighbouring doubles there is no number, so every bound can be one that is allowed itself.
    """
    low, high, nan = -math.inf, math.inf, True
    for each in tests:
        if isinstance(each.value, str) or each.sign == "!=":
            continue
        nan = False
        value = float(each.value)
        below, above = each.sign == "<", each.sign == ">"
        if math.isnan(value) or (below and value == -math.inf) or (above and value == math.inf):
            return None
        if each.sign in {"=", ">", ">="}:
            low = max(low, math.nextafter(value, math.inf) if above else value)
        if each.sign in {"=", "<", "<="}:
            high = min(high, math.nextafter(value, -math.inf) if below else value)
    without = frozenset(
        float(each.value) for each in tests if each.sign == "!=" and not isinstance(each.value, str)
    )
    while low in without and low <= high and low < math.inf:
        low = math.nextafter(low, math.inf)
    while high in without and low <= high and high > -math.inf:
        high = math.nextafter(high, -math.inf)
    # An infinity that is left out at the far end is left out of an interval of itself alone.
    numbers = low <= high and not (low == high and low in without) and not _is_no_number(tests)
    return _Allowed(nan, numbers, low, high, without) if nan or numbers else None


def _is_no_number(tests: Sequence[Test]) -> bool:
    """Tell whether a part of the text is asked for that no number has."""
    return any(
        each.sign in {CONTAINS, STARTS_WITH} and not _IN_NUMBERS.issuperset(str(each.value)) for each in tests
    )


def _implies_number(allowed: _Allowed, sign: str, value: float) -> bool:
    if sign == "!=":
        inside = allowed.low <= value <= allowed.high and value not in allowed.without
        return not allowed.numbers or not inside
    if allowed.nan or math.isnan(value):
        return False
    if sign == "=":
        return allowed.low == allowed.high == value
    return COMPARE[sign](allowed.high if sign in {"<", "<="} else allowed.low, value)


def _implies_text(tests: Sequence[Test], sign: str, value: str) -> bool:
    if sign == "!=":
        return not all(holds(each, value) for each in tests)
    if sign == "=":
        return False
    if value == "":
        return True
    for each in tests:
        if sign == CONTAINS and each.sign in {CONTAINS, STARTS_WITH} and value in str(each.value):
            return True
        if sign == STARTS_WITH and each.sign == STARTS_WITH and str(each.value).startswith(value):
            return True
    return False
