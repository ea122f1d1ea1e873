"""Calls of functions in expressions: their arguments, casts and types, and forms with words between."""

from __future__ import annotations

from headgate.core.likeliest import likeliest
from headgate.records.expressions import types
from headgate.records.expressions.functions import ALIASES, FUNCTIONS, OPERATORS, REFUSED
from headgate.records.expressions.model import Cast, Node
from headgate.records.expressions.tokens import Tokens

_TYPES = {
    "int": types.INT,
    "integer": types.INT,
    "bigint": types.LONG,
    "long": types.LONG,
    "double": types.DOUBLE,
    "string": types.STRING,
    "boolean": types.BOOL,
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
}
_DECIMALS = {"decimal", "dec", "numeric"}
_CONVERTING = {name: _TYPES[name] for name in ("int", "bigint", "double", "string", "boolean")} | {
    "date": types.DATE,
    "timestamp": types.TIMESTAMP,
    "decimal": types.decimal(10, 0),
}
"""Functions that are casts: `int(a)`."""


class Calls(Tokens):
    """Reads calls."""

    def call(self, word: str) -> Node:
        """Read a function and its arguments."""
        begin = self.at
        self.at += 2
        if word in {"cast", "try_cast"}:
            child = self.item()
            self.expect("as", "CAST takes a type: write cast(a AS INT)")
            to = self.type()
            self.expect(")", "a parenthesis is missing before this")
            return Cast(child, to)
        if word == "extract":
            return self.extract(begin)
        if word == "present" and self.settings.told:
            return self.present(begin)
        if word in REFUSED:
            self.wrong(f"{word} is not part of the filter language: {REFUSED[word]}", begin)
        if word == "trim" and self.word() in {"both", "leading", "trailing"}:
            return self.trim()
        if self.word() == "distinct":
            self.refuse("DISTINCT is not part of the filter language")
        arguments = [] if self.take(")") else self.arguments(word)
        if word in _CONVERTING and len(arguments) == 1:
            return Cast(arguments[0], _CONVERTING[word])
        return self.named(word, arguments, begin)

    def arguments(self, word: str) -> list[Node]:
        """Read arguments, also those of `position(a IN b)` and `substring(a FROM 1 FOR 2)`."""
        if word == "position":
            first = self.sum()
            if self.take("in"):
                second = self.sum()
                self.expect(")", "a parenthesis is missing before this")
                return [first, second]
            rest = self.items(")", "") if self.take(",") else []
            if not rest:
                self.expect(")", "a comma is missing before this")
            return [first, *rest]
        first = self.item()
        if word in {"substring", "substr"} and self.take("from"):
            found = [first, self.sum()]
            if self.take("for"):
                found.append(self.sum())
        elif word == "trim" and self.take("from"):
            found = [first, self.sum()]
        else:
            return [
                first,
                *(self.items(")", "a value is missing after this comma") if self.take(",") else self.end()),
            ]
        self.expect(")", "a parenthesis is missing before this")
        return found

    def end(self) -> list[Node]:
        """Step over the end of arguments."""
        self.expect(")", "a comma or a parenthesis is missing before this")
        return []

    def trim(self) -> Node:
        """Read `trim(BOTH 'x' FROM a)`."""
        name = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}[self.word()]
        self.at += 1
        letters = [] if self.word() == "from" else [self.sum()]
        self.expect("from", "FROM is missing before this")
        found = self.sum()
        self.expect(")", "a parenthesis is missing before this")
        return self.make(name, *letters, found)

    def extract(self, begin: int) -> Node:
        """Read `extract(YEAR FROM a)`."""
        word = self.word()
        self.at += 1
        self.expect("from", "extract takes a part of a moment: write extract(YEAR FROM a)")
        found = self.sum()
        self.expect(")", "a parenthesis is missing before this")
        return self.named({"doy": "dayofyear", "week": "weekofyear"}.get(word, word), [found], begin)

    def named(self, word: str, arguments: list[Node], begin: int) -> Node:
        """Make the call of a function by its name, with as many arguments as it takes."""
        name = ALIASES.get(word, word)
        wanted = FUNCTIONS.get(name) or (OPERATORS.get(name) if word in ALIASES else None)
        if wanted is None:
            meant = likeliest(word, (*FUNCTIONS, *ALIASES))
            self.wrong(f"there is no function {word}" + (f" (did you mean {meant}?)" if meant else ""), begin)
        if not wanted.least <= len(arguments) <= wanted.most:
            self.wrong(f"{word} takes {wanted.takes}", begin)
        wrong = wanted.check(arguments)
        if wrong:
            self.wrong(f"{word}: {wrong}", begin)
        return self.make(name, *arguments)

    def type(self) -> types.Type:
        """Read the name of a type."""
        word = self.word()
        if word in _DECIMALS:
            self.at += 1
            return self.decimal()
        if word not in _TYPES:
            known = ", ".join(each.upper() for each in _TYPES if each not in {"integer", "long"})
            self.wrong(f"a cast goes to {known} or DECIMAL(10, 2)", self.at)
        self.at += 1
        return _TYPES[word]

    def decimal(self) -> types.Type:
        """Read the digits of a decimal type."""
        if not self.take("("):
            return types.decimal(10, 0)
        digits = [self.written()]
        self.at += 1
        if self.take(","):
            digits.append(self.written())
            self.at += 1
        self.expect(")", "a parenthesis is missing before this")
        precision, scale = ([int(each) for each in digits if each.isdigit() and len(each) < 3] + [0])[:2]
        if len(digits) > 2 or not 0 < precision <= types.MAX_PRECISION or scale > precision:
            self.wrong("a decimal has at most 38 digits: write DECIMAL(10, 2)", self.at - 1)
        return types.decimal(precision, scale)
