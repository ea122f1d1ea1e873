"""Functions of arrays and of what is in them, and of JSON in texts."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from headgate.records.expressions.bound import Bound, fail, lift
from headgate.records.expressions.casting import as_bool, as_int, as_text, cast, double_text
from headgate.records.expressions.function import MANY, Function
from headgate.records.expressions.logic import alike, order_key
from headgate.records.expressions.types import (
    BOOL,
    DOUBLE,
    INT,
    STRING,
    VOID,
    array,
    common_of,
    is_atomic,
    tightest,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.model import Node
    from headgate.records.expressions.types import Type

MAX_STEPS = 100_000
"""Elements that functions of elements are called with in one expression of one event: beyond, it is NULL."""
_MANY = f"functions of elements are called more than {MAX_STEPS:,} times"


def _element_type(part: Bound) -> Type | None:
    return VOID if part.type == VOID else part.type.element


def _size(parts: Sequence[Bound]) -> Bound | None:
    return None if _element_type(parts[0]) is None else lift(INT, len, parts)


def _taken(*, first: int, strict: bool) -> Callable[[Sequence[Bound]], Bound | None]:
    """Bind what takes an element by its place; `first` is the number of the first."""

    def take(items: list[Any], place: int) -> Any:
        at = place - first if place >= 0 or first == 0 else len(items) + place
        if (first == 1 and place == 0) or not 0 <= at < len(items):
            return fail(f"there is no element {place}") if strict else None
        return items[at]

    def bind(parts: Sequence[Bound]) -> Bound | None:
        kind, place = _element_type(parts[0]), as_int(parts[1])
        if kind is None or place is None or parts[1].type == STRING:
            return None
        return lift(kind, take, (parts[0], place))

    return bind


def _field(parts: Sequence[Bound]) -> Bound | None:
    name = parts[1].constant
    if parts[0].type.name != "struct":
        return None
    kind = dict(parts[0].type.fields).get(name, VOID)
    return lift(kind, lambda value: value.get(name), parts[:1])


def _array(parts: Sequence[Bound]) -> Bound | None:
    found = alike(parts)
    if found is None:
        return None
    kind, own = found
    runs = [part.run for part in own]
    return Bound(array(kind), lambda row: [run(row) for run in runs])


def _no_null(arguments: Sequence[Node]) -> str:
    from headgate.records.expressions.model import Value

    given = arguments[1]
    null = isinstance(given, Value) and given.literal.value is None
    return "argument 2 is NULL, which Spark refuses, too" if null else ""


def _contains(parts: Sequence[Bound]) -> Bound | None:
    inner = _element_type(parts[0])
    kind = None if inner is None else common_of((inner, parts[1].type), strings=False)
    if kind is None or not is_atomic(kind) or parts[1].type == VOID:
        return None
    items, wanted = cast(parts[0], array(kind)), cast(parts[1], kind)
    if items is None or wanted is None:
        return None
    key: Callable[[Any], Any] = order_key if kind == DOUBLE else lambda value: value

    def run(found: list[Any], value: Any) -> bool | None:
        value = key(value)
        if any(each is not None and key(each) == value for each in found):
            return True
        return None if None in found else False

    return lift(BOOL, run, (items, wanted))


def _overlap(parts: Sequence[Bound]) -> Bound | None:
    kinds = [_element_type(part) for part in parts]
    if None in kinds:
        return None
    kind = tightest(*(each for each in kinds if each is not None))
    if kind is None or not is_atomic(kind):
        return None
    found = [cast(part, array(kind)) for part in parts]
    key: Callable[[Any], Any] = order_key if kind == DOUBLE else lambda value: value

    def run(left: list[Any], right: list[Any]) -> bool | None:
        if {key(each) for each in left if each is not None} & {
            key(each) for each in right if each is not None
        }:
            return True
        return None if left and right and (None in left or None in right) else False

    return lift(BOOL, run, [part for part in found if part is not None]) if None not in found else None


def _extreme(function: Callable[..., Any]) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        kind = _element_type(parts[0])
        if kind is None or not is_atomic(kind):
            return None
        key = order_key if kind == DOUBLE else None

        def run(items: list[Any]) -> Any:
            return function((each for each in items if each is not None), key=key, default=None)

        return lift(kind, run, parts)

    return bind


def _join(parts: Sequence[Bound]) -> Bound | None:
    kind = _element_type(parts[0])
    if kind not in {STRING, VOID}:
        return None
    if any(part.type not in {STRING, VOID} for part in parts[1:]):
        return None

    def run(items: list[str | None], between: str, instead: str | None = None) -> str:
        return between.join(
            each for each in (instead if one is None else one for one in items) if each is not None
        )

    return lift(STRING, run, parts)


def _body(parts: Sequence[Bound]) -> tuple[Type, int, Bound] | None:
    """Bind the function of elements in the second argument."""
    kind = _element_type(parts[0])
    if kind is None or parts[1].body is None:
        return None
    found = parts[1].body(kind)
    return None if found is None else (kind, *found)


def _each(
    parts: Sequence[Bound], slot: int, body: Bound, end: Callable[[list[Any], list[Any]], Any], kind: Type
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
        found = _body(parts)
        test = None if found is None else as_bool(found[2]) if found[2].type in {BOOL, VOID} else None
        return None if found is None or test is None else _each(parts, found[1], test, whole, BOOL)

    return bind


def _any(_items: list[Any], answers: list[Any]) -> bool | None:
    return True if True in answers else None if None in answers else False


def _all(_items: list[Any], answers: list[Any]) -> bool | None:
    return False if False in answers else None if None in answers else True


def _transform(parts: Sequence[Bound]) -> Bound | None:
    found = _body(parts)
    if found is None:
        return None
    return _each(parts, found[1], found[2], lambda _items, answers: answers, array(found[2].type))


def _filter(parts: Sequence[Bound]) -> Bound | None:
    found = _body(parts)
    if found is None or found[2].type not in {BOOL, VOID}:
        return None

    def end(items: list[Any], answers: list[Any]) -> list[Any]:
        return [item for item, answer in zip(items, answers, strict=True) if answer]

    return _each(parts, found[1], found[2], end, parts[0].type)


def _lambda(arguments: Sequence[Node]) -> str:
    from headgate.records.expressions.model import Lambda

    return (
        "" if isinstance(arguments[1], Lambda) else "argument 2 is a function of an element: write x -> x > 1"
    )


_PATH = re.compile(r"\$((?:\.[A-Za-z_][A-Za-z0-9_-]*|\['[^'\[\]*?]+'\]|\[[0-9]{1,6}\])*)\Z")
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^']+)'\]|\[([0-9]+)\]")


def _path_wrong(arguments: Sequence[Node]) -> str:
    from headgate.records.expressions.model import Value

    given = arguments[1]
    text = str(given.literal.value) if isinstance(given, Value) else ""
    return "" if _PATH.match(text) else f"{text!r} is no simple path: write '$.a.b[0]'"


def _json(parts: Sequence[Bound]) -> Bound | None:
    text = as_text(parts[0])
    found = _PATH.match(str(parts[1].constant))
    if text is None or found is None:
        return None
    steps = [int(step[3]) if step[3] else step[1] or step[2] for step in _STEP.finditer(found[1])]
    return lift(STRING, lambda value: _looked_up(value, steps), (text,))


def _looked_up(text: str, steps: Sequence[str | int]) -> str | None:
    try:
        found: Any = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None
    for step in steps:
        if isinstance(step, int):
            found = found[step] if isinstance(found, list) and step < len(found) else None
        else:
            found = found.get(step) if isinstance(found, dict) else None
    return None if found is None else _written(found)


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
