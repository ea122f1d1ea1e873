"""Subjects of NATS: what a pattern covers, and subjects made from the fields of a match.

A subject is tokens joined by dots; in a pattern `*` stands for one token and a last `>` for one or more.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ONE, REST, DOT = "*", ">", "."

_FIELD = re.compile(r"\{([^{}]*)\}")
_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=@:+~")


def overlap(left: str, right: str) -> bool:
    """Tell whether some subject fits both patterns.

    >>> overlap("events.>", "events.*.new"), overlap("events.*", "events.a.b")
    (True, False)
    """
    ours, theirs = left.split(DOT), right.split(DOT)
    for at in range(max(len(ours), len(theirs))):
        # A last > needs at least one token.
        if at >= len(ours) or at >= len(theirs):
            return False
        if REST in {ours[at], theirs[at]}:
            return True
        if ONE not in {ours[at], theirs[at]} and ours[at] != theirs[at]:
            return False
    return True


def covers(pattern: str, inner: str) -> bool:
    """Tell whether every subject that fits `inner` fits `pattern`.

    >>> covers("matches.>", "matches.*"), covers("matches.*", "matches.>")
    (True, False)
    """
    wide, narrow = pattern.split(DOT), inner.split(DOT)
    for at, token in enumerate(wide):
        if at >= len(narrow):
            return False
        if token == REST:
            return True
        if narrow[at] == REST or (token != ONE and token != narrow[at]):
            return False
    return len(wide) == len(narrow)


@lru_cache(100_000)
def token(value: str | None) -> str:
    """Make any text one token: what NATS or people could misread is written as %XX, byte by byte.

    >>> token("a.b c"), token("ü"), token("")
    ('a%2Eb%20c', '%C3%BC', '%')
    """
    if not value:
        return "%"
    return "".join(chr(byte) if byte in _SAFE else f"%{byte:02X}" for byte in value.encode())


class Template:
    """A subject with fields of a match in braces, such as `matches.{subscription_id}`."""

    def __init__(self, text: str, place: str) -> None:
        self.text = text
        self.fields = tuple(dict.fromkeys(_FIELD.findall(text)))
        left = _FIELD.sub("", text)
        tokens = _FIELD.sub("x", text).split(DOT)
        if "{" in left or "}" in left:
            raise TableError(
                f"{place}: braces in a subject hold the name of a field, as matches.{{subscription_id}}"
            )
        if ONE in left or REST in left or "" in tokens:
            raise TableError(
                f"{place}: matches go to one subject, without * and >, as matches.all: not {text!r}"
            )
        self._pieces = _FIELD.split(text)

    @property
    def pattern(self) -> str:
        """Return a pattern that all subjects of this template fit."""
        return DOT.join(ONE if "{" in part else part for part in self.text.split(DOT))

    def check(self, columns: Collection[str], place: str) -> None:
        """Refuse fields that matches do not have."""
        for name in self.fields:
            if name not in columns:
                raise TableError(
                    f"{place}: the subject {self.text} names {name!r}, and matches have {', '.join(columns)}"
                )

    def fill(self, values: Mapping[str, str | None]) -> str:
        """Make a subject of the fields of one match.

        >>> Template("to.{who}.new", "").fill({"who": "a.b"})
        'to.a%2Eb.new'
        """
        pieces = self._pieces
        return "".join(piece if at % 2 == 0 else token(values[piece]) for at, piece in enumerate(pieces))
