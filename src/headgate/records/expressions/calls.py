"""Calls of functions in expressions: their arguments, casts and types, and forms with words between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.arguments import likeliest
from headgate.records.expressions import types
from headgate.records.expressions.functions import ALIASES, FUNCTIONS, OPERATORS, REFUSED
from headgate.records.expressions.model import Cast, Node
from headgate.records.expressions.reader import Reader
from headgate.records.language.lexing import END, NUMBER, QUOTED, RAW, STRING, is_word

if TYPE_CHECKING:
    from collections.abc import Callable

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
_TRIMS = {"both": "trim", "leading": "ltrim", "trailing": "rtrim"}
_OPERANDS = {NUMBER, STRING, RAW, QUOTED, "("}
_OPERATORS = {"and", "or", "is", "in", "not", "like", "ilike", "rlike", "regexp", "between", "div"}


class Calls(Reader):
    """Reads calls."""

    def call(self, word: str) -> Node:
        """Read a function and its arguments."""
        begin = self.at
        self.at += 2
        if word in {"cast", "try_cast"}:
            child = self.item()
            self.expect("as", "CAST takes a type: write cast(a AS INT)")
            to = self.type()
            self.close()
            return Cast(child, to)
        if word == "extract":
            return self.extract(begin)
        if word == "present" and self.settings.told:
            return self.present(begin)
        if word in REFUSED:
            self.refuse(f"{word} is not part of the filter language: {REFUSED[word]}", begin)
        if self.keys[self.at] in {"select", "with"}:
            self.refuse("a subquery is not part of the filter language")
        if word == "trim" and self.keys[self.at] in _TRIMS:
            return self.trim()
        self.quantifier()
        special = _ARGUMENTS.get(word)
        arguments = self.items() if special is None else special(self)
        if word in _CONVERTING and len(arguments) == 1:
            return Cast(arguments[0], _CONVERTING[word])
        return self.named(word, arguments, begin)

    def quantifier(self) -> None:
        """Step over ALL before the first argument, which changes nothing; alone it is a name."""
        key, following = self.keys[self.at], self.keys[self.at + 1]
        if key == "distinct":
            self.refuse("DISTINCT is not part of the filter language")
        if key == "all" and (following in _OPERANDS or (is_word(following) and following not in _OPERATORS)):
            self.at += 1

    def position(self) -> list[Node]:
        """Read the arguments of `position(a IN b)` and `position(a, b)`."""
        first = self.expression(5)
        if self.take("in"):
            second = self.expression(5)
            self.close()
            return [first, second]
        return [first, *self.rest()]

    def substring(self) -> list[Node]:
        """Read the arguments of `substring(a FROM 1 FOR 2)` and `substring(a, 1, 2)`."""
        if self.take(")"):
            return []
        arguments = [self.item()]
        if not self.take("from"):
            return [*arguments, *self.rest()]
        arguments.append(self.expression(5))
        if self.take("for"):
            arguments.append(self.expression(5))
        self.close()
        return arguments

    def trimmed(self) -> list[Node]:
        """Read the arguments of `trim('x' FROM a)` and `trim('x', a)`."""
        if self.take(")"):
            return []
        first = self.item()
        if not self.take("from"):
            return [first, *self.rest()]
        text = self.expression(5)
        self.close()
        return [first, text]

    def rest(self) -> list[Node]:
        """Read the arguments behind the first."""
        if self.take(","):
            return self.items("a value is missing after this comma")
        self.close()
        return []

    def trim(self) -> Node:
        """Read `trim(BOTH 'x' FROM a)`."""
        name = _TRIMS[self.keys[self.at]]
        self.at += 1
        letters = [] if self.keys[self.at] == "from" else [self.expression(5)]
        self.expect("from", "FROM is missing before this")
        text = self.expression(5)
        self.close()
        return self.make(name, *letters, text)

    def extract(self, begin: int) -> Node:
        """Read `extract(YEAR FROM a)`."""
        word = self.keys[self.at]
        self.at += word != END
        self.expect("from", "extract takes a part of a moment: write extract(YEAR FROM a)")
        moment = self.expression(5)
        self.close()
        return self.named({"doy": "dayofyear", "week": "weekofyear"}.get(word, word), [moment], begin)

    def named(self, word: str, arguments: list[Node], begin: int) -> Node:
        """Make the call of a function by its name, with as many arguments as it takes."""
        name = ALIASES.get(word, word)
        wanted = FUNCTIONS.get(name) or (OPERATORS.get(name) if word in ALIASES else None)
        if wanted is None:
            meant = likeliest(word, (*FUNCTIONS, *ALIASES))
            self.refuse(
                f"there is no function {word}" + (f" (did you mean {meant}?)" if meant else ""), begin
            )
        if not wanted.least <= len(arguments) <= wanted.most:
            self.refuse(f"{word} takes {wanted.takes}", begin)
        wrong = wanted.check(arguments)
        if wrong:
            self.refuse(f"{word}: {wrong}", begin)
        return self.make(name, *arguments)

    def type(self) -> types.Type:
        """Read the name of a type."""
        word = self.keys[self.at]
        if word in _DECIMALS:
            self.at += 1
            return self.decimal()
        if word not in _TYPES:
            known = ", ".join(each.upper() for each in _TYPES if each not in {"integer", "long"})
            self.refuse(f"a cast goes to {known} or DECIMAL(10, 2)", self.at)
        self.at += 1
        return _TYPES[word]

    def decimal(self) -> types.Type:
        """Read the digits of a decimal type."""
        if not self.take("("):
            return types.decimal(10, 0)
        digits = [self.texts[self.at]]
        self.at += digits[0] != ""
        if self.take(","):
            digits.append(self.texts[self.at])
            self.at += digits[1] != ""
        self.close()
        # A text that is no such number is more than any type has.
        precision, scale, *_ = (
            *(int(each) if len(each) < 3 and each.isascii() and each.isdigit() else 99 for each in digits),
            0,
        )
        if not 0 < precision <= types.MAX_PRECISION or scale > precision:
            self.refuse("a decimal has at most 38 digits: write DECIMAL(10, 2)", self.at - 1)
        return types.decimal(precision, scale)


_ARGUMENTS: dict[str, Callable[[Calls], list[Node]]] = {
    "position": Calls.position,
    "substring": Calls.substring,
    "substr": Calls.substring,
    "trim": Calls.trimmed,
}
"""Functions whose arguments may have words between them."""
