"""Values of other libraries as what they are: NumPy's and pandas' scalars, decimals, subclasses of ours.

    NumPy scalar, array          the Python value, a list
    datetime64, Timestamp        datetime; NaT and NA are nothing
    Decimal                      itself; NaN and the infinities are floats, which decimals have not
    subclass of str, int, …      the value itself, of an IntEnum say

Nothing is imported for it: a value tells by its type where it comes from.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_USUAL = frozenset({type(None), bool, int, float, str, dt.datetime, dt.date})


def native(value: Any) -> Any:
    """Return a value as Python has it; one that is so already, or is not known, as it is.

    >>> native(Decimal("2.50")), native(Decimal("NaN")), native({"sizes": (Decimal("1"), "x")})
    (Decimal('2.50'), nan, {'sizes': [Decimal('1'), 'x']})
    """
    kind = type(value)
    if kind in _USUAL:
        return value
    if kind is list or kind is tuple:
        return value if _USUAL.issuperset(map(type, value)) else [native(each) for each in value]
    if isinstance(value, Mapping):
        return native_row(value)
    return _native(value)


def native_row(row: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return a mapping with values as Python has them; a dict of such is not copied."""
    if type(row) is dict and (_USUAL.issuperset(map(type, row.values())) or _is_native(row)):
        return row
    return {name: value if type(value) in _USUAL else native(value) for name, value in row.items()}


def _is_native(row: dict[Any, Any]) -> bool:
    """Tell whether all values are as Python has them, also those in objects and lists."""
    for value in row.values():
        kind = type(value)
        if kind in _USUAL:
            continue
        if kind is dict:
            if not _is_native(value):
                return False
        elif kind is not list or not _USUAL.issuperset(map(type, value)):
            return False
    return True


def _native(value: Any) -> Any:
    home = type(value).__module__.partition(".")[0]
    if home == "numpy" and hasattr(value, "tolist"):
        if value.dtype.kind == "M":
            value = value.astype("datetime64[us]")
        return native(value.tolist())
    if home == "pandas" and type(value).__name__ in {"NAType", "NaTType"}:
        return None
    if isinstance(value, Decimal):
        return Decimal(value) if value.is_finite() else float(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, dt.datetime):
        # Replacing nothing would keep the subclass.
        parts = value.timetuple()[:6]
        return dt.datetime(*parts, value.microsecond, value.tzinfo, fold=value.fold)
    if isinstance(value, dt.date):
        return dt.date(value.year, value.month, value.day)
    if isinstance(value, list | tuple):
        return [native(each) for each in value]
    return value


def plain(value: Any) -> Any:
    """Return a value as Python has it where no decimals are known: in ids, scores and weights.

    >>> plain(Decimal("2")), plain(Decimal("2.50"))
    (2, 2.5)
    """
    python_value = native(value)
    if isinstance(python_value, dict):
        return {name: plain(each) for name, each in python_value.items()}
    if not isinstance(python_value, Decimal):
        return python_value
    return int(python_value) if python_value.as_tuple().exponent == 0 else float(python_value)
