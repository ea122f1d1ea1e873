"""What stands between the words of a filter: blanks and comments, as Spark reads them.

The tokenizer skips more than Spark does, and ends some comments elsewhere, so that the two would read
different filters from one text.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headgate.errors import FilterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

_BLANKS = " \t\n\r\x0b\x0c\xa0\u1680\u2000-\u200a\u2028\u202f\u205f\u3000"
# A text without any of these has nothing but blanks between its words.
_UNUSUAL = re.compile(rf"--|/\*|\{{#|(?![{_BLANKS}])[\s\x00-\x1f\x7f]")
_BLANK = re.compile(f"[{_BLANKS}]+")
_LINE = re.compile(r"--[^\r\n]*")
_MARK = re.compile(r"/\*|\*/")


def check_gaps(tokens: Sequence[Token], text: str) -> None:
    """Refuse what is neither blank nor a comment of Spark's between the tokens."""
    if not _UNUSUAL.search(text):
        return
    place = 0
    for token in tokens:
        _check_gap(text, place, token.start)
        place = max(place, token.end + 1)
    _check_gap(text, place, len(text))


def _check_gap(text: str, place: int, stop: int) -> None:
    while place < stop:
        if found := _BLANK.match(text, place, stop):
            place = found.end()
        elif found := _LINE.match(text, place, stop):
            place = found.end()
            if text[place - 1] == "\\" and text[place : place + 1] == "\n":
                reason = "a comment ends with a backslash, and Spark would go on with it in the next line"
                raise FilterError(reason, text, place - 1)
        elif text.startswith("/*", place):
            place = _after_comment(text, place, stop)
        else:
            raise FilterError(f"{text[place]!r} is not part of the filter language", text, place)


def _after_comment(text: str, start: int, stop: int) -> int:
    """Find the end of a bracketed comment, with those inside it."""
    depth = 0
    for mark in _MARK.finditer(text, start, stop):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    raise FilterError("a comment is still open at the end", text, start)
