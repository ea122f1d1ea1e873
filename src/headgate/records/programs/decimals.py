"""Where decimals lie among doubles and literals: keys of 64 bits, and texts for literals of many digits.

The doubles that decimals of up to 76 digits come near to are numbered, 0 is that of zero, and each has three
keys in a row:

    3 n         decimals that are rounded to the double, below its short decimal
    3 n + 1     its short decimal itself, the one of at most 15 digits, if there is one
    3 n + 2     decimals that are rounded to it, above its short decimal

At most one decimal of 15 digits is rounded to a double, so a short literal is one key, and a double, which
meets decimals after they are cast to double, is three. Literals of more digits are compared with all digits
of a decimal, on a line of texts that are in the order of the decimals.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

from headgate.records.programs.leaves import float_key, float_keys

if TYPE_CHECKING:
    from headgate.core.arrays import Floats64, Ints

SHORT = 15
"""Digits of a short decimal."""
SHORT_LIMIT = 10**SHORT
"""Whole numbers up to it, and multiples of powers of ten aside no others, are short."""
_FIRST = 1023 - 256 << 52
"""The key of 2**-256, which is below the least decimal; 2**256 is above the greatest."""
_COUNT = 512 << 52
_TOP = 3 * (_COUNT + 1)
_ZERO_TEXT = "o"


def double_cuts(value: float) -> tuple[int, int]:
    """Return the first key of decimals that are this double or greater, and the first of those above it.

    >>> low, high = double_cuts(0.1)
    >>> high - low, low < decimal_key(Decimal("0.1")) < high, double_cuts(1e300) == double_cuts(math.inf)
    (3, True, True)
    """
    if math.isnan(value):
        return _TOP, _TOP
    number = float_key(abs(value)) - _FIRST + 1 if value else 0
    if number > _COUNT:
        return (_TOP, _TOP) if value > 0 else (-_TOP, -_TOP)
    if value and number < 1:
        # Between zero and the decimals next to it.
        return (3, 3) if value > 0 else (0, 0)
    first = 3 * (number if value >= 0 else -number)
    return first, first + 3


def decimal_key(value: Decimal) -> int:
    """Return the key of a decimal.

    >>> keys = [decimal_key(Decimal(text)) for text in ("0.1", "0.10", "0.100000000000000000000000000001")]
    >>> [key - keys[0] for key in keys]
    [0, 0, 1]
    """
    double = float(value)
    first, _ = double_cuts(double)
    short = Decimal(f"{double:.{SHORT}g}")
    if value == short:
        return first + 1
    # Where the double has no short decimal, all that are rounded to it have one key.
    beyond = value.copy_abs() > short.copy_abs() and float(short) == double
    return first + (2 if beyond is (double > 0) else 0)


def whole_key(value: int) -> int:
    """Return the key of a whole number that is short.

    >>> whole_key(-35) == decimal_key(Decimal(-35))
    True
    """
    return double_cuts(float(value))[0] + 1


def double_numbers(values: Floats64) -> Ints:
    """Number doubles as the keys of decimals do; none of them may be beyond all decimals."""
    keys = float_keys(np.abs(values)) - (_FIRST - 1)
    return np.where(values == 0, 0, np.where(values < 0, -keys, keys)).astype(np.int64)


def is_short(value: Decimal | int) -> bool:
    """Tell whether a decimal has at most 15 digits, zeros around them aside.

    >>> is_short(Decimal("1.50e30")), is_short(Decimal("0.00000000012")), is_short(10**15 + 1)
    (True, True, False)
    """
    return len(str(_digits(Decimal(value))[1]).rstrip("0")) <= SHORT


def decimal_text(value: Decimal | int) -> str:
    """Write a decimal so that texts are in the order of what they stand for.

    >>> numbers = ("-1e3", "-10", "-1.25", "-1.2", "-0.05", "0", "1e-9", "0.5", "7", "10")
    >>> texts = [decimal_text(Decimal(number)) for number in numbers]
    >>> texts == sorted(texts), decimal_text(Decimal("1.20")) == decimal_text(Decimal("1.2"))
    (True, True)
    """
    negative, digits, exponent = _digits(Decimal(value))
    if digits == "0":
        return _ZERO_TEXT
    # How many digits stand before the point, below 0 if zeros follow it.
    size = len(digits) + exponent
    digits = digits.rstrip("0")
    if not negative:
        return f"p{500 + size:03}{digits}"
    # Turned around: what ends early is greater than what goes on.
    return f"n{500 - size:03}{digits.translate(_TURNED)}~"


_TURNED = str.maketrans("0123456789", "9876543210")


def _digits(value: Decimal) -> tuple[bool, str, int]:
    sign, figures, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return bool(sign), "".join(map(str, figures)).lstrip("0") or "0", exponent
