"""JSON of other systems: read, and where in the text something stands.

Reading is the standard library's. Only where something is refused is the text gone through once more, to
say where.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from headgate.errors import FilterError
from headgate.records.language.limits import MAX_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.records.importers.sql import Sql

    Place = tuple[str | int, ...]

MAX_DEPTH = 32
"""Objects and arrays in one another."""


class Refused(Exception):  # noqa: N818 -- caught in this room, where it gets its place
    """Why a part of a document cannot be converted; `place` are the names and numbers that lead to it."""

    def __init__(self, place: Place, reason: str) -> None:
        super().__init__(reason)
        self.place = place
        self.reason = reason


def convert_json(written: str, convert: Callable[[Any], Sql], what: str) -> str:
    """Read a document and convert it; refuse it with the place in its text."""
    document = read_json(written, what)
    try:
        sql = convert(document).text
    except Refused as refused:
        raise FilterError(refused.reason, written, place_of(written, refused.place)) from None
    return checked(sql, written)


def checked(sql: str, written: str) -> str:
    """Refuse a filter that has become too long."""
    if len(sql) > MAX_CHARACTERS:
        reason = f"as SQL the filter has {len(sql):,} characters and at most {MAX_CHARACTERS:,} are taken"
        raise FilterError(f"{reason}: write it as several filters", written, None)
    return sql


def read_json(written: str, what: str) -> Any:
    """Read a document; whole numbers are int, others Decimal.

    >>> read_json('{"a": [1, 1.50]}', "an event pattern")
    {'a': [1, Decimal('1.50')]}
    >>> read_json('{"a": 1, "a": 2}', "an event pattern")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: the name 'a' comes twice in one object: write it once, at character 10: \
{"a": 1, ⟪"a": 2}
    """
    if len(written) > MAX_CHARACTERS:
        raise FilterError(
            f"the filter has {len(written):,} characters and at most {MAX_CHARACTERS:,} are taken",
            written,
            None,
        )
    _check_depth(written, what)
    try:
        return json.loads(
            written,
            parse_float=_decimal,
            parse_int=_whole,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except json.JSONDecodeError as error:
        reason = f"{what} is JSON, and this is not: {error.msg[:1].lower()}{error.msg[1:]}"
        raise FilterError(reason, written, min(error.pos, len(written))) from None
    except _Twice as twice:
        raise FilterError(
            f"the name {twice.name!r} comes twice in one object: write it once", written, _second(written)
        ) from None
    except ValueError as error:
        raise FilterError(f"{what} cannot be read: {error}", written, None) from None


class _Twice(Exception):  # noqa: N818 -- caught above
    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen = set()
        for name, _ in pairs:
            if name in seen:
                raise _Twice(name)
            seen.add(name)
    return found


_LONGEST = 400
"""Digits of a number, at most."""


def _decimal(digits: str) -> Decimal:
    if len(digits) > _LONGEST:
        raise ValueError(f"the number {digits[:20]}… has more than {_LONGEST} digits")
    return Decimal(digits)


def _whole(digits: str) -> int:
    if len(digits) > _LONGEST:
        raise ValueError(f"the number {digits[:20]}… has more than {_LONGEST} digits")
    return int(digits)


def _constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_TOKEN = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")|([^\s",:\[\]{}]+)|([,:\[\]{}]))', re.DOTALL)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def _check_depth(written: str, what: str) -> None:
    depth = 0
    for token in _BRACKET.finditer(written):
        sign = token[0]
        if sign in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                reason = f"{what} may nest {MAX_DEPTH} deep at most: write it flatter"
                raise FilterError(reason, written, token.start())
        elif sign in "]}":
            depth -= 1


def place_of(written: str, wanted: Place) -> int | None:
    """Say at which character something stands: a name where it leads to nothing deeper, else the value.

    >>> place_of('{"a": [1, {"prefix": 2}]}', ("a", 1, "prefix"))
    11
    >>> place_of('{"a": [1, {"prefix": 2}]}', ("a", 1))
    10
    """
    return next((start for place, start in _places(written) if place == wanted), None)


def _second(written: str) -> int | None:
    seen = set()
    for place, start in _places(written):
        if place in seen:
            return start
        seen.add(place)
    return None


def _places(written: str) -> list[tuple[Place, int]]:
    """List the places of sound JSON in the order of the text."""
    found: list[tuple[Place, int]] = []
    open_: list[tuple[str, Place]] = []
    at: Place = ()
    key: str | None = None
    count: list[int] = []
    for token in _TOKEN.finditer(written):
        start = token.start(token.lastindex or 0)
        string, _, sign = token.groups()
        inside = open_[-1][0] if open_ else ""
        if sign in ("}", "]"):
            at = open_.pop()[1]
            count.pop()
            key = None
        elif sign == ",":
            key = None
            if inside == "[":
                count[-1] += 1
        elif sign == ":":
            continue
        elif inside == "{" and key is None and string is not None:
            key = json.loads(string)
            found.append(((*at, key), start))
        else:
            place = at if not open_ else (*at, count[-1] if inside == "[" else str(key))
            if inside != "{":
                found.append((place, start))
            if sign in ("{", "["):
                open_.append((sign, at))
                count.append(0)
                at, key = place, None
    return found
