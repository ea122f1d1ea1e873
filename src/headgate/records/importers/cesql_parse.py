"""CloudEvents SQL 1.0: text to a small tree, by the order of operators in its published grammar.

NOT x, -x                       bind most tightly, so `NOT a LIKE 'x'` is `(NOT a) LIKE 'x'`
x LIKE 'p', EXISTS a, x IN (…)
*  /  %
+  -
=  !=  <>  >=  <=  <  >
AND  OR  XOR                    one order for all three, from the right: `a AND b OR c` is `a AND (b OR c)`
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from headgate.records.importers.reading import Token, TokenReader


class Type(Enum):
    """The types of values."""

    BOOLEAN = "Boolean"
    INTEGER = "Integer"
    STRING = "String"


@dataclass(frozen=True)
class Value:
    """A literal."""

    value: bool | int | str
    at: int


@dataclass(frozen=True)
class Name:
    """An attribute of the event."""

    name: str
    at: int


@dataclass(frozen=True)
class Not:
    """`NOT x`."""

    child: Node
    at: int


@dataclass(frozen=True)
class Minus:
    """`-x`."""

    child: Node
    at: int


@dataclass(frozen=True)
class Like:
    """`x LIKE 'pattern'`; `NOT LIKE` is Not of it, and `NOT IN` of In."""

    child: Node
    pattern: str
    at: int


@dataclass(frozen=True)
class Exists:
    """`EXISTS name`."""

    name: str
    at: int


@dataclass(frozen=True)
class In:
    """`x IN (y, …)`."""

    child: Node
    items: tuple[Node, ...]
    at: int


@dataclass(frozen=True)
class Binary:
    """`x sign y`; the sign is one of LOGIC, COMPARISONS or MATH."""

    sign: str
    left: Node
    right: Node
    at: int


@dataclass(frozen=True)
class Call:
    """`NAME(x, …)`."""

    name: str
    arguments: tuple[Node, ...]
    at: int


Node: TypeAlias = Value | Name | Not | Minus | Like | Exists | In | Binary | Call

INTEGERS = range(-(2**31), 2**31)
LOGIC = ("AND", "OR", "XOR")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
ORDER = ("<", "<=", ">", ">=")
MATH = ("+", "-", "*", "/", "%")
_B, _I, _S = Type.BOOLEAN, Type.INTEGER, Type.STRING
FUNCTIONS: dict[str, tuple[tuple[Type | None, ...], int | None, Type]] = {
    "LENGTH": ((_S,), 1, _I),
    "CONCAT": ((_S,), None, _S),
    "CONCAT_WS": ((_S, _S), None, _S),
    "LOWER": ((_S,), 1, _S),
    "UPPER": ((_S,), 1, _S),
    "TRIM": ((_S,), 1, _S),
    "LEFT": ((_S, _I), 2, _S),
    "RIGHT": ((_S, _I), 2, _S),
    "SUBSTRING": ((_S, _I, _I), 3, _S),
    "ABS": ((_I,), 1, _I),
    "INT": ((_I,), 1, _I),
    "BOOL": ((_B,), 1, _B),
    "STRING": ((_S,), 1, _S),
    "IS_INT": ((None,), 1, _B),
    "IS_BOOL": ((None,), 1, _B),
}
"""Types of parameters (the last for all that follow), how many at most, and the type of the result."""
BLANKS = (
    " \t\n\v\f\r\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What TRIM takes off."""


def type_of(node: Node) -> Type | None:
    """Return the type of an expression; None for an attribute, whose value has it."""
    match node:
        case Value(value):
            return _B if isinstance(value, bool) else _I if isinstance(value, int) else _S
        case Name():
            return None
        case Minus():
            return _I
        case Binary(sign):
            return _I if sign in MATH else _B
        case Call(name):
            return FUNCTIONS[name][2]
    return _B


MAX_DEPTH = 48
"""Parentheses, NOT, - and operands in one another."""
MAX_OPERATORS = 200

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
        (?P<text>"(?:\\.|""|[^"\\])*"|'(?:\\.|''|[^'\\])*')
      | (?P<word>[A-Za-z0-9_]+)
      | (?P<sign><>|!=|<=|>=|[-+*/%=<>(),])
      | (?P<end>\Z)
      | (?P<odd>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORDS = {"AND", "OR", "XOR", "NOT", "LIKE", "EXISTS", "IN", "TRUE", "FALSE"}
_ORDER = {
    **dict.fromkeys(("AND", "OR", "XOR"), 1),
    **dict.fromkeys(("=", "!=", "<>", "<", "<=", ">", ">="), 2),
    **dict.fromkeys(("+", "-"), 3),
    **dict.fromkeys(("*", "/", "%"), 4),
}
_POSTFIX = 5


def parse(text: str) -> Node:
    """Parse an expression; refuse it with the place of what is wrong.

    >>> tree = parse("a = 1 AND b = 2 OR c")
    >>> tree.sign, tree.right.sign
    ('AND', 'OR')
    """
    return _Parser(text).whole()


class _Parser(TokenReader):
    def __init__(self, text: str) -> None:
        super().__init__(
            text, _TOKEN, "CloudEvents SQL", "the filter is empty: write TRUE to match every event"
        )
        self._operators = 0

    def _token(self, kind: str, text: str, at: int) -> Token:
        if kind == "word" and text.upper() in _WORDS:
            return Token("sign", text.upper(), at)
        return Token(kind, text, at)

    def whole(self) -> Node:
        node = self._expression(0)
        self._end("an operator or the end is expected here")
        return node

    def _expression(self, least: int) -> Node:
        self._deeper(MAX_DEPTH, "expressions")
        left = self._operand()
        while True:
            token = self._tokens[self._next]
            if token.kind != "sign":
                break
            if token.text in ("LIKE", "IN", "NOT") and least <= _POSTFIX:
                left = self._postfix(left)
                continue
            order = _ORDER.get(token.text, 0)
            if order == 0 or order < least:
                break
            self._take()
            self._operators += 1
            if self._operators > MAX_OPERATORS:
                self._refuse(
                    f"a filter has {MAX_OPERATORS:,} operators at most: write it as several", token.at
                )
            if order == 1:
                left = self._logic(left, token)
            else:
                sign = "!=" if token.text == "<>" else token.text
                left = Binary(sign, left, self._expression(order + 1), token.at)
        self._depth -= 1
        return left

    def _logic(self, left: Node, token: Token) -> Node:
        """Read what follows AND, OR or XOR, from the right; a loop, so that long chains do not nest here."""
        parts, signs = [left], [token]
        while True:
            parts.append(self._expression(2))
            token = self._tokens[self._next]
            if token.kind != "sign" or _ORDER.get(token.text) != 1:
                break
            signs.append(self._take())
            if len(signs) > MAX_OPERATORS:
                self._refuse(
                    f"a filter has {MAX_OPERATORS:,} operators at most: write it as several", token.at
                )
        node = parts.pop()
        while signs:
            sign = signs.pop()
            node = Binary(sign.text, parts.pop(), node, sign.at)
        return node

    def _postfix(self, left: Node) -> Node:
        token = self._take()
        negated = token.text == "NOT"
        if negated:
            token = self._take()
            if token.kind != "sign" or token.text not in ("LIKE", "IN"):
                self._refuse("LIKE or IN is expected after NOT here", token.at)
        node = self._like(left, token) if token.text == "LIKE" else self._in(left, token)
        return Not(node, token.at) if negated else node

    def _like(self, left: Node, token: Token) -> Node:
        pattern = self._take()
        if pattern.kind != "text":
            self._refuse("LIKE takes a pattern in quotes", pattern.at)
        # In a pattern a backslash is kept: it escapes % and _.
        return Like(left, _unquoted(pattern.text, pattern=True), token.at)

    def _in(self, left: Node, token: Token) -> Node:
        self._expect("(")
        items = [self._expression(0)]
        while self._is(","):
            items.append(self._expression(0))
        self._expect(")")
        return In(left, tuple(items), token.at)

    def _operand(self) -> Node:
        token = self._take()
        match token.kind, token.text:
            case "sign", "(":
                node = self._expression(0)
                self._expect(")")
                return node
            case "sign", "NOT":
                return Not(self._expression(_POSTFIX + 1), token.at)
            case "sign", "-" | "+":
                return self._signed(token)
            case "sign", "EXISTS":
                return Exists(self._name(self._take()), token.at)
            case "sign", "TRUE" | "FALSE":
                return Value(token.text == "TRUE", token.at)
            case "text", text:
                return Value(_unquoted(text), token.at)
            case "word", word if word.isdigit():
                return self._integer(word, token.at)
            case "word", word if self._peek("("):
                return self._call(word.upper(), token.at)
            case "word", _:
                return Name(self._name(token), token.at)
            case "end", _:
                self._refuse("a value is missing at the end", len(self._text))
        return self._refuse("a value is expected here", token.at)

    def _signed(self, token: Token) -> Node:
        """Read a sign: before digits it is part of the number."""
        after = self._tokens[self._next]
        if after.kind == "word" and after.text.isdigit() and after.at == token.at + 1:
            self._take()
            return self._integer(token.text + after.text, token.at)
        if token.text == "+":
            self._refuse("a plus sign may stand before digits only", token.at)
        return Minus(self._expression(_POSTFIX + 1), token.at)

    def _integer(self, digits: str, at: int) -> Node:
        if len(digits) > 12 or int(digits) not in INTEGERS:
            self._refuse("an Integer of CloudEvents SQL has 32 bits, and this has more", at)
        return Value(int(digits), at)

    def _name(self, token: Token) -> str:
        if token.kind != "word" or token.text.isdigit():
            self._refuse("the name of an attribute is expected here", token.at)
        if not re.fullmatch("[a-z0-9]+", token.text):
            reason = (
                f"{token.text} is no name of an attribute: CloudEvents have lower-case letters and digits"
            )
            self._refuse(reason, token.at)
        return token.text

    def _call(self, name: str, at: int) -> Node:
        if name not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            self._refuse(f"{name} is not a function of CloudEvents SQL: they are {known}", at)
        self._expect("(")
        arguments: list[Node] = []
        while not self._is(")"):
            if arguments:
                self._expect(",")
            arguments.append(self._expression(0))
        types, most, _ = FUNCTIONS[name]
        least = 2 if name == "SUBSTRING" else len(types)
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = (
                f"{least}" if most == least else f"{least} or more" if most is None else f"{least} to {most}"
            )
            self._refuse(f"{name} takes {wanted} arguments, and these are {len(arguments)}", at)
        return Call(name, tuple(arguments), at)


def _unquoted(text: str, *, pattern: bool = False) -> str:
    r"""Return a text without its quotes: a backslash escapes the quote, and a quote is doubled.

    >>> _unquoted(r"'it\'s'"), _unquoted('"a""b"'), _unquoted(r"'50\%'", pattern=True)
    ("it's", 'a"b', '50\\%')
    """
    quote, inner = text[0], text[1:-1]
    inner = inner.replace(quote * 2, quote).replace(f"\\{quote}", quote)
    return inner if pattern else inner.replace("\\\\", "\\")
