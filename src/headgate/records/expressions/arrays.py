"""Functions of arrays and of what is in them, and of JSON in texts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from headgate.records.expressions import types
from headgate.records.expressions.bound import Bound, fail, lift
from headgate.records.expressions.casting import as_bool, as_int, as_text, cast, double_text
from headgate.records.expressions.function import MANY, Function, text_at
from headgate.records.expressions.logic import alike, order_key
from headgate.records.expressions.model import Lambda, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.model import Node

MAX_STEPS = 100_000
"""Elements that functions of elements are called with in one expression of one event: beyond, it is NULL."""
_MANY = f"functions of elements are called more than {MAX_STEPS:,} times"


def _element_type(part: Bound) -> types.Type | None:
    return types.VOID if part.type == types.VOID else part.type.element


def _size(parts: Sequence[Bound]) -> Bound | None:
    return None if _element_type(parts[0]) is None else lift(types.INT, len, parts)


def _taken(*, first: int, strict: bool) -> Callable[[Sequence[Bound]], Bound | None]:
    """Bind what takes an element by its place; `first` is the number of the first."""

    def take(items: list[Any], index: int) -> Any:
        at = index - first if index >= 0 or first == 0 else len(items) + index
        if (first == 1 and index == 0) or not 0 <= at < len(items):
            return fail(f"there is no element {index}") if strict else None
        return items[at]

    def bind(parts: Sequence[Bound]) -> Bound | None:
        kind, place = _element_type(parts[0]), as_int(parts[1])
        if kind is None or place is None or parts[1].type == types.STRING:
            return None
        return lift(kind, take, (parts[0], place))

    return bind


def _field(parts: Sequence[Bound]) -> Bound | None:
    name = parts[1].constant
    if parts[0].type.name != "struct":
        return None
    kind = dict(parts[0].type.fields).get(name, types.VOID)
    return lift(kind, lambda value: value.get(name), parts[:1])


def _array(parts: Sequence[Bound]) -> Bound | None:
    cast_parts = alike(parts)
    if cast_parts is None:
        return None
    kind, own = cast_parts
    runs = [part.run for part in own]
    return Bound(types.array(kind), lambda row: [run(row) for run in runs])


def _no_null(arguments: Sequence[Node]) -> str:
    given = arguments[1]
    null = isinstance(given, Value) and given.literal.value is None
    return "argument 2 is NULL, which Spark refuses, too" if null else ""


def _contains(parts: Sequence[Bound]) -> Bound | None:
    inner = _element_type(parts[0])
    kind = None if inner is None else types.common_of((inner, parts[1].type), strings=False)
    if kind is None or not types.is_atomic(kind) or parts[1].type == types.VOID:
        return None
    key: Callable[[Any], Any] = order_key if kind == types.DOUBLE else lambda value: value

    def run(elements: list[Any], value: Any) -> bool | None:
        value = key(value)
        if any(each is not None and key(each) == value for each in elements):
            return True
        return None if None in elements else False

    return lift(types.BOOL, run, (cast(parts[0], types.array(kind)), cast(parts[1], kind)))


def _overlap(parts: Sequence[Bound]) -> Bound | None:
    own, other = map(_element_type, parts)
    kind = None if own is None or other is None else types.tightest(own, other)
    if kind is None or not types.is_atomic(kind):
        return None
    key: Callable[[Any], Any] = order_key if kind == types.DOUBLE else lambda value: value

    def run(left: list[Any], right: list[Any]) -> bool | None:
        if {key(each) for each in left if each is not None} & {
            key(each) for each in right if each is not None
        }:
            return True
        return None if left and right and (None in left or None in right) else False

    return lift(types.BOOL, run, [cast(part, types.array(kind)) for part in parts])


def _extreme(function: Callable[..., Any]) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        kind = _element_type(parts[0])
        if kind is None or not types.is_atomic(kind):
            return None
        key = order_key if kind == types.DOUBLE else None

        def run(items: list[Any]) -> Any:
            return function((each for each in items if each is not None), key=key, default=None)

        return lift(kind, run, parts)

    return bind


def _join(parts: Sequence[Bound]) -> Bound | None:
    kind = _element_type(parts[0])
    if kind not in {types.STRING, types.VOID}:
        return None
    if any(part.type not in {types.STRING, types.VOID} for part in parts[1:]):
        return None

    def run(items: list[str | None], between: str, instead: str | None = None) -> str:
        return between.join(
            each for each in (instead if one is None else one for one in items) if each is not None
        )

    return lift(types.STRING, run, parts)


def _body(parts: Sequence[Bound]) -> tuple[types.Type, int, Bound] | None:
    """Bind the function of elements in the second argument."""
    kind = _element_type(parts[0])
    if kind is None or parts[1].body is None:
        return None
    bound = parts[1].body(kind)
    return None if bound is None else (kind, *bound)


def _each(
    parts: Sequence[Bound],
    slot: int,
    body: Bound,
    end: Callable[[list[Any], list[Any]], Any],
    kind: types.Type,
) -> Bound:
    """Run a function for all elements, and make something of elements and answers."""
    given, inner = parts[0].run, body.run

    def run(row: list[Any]) -> Any:
        items = given(row)
        if items is None:
            return None
        row[0] -= len(items)
        if row[0] < 0:
            return fail(_MANY)
        answers = []
        for item in items:
            row[slot] = item
            answers.append(inner(row))
        return end(items, answers)

    return Bound(kind, run)


def _asked(whole: Callable[[list[Any], list[Any]], bool | None]) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        body = _body(parts)
        test = (
            None if body is None else as_bool(body[2]) if body[2].type in {types.BOOL, types.VOID} else None
        )
        return None if body is None or test is None else _each(parts, body[1], test, whole, types.BOOL)

    return bind


def _any(_items: list[Any], answers: list[Any]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _all(_items: list[Any], answers: list[Any]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _transform(parts: Sequence[Bound]) -> Bound | None:
    body = _body(parts)
    if body is None:
        return None
    return _each(parts, body[1], body[2], lambda _items, answers: answers, types.array(body[2].type))


def _filter(parts: Sequence[Bound]) -> Bound | None:
    body = _body(parts)
    if body is None or body[2].type not in {types.BOOL, types.VOID}:
        return None

    def end(items: list[Any], answers: list[Any]) -> list[Any]:
        return [item for item, answer in zip(items, answers, strict=True) if answer]

    return _each(parts, body[1], body[2], end, parts[0].type)


def _lambda(arguments: Sequence[Node]) -> str:
    return (
        "" if isinstance(arguments[1], Lambda) else "argument 2 is a function of an element: write x -> x > 1"
    )


_PATH = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_-]*|\['[^'\[\]*?]+'\]|\[[0-9]{1,6}\])*)\Z")
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^']+)'\]|\[([0-9]+)\]")


def _path_wrong(arguments: Sequence[Node]) -> str:
    text = text_at(arguments, 1)
    return "" if _PATH.match(text) else f"{text!r} is no simple path: write '$.a.b[0]'"


def _json(parts: Sequence[Bound]) -> Bound | None:
    match_ = _PATH.match(str(parts[1].constant))
    assert match_ is not None
    steps = [int(step[3]) if step[3] else step[1] or step[2] for step in _STEP.finditer(match_[1])]
    return lift(types.STRING, lambda value: _looked_up(value, steps), (as_text(parts[0]),))


def _looked_up(text: str, steps: Sequence[str | int]) -> str | None:
    try:
        value: Any = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return None if value is None else _written(value)


def _refused(word: str) -> Any:
    raise ValueError(word)


def _written(value: Any, *, inner: bool = False) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False) if inner else value
        case float():
            return double_text(value)
        case dict():
            parts = (
                f"{json.dumps(k, ensure_ascii=False)}:{_written(v, inner=True)}" for k, v in value.items()
            )
            return "{" + ",".join(parts) + "}"
        case list():
            return "[" + ",".join(_written(each, inner=True) for each in value) + "]"
    return str(value)


OPERATORS = {"element": Function(_taken(first=0, strict=True), 2, 2), "field": Function(_field, 2, 2)}
FUNCTIONS = {
    "size": Function(_size, 1, 1),
    "element_at": Function(_taken(first=1, strict=True), 2, 2),
    "get": Function(_taken(first=0, strict=False), 2, 2),
    "array": Function(_array, 0, MANY),
    "array_contains": Function(_contains, 2, 2, wrong=_no_null),
    "arrays_overlap": Function(_overlap, 2, 2),
    "array_max": Function(_extreme(max), 1, 1),
    "array_min": Function(_extreme(min), 1, 1),
    "array_join": Function(_join, 2, 3),
    "exists": Function(_asked(_any), 2, 2, wrong=_lambda),
    "forall": Function(_asked(_all), 2, 2, wrong=_lambda),
    "transform": Function(_transform, 2, 2, wrong=_lambda),
    "filter": Function(_filter, 2, 2, wrong=_lambda),
    "get_json_object": Function(_json, 2, 2, texts=(1,), wrong=_path_wrong),
}
ALIASES = {"cardinality": "size", "array_size": "size"}
