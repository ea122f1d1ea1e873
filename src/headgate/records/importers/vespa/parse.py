"""Predicates of Vespa: text to tree.

predicate = all or all …                  all = one and one …
one       = ( predicate ) | not one | true | false | name [not] in [ value, … ] | name [not] in [ low..high ]
name, value are words, or anything in single or double quotes
"""

from __future__ import annotations

import re

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.records.importers.tokens import Token, TokenReader
from headgate.records.importers.vespa.model import Constant, InRange, InSet, Join, Node, Not

MAX_DEPTH = 32
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")
      | (?P<range>\.\.)
      | (?P<word>[+-]?(?:[^\W]|[-:/@])(?:\w|[-:/@]|\.(?!\.))*)
      | (?P<sign>[\[\](),])
      | (?P<end>\Z)
      | (?P<odd>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WHOLE = re.compile(r"[+-]?[0-9]+")
_KEYWORDS = ("and", "or", "not", "in", "true", "false")


def parse(text: str) -> Node:
    """Parse a predicate; refuse it with the place of what is wrong.

    >>> parse("gender in [Female] and age not in [..20]").children[1]
    Not(child=InRange(name='age', low=None, high=20))
    """
    return _Parser(text).whole()


class _Parser(TokenReader):
    def __init__(self, text: str) -> None:
        super().__init__(
            text, _TOKEN, "predicates", "the predicate is empty: write true to match every event"
        )

    def whole(self) -> Node:
        found = self._either()
        self._end("and, or, or the end is expected here")
        return found

    def _is(self, word: str) -> bool:
        """Take a keyword or a sign if it comes next."""
        token = self._tokens[self._next]
        found = token.kind in ("word", "sign") and token.text.lower() == word
        self._next += found
        return found

    def _expect(self, sign: str) -> None:
        at = self._tokens[self._next].at
        if not self._is(sign):
            self._refuse(f"{sign!r} is expected here", at)

    def _either(self) -> Node:
        found = [self._all()]
        while self._is("or"):
            found.append(self._all())
        return found[0] if len(found) == 1 else Join(both=False, children=tuple(found))

    def _all(self) -> Node:
        found = [self._one()]
        while self._is("and"):
            found.append(self._one())
        return found[0] if len(found) == 1 else Join(both=True, children=tuple(found))

    def _one(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse(f"predicates may nest {MAX_DEPTH} deep at most", self._tokens[self._next].at)
        found = self._inner()
        self._depth -= 1
        return found

    def _inner(self) -> Node:
        if self._is("not"):
            return Not(self._one())
        if self._is("("):
            found = self._either()
            self._expect(")")
            return found
        for word in ("true", "false"):
            if self._is(word):
                return Constant(word == "true")
        token = self._take()
        if token.kind not in ("word", "text") or (token.kind == "word" and token.text.lower() in _KEYWORDS):
            self._refuse("a name is expected here: write gender in ['Female']", token.at)
        negated = self._is("not")
        self._expect("in")
        found = self._values(_plain(token))
        return Not(found) if negated else found

    def _values(self, name: str) -> Node:
        self._expect("[")
        first = self._take()
        if first.kind == "range":
            return self._range(name, None)
        if self._tokens[self._next].kind == "range":
            self._take()
            return self._range(name, self._bound(first))
        values = [self._value(first)]
        while self._is(","):
            values.append(self._value(self._take()))
        self._expect("]")
        return InSet(name, tuple(values))

    def _range(self, name: str, low: int | None) -> Node:
        high = None
        at = self._tokens[self._next].at
        if not self._is("]"):
            high = self._bound(self._take())
            self._expect("]")
        if low is not None and high is not None and low > high:
            self._refuse(f"the range is empty: {low} lies above {high}", at)
        return InRange(name, low, high)

    def _bound(self, token: Token) -> int:
        if token.kind != "word" or not _WHOLE.fullmatch(token.text) or len(token.text) > 20:
            self._refuse("a range goes from a whole number to a whole number: write [20..30]", token.at)
        found = int(token.text)
        if not INT64_MIN <= found <= INT64_MAX:
            self._refuse("the number does not fit into 64 bits", token.at)
        return found

    def _value(self, token: Token) -> str:
        if token.kind not in ("word", "text"):
            self._refuse("a value is expected here: write ['Female', 'Male'] or [20..30]", token.at)
        return _plain(token)


def _plain(token: Token) -> str:
    if token.kind == "word":
        return token.text
    return _ESCAPE.sub(_unescaped, token.text[1:-1])


def _unescaped(found: re.Match[str]) -> str:
    letter = found[1]
    return chr(int(letter[1:], 16)) if len(letter) == 3 else _LETTERS.get(letter, letter)
