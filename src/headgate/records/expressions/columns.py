"""Expressions over whole columns: arithmetic and comparisons of numbers in NumPy, where that is exact.

Every function here answers None where it is not sure: sums that might leave 64 bits, NaN in a comparison,
types that have no column of numbers. Then rows are computed one by one, which is what this is held against.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.records.expressions.model import Call, Name, Value
from headgate.records.expressions.types import BOOL, DOUBLE, INT, LONG
from headgate.records.language.model import Literal, LiteralType

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headgate.core.arrays import Bools
    from headgate.core.values import Path
    from headgate.records.expressions.model import Node
    from headgate.records.expressions.types import Type

_SAFE = 2**62
_WHOLE = {INT, LONG}


class Numbers(NamedTuple):
    """Numbers of a column or of a literal: values, which of them are not NULL, and their type."""

    values: Any
    there: Bools | bool
    type: Type


def compute(node: Node, given: Mapping[Path, Numbers]) -> Numbers | None:
    """Compute an expression over columns; None if that has to be done row by row.

    >>> from headgate.records.expressions.parse import parse_node
    >>> column = Numbers(np.array([1, 2, 3]), np.array([True, True, False]), LONG)
    >>> found = compute(parse_node("a * 2 + 1"), {("a",): column})
    >>> found.values.tolist(), found.there.tolist()
    ([3, 5, 7], [True, True, False])
    """
    match node:
        case Name(path):
            return given.get(path)
        case Value(literal, wide):
            if literal.type is LiteralType.INT:
                assert isinstance(literal.value, int)
                small = -(2**31) <= literal.value < 2**31 and not wide
                return Numbers(literal.value, True, INT if small else LONG)
            return Numbers(literal.value, True, DOUBLE) if literal.type is LiteralType.DOUBLE else None
        case Call("negative" | "abs" as name, (part,)):
            column = compute(part, given)
            return None if column is None else _alone(name, column)
        case Call(name, (left, right)) if name in _ARITHMETIC or name in _COMPARISONS:
            first, second = compute(left, given), compute(right, given)
            if first is None or second is None or INT in {first.type} & {second.type}:
                # Two whole numbers of 32 bits have a sum of 32 bits.
                return None
            return _pair(name, first, second)
        case Call("coalesce", parts):
            found_parts = [compute(part, given) for part in parts]
            return _first([part for part in found_parts if part is not None], len(parts))
        case Call("case" | "if", (test, left, right)):
            return _chosen(*(compute(part, given) for part in (test, left, right)))
    return None


MAX_LITERAL = 1_000
"""Characters of a literal that is joined to texts here."""


def compute_texts(node: Node, texts: pa.Array[Any]) -> Any:
    """Compute an expression over the texts of its one attribute, all of ASCII; None if each has to be asked.

    >>> from headgate.records.expressions.parse import parse_node
    >>> compute_texts(parse_node("upper(a) || '!'"), pa.array(["x", "yz"])).to_pylist()
    ['X!', 'YZ!']
    """
    match node:
        case Name():
            return texts
        case Value(Literal(LiteralType.STRING, str() as text)) if text.isascii() and len(text) < MAX_LITERAL:
            return pa.scalar(text, texts.type)
        case Call("lower" | "upper" as name, (part,)):
            column = compute_texts(part, texts)
            if isinstance(column, pa.Array):
                return pc.call_function(f"ascii_{name}", [column])
        case Call("substring", (part, *places)):
            column = compute_texts(part, texts)
            wanted = [each.literal.value for each in places if isinstance(each, Value)]
            whole = [each for each in wanted if type(each) is int]
            if (
                isinstance(column, pa.Array)
                and len(whole) == len(places)
                and whole[0] > 0
                and min(whole) >= 0
            ):
                stop = None if len(whole) == 1 else whole[0] - 1 + whole[1]
                return pc.utf8_slice_codeunits(column, whole[0] - 1, stop)
        case Call("concat" | "||", parts):
            joined = [compute_texts(part, texts) for part in parts]
            if all(each is not None for each in joined) and any(
                isinstance(each, pa.Array) for each in joined
            ):
                return pc.binary_join_element_wise(*joined, pa.scalar("", texts.type))
    return None


def _first(parts: list[Numbers], count: int) -> Numbers | None:
    """Return the first number that is not NULL; whole numbers only, which are of one type."""
    if len(parts) < count or any(part.type not in _WHOLE for part in parts):
        return None
    first = parts[-1]
    for part in reversed(parts[:-1]):
        values = np.where(part.there, part.values, first.values)
        first = Numbers(values, part.there | first.there, LONG)
    return first._replace(type=LONG if LONG in {part.type for part in parts} else INT)


def _chosen(test: Numbers | None, left: Numbers | None, right: Numbers | None) -> Numbers | None:
    """Return one of two whole numbers, by a condition."""
    if test is None or left is None or right is None or test.type != BOOL:
        return None
    if left.type not in _WHOLE or right.type not in _WHOLE:
        return None
    holds = np.asarray(test.values) & test.there
    there = np.where(holds, left.there, right.there)
    return Numbers(
        np.where(holds, left.values, right.values), there, LONG if LONG in {left.type, right.type} else INT
    )


def _bound(part: Numbers) -> int:
    """Return the greatest size of whole numbers."""
    values = np.asarray(part.values)
    if not values.size:
        return 0
    return max(abs(int(values.min())), abs(int(values.max())))


def _alone(name: str, part: Numbers) -> Numbers | None:
    if part.type != DOUBLE and (part.type != LONG or _bound(part) >= _SAFE):
        return None
    return part._replace(values=-part.values if name == "negative" else np.abs(part.values))


def _pair(name: str, left: Numbers, right: Numbers) -> Numbers | None:
    there = left.there & right.there
    if DOUBLE in {left.type, right.type} or name == "/":
        first, second = _double(left), _double(right)
        return _doubles(name, first, second, there)
    one, two = _bound(left), _bound(right)
    if name in _COMPARISONS:
        return Numbers(_COMPARISONS[name](left.values, right.values), there, BOOL)
    if (one * two if name == "*" else one + two) >= _SAFE:
        return None
    if name == "%":
        return _rest(left.values, right.values, there)
    return Numbers(_ARITHMETIC[name](left.values, right.values), there, LONG)


def _double(part: Numbers) -> Any:
    return part.values if part.type == DOUBLE else np.asarray(part.values, np.float64)


def _doubles(name: str, left: Any, right: Any, there: Any) -> Numbers | None:
    if name in _COMPARISONS:
        if np.isnan(left).any() or np.isnan(right).any():
            return None
        return Numbers(_COMPARISONS[name](left, right), there, BOOL)
    with np.errstate(all="ignore"):
        if name == "/":
            there = there & (right != 0)
            return Numbers(np.divide(left, np.where(right == 0, 1.0, right)), there, DOUBLE)
        if name == "%":
            return None
        return Numbers(_ARITHMETIC[name](left, right), there, DOUBLE)


def _rest(left: Any, right: Any, there: Any) -> Numbers:
    there = there & (np.asarray(right) != 0)
    return Numbers(np.fmod(left, np.where(np.asarray(right) == 0, 1, right)), there, LONG)


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "%": np.fmod,
}
_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
