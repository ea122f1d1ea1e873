"""Tokens of languages of other systems: cut by a regular expression, and read from left to right."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, NoReturn

from headgate.errors import FilterError
from headgate.records.language.limits import MAX_CHARACTERS

if TYPE_CHECKING:
    import re


class Token(NamedTuple):
    """A word, a sign, a text or the end, and where it begins."""

    kind: str
    text: str
    at: int


class TokenReader:
    """Reads the tokens of a text; what parses a language is built upon it.

    The groups of the pattern are the kinds of tokens: `end`, `odd` for what is none, and others.
    """

    def __init__(self, text: str, pattern: re.Pattern[str], what: str, empty: str) -> None:
        self._text = text
        if len(text) > MAX_CHARACTERS:
            self._refuse(
                f"the filter has {len(text):,} characters and at most {MAX_CHARACTERS:,} are taken", None
            )
        self._tokens = self._cut(pattern, what)
        self._next = self._depth = 0
        if self._tokens[0].kind == "end":
            self._refuse(empty, None)

    def _cut(self, pattern: re.Pattern[str], what: str) -> list[Token]:
        found = []
        for match in pattern.finditer(self._text):
            kind = str(match.lastgroup)
            token = self._token(kind, match[kind], match.start(kind))
            if kind == "odd":
                if token.text in "'\"":
                    self._refuse("a text is not closed", token.at)
                self._refuse(f"{token.text!r} is not part of {what}", token.at)
            found.append(token)
            if kind == "end":
                break
        return found

    def _token(self, kind: str, text: str, at: int) -> Token:
        """Make a token."""
        return Token(kind, text, at)

    def _take(self) -> Token:
        """Step over the next token; the end stays."""
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def _end(self, expected: str) -> None:
        """Refuse tokens that are left."""
        rest = self._tokens[self._next]
        if rest.kind != "end":
            self._refuse(expected, rest.at)

    def _refuse(self, reason: str, at: int | None) -> NoReturn:
        raise FilterError(reason, self._text, at)
