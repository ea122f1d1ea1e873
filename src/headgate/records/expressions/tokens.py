"""The tokens of an expression: looking at them, stepping over them, and refusing one with its place."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NoReturn

from headgate.errors import FilterError
from headgate.records.expressions.model import MAX_NESTING, Call
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token, TokenType

    from headgate.records.expressions.model import Node
    from headgate.records.names import NameSettings

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Tokens:
    """The tokens of a text, and how far they have been read; what reads parts of them is built upon it."""

    def __init__(self, text: str, tokens: list[Token], settings: NameSettings = USUAL) -> None:
        self.text = text
        self.settings = settings
        self.tokens = tokens
        self.at = 0
        self.depth = 0
        self.clauses = 0
        self.sure = False
        """Whether what was refused is part of the language of expressions, and wrong in it."""
        self.bare: set[int] = set()
        """Comparisons and the like that stand in no parentheses, by id: none is an operand."""
        self.kept: list[Node] = []
        self.variables: list[str] = []

    # Looking at tokens

    def kind(self, ahead: int = 0) -> TokenType | None:
        """Return the type of a token."""
        place = self.at + ahead
        return self.tokens[place].token_type if place < len(self.tokens) else None

    def written(self, ahead: int = 0) -> str:
        """Return a token as it is written; empty at the end."""
        place = self.at + ahead
        if place >= len(self.tokens):
            return ""
        token = self.tokens[place]
        return self.text[token.start : token.end + 1]

    def word(self, ahead: int = 0) -> str:
        """Return a word in lower case; empty if the token is none."""
        text = self.written(ahead)
        return text.lower() if _WORD.match(text) else ""

    def take(self, *wanted: str) -> bool:
        """Step over words or signs if they come next."""
        for ahead, each in enumerate(wanted):
            if self.written(ahead).lower() != each:
                return False
        self.at += len(wanted)
        return True

    def expect(self, sign: str, why: str) -> None:
        """Step over a sign that must come."""
        if not self.take(sign):
            self.refuse(why)

    def refuse(self, reason: str, at: int | None = None) -> NoReturn:
        """Refuse the text at a token, or at the next one."""
        place = self.at if at is None else at
        start = self.tokens[place].start if place < len(self.tokens) else len(self.text)
        raise FilterError(reason, self.text, start)

    def make(self, name: str, *arguments: Node, bare: bool = False) -> Call:
        """Make a call."""
        node = Call(name, arguments)
        if bare:
            self.bare.add(id(node))
            self.kept.append(node)
        return node

    def deeper(self) -> None:
        """Go into parentheses or the like."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            self.refuse(f"the expression nests deeper than {MAX_NESTING}")

    def wrong(self, reason: str, at: int) -> NoReturn:
        """Refuse something that expressions know, and take in another form."""
        self.sure = True
        self.refuse(reason, at)

    def operand(self, node: Node, at: int) -> Node:
        """Refuse a comparison without parentheses as an operand: parsers disagree about its order."""
        if id(node) in self.bare:
            self.wrong("put parentheses around this comparison: it is an operand of another operator", at)
        return node

    # What is read by the levels above

    def disjunction(self) -> Node:
        """Read a condition."""
        raise NotImplementedError

    def sum(self) -> Node:
        """Read a value."""
        raise NotImplementedError

    def item(self, *, functions: bool = False) -> Node:
        """Read one argument."""
        raise NotImplementedError

    def items(self, end: str, why: str, *, functions: bool = True) -> list[Node]:
        """Read arguments."""
        raise NotImplementedError

    def present(self, begin: int) -> Node:
        """Read the attribute that `present` is asked about."""
        raise NotImplementedError
