"""Functions of texts; characters are code points, as in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.records.expressions import regexes
from headgate.records.expressions.bound import Bound, fail, lift
from headgate.records.expressions.casting import as_int, as_text, cast
from headgate.records.expressions.function import MANY, Function, function_of, text_at
from headgate.records.expressions.logic import alike
from headgate.records.expressions.types import BOOL, INT, STRING, array
from headgate.records.language import patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.records.expressions.model import Node

MAX_TEXT = 1 << 20
"""Characters of a text that is made: one that would have more is NULL."""
_LONG = f"the text would have more than {MAX_TEXT:,} characters"


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
        return made and lift(made[0], lambda *lists: [each for one in lists for each in one], made[1])
    return lift(STRING, lambda *texts: shortened("".join(texts)), [as_text(part) for part in parts])


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
        pieces: list[str] = []
        for value in values:
            if isinstance(value, list):
                pieces += [item for item in value if item is not None]
            elif value is not None:
                pieces.append(value)
        return shortened(between.join(pieces))

    return Bound(STRING, run)


def _replace(text: str, old: str, new: str = "") -> str | None:
    if not old:
        return text
    grown = len(text) + text.count(old) * (len(new) - len(old)) if len(new) > len(old) else 0
    return text.replace(old, new) if grown <= MAX_TEXT else fail(_LONG)


def _locate(parts: Sequence[Bound]) -> Bound | None:
    part, text = as_text(parts[0]), as_text(parts[1])
    if len(parts) < 3:
        return lift(INT, lambda wanted, text: text.find(wanted) + 1, (part, text))
    start = as_int(parts[2])
    if part is None or text is None or start is None:
        return None
    first, second, third = part.run, text.run, start.run

    def run(row: list[Any]) -> int | None:
        wanted, text_, begin = first(row), second(row), third(row)
        if begin is None:
            # As Spark has it, whatever the texts are.
            return 0
        if wanted is None or text_ is None:
            return None
        if not wanted:
            return int(begin > 0)
        return 0 if begin < 1 else text_.find(wanted, begin - 1) + 1

    return Bound(INT, run)


def _padded(*, left: bool) -> Callable[..., str | None]:
    """Fill a text up to a size, on its left or its right, or cut it."""

    def run(text: str, size: int, pad: str = " ") -> str | None:
        if size > MAX_TEXT:
            return fail(_LONG)
        missing = size - len(text)
        more = (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""
        kept = text[: max(size, 0)]
        return more + kept if left else kept + more

    return run


def _repeat(text: str, count: int) -> str | None:
    return text * count if len(text) * max(count, 0) <= MAX_TEXT else fail(_LONG)


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for index, letter in enumerate(old):
        table.setdefault(ord(letter), new[index] if index < len(new) else None)
    return text.translate(table)


def _ascii(text: str) -> int:
    return ord(text[0]) if text else 0


def _split_part(text: str, separator: str, index: int) -> str | None:
    if index == 0:
        return fail("parts are numbered from 1")
    parts = text.split(separator) if separator else [text]
    at = index - 1 if index > 0 else len(parts) + index
    return parts[at] if 0 <= at < len(parts) else ""


_META = frozenset(".^$*+?()[]{}|\\")


def separator_of(pattern: str) -> str | None:
    r"""Return the text that a regular expression means and nothing else; None if there is none.

    >>> separator_of(r"a\|b"), separator_of("[.]"), separator_of("a+")
    ('a|b', '.', None)
    """
    separator, at = "", 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and at + 1 < len(pattern) and not pattern[at + 1].isalnum():
            separator, at = separator + pattern[at + 1], at + 2
        elif letter == "[" and pattern[at + 2 : at + 3] == "]" and pattern[at + 1] not in "^\\[&":
            separator, at = separator + pattern[at + 1], at + 3
        elif letter in _META:
            return None
        else:
            separator, at = separator + letter, at + 1
    return separator or None


def _split_wrong(arguments: Sequence[Node]) -> str:
    if separator_of(text_at(arguments, 1)) is not None:
        return ""
    return "split takes a separator that is no regular expression: write \\\\ or [] around signs, as in '[.]'"


def _split(parts: Sequence[Bound]) -> Bound | None:
    separator = separator_of(str(parts[1].constant))
    assert separator is not None

    def run(text: str, most: int = 0) -> list[str]:
        return text.split(separator, most - 1 if most > 0 else -1)

    return lift(array(STRING), run, [as_text(parts[0]), *map(as_int, parts[2:])])


def _like(*, folded: bool) -> Callable[[Sequence[Bound]], Bound | None]:
    def bind(parts: Sequence[Bound]) -> Bound | None:
        escape = str(parts[2].constant) if len(parts) > 2 else "\\"
        written = str(parts[1].constant)
        fits = patterns.to_regex(written.lower() if folded else written, escape).fullmatch
        if folded:
            return lift(BOOL, lambda value: fits(value.lower()) is not None, (as_text(parts[0]),))
        return lift(BOOL, lambda value: fits(value) is not None, (as_text(parts[0]),))

    return bind


def _rlike(parts: Sequence[Bound]) -> Bound | None:
    return lift(BOOL, regexes.finder(str(parts[1].constant)), (as_text(parts[0]),))


def _regex_wrong(arguments: Sequence[Node]) -> str:
    return regexes.problem(text_at(arguments, 1))


def _pattern_wrong(arguments: Sequence[Node]) -> str:
    return (
        patterns.problem(text_at(arguments, 1), text_at(arguments, 2) if len(arguments) > 2 else "\\") or ""
    )


OPERATORS = {
    "||": Function(_concat, 2, 2),
    "like": Function(_like(folded=False), 2, 3, texts=(1, 2), wrong=_pattern_wrong),
    "rlike": Function(_rlike, 2, 2, texts=(1,), wrong=_regex_wrong),
    "ilike": Function(_like(folded=True), 2, 3, texts=(1, 2), wrong=_pattern_wrong),
}
FUNCTIONS = {
    "lower": function_of(STRING, str.lower, "t"),
    "upper": function_of(STRING, str.upper, "t"),
    "length": function_of(INT, len, "t"),
    "substring": function_of(STRING, _substring, "tii", 2),
    "left": function_of(STRING, _left, "ti"),
    "right": function_of(STRING, _right, "ti"),
    "trim": function_of(STRING, _trimmed(str.strip), "tt", 1),
    "ltrim": function_of(STRING, _trimmed(str.lstrip), "tt", 1),
    "rtrim": function_of(STRING, _trimmed(str.rstrip), "tt", 1),
    "concat": Function(_concat, 1, MANY),
    "concat_ws": Function(_concat_ws, 1, MANY),
    "replace": function_of(STRING, _replace, "ttt", 2),
    "reverse": Function(_reverse, 1, 1),
    "instr": function_of(INT, lambda text, part: text.find(part) + 1, "tt"),
    "locate": Function(_locate, 2, 3),
    "startswith": function_of(BOOL, str.startswith, "tt"),
    "endswith": function_of(BOOL, str.endswith, "tt"),
    "contains": function_of(BOOL, str.__contains__, "tt"),
    "lpad": function_of(STRING, _padded(left=True), "tit", 2),
    "rpad": function_of(STRING, _padded(left=False), "tit", 2),
    "repeat": function_of(STRING, _repeat, "ti"),
    "translate": function_of(STRING, _translate, "ttt"),
    "ascii": function_of(INT, _ascii, "t"),
    "split": Function(_split, 2, 3, texts=(1,), wrong=_split_wrong),
    "split_part": function_of(STRING, _split_part, "tti"),
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
