"""Functions of texts; characters are code points, as in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.records.expressions import regexes
from headgate.records.expressions.bound import Bound, fail, lift
from headgate.records.expressions.casting import as_int, as_text, cast
from headgate.records.expressions.function import MANY, Function
from headgate.records.expressions.logic import alike
from headgate.records.expressions.types import BOOL, INT, STRING, array
from headgate.records.language import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.model import Node
    from headgate.records.expressions.types import Type

MAX_TEXT = 1 << 20
"""Characters of a text that is made: one that would have more is NULL."""
_LONG = f"the text would have more than {MAX_TEXT:,} characters"


def _bound(kind: Type, function: Callable[..., Any], takes: str) -> Callable[[Sequence[Bound]], Bound | None]:
    """Bind a function of texts (t) and whole numbers (i); the last argument may be missing."""
    ways = {"t": as_text, "i": as_int}

    def bind(parts: Sequence[Bound]) -> Bound | None:
        found = [ways[way](part) for way, part in zip(takes, parts, strict=False)]
        return None if None in found else lift(kind, function, [part for part in found if part is not None])

    return bind


def shortened(text: str) -> str | None:
    """Keep a text that is not too long."""
    return text if len(text) <= MAX_TEXT else fail(_LONG)


def _substring(text: str, start: int, count: int = 2**31 - 1) -> str:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = min(begin + count, 2**31 - 1)
    return text[max(begin, 0) : max(end, 0)] if end > begin else ""


def _left(text: str, count: int) -> str:
    return text[:count] if count > 0 else ""


def _right(text: str, count: int) -> str:
    return text[-count:] if count > 0 else ""


def _trimmed(way: Callable[[str, str], str]) -> Callable[..., str]:
    """Take letters off; Spark has them before the text."""

    def run(first: str, text: str | None = None) -> str:
        if text is None:
            return way(first, " ")
        return way(text, first) if first else text

    return run


def _concat(parts: Sequence[Bound]) -> Bound | None:
    if all(part.type.element is not None for part in parts):
        made = alike(parts)
        return (
            None
            if made is None
            else lift(made[0], lambda *lists: [each for one in lists for each in one], made[1])
        )
    found = [as_text(part) for part in parts]
    if None in found:
        return None
    return lift(
        STRING, lambda *texts: shortened("".join(texts)), [part for part in found if part is not None]
    )


def _reverse(parts: Sequence[Bound]) -> Bound | None:
    part = as_text(parts[0]) if parts[0].type.element is None else parts[0]
    return None if part is None else lift(part.type, lambda value: value[::-1], (part,))


def _concat_ws(parts: Sequence[Bound]) -> Bound | None:
    separator = as_text(parts[0])
    if separator is None:
        return None
    runs = []
    for part in parts[1:]:
        text = as_text(part) if part.type.element is None else cast(part, array(STRING))
        if text is None:
            return None
        runs.append(text.run)
    first = separator.run

    def run(row: list[Any]) -> str | None:
        between, values = first(row), [each(row) for each in runs]
        if between is None:
            return None
        found: list[str] = []
        for value in values:
            if isinstance(value, list):
                found += [item for item in value if item is not None]
            elif value is not None:
                found.append(value)
        return shortened(between.join(found))

    return Bound(STRING, run)


def _replace(text: str, old: str, new: str = "") -> str | None:
    if not old:
        return text
    grown = len(text) + text.count(old) * (len(new) - len(old)) if len(new) > len(old) else 0
    return text.replace(old, new) if grown <= MAX_TEXT else fail(_LONG)


def _locate(parts: Sequence[Bound]) -> Bound | None:
    part, text = as_text(parts[0]), as_text(parts[1])
    if part is None or text is None:
        return None
    if len(parts) < 3:
        return lift(INT, lambda wanted, found: found.find(wanted) + 1, (part, text))
    start = as_int(parts[2])
    if start is None:
        return None
    first, second, third = part.run, text.run, start.run

    def run(row: list[Any]) -> int | None:
        wanted, found, begin = first(row), second(row), third(row)
        if begin is None:
            # As Spark has it, whatever the texts are.
            return 0
        if wanted is None or found is None:
            return None
        if not wanted:
            return int(begin > 0)
        return 0 if begin < 1 else found.find(wanted, begin - 1) + 1

    return Bound(INT, run)


def _padded(text: str, size: int, pad: str) -> str | None:
    """Return what is missing of a size."""
    if size > MAX_TEXT:
        return fail(_LONG)
    missing = size - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""


def _lpad(text: str, size: int, pad: str = " ") -> str | None:
    more = _padded(text, size, pad)
    return None if more is None else more + text[: max(size, 0)]


def _rpad(text: str, size: int, pad: str = " ") -> str | None:
    more = _padded(text, size, pad)
    return None if more is None else text[: max(size, 0)] + more


def _repeat(text: str, count: int) -> str | None:
    return text * count if len(text) * max(count, 0) <= MAX_TEXT else fail(_LONG)


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for place, letter in enumerate(old):
        table.setdefault(ord(letter), new[place] if place < len(new) else None)
    return text.translate(table)


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _split_part(text: str, separator: str, place: int) -> str | None:
    if place == 0:
        return fail("parts are numbered from 1")
    parts = text.split(separator) if separator else [text]
    at = place - 1 if place > 0 else len(parts) + place
    return parts[at] if 0 <= at < len(parts) else ""


_META = frozenset(".^$*+?()[]{}|\\")


def separator_of(pattern: str) -> str | None:
    r"""Return the text that a regular expression means and nothing else; None if there is none.

    >>> separator_of(r"a\|b"), separator_of("[.]"), separator_of("a+")
    ('a|b', '.', None)
    """
    found, at = "", 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and at + 1 < len(pattern) and not pattern[at + 1].isalnum():
            found, at = found + pattern[at + 1], at + 2
        elif letter == "[" and pattern[at + 2 : at + 3] == "]" and pattern[at + 1] not in "^\\[&":
            found, at = found + pattern[at + 1], at + 3
        elif letter in _META:
            return None
        else:
            found, at = found + letter, at + 1
    return found or None


def _split_wrong(arguments: Sequence[Node]) -> str:
    from headgate.records.expressions.model import Value

    given = arguments[1]
    text = str(given.literal.value) if isinstance(given, Value) else ""
    if separator_of(text) is not None:
        return ""
    return "split takes a separator that is no regular expression: write \\\\ or [] around signs, as in '[.]'"


def _split(parts: Sequence[Bound]) -> Bound | None:
    text = as_text(parts[0])
    limit = as_int(parts[2]) if len(parts) > 2 else None
    if text is None or (len(parts) > 2 and limit is None):
        return None
    separator = separator_of(str(parts[1].constant))
    assert separator is not None
    kind = array(STRING)
    if limit is None:
        return lift(kind, lambda value: value.split(separator), (text,))
    return lift(kind, lambda value, most: value.split(separator, most - 1 if most > 0 else -1), (text, limit))


def _like(parts: Sequence[Bound]) -> Bound | None:
    text = as_text(parts[0])
    if text is None:
        return None
    escape = str(parts[2].constant) if len(parts) > 2 else "\\"
    pattern = patterns.to_regex(str(parts[1].constant), escape)
    return lift(BOOL, lambda value: pattern.fullmatch(value) is not None, (text,))


def _ilike(parts: Sequence[Bound]) -> Bound | None:
    text = as_text(parts[0])
    if text is None:
        return None
    escape = str(parts[2].constant) if len(parts) > 2 else "\\"
    pattern = patterns.to_regex(str(parts[1].constant).lower(), escape)
    return lift(BOOL, lambda value: pattern.fullmatch(value.lower()) is not None, (text,))


def _rlike(parts: Sequence[Bound]) -> Bound | None:
    text = as_text(parts[0])
    return None if text is None else lift(BOOL, regexes.finder(str(parts[1].constant)), (text,))


def _regex_wrong(arguments: Sequence[Node]) -> str:
    from headgate.records.expressions.model import Value

    given = arguments[1]
    return regexes.problem(str(given.literal.value)) if isinstance(given, Value) else ""


def pattern_wrong(arguments: Sequence[Node]) -> str:
    """Say what is wrong with the pattern of LIKE, or nothing."""
    from headgate.records.expressions.model import Value

    values = [str(each.literal.value) for each in arguments[1:] if isinstance(each, Value)]
    return patterns.problem(values[0], values[1] if len(values) > 1 else "\\") or ""


def _texts(kind: Type, function: Callable[..., Any], takes: str, least: int | None = None) -> Function:
    return Function(_bound(kind, function, takes), least or len(takes), len(takes))


OPERATORS = {
    "||": Function(_concat, 2, 2),
    "like": Function(_like, 2, 3, texts=(1, 2), wrong=pattern_wrong),
    "rlike": Function(_rlike, 2, 2, texts=(1,), wrong=_regex_wrong),
    "ilike": Function(_ilike, 2, 3, texts=(1, 2), wrong=pattern_wrong),
}
FUNCTIONS = {
    "lower": _texts(STRING, str.lower, "t"),
    "upper": _texts(STRING, str.upper, "t"),
    "length": _texts(INT, len, "t"),
    "substring": _texts(STRING, _substring, "tii", 2),
    "left": _texts(STRING, _left, "ti"),
    "right": _texts(STRING, _right, "ti"),
    "trim": _texts(STRING, _trimmed(str.strip), "tt", 1),
    "ltrim": _texts(STRING, _trimmed(str.lstrip), "tt", 1),
    "rtrim": _texts(STRING, _trimmed(str.rstrip), "tt", 1),
    "concat": Function(_concat, 1, MANY),
    "concat_ws": Function(_concat_ws, 1, MANY),
    "replace": _texts(STRING, _replace, "ttt", 2),
    "reverse": Function(_reverse, 1, 1),
    "instr": _texts(INT, lambda text, part: text.find(part) + 1, "tt"),
    "locate": Function(_locate, 2, 3),
    "startswith": _texts(BOOL, str.startswith, "tt"),
    "endswith": _texts(BOOL, str.endswith, "tt"),
    "contains": _texts(BOOL, str.__contains__, "tt"),
    "lpad": _texts(STRING, _lpad, "tit", 2),
    "rpad": _texts(STRING, _rpad, "tit", 2),
    "repeat": _texts(STRING, _repeat, "ti"),
    "translate": _texts(STRING, _translate, "ttt"),
    "ascii": _texts(INT, _ascii, "t"),
    "split": Function(_split, 2, 3, texts=(1,), wrong=_split_wrong),
    "split_part": _texts(STRING, _split_part, "tti"),
}
ALIASES = {
    "lcase": "lower",
    "ucase": "upper",
    "substr": "substring",
    "char_length": "length",
    "character_length": "length",
    "len": "length",
    "position": "locate",
    "charindex": "locate",
    "regexp_like": "rlike",
    "regexp": "rlike",
    "rlike": "rlike",
}
