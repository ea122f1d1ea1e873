"""Comparisons, connectives and choices: operators and functions that any type may have."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from headgate.records.expressions import types
from headgate.records.expressions.bound import NOT_CONSTANT, Bound, constant, lift, runs_of
from headgate.records.expressions.casting import as_bool, as_double, cast
from headgate.records.expressions.function import MANY, Function, function_of
from headgate.records.expressions.model import SHIFT_CALL, TIME_CALL

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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


def alike(parts: Sequence[Bound], *, strings: bool = True) -> tuple[types.Type, list[Bound]] | None:
    """Cast parts to one type; None if there is none."""
    kind = types.common_of((part.type for part in parts), strings=strings)
    return None if kind is None else _cast_all(parts, kind)


def _cast_all(parts: Sequence[Bound], kind: types.Type) -> tuple[types.Type, list[Bound]] | None:
    cast_parts = [part for each in parts if (part := cast(each, kind)) is not None]
    return (kind, cast_parts) if len(cast_parts) == len(parts) else None


def _pair(parts: Sequence[Bound]) -> tuple[types.Type, list[Bound]] | None:
    """Give two operands of a comparison one type; decimals are compared with all their digits."""
    left, right = parts
    kind = types.common(left.type, right.type)
    if kind is None or not types.is_atomic(kind):
        return None
    return (kind, [left, right]) if kind.name == "decimal" else _cast_all(parts, kind)


def _comparison(sign: str) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        pair = _pair(parts)
        if pair is None:
            return None
        kind, own = pair
        return lift(types.BOOL, _of_doubles(sign) if kind == types.DOUBLE else _SIGNS[sign], own)

    return bind


def _null_safe(parts: Sequence[Bound]) -> Bound | None:
    pair = _pair(parts)
    if pair is None:
        return None
    left, right = (part.run for part in pair[1])
    equal = _of_doubles("=") if pair[0] == types.DOUBLE else operator.eq

    def run(row: list[Any]) -> bool:
        first, second = left(row), right(row)
        if first is None or second is None:
            return first is second
        return bool(equal(first, second))

    return Bound(types.BOOL, run)


def _connective(*, final: bool) -> Callable[[Sequence[Bound]], Bound | None]:
    """Bind OR, of which one TRUE is enough, or AND, of which one FALSE is."""

    def bind(parts: Sequence[Bound]) -> Bound | None:
        runs = runs_of([as_bool(part) for part in parts])
        if runs is None:
            return None

        def run(row: list[Any]) -> bool | None:
            answer: bool | None = not final
            for each in runs:
                value = each(row)
                if value is final:
                    return final
                if value is None:
                    answer = None
            return answer

        return Bound(types.BOOL, run)

    return bind


_and, _or = _connective(final=False), _connective(final=True)


def _is_null(parts: Sequence[Bound]) -> Bound:
    given = parts[0].run
    return Bound(types.BOOL, lambda row: given(row) is None)


def _is_not_null(parts: Sequence[Bound]) -> Bound:
    given = parts[0].run
    return Bound(types.BOOL, lambda row: given(row) is not None)


def _between(parts: Sequence[Bound]) -> Bound | None:
    value, low, high = parts
    ends = _comparison(">=")((value, low)), _comparison("<=")((value, high))
    return None if None in ends else _and([part for part in ends if part is not None])


def _in(parts: Sequence[Bound]) -> Bound | None:
    typed = alike(parts)
    if typed is None or not types.is_atomic(typed[0]):
        return None
    kind, (value, *items) = typed
    given = value.run
    key = order_key if kind == types.DOUBLE else None
    literals, runs, failing = [], [], []
    for part, item in zip(parts[1:], items, strict=True):
        if part.constant is NOT_CONSTANT:
            runs.append(item.run)
            continue
        literals.append(item.run([]))
        if literals[-1] is None and part.constant is not None:
            failing.append(item.run)
    listed = frozenset(key(each) if key else each for each in literals if each is not None)
    otherwise = None if None in literals else False

    def run(row: list[Any]) -> bool | None:
        wanted = given(row)
        if wanted is None:
            return None
        wanted = key(wanted) if key else wanted
        for each in failing:
            each(row)  # which notes why it cannot be cast
        if wanted in listed:
            return True
        answer = otherwise
        for each in runs:
            other = each(row)
            if other is None:
                answer = None
            elif wanted == (key(other) if key else other):
                return True
        return answer

    return Bound(types.BOOL, run)


def _case(parts: Sequence[Bound]) -> Bound | None:
    """Bind WHEN and THEN in turns, and ELSE at an odd end."""
    conditions = list(parts[: len(parts) // 2 * 2 : 2])
    if any(part.type not in {types.BOOL, types.VOID} for part in conditions):
        return None
    typed = alike([*parts[1::2], *(parts[-1:] if len(parts) % 2 else ())])
    if typed is None:
        return None
    kind, branches = typed
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
    typed = alike(parts)
    if typed is None:
        return None
    kind, own = typed
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


def _extreme(function: Callable[..., Any]) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        typed = alike(parts, strings=False)
        if typed is None or not types.is_atomic(typed[0]):
            return None
        kind, own = typed
        runs = [part.run for part in own]
        key = order_key if kind == types.DOUBLE else None

        def run(row: list[Any]) -> Any:
            values = [each(row) for each in runs]
            return function((value for value in values if value is not None), key=key, default=None)

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

    return Bound(types.BOOL, run)


def _typeof(parts: Sequence[Bound]) -> Bound:
    return constant(types.STRING, str(parts[0].type))


def _shift(parts: Sequence[Bound]) -> Bound | None:
    return lift(types.TIMESTAMP, lambda moment, micros: moment + micros, parts)


OPERATORS = {
    **{sign: Function(_comparison(sign), 2, 2) for sign in _SIGNS},
    "<=>": Function(_null_safe, 2, 2),
    "and": Function(_and, 2, MANY),
    "or": Function(_or, 2, MANY),
    "not": function_of(types.BOOL, operator.not_, "b"),
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
    "greatest": Function(_extreme(max), 2, MANY),
    "least": Function(_extreme(min), 2, MANY),
    "isnotnull": Function(_is_not_null, 1, 1),
    "isnan": Function(_is_nan, 1, 1),
    "typeof": Function(_typeof, 1, 1),
}
ALIASES = {"nvl": "coalesce", "ifnull": "coalesce", "isnull": "is null", "equal_null": "<=>"}
