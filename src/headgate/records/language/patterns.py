"""LIKE patterns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_TEXT = -1
"""What `%` becomes in `tokens`."""
ANY_CHARACTER = -2
"""What `_` becomes in `tokens`."""


def problem(pattern: str, escape: str) -> str | None:
    r"""Say why Spark would refuse a pattern, or None.

    >>> problem(r"50\%", "\\") is None
    True
    >>> problem("a\\", "\\")
    'the pattern ends with its escape character'
    """
    if len(escape) != 1:
        return "ESCAPE takes one character"
    index = 0
    while index < len(pattern):
        if pattern[index] == escape:
            if index + 1 == len(pattern):
                return "the pattern ends with its escape character"
            if pattern[index + 1] not in {"%", "_", escape}:
                return f"{pattern[index + 1]!r} stands after the escape character; only %, _ and itself may"
            index += 1
        index += 1
    return None


def tokens(pattern: str, escape: str) -> Iterator[str | int]:
    """Split a sound pattern into characters, ANY_TEXT and ANY_CHARACTER."""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            yield next(characters)
        elif character == "%":
            yield ANY_TEXT
        elif character == "_":
            yield ANY_CHARACTER
        else:
            yield character


def escaped(text: str) -> str:
    r"""Write a text so that a pattern means it and nothing else.

    >>> print(escaped("50%"))
    50\%
    """
    return re.sub(r"([%_\\])", r"\\\1", text)


def to_regex(pattern: str, escape: str) -> re.Pattern[str]:
    r"""Translate for the reference: `%` to `.*`, `_` to `.`, over whole texts with their line breaks.

    >>> bool(to_regex("n%s", "\\").fullmatch("news"))
    True
    """
    runs = [""]
    for token in tokens(pattern, escape):
        if token == ANY_TEXT:
            runs.append("")
        else:
            runs[-1] += "." if isinstance(token, int) else re.escape(token)
    first, *inner = runs
    if not inner:
        return re.compile(first, re.DOTALL)
    # The first place that fits what stands between two `%` is as good as any later one; the atomic group
    # says so, or `%a%a%a%b` would try them all.
    middle = "".join(f"(?>.*?{run})" for run in inner[:-1] if run)
    return re.compile(f"{first}{middle}.*{inner[-1]}", re.DOTALL)
