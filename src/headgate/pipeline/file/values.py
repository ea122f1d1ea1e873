"""Whether the value of a setting is one that it can have, and the values that a command line gives."""

from __future__ import annotations

import math
import tomllib
from typing import TYPE_CHECKING, Any

from headgate.pipeline.file.problems import nearest
from headgate.pipeline.file.setting import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.pipeline.file.setting import Setting


def wrong(setting: Setting, value: Any) -> tuple[str, str] | None:
    """Say why a setting cannot have a value, and what it can have; None if it can.

    >>> from headgate.pipeline.file.settings import SETTINGS
    >>> top = next(each for each in SETTINGS if each.name == "top")
    >>> wrong(top, "ten"), wrong(top, 20)
    (("'ten' is text", 'give a whole number, 0 or more'), None)
    """
    fits, what = _KINDS[setting.kind]
    if not fits(value):
        return f"{value!r} is {_called(value)}", f"give {what}{_range(setting)}"
    if setting.choices and value not in setting.choices:
        return f"{value!r} is none of them", nearest(value, setting.choices)
    for number in value if setting.kind is Kind.PAIR else [value]:
        if (setting.least is not None and number < setting.least) or (
            setting.most is not None and number > setting.most
        ):
            return f"{number!r} is out of range", f"give {what}{_range(setting)}"
    if setting.kind is Kind.PAIR and value[0] > value[1]:
        return f"{value!r} ends before it begins", "give the lesser first"
    return None


def read_overrides(entries: tuple[str, ...]) -> dict[str, Any]:
    """Read `table.key=value` pairs; a value is written as in the file, and text needs no quotes.

    >>> read_overrides(("match.top=20", "events.table=a b.csv", "subscriptions.ranked=true"))
    {'match.top': 20, 'events.table': 'a b.csv', 'subscriptions.ranked': True}
    """
    found: dict[str, Any] = {}
    for entry in entries:
        name, sign, text = entry.partition("=")
        if not sign or not name.strip():
            raise ValueError(entry)
        try:
            found[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            found[name.strip()] = text.strip()
    return found


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_number(value: Any) -> bool:
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


_KINDS: dict[Kind, tuple[Callable[[Any], bool], str]] = {
    Kind.TEXT: (_is_text, "text"),
    Kind.INPUT: (_is_text, "a path"),
    Kind.OUTPUT: (_is_text, "a path"),
    Kind.INPUTS: (lambda value: _is_list(value, _is_text), "a list of paths"),
    Kind.WHOLE: (_is_whole, "a whole number"),
    Kind.NUMBER: (_is_number, "a number"),
    Kind.FLAG: (lambda value: isinstance(value, bool), "true or false"),
    Kind.NUMBERS: (
        lambda value: isinstance(value, dict) and all(map(_is_number, value.values())),
        "a table of numbers",
    ),
    Kind.TEXTS: (
        lambda value: isinstance(value, dict) and all(isinstance(each, str) for each in value.values()),
        "a table of texts",
    ),
    Kind.PAIR: (lambda value: _is_list(value, _is_whole) and len(value) == 2, "two whole numbers"),
}


def _range(setting: Setting) -> str:
    if setting.least is None:
        return ""
    return (
        f", {setting.least:,} or more"
        if setting.most is None
        else f" from {setting.least:,} to {setting.most:,}"
    )


def _called(value: Any) -> str:
    if isinstance(value, str):
        return "text" if value.strip() else "empty"
    names = {bool: "true or false", int: "a whole number", float: "a number", list: "a list", dict: "a table"}
    return names.get(type(value), type(value).__name__)
