"""Comparisons, connectives and choices: operators and functions that any type may have."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from headgate.records.expressions.bound import NOT_CONSTANT, Bound, constant, lift
from headgate.records.expressions.casting import as_bool, as_double, cast
from headgate.records.expressions.function import MANY, Function
from headgate.records.expressions.model import SHIFT_CALL, TIME_CALL
from headgate.records.expressions.types import (
    BOOL,
    DOUBLE,
    STRING,
    TIMESTAMP,
    VOID,
    common,
    common_of,
    is_atomic,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.types import Type

_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def order_key(value: float) -> tuple[bool, float]:
    """Order doubles as Spark does: NaN equals itself, and is above all others."""
    return (True, 0.0) if value != value else (False, value)  # noqa: PLR0124 -- this is how NaN is known


def _of_doubles(sign: str) -> Callable[[float, float], bool]:
    function = _SIGNS[sign]

    def run(left: float, right: float) -> bool:
        if left == left and right == right:  # noqa: PLR0124 -- this is how NaN is known
            return function(left, right)
        return function(order_key(left), order_key(right))

    return run


def alike(parts: Sequence[Bound], *, strings: bool = True) -> tuple[Type, list[Bound]] | None:
    """Cast parts to one type; None if there is none."""
    kind = common_of((part.type for part in parts), strings=strings)
    if kind is None:
        return None
    found = [cast(part, kind) for part in parts]
    return None if None in found else (kind, [part for part in found if part is not None])


def _pair(parts: Sequence[Bound]) -> tuple[Type, list[Bound]] | None:
    """Give two operands of a comparison one type; decimals are compared with all their digits."""
    left, right = parts
    kind = common(left.type, right.type)
    if kind is None or not is_atomic(kind):
        return None
    if kind.name == "decimal":
        return kind, [left, right]
    found = [cast(left, kind), cast(right, kind)]
    return None if None in found else (kind, [part for part in found if part is not None])


def _comparison(sign: str) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        found = _pair(parts)
        if found is None:
            return None
        kind, own = found
        return lift(BOOL, _of_doubles(sign) if kind == DOUBLE else _SIGNS[sign], own)

    return bind


def _null_safe(parts: Sequence[Bound]) -> Bound | None:
    found = _pair(parts)
    if found is None:
        return None
    left, right = (part.run for part in found[1])
    equal = _of_doubles("=") if found[0] == DOUBLE else operator.eq

    def run(row: list[Any]) -> bool:
        first, second = left(row), right(row)
        if first is None or second is None:
            return first is second
        return bool(equal(first, second))

    return Bound(BOOL, run)


def _truths(parts: Sequence[Bound]) -> list[Callable[[list[Any]], bool | None]] | None:
    found = [as_bool(part) for part in parts]
    return None if None in found else [part.run for part in found if part is not None]


def _and(parts: Sequence[Bound]) -> Bound | None:
    runs = _truths(parts)
    if runs is None:
        return None

    def run(row: list[Any]) -> bool | None:
        answer: bool | None = True
        for each in runs:
            value = each(row)
            if value is False:
                return False
            if value is None:
                answer = None
        return answer

    return Bound(BOOL, run)


def _or(parts: Sequence[Bound]) -> Bound | None:
    runs = _truths(parts)
    if runs is None:
        return None

    def run(row: list[Any]) -> bool | None:
        answer: bool | None = False
        for each in runs:
            value = each(row)
            if value is True:
                return True
            if value is None:
                answer = None
        return answer

    return Bound(BOOL, run)


def _not(parts: Sequence[Bound]) -> Bound | None:
    part = as_bool(parts[0])
    return None if part is None else lift(BOOL, operator.not_, (part,))


def _is_null(parts: Sequence[Bound]) -> Bound:
    given = parts[0].run
    return Bound(BOOL, lambda row: given(row) is None)


def _is_not_null(parts: Sequence[Bound]) -> Bound:
    given = parts[0].run
    return Bound(BOOL, lambda row: given(row) is not None)


def _between(parts: Sequence[Bound]) -> Bound | None:
    value, low, high = parts
    ends = _comparison(">=")((value, low)), _comparison("<=")((value, high))
    return None if None in ends else _and([part for part in ends if part is not None])


def _in(parts: Sequence[Bound]) -> Bound | None:
    found = alike(parts)
    if found is None or not is_atomic(found[0]):
        return None
    kind, (value, *items) = found
    given = value.run
    constants = [part.constant for part in parts[1:]]
    if NOT_CONSTANT not in constants:
        return _in_constants(kind, given, [part.run([]) for part in items])
    runs = [part.run for part in items]
    equal = _of_doubles("=") if kind == DOUBLE else operator.eq

    def run(row: list[Any]) -> bool | None:
        wanted = given(row)
        if wanted is None:
            return None
        answer: bool | None = False
        for each in runs:
            other = each(row)
            if other is None:
                answer = None
            elif equal(wanted, other):
                return True
        return answer

    return Bound(BOOL, run)


def _in_constants(kind: Type, given: Callable[[list[Any]], Any], values: list[Any]) -> Bound:
    key = order_key if kind == DOUBLE else None
    wanted = frozenset(key(each) if key else each for each in values if each is not None)
    otherwise = None if None in values else False

    def run(row: list[Any]) -> bool | None:
        value = given(row)
        if value is None:
            return None
        return True if (key(value) if key else value) in wanted else otherwise

    return Bound(BOOL, run)


def _case(parts: Sequence[Bound]) -> Bound | None:
    """Bind WHEN and THEN in turns, and ELSE at an odd end."""
    conditions = list(parts[: len(parts) // 2 * 2 : 2])
    if any(part.type not in {BOOL, VOID} for part in conditions):
        return None
    found = alike([*parts[1::2], *(parts[-1:] if len(parts) % 2 else ())])
    if found is None:
        return None
    kind, branches = found
    last = branches.pop().run if len(parts) % 2 else None
    pairs = [(when.run, then.run) for when, then in zip(conditions, branches, strict=True)]

    def run(row: list[Any]) -> Any:
        for when, then in pairs:
            if when(row):
                return then(row)
        return None if last is None else last(row)

    return Bound(kind, run)


def _nvl2(parts: Sequence[Bound]) -> Bound | None:
    return _case([_is_not_null(parts), *parts[1:]])


def _coalesce(parts: Sequence[Bound]) -> Bound | None:
    found = alike(parts)
    if found is None:
        return None
    kind, own = found
    runs = [part.run for part in own]

    def run(row: list[Any]) -> Any:
        for each in runs:
            value = each(row)
            if value is not None:
                return value
        return None

    return Bound(kind, run)


def _nullif(parts: Sequence[Bound]) -> Bound | None:
    equal = _comparison("=")(parts)
    if equal is None:
        return None
    same, given = equal.run, parts[0].run
    return Bound(parts[0].type, lambda row: None if same(row) else given(row))


def _extreme(*, greatest: bool) -> Callable[[Sequence[Bound]], Bound | None]:
    better = operator.gt if greatest else operator.lt

    def bind(parts: Sequence[Bound]) -> Bound | None:
        found = alike(parts, strings=False)
        if found is None or not is_atomic(found[0]):
            return None
        kind, own = found
        runs = [part.run for part in own]
        above = _of_doubles(">" if greatest else "<") if kind == DOUBLE else better

        def run(row: list[Any]) -> Any:
            best = None
            for each in runs:
                value = each(row)
                if value is not None and (best is None or above(value, best)):
                    best = value
            return best

        return Bound(kind, run)

    return bind


def _is_nan(parts: Sequence[Bound]) -> Bound | None:
    part = as_double(parts[0])
    if part is None:
        return None
    given = part.run

    def run(row: list[Any]) -> bool:
        value = given(row)
        return value is not None and value != value  # noqa: PLR0124 -- this is how NaN is known

    return Bound(BOOL, run)


def _typeof(parts: Sequence[Bound]) -> Bound:
    return constant(STRING, str(parts[0].type))


def _shift(parts: Sequence[Bound]) -> Bound:
    return lift(TIMESTAMP, lambda moment, micros: moment + micros, parts)


OPERATORS = {
    **{sign: Function(_comparison(sign), 2, 2) for sign in _SIGNS},
    "<=>": Function(_null_safe, 2, 2),
    "and": Function(_and, 2, MANY),
    "or": Function(_or, 2, MANY),
    "not": Function(_not, 1, 1),
    "is null": Function(_is_null, 1, 1),
    "between": Function(_between, 3, 3),
    "in": Function(_in, 2, MANY),
    "case": Function(_case, 2, MANY),
    TIME_CALL: Function(_coalesce, 2, 2),
    SHIFT_CALL: Function(_shift, 2, 2),
}
FUNCTIONS = {
    "if": Function(_case, 3, 3),
    "coalesce": Function(_coalesce, 1, MANY),
    "nullif": Function(_nullif, 2, 2),
    "nvl2": Function(_nvl2, 3, 3),
    "greatest": Function(_extreme(greatest=True), 2, MANY),
    "least": Function(_extreme(greatest=False), 2, MANY),
    "isnotnull": Function(_is_not_null, 1, 1),
    "isnan": Function(_is_nan, 1, 1),
    "typeof": Function(_typeof, 1, 1),
}
ALIASES = {"nvl": "coalesce", "ifnull": "coalesce", "isnull": "is null", "equal_null": "<=>"}
