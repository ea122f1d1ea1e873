"""The commonest conditions of importers by their pieces, from which leaves are written without the model.

A system whose arrays stand for their elements asks of a value and of elements alike:

    (a = 'x' OR array_contains(a, 'x'))
    (a IN ('x', '1') AND a >= '' OR arrays_overlap(a, array('x', '1')))
    (a >= 5 AND a < 7 AND typeof(a) <> 'string' OR exists(a, x -> x >= 5 AND x < 7 AND typeof(x) <> 'string'))

Whether the parser reads a manner so is for others to say, once.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.records.programs.decimals import SHORT_LIMIT, whole_key
from headgate.records.programs.leaves import Facet, float_key
from headgate.records.programs.shapes import path_of
from headgate.records.programs.simple_clauses import SimpleClause, is_plain

if TYPE_CHECKING:
    from headgate.core.values import Path

_NAME = r"(?P<name>(?>(?:[a-z_]\w*|`[^`]+`)(?:\.(?:[a-z_]\w*|`[^`]+`))*))"
_TEXTS = r"'[^'\\\ud800-\udfff]*+'(?:, '[^'\\\ud800-\udfff]*+')*+"
_FORM = re.compile(
    rf"\({_NAME} (?:"
    rf"(?:= (?P<one>'[^'\\\ud800-\udfff]*+')|IN \((?P<some>{_TEXTS})\))(?P<text> AND (?P=name) >= '')?"
    r" OR array(?:_contains\((?P=name), (?P=one)\)|s_overlap\((?P=name), array\((?P=some)\)\))"
    r"|(?P<sign>[<>]=?|=) (?P<number>[0-9]{1,15})(?: AND (?P=name) (?P<other><=?) (?P<high>[0-9]{1,15}))?"
    r" AND typeof\((?P=name)\) <> 'string'"
    r" OR exists\((?P=name), x -> (?P<body>[^()']*)typeof\(x\) <> 'string'\)"
    r")\)",
    re.ASCII | re.IGNORECASE,
)
_STRINGS = re.compile(r"'([^']*)'")
_NUMBERS = bytes((Facet.INT, Facet.FLOAT, Facet.DECIMAL))


class SimpleGroup(NamedTuple):
    """A condition on a value or an element.

    value    the leaf of the value; that of elements is the same, of an array
    last     whether the leaf of the value comes last
    manner   the condition without its name and literals
    """

    value: SimpleClause
    last: bool
    manner: str


def read_group(text: str) -> SimpleGroup | None:
    """Take a condition apart if it is one of the commonest; else return None."""
    pieces = _FORM.fullmatch(text)
    if pieces is None:
        return None
    path = path_of(pieces["name"])
    if path is None:
        return None
    if pieces["number"] is not None:
        return _numbers(pieces, path)
    listed = pieces["some"] or pieces["one"]
    texts = _STRINGS.findall(listed)
    guarded = pieces["text"] is not None
    # A list is compared on the facets that all its literals have, so one plain text is enough.
    if not guarded and not any(map(is_plain, texts)):
        return None
    value = SimpleClause(path, sorted(set(texts)), False, b"", (), (), 0, "")
    manner = f"{'one' if pieces['one'] else 'some'}{' text' * guarded}"
    return SimpleGroup(value, guarded, manner)


def _numbers(pieces: re.Match[str], path: Path) -> SimpleGroup | None:
    sign, other = pieces["sign"], pieces["other"] or ""
    asked = f"x {sign} {pieces['number']} AND " + (f"x {other} {pieces['high']} AND " if other else "")
    low = int(pieces["number"])
    high = int(pieces["high"]) if other else low
    if pieces["body"] != asked or high > SHORT_LIMIT or low > SHORT_LIMIT or (other and sign[0] != ">"):
        return None
    lows: tuple[int, ...] = (INT64_MIN,) * 3
    highs: tuple[int, ...] = (INT64_MAX,) * 3
    if sign in {"=", ">", ">="}:
        lows = tuple(key + (sign == ">") for key in _keys(low))
    if sign in {"=", "<", "<="} or other:
        strict = (other or sign) == "<"
        highs = tuple(key - strict for key in _keys(high))
    if any(first > last for first, last in zip(lows, highs, strict=True)):
        return None
    value = SimpleClause(path, None, False, _NUMBERS, lows, highs, 0, "")
    return SimpleGroup(value, True, f"{sign} {other}")


def _keys(number: int) -> tuple[int, ...]:
    return number, float_key(float(number)), whole_key(number)
