"""The tokens of an expression, read from left to right, and refusing one with its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from headgate.errors import FilterError
from headgate.records.expressions.model import Call, walk
from headgate.records.language.lexing import END, QUOTED, cut, is_word, starts
from headgate.records.language.limits import MAX_DEPTH, check_text
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from headgate.records.expressions.model import Node
    from headgate.records.names import NameSettings

NO_VALUE = "a value or a condition is missing after this"
_INSTEAD = {
    "=>": ": write >=",
    "=<": ": write <=",
    "&&": ": write AND",
    "||": ": write OR",
    ";": ": leave it out",
    "->": " here: a function of an element is an argument of exists, forall, filter or transform",
}
"""What is written for signs of other languages."""
_OF_QUERIES = frozenset({"select", "where", "from", "order", "group", "having", "limit", "union", "join"})
NO_OPERAND = "a value or a condition is missing before this"
SIGNS = frozenset({"=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>", "+", "-", "*", "/", "%", "||", "."})
"""Signs that have a value on their left."""
_ABSENT = {
    "as": "AS is not part of the filter language; `as` is an attribute",
    "any": "ANY is not part of the filter language; `any` is an attribute",
    "isnull": "ISNULL is not part of the filter language; IS NULL is",
    "notnull": "NOTNULL is not part of the filter language; IS NOT NULL is",
    "collate": "COLLATE is not part of the filter language",
}
"""Words that Spark knows, and that stand where an operator is expected."""
_MISPLACED = {
    ")": "this parenthesis was never opened",
    "]": "this bracket was never opened",
    ",": "a comma stands between arguments and in lists only",
}
"""Signs that end an operand of something that is not there."""


class Reader:
    """The tokens of a text, and how far they have been read; what reads parts of them is built upon it."""

    def __init__(self, text: str, settings: NameSettings = USUAL) -> None:
        check_text(text)
        self.text = text
        self.settings = settings
        self.texts, self.keys = cut(text)
        self.at = 0
        self.depth = 0
        self.clauses = 0
        self.places: dict[int, tuple[Node, int]] = {}
        """By id of a name, a literal or a call, itself and its token."""
        self.variables: list[str] = []

    # Looking at tokens

    def name_next(self) -> bool:
        """Tell whether a word or a name in backticks comes next."""
        key = self.keys[self.at]
        return key == QUOTED or is_word(key)

    def take(self, *wanted: str) -> bool:
        """Step over words or signs if they come next."""
        if tuple(self.keys[self.at : self.at + len(wanted)]) != wanted:
            return False
        self.at += len(wanted)
        return True

    def expect(self, key: str, why: str) -> None:
        """Step over a word or sign that must come."""
        if not self.take(key):
            self.refuse(why)

    def close(self) -> None:
        """Step over the end of parentheses."""
        if self.keys[self.at] != ")":
            self.misplaced()
        self.at += 1

    def deeper(self) -> None:
        """Go into parentheses or the like."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.refuse(f"the filter nests deeper than {MAX_DEPTH}", self.at - 1)

    def placed(self, node: Node, at: int) -> Node:
        """Remember where a node stands."""
        self.places[id(node)] = node, at
        return node

    def make(self, name: str, *arguments: Node) -> Call:
        """Make a call."""
        return Call(name, arguments)

    # Refusing

    def start(self, at: int) -> int:
        """Return where a token begins."""
        return min([*starts(self.text)[at : at + 1], len(self.text)])

    def place(self, node: Node) -> int | None:
        """Return where a node begins; None if nothing of it is known."""
        tokens = [self.places[id(each)][1] for each in walk(node) if id(each) in self.places]
        return self.start(min(tokens)) if tokens else None

    def refuse(self, reason: str, at: int | None = None) -> NoReturn:
        """Refuse the text at a token, or at the next one."""
        raise FilterError(reason, self.text, self.start(self.at if at is None else at))

    def misplaced(self) -> NoReturn:
        """Refuse the next token where a condition is at its end."""
        key = self.keys[self.at]
        if key == END:
            self.refuse("a parenthesis is still open at the end")
        if key in _ABSENT:
            self.refuse(_ABSENT[key])
        if key == "contains":
            named = self.texts[self.at - 1]
            self.refuse(f"CONTAINS is not part of the filter language: write array_contains({named}, …)")
        if key in _OF_QUERIES:
            self.refuse_query()
        if key in _MISPLACED:
            self.refuse(_MISPLACED[key])
        if self.name_next() or key in {"0", "'", "r'", "("}:
            self.refuse("AND, OR or an operator is missing before this")
        if key in SIGNS:
            self.refuse("a parenthesis is missing before this")
        self.refuse_sign()

    def refuse_query(self) -> NoReturn:
        """Refuse a word of a query."""
        word = self.texts[self.at].upper()
        self.refuse(
            f"not a Boolean expression: {word} is part of a query, and a filter is what stands after WHERE"
        )

    def refuse_sign(self) -> NoReturn:
        """Refuse a sign that stands where none can, or nowhere."""
        written = self.texts[self.at]
        self.refuse(f"{written!r} is not part of the filter language{_INSTEAD.get(written, '')}")

    # What is read by the levels above

    def expression(self, floor: int = 0) -> Node:
        """Read operands, and operators that bind tighter than `floor`."""
        raise NotImplementedError

    def item(self, *, functions: bool = False) -> Node:
        """Read one argument."""
        raise NotImplementedError

    def items(self, why: str = "", *, functions: bool = True) -> list[Node]:
        """Read arguments."""
        raise NotImplementedError

    def present(self, begin: int) -> Node:
        """Read the attribute that `present` is asked about."""
        raise NotImplementedError
