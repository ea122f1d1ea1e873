"""Texts of other systems, read: JSON, and the tokens of languages.

Reading JSON is the standard library's. Only where something is refused is the text gone through once more, to
say where.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from headgate.errors import FilterError
from headgate.records.language.limits import check_length, checked

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.records.importers.sql import Sql

    DocumentPath = tuple[str | int, ...]

MAX_DEPTH = 32
"""Objects and arrays in one another."""


class Refused(Exception):  # noqa: N818 -- caught in this room, where it gets its place
    """Why a part of a document cannot be converted; `place` are the names and numbers that lead to it."""

    def __init__(self, path: DocumentPath, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


def convert_json(written: str, convert: Callable[[Any], Sql], what: str) -> str:
    """Read a document and convert it; refuse it with the place in its text."""
    document = read_json(written, what)
    try:
        sql = convert(document).text
    except Refused as refused:
        raise FilterError(refused.reason, written, place_of(written, refused.path)) from None
    return checked(sql, written)


def text_of(value: str, path: DocumentPath) -> str:
    """Return a text of a document; refuse one that UTF-8 cannot carry."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Refused(path, "the text holds a lone surrogate, which UTF-8 cannot carry") from None
    return value


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
    check_length(written)
    _check_depth(written, what)
    try:
        return json.loads(
            written,
            parse_float=lambda written: Decimal(_digits(written)),
            parse_int=lambda written: int(_digits(written)),
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
    members = dict(pairs)
    if len(members) < len(pairs):
        seen = set()
        for name, _ in pairs:
            if name in seen:
                raise _Twice(name)
            seen.add(name)
    return members


_LONGEST = 400
"""Digits of a number, at most."""


def _digits(written: str) -> str:
    if len(written) > _LONGEST:
        raise ValueError(f"the number {written[:20]}… has more than {_LONGEST} digits")
    return written


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


def place_of(written: str, wanted: DocumentPath) -> int | None:
    """Say at which character something stands: a name where it leads to nothing deeper, else the value.

    >>> place_of('{"a": [1, {"prefix": 2}]}', ("a", 1, "prefix"))
    11
    >>> place_of('{"a": [1, {"prefix": 2}]}', ("a", 1))
    10
    """
    return next((start for path, start in _places(written) if path == wanted), None)


def _second(written: str) -> int | None:
    seen = set()
    for path, start in _places(written):
        if path in seen:
            return start
        seen.add(path)
    return None


def _places(written: str) -> list[tuple[DocumentPath, int]]:
    """List the places of sound JSON in the order of the text."""
    places: list[tuple[DocumentPath, int]] = []
    open_: list[tuple[str, DocumentPath]] = []
    at: DocumentPath = ()
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
            places.append(((*at, key), start))
        else:
            path = at if not open_ else (*at, count[-1] if inside == "[" else str(key))
            if inside != "{":
                places.append((path, start))
            if sign in ("{", "["):
                open_.append((sign, at))
                count.append(0)
                at, key = path, None
    return places


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
        check_length(text)
        self._tokens = self._cut(pattern, what)
        self._next = self._depth = 0
        if self._tokens[0].kind == "end":
            self._refuse(empty, None)

    def _cut(self, pattern: re.Pattern[str], what: str) -> list[Token]:
        tokens = []
        for match in pattern.finditer(self._text):
            kind = str(match.lastgroup)
            token = self._token(kind, match[kind], match.start(kind))
            if kind == "odd":
                if token.text in "'\"":
                    self._refuse("a text is not closed", token.at)
                self._refuse(f"{token.text!r} is not part of {what}", token.at)
            tokens.append(token)
            if kind == "end":
                break
        return tokens

    def _token(self, kind: str, text: str, at: int) -> Token:
        """Make a token."""
        return Token(kind, text, at)

    def _take(self) -> Token:
        """Step over the next token; the end stays."""
        token = self._tokens[self._next]
        self._next += token.kind != "end"
        return token

    def _peek(self, sign: str) -> bool:
        """Tell whether a sign or a keyword comes next."""
        token = self._tokens[self._next]
        return token.kind in ("word", "sign") and token.text.lower() == sign

    def _is(self, sign: str) -> bool:
        """Step over a sign or a keyword if it comes next."""
        found = self._peek(sign)
        self._next += found
        return found

    def _expect(self, sign: str) -> None:
        """Step over a sign or a keyword that must come."""
        if not self._is(sign):
            self._refuse(f"{sign!r} is expected here", self._tokens[self._next].at)

    def _deeper(self, most: int, what: str) -> None:
        """Go into parentheses or the like."""
        self._depth += 1
        if self._depth > most:
            self._refuse(f"{what} may nest {most} deep at most", self._tokens[self._next].at)

    def _end(self, expected: str) -> None:
        """Refuse tokens that are left."""
        rest = self._tokens[self._next]
        if rest.kind != "end":
            self._refuse(expected, rest.at)

    def _refuse(self, reason: str, at: int | None) -> NoReturn:
        raise FilterError(reason, self._text, at)
