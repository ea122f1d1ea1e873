"""The grammar of filters over the kinds of words, for lark.

It is one grammar for both dialects, and for paths from the document and those in brackets: where a path may
begin is for `meaning` to tell, so that it can say what to write. It is free of context and sees kinds only.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lark import Lark, Token, UnexpectedToken
from lark.lexer import Lexer

from headgate.xml.language import words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lark import Tree

    from headgate.xml.language.words import Kinds

_GRAMMAR = """
filter: _conditions
_conditions: _condition | _conditions _AND _condition
_condition: found | compared | turned | called | _LEFT _conditions _RIGHT
found: path
compared: path _sign _value
turned: _value _sign path
called: (CONTAINS | STARTS_WITH) path _COMMA _value _RIGHT
_sign: EQ | NE | LT | LE | GT | GE
_value: STRING | NUMBER | negative
negative: _MINUS NUMBER

path: SELF | SELF _steps | step | step _steps | _steps
_steps: _slash step | _steps _slash step
_slash: SLASH | DOUBLE
step: _test MARK? bracket*
_test: _name | ATTRIBUTE | TEXT | CHILD_AXIS _below | DESCENDANT_AXIS _below | ATTRIBUTE_AXIS _name
_below: _name | TEXT
_name: NAME | VAL
bracket: _BEGIN _conditions _END
"""


class Misplaced(Exception):  # noqa: N818 -- never leaves the room: it becomes a FilterError with a place
    """A word that cannot stand where it stands: its number, and the kinds that could."""

    def __init__(self, number: int, expected: set[str]) -> None:
        super().__init__(number)
        self.number = number
        self.expected = expected


def tree_of(kinds: Kinds) -> Tree[Token]:
    """Find the tree of a text by the kinds of its words; the value of a token is the number of its word."""
    try:
        return _parser().parse(kinds)
    except UnexpectedToken as error:
        number = len(kinds) if error.token.type == "$END" else int(error.token.value)
        raise Misplaced(number, set(error.accepts or ())) from None


class _Numbered(Lexer):
    """Hands the parser kinds in place of a text."""

    def __init__(self, _configuration: Any) -> None:
        pass

    def lex(self, data: Any) -> Iterator[Token]:  # type: ignore[override]  # lark's interface of one argument
        """Number the words."""
        for number, kind in enumerate(data):
            token = Token(kind, kind)
            token.value = number
            yield token


@cache
def _parser() -> Lark:
    kinds = {
        *words.SIGNS.values(),
        *words.FUNCTIONS.values(),
        *words.AXES.values(),
        *(words.NAME, words.ATTRIBUTE, words.TEXT_STEP, words.VAL, words.MARK),
        *(words.STRING, words.NUMBER, words.AND),
    }
    declared = f"%declare {' '.join(sorted(kinds - {words.PARENT}))}"
    return Lark(f"{_GRAMMAR}\n{declared}", parser="lalr", lexer=_Numbered, start="filter")
