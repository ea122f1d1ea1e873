"""Expression text to the tree, by recursive descent over sqlglot's tokens.

sqlglot's own parser turns functions into others of its own, and orders some operators in another way than
Spark does. So expressions are read here, in the order of Spark's grammar; where that order surprises (a
comparison of a comparison), parentheses are asked for. `printing` must write what is read here.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from headgate.core.event import TIME
from headgate.core.text.words import one_word
from headgate.errors import FilterError
from headgate.records.expressions.functions import OPERATORS
from headgate.records.expressions.model import (
    MAX_DEPTH,
    MAX_NESTING,
    MAX_NODES,
    SHIFT_CALL,
    TIME_CALL,
    Call,
    Name,
    Node,
    Value,
    children,
)
from headgate.records.expressions.operands import Operands
from headgate.records.language.model import Literal, LiteralType
from headgate.records.language.refusal import MAX_CLAUSES, check_gaps, check_text
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from headgate.records.names import NameSettings

_DIALECT = Spark()
_SIGNS = {
    TokenType.EQ: "=",
    TokenType.NEQ: "!=",
    TokenType.LT: "<",
    TokenType.LTE: "<=",
    TokenType.GT: ">",
    TokenType.GTE: ">=",
    TokenType.NULLSAFE_EQ: "<=>",
}
_ADDING = {TokenType.PLUS: "+", TokenType.DASH: "-", TokenType.DPIPE: "||"}
_TIMES = {TokenType.STAR: "*", TokenType.SLASH: "/", TokenType.MOD: "%", TokenType.DIV: "div"}
_TRUTHS = {"true": True, "false": False}


def parse_node(text: str, settings: NameSettings = USUAL) -> Node:
    """Parse an expression of attributes, functions and operators; refuse what is none, with its place.

    >>> parse_node("price * 2").name
    '*'
    >>> parse_node("trimm(a)")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: there is no function trimm (did you mean trim?), at character 1: ⟪trimm(a)
    """
    check_text(text)
    try:
        tokens = _DIALECT.tokenize(text)
    except TokenError:
        raise FilterError("a quote or a comment is still open at the end", text, len(text)) from None
    check_gaps(tokens, text)
    return Parser(text, tokens, settings).whole()


class Parser(Operands):
    """Reads operators and conditions; a method for each level of the grammar."""

    def whole(self) -> Node:
        """Read all tokens."""
        if not self.tokens:
            raise FilterError("there is no expression", self.text, None)
        found = self.disjunction()
        if self.at < len(self.tokens):
            self.refuse(f"{self.written()!r} cannot stand here")
        return found

    # Levels of the grammar, the loosest first

    def disjunction(self) -> Node:
        """Read `a OR b OR …`."""
        return self.joined("or", lambda: self.joined("and", self.negation))

    def joined(self, sign: str, part: Callable[[], Node]) -> Node:
        """Read parts with a word between them."""
        found = [part()]
        while self.word() == sign:
            self.at += 1
            self.clauses += 1
            if self.clauses >= MAX_CLAUSES:
                self.refuse(f"the filter has more than {MAX_CLAUSES:,} clauses")
            found.append(part())
        return found[0] if len(found) == 1 else self.make(sign, *found, bare=True)

    def negation(self) -> Node:
        """Read `NOT a`."""
        signs = 0
        while self.kind() is TokenType.NOT:
            self.at += 1
            signs += 1
            if signs > MAX_NESTING:
                self.refuse(f"the expression nests deeper than {MAX_NESTING}")
        found = self.predicate()
        for _ in range(signs):
            found = self.make("not", found, bare=True)
        return found

    def predicate(self) -> Node:
        """Read a value and what is asked of it."""
        at = self.at
        left = self.comparison()
        while True:
            start = self.at
            negated = self.kind() is TokenType.NOT and self.written().lower() == "not"
            word = self.word(1 if negated else 0)
            if word not in {"between", "in", "like", "ilike", "rlike", "regexp", "is"} or (
                negated and word == "is"
            ):
                return left
            self.operand(left, at)
            self.at += 2 if negated else 1
            found = self.asked(word, left, start)
            left = self.make("not", found, bare=True) if negated else found

    def asked(self, word: str, left: Node, at: int) -> Node:
        """Read what follows a word that asks something of a value."""
        if word == "between":
            low = self.sum()
            if self.word() != "and":
                self.refuse("BETWEEN takes two values: write BETWEEN 1 AND 9")
            self.at += 1
            return self.make("between", left, low, self.sum(), bare=True)
        if word == "in":
            self.expect("(", "IN takes a list in parentheses")
            if self.word() in {"select", "with"}:
                self.refuse("a subquery is not part of the filter language")
            return self.make(
                "in", left, *self.items(")", "IN takes at least one value", functions=False), bare=True
            )
        if word == "is":
            return self.is_what(left)
        name = "rlike" if word == "regexp" else word
        if name != "rlike" and self.word() in {"any", "all", "some"}:
            self.refuse(f"{word.upper()} {self.word().upper()} is not part of the filter language")
        pattern = self.sum()
        if not _is_text(pattern):
            self.refuse(f"{word.upper()} takes a pattern in quotes", at + 1)
        if name != "rlike" and self.take("escape"):
            escape = self.primary()
            if not _is_text(escape):
                self.refuse("ESCAPE takes one character in quotes")
            return self.checked(name, [left, pattern, escape], at)
        return self.checked(name, [left, pattern], at)

    def checked(self, name: str, parts: list[Node], at: int) -> Node:
        """Make a comparison with a pattern that is sound."""
        pattern = parts[1].literal.value if isinstance(parts[1], Value) else ""
        # A whole word is not looked for by a regular expression.
        word = name == "rlike" and isinstance(parts[0], Name) and one_word(str(pattern)) is not None
        wrong = "" if word else OPERATORS[name].check(parts)
        if wrong:
            self.wrong(f"{name.upper()}: {wrong}" if name == "rlike" else wrong, at + 1)
        return self.make(name, *parts, bare=True)

    def is_what(self, left: Node) -> Node:
        """Read what follows IS."""
        negated = self.take("not")
        if self.take("null"):
            found = self.make("is null", left, bare=True)
        elif self.take("distinct", "from"):
            found = self.make("<=>", left, self.sum(), bare=True)
            negated = not negated
        elif self.word() in _TRUTHS:
            wanted = _TRUTHS[self.word()]
            self.at += 1
            found = self.make("<=>", left, Value(Literal(LiteralType.BOOL, wanted)), bare=True)
        else:
            self.refuse("IS takes NULL, TRUE, FALSE or DISTINCT FROM")
        return self.make("not", found, bare=True) if negated else found

    def comparison(self) -> Node:
        """Read `a < b`."""
        at = self.at
        left = self.sum()
        sign = _SIGNS.get(self.kind() or TokenType.NULL)
        if sign is None:
            return left
        self.operand(left, at)
        self.at += 1
        at = self.at
        if self.kind() is TokenType.NOT:
            self.refuse("put parentheses around NOT here")
        right = self.operand(self.sum(), at)
        if self.kind() in _SIGNS:
            self.wrong("put parentheses around one of two comparisons", self.at)
        return self.make(sign, left, right, bare=True)

    def sum(self) -> Node:
        """Read sums, differences and joined texts, from left to right."""
        at = self.at
        found = self.product()
        while sign := _ADDING.get(self.kind() or TokenType.NULL):
            self.operand(found, at)
            self.at += 1
            at = self.at
            if self.word() == "interval" and sign != "||" and _is_time(found):
                found = self.make(SHIFT_CALL, found, self.interval(sign))
                continue
            found = self.make(sign, found, self.operand(self.product(), at))
        return found

    def product(self) -> Node:
        """Read products and quotients, from left to right."""
        at = self.at
        found = self.signed()
        while sign := _TIMES.get(self.kind() or TokenType.NULL):
            self.operand(found, at)
            self.at += 1
            at = self.at
            found = self.make(sign, found, self.operand(self.signed(), at))
        return found

    def signed(self) -> Node:
        """Read a minus or plus before a value; before a number a minus belongs to it."""
        if self.kind() is TokenType.PLUS:
            if self.kind(1) is not TokenType.NUMBER:
                self.refuse("a plus sign may stand before a number only")
            self.at += 1
        if self.kind() is not TokenType.DASH:
            return self.postfix()
        if self.kind(1) is TokenType.NUMBER:
            return self.postfix()
        self.at += 1
        self.deeper()
        at = self.at
        found = self.make("negative", self.operand(self.signed(), at))
        self.depth -= 1
        return found


def spark_text(text: str, *, timed: bool) -> str:
    """Write a sound filter for Spark, to which `:event_time` is the column `time` of a row, or nothing.

    >>> spark_text("a < :event_time AND b = ':event_time'", timed=True)
    "a < try_cast(time AS TIMESTAMP) AND b = ':event_time'"
    """
    tokens = _DIALECT.tokenize(text)
    written = f"try_cast({TIME if timed else 'NULL'} AS TIMESTAMP)"
    for colon, word in reversed([*pairwise(tokens)]):
        if colon.token_type is TokenType.COLON and word.text.lower() == "event_time":
            text = text[: colon.start] + written + text[word.end + 1 :]
    return text


def _is_time(node: Node) -> bool:
    """Tell whether a node is the event's time, or some time before or after it."""
    return isinstance(node, Call) and node.name in {TIME_CALL, SHIFT_CALL}


def _is_text(node: Node) -> bool:
    return isinstance(node, Value) and node.literal.type is LiteralType.STRING


def check_size(node: Node, text: str) -> None:
    """Refuse an expression with too many parts, or too deep: it is computed for every event."""
    count, deepest, stack = 0, 0, [(node, 1)]
    while stack:
        found, depth = stack.pop()
        count, deepest = count + 1, max(deepest, depth)
        stack += [(child, depth + 1) for child in children(found)]
    if count > MAX_NODES:
        reason = f"an expression has {count:,} parts, and at most {MAX_NODES} are computed for an event"
        raise FilterError(reason, text, None)
    if deepest > MAX_DEPTH:
        raise FilterError(f"an expression nests deeper than {MAX_DEPTH}", text, None)
