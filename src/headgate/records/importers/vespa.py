"""Predicates of Vespa, as predicate fields of documents hold them, to SQL.

predicate = all or all …                  all = one and one …
one       = ( predicate ) | not one | true | false | name [not] in [ value, … ] | name [not] in [ low..high ]
name, value are words, or anything in single or double quotes

A predicate holds or not, also where an attribute is missing: `country not in ['no']` then holds. What
`not` stands before is asked not to be TRUE, which is FALSE or NULL.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeAlias

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.errors import FilterError
from headgate.records.importers import sql
from headgate.records.importers.reading import Token, TokenReader
from headgate.records.importers.sql import FALSE, TRUE, Sql, every, some
from headgate.records.language.limits import checked


@dataclass(frozen=True)
class Constant:
    """`true` or `false`."""

    value: bool


@dataclass(frozen=True)
class InSet:
    """`name in ['a', b]`."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class InRange:
    """`name in [low..high]`; a bound that is None is open."""

    name: str
    low: int | None
    high: int | None


@dataclass(frozen=True)
class Not:
    """`not (…)`, and `name not in […]`."""

    child: Node


@dataclass(frozen=True)
class Join:
    """`… and …`, or `… or …`."""

    both: bool
    children: tuple[Node, ...]


Node: TypeAlias = Constant | InSet | InRange | Not | Join

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
        node = self._either()
        self._end("and, or, or the end is expected here")
        return node

    def _either(self) -> Node:
        nodes = [self._all()]
        while self._is("or"):
            nodes.append(self._all())
        return nodes[0] if len(nodes) == 1 else Join(both=False, children=tuple(nodes))

    def _all(self) -> Node:
        nodes = [self._one()]
        while self._is("and"):
            nodes.append(self._one())
        return nodes[0] if len(nodes) == 1 else Join(both=True, children=tuple(nodes))

    def _one(self) -> Node:
        self._deeper(MAX_DEPTH, "predicates")
        node = self._inner()
        self._depth -= 1
        return node

    def _inner(self) -> Node:
        if self._is("not"):
            return Not(self._one())
        if self._is("("):
            node = self._either()
            self._expect(")")
            return node
        for word in ("true", "false"):
            if self._is(word):
                return Constant(word == "true")
        token = self._take()
        if token.kind not in ("word", "text") or (token.kind == "word" and token.text.lower() in _KEYWORDS):
            self._refuse("a name is expected here: write gender in ['Female']", token.at)
        negated = self._is("not")
        self._expect("in")
        node = self._values(_plain(token))
        return Not(node) if negated else node

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
        bound = int(token.text)
        if not INT64_MIN <= bound <= INT64_MAX:
            self._refuse("the number does not fit into 64 bits", token.at)
        return bound

    def _value(self, token: Token) -> str:
        if token.kind not in ("word", "text"):
            self._refuse("a value is expected here: write ['Female', 'Male'] or [20..30]", token.at)
        return _plain(token)


def _plain(token: Token) -> str:
    if token.kind == "word":
        return token.text
    return _ESCAPE.sub(_unescaped, token.text[1:-1])


def _unescaped(match_: re.Match[str]) -> str:
    letter = match_[1]
    return chr(int(letter[1:], 16)) if len(letter) == 3 else _LETTERS.get(letter, letter)


def to_sql(text: str) -> str:
    """Convert a predicate.

    >>> to_sql("gender in ['Female'] and age in [20..30]")
    "(gender = 'Female' OR array_contains(gender, 'Female')) AND (age BETWEEN 20 AND 30 OR \
exists(age, x -> x BETWEEN 20 AND 30))"
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise FilterError(
            "the text holds a lone surrogate, which UTF-8 cannot carry", text, error.start
        ) from None
    return checked(_condition(parse(text), holds=True).text, text)


def _condition(node: Node, *, holds: bool) -> Sql:
    """Return what is TRUE where a predicate holds; or where it does not."""
    match node:
        case Constant(value):
            return TRUE if value == holds else FALSE
        case Not(child):
            return _condition(child, holds=not holds)
        case Join(both, children):
            conditions = [_condition(each, holds=holds) for each in children]
            return every(conditions) if both == holds else some(conditions)
        case InSet(name, values):
            return _asked(_in_set(sql.name(name), values), holds=holds)
        case InRange(name, low, high):
            return _asked(_in_range(sql.name(name), low, high), holds=holds)


def _asked(condition: Sql, *, holds: bool) -> Sql:
    return condition if holds else sql.unless(condition)


def _in_set(name: str, values: tuple[str, ...]) -> Sql:
    """Compare texts; numbers and Booleans are the texts that they are written as."""
    plain = [sql.text(each) for each in dict.fromkeys(values) if not sql.casts(each)]
    conditions = [sql.one_of(name, plain)] if plain else []
    conditions += [sql.like(name, sql.as_pattern(each)) for each in dict.fromkeys(values) if sql.casts(each)]
    elements = [sql.text(each) for each in dict.fromkeys(values)]
    whole = [each for each in elements if _written_number(each[1:-1])]
    truths = [each[1:-1].upper() for each in elements if each in ("'true'", "'false'")]
    arrays = [elements, [each[1:-1] for each in whole], truths]
    return some([*conditions, *(sql.element_of(name, each) for each in arrays if each)])


def _written_number(text: str) -> bool:
    """Tell whether a text is a whole number as it is written."""
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) < 19 and str(int(text)) == text


def _in_range(name: str, low: int | None, high: int | None) -> Sql:
    def test(operand: str) -> Sql:
        if low is not None and high is not None:
            return Sql(f"{operand} BETWEEN {low} AND {high}")
        if low is None and high is None:
            return Sql(f"CAST({operand} AS BIGINT) IS NOT NULL")
        return Sql(f"{operand} >= {low}" if high is None else f"{operand} <= {high}")

    return sql.tested(name, test)
