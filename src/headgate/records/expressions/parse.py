"""Expression text to the tree: operators, by how tightly they bind, over the tokens of `language/lexing.py`.

The order is that of Spark's grammar; where that order surprises (a comparison of a comparison), parentheses
are asked for. `printing` must write what is read here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.event import TIME
from headgate.errors import FilterError
from headgate.records.expressions import model
from headgate.records.expressions.functions import OPERATORS
from headgate.records.expressions.operands import Operands
from headgate.records.expressions.reader import NO_VALUE
from headgate.records.language.lexing import END, NUMBER, STRINGS, cut, is_word, starts
from headgate.records.language.limits import MAX_CLAUSES, MAX_DEPTH
from headgate.records.language.model import Literal, LiteralType
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from headgate.records.names import NameSettings

OR, AND, NOT, ASKED, COMPARED, ADDED, TIMES = 1, 2, 3, 4, 5, 6, 7
"""How tightly operators bind, the loosest first."""
_POWERS = {
    "or": OR,
    "and": AND,
    **dict.fromkeys(("not", "!", "between", "in", "like", "ilike", "rlike", "regexp", "is"), ASKED),
    **dict.fromkeys(("=", "==", "!=", "<>", "<", "<=", ">", ">=", "<=>"), COMPARED),
    **dict.fromkeys(("+", "-", "||"), ADDED),
    **dict.fromkeys(("*", "/", "%", "div"), TIMES),
}
_NAMES = {"==": "=", "<>": "!=", "regexp": "rlike"}
"""Operators that are other names."""
_NEGATABLE = {"between", "in", "like", "ilike", "rlike", "regexp"}
_PATTERNS = {"like", "ilike"}
_QUANTIFIERS = {"any", "some", "all"}
_TRUTHS = {"true": True, "false": False}
_NOTS = {"not", "!"}
_PREFIXES = _NOTS | {"-", "+"}
_BARE = "put parentheses around this comparison: it is an operand of another operator"
_TWO = "put parentheses around one of two comparisons"


def parse_node(text: str, settings: NameSettings = USUAL) -> model.Node:
    """Parse an expression of attributes, functions and operators; refuse what is none, with its place.

    >>> parse_node("price * 2").name
    '*'
    >>> parse_node("trimm(a)")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: there is no function trimm (did you mean trim?), at character 1: ⟪trimm(a)
    """
    return Parser(text, settings).whole()


class Parser(Operands):
    """Reads operators and conditions."""

    def whole(self) -> model.Node:
        """Read all tokens."""
        if self.keys[0] == END:
            raise FilterError(
                "the filter holds no expression: write TRUE to match every event", self.text, None
            )
        node = self.expression()
        if self.keys[self.at] != END:
            self.misplaced()
        return node

    def expression(self, floor: int = 0) -> model.Node:
        """Read operands, and operators that bind tighter than `floor`."""
        keys, begin = self.keys, self.at
        left = self.prefix(floor)
        # How tightly the comparison binds that it is, without parentheses: such is no operand.
        bare = 0
        while True:
            at = self.at
            key = keys[at]
            power = _POWERS.get(key, 0)
            if power <= floor:
                return left
            if power <= AND:
                left, bare = self.joined(key, left, power), 0
                continue
            if bare and not (key in _NOTS and keys[at + 1] not in _NEGATABLE):
                self.refuse(_TWO, at) if bare == power == COMPARED else self.refuse(_BARE, begin)
            self.at += 1
            if power == COMPARED:
                left, bare = model.Call(_NAMES.get(key, key), (left, self.expression(COMPARED))), COMPARED
            elif power == ASKED:
                left, bare = self.asked(key, left, begin), ASKED
            elif keys[self.at] == "interval" and key != "||" and _is_time(left):
                left = self.make(model.SHIFT_CALL, left, self.interval(key))
            else:
                left = model.Call(key, (left, self.expression(power)))

    def joined(self, key: str, left: model.Node, power: int) -> model.Node:
        """Read parts with AND or OR between them."""
        parts = [left]
        while self.keys[self.at] == key:
            self.at += 1
            self.clauses += 1
            if self.clauses >= MAX_CLAUSES:
                self.refuse(f"the filter has more than {MAX_CLAUSES:,} clauses", self.at - 1)
            parts.append(self.expression(power))
        return model.Call(key, tuple(parts))

    def prefix(self, floor: int) -> model.Node:
        """Read an operand, with NOT or signs before it."""
        key = self.keys[self.at]
        if key not in _PREFIXES:
            return self.operand()
        if key in _NOTS:
            if floor >= ASKED:
                self.refuse("put parentheses around NOT here")
            signs = self.run(_NOTS)
            node = self.expression(NOT)
            name = "not"
        else:
            begin = self.at
            self.run({"-", "+"})
            signs, name = self.keys[begin : self.at].count("-"), "negative"
            if self.keys[self.at] == NUMBER and self.keys[self.at - 1] == "-":
                # A minus that stands before a number belongs to it.
                node = self.postfix(self.number(self.at, negative=True))
                signs -= 1
            elif self.keys[self.at] != NUMBER and "+" in self.keys[begin : self.at]:
                self.refuse("a plus sign may stand before a number only", self.at - 1)
            else:
                node = self.operand()
        for _ in range(signs):
            node = model.Call(name, (node,))
        return node

    def run(self, signs: set[str]) -> int:
        """Step over signs, one after another."""
        begin = self.at
        while self.keys[self.at] in signs:
            self.at += 1
            if self.depth + self.at - begin > MAX_DEPTH:
                self.refuse(f"the filter nests deeper than {MAX_DEPTH}")
        return self.at - begin

    def asked(self, key: str, left: model.Node, begin: int) -> model.Node:
        """Read what follows a word that asks something of a value."""
        at = self.at - 1
        negated = key in {"not", "!"}
        if negated:
            key = self.keys[self.at]
            if key == END:
                self.refuse(NO_VALUE, at)
            if key not in _NEGATABLE or self.keys[at] == "!":
                self.refuse("NOT stands before IN, LIKE, BETWEEN or a whole expression", at)
            self.at += 1
        if self.keys[self.at] == END:
            self.refuse(NO_VALUE, self.at - 1)
        if key == "between":
            node = self.between(left)
        elif key == "in":
            node = self.among(left, begin)
        elif key == "is":
            node = self.is_what(left)
        elif self.keys[self.at] in _QUANTIFIERS and self.keys[self.at + 1] == "(" and key in _PATTERNS:
            node = self.quantified(key, left, negated=negated)
        else:
            node = self.like(key, left)
        return model.Call("not", (node,)) if negated else node

    def between(self, left: model.Node) -> model.Node:
        """Read what follows BETWEEN."""
        low = self.expression(COMPARED)
        if self.keys[self.at] == END:
            self.refuse("BETWEEN takes two values: write BETWEEN 1 AND 9", self.at - 1)
        if not self.take("and"):
            self.misplaced()
        return model.Call("between", (left, low, self.expression(COMPARED)))

    def among(self, left: model.Node, begin: int) -> model.Node:
        """Read what follows IN."""
        self.expect("(", "IN takes a list in parentheses")
        if self.keys[self.at] in {"select", "with"}:
            self.refuse("a subquery is not part of the filter language")
        if self.keys[self.at] == ")":
            self.refuse("IN takes at least one literal", begin)
        return model.Call("in", (left, *self.items(functions=False)))

    def is_what(self, left: model.Node) -> model.Node:
        """Read what follows IS."""
        if self.keys[self.at] == "!":
            self.refuse("'!' stands before a whole expression only; write IS NOT NULL")
        negated = self.take("not")
        key = self.keys[self.at]
        self.at += 1
        if key in {"null", "unknown"}:
            node = model.Call("is null", (left,))
        elif key in _TRUTHS:
            node = model.Call("<=>", (left, model.Value(Literal(LiteralType.BOOL, _TRUTHS[key]))))
        elif key == "distinct" and self.take("from"):
            node = model.Call("<=>", (left, self.expression(COMPARED)))
            negated = not negated
        else:
            self.refuse("IS takes NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM", self.at - 1)
        return model.Call("not", (node,)) if negated else node

    def like(self, key: str, left: model.Node) -> model.Node:
        """Read the pattern behind LIKE, ILIKE or RLIKE."""
        name, at = _NAMES.get(key, key), self.at
        parts = [left, self.pattern(key)]
        if name != "rlike" and self.take("escape"):
            escape = self.keys[self.at] in STRINGS and self.primary()
            if not escape:
                self.refuse("ESCAPE takes one character in quotes")
            parts.append(escape)
        wrong = OPERATORS[name].check(parts)
        if wrong:
            self.refuse(f"{name.upper()}: {wrong}" if name == "rlike" else wrong, at)
        return model.Call(name, tuple(parts))

    def quantified(self, key: str, left: model.Node, *, negated: bool) -> model.Node:
        """Read `LIKE ANY ('x%', 'y%')`: one pattern, or ALL of them; NOT is said of each."""
        word = self.keys[self.at]
        self.at += 2
        begin, tests = self.at, []
        for pattern in self.items(
            f"{key.upper()} {word.upper()} takes at least one pattern", functions=False
        ):
            parts = (left, pattern)
            wrong = OPERATORS[key].check(parts)
            if wrong:
                begins = self.places.get(id(pattern), (pattern, begin))[1]
                self.refuse(wrong if _is_text(pattern) else f"{key.upper()} takes patterns in quotes", begins)
            tests.append(model.Call(key, parts))
        name = "and" if (word == "all") is not negated else "or"
        return tests[0] if len(tests) == 1 else model.Call(name, tuple(tests))

    def pattern(self, key: str) -> model.Node:
        """Read a pattern: a text in quotes."""
        at, first = self.at, self.keys[self.at]
        if first in STRINGS or first == "(":
            node = self.expression(COMPARED)
            if _is_text(node):
                return node
        if first in _QUANTIFIERS and key in _PATTERNS:
            self.refuse(
                f"{first.upper()} takes patterns in parentheses: write {key.upper()} ANY ('x%', 'y%')", at
            )
        if first in _QUANTIFIERS and self.keys[at + 1] == "(":
            name, sign = key.upper(), "AND" if first == "all" else "OR"
            self.refuse(f"{name} takes one pattern: write a {name} 'x' {sign} a {name} 'y'", at)
        if is_word(first) and self.keys[at + 1] == "%":
            self.refuse(
                "'%' is not part of the filter language: a pattern stands in quotes, as in LIKE 'a%'", at + 1
            )
        meant = f" (did you mean '{self.texts[at]}', in quotes?)" if is_word(first) else ""
        return self.refuse(f"{key.upper()} takes a pattern in quotes{meant}", at)


def spark_text(text: str, *, timed: bool) -> str:
    """Write a sound filter for Spark, to which `:event_time` is the column `time` of a row, or nothing.

    >>> spark_text("a < :event_time AND b = ':event_time'", timed=True)
    "a < try_cast(time AS TIMESTAMP) AND b = ':event_time'"
    """
    keys, begins = cut(text).keys, starts(text)
    written = f"try_cast({TIME if timed else 'NULL'} AS TIMESTAMP)"
    for at in range(len(keys) - 1, 0, -1):
        if keys[at - 1] == ":" and keys[at] == "event_time":
            text = text[: begins[at - 1]] + written + text[begins[at] + len("event_time") :]
    return text


def _is_time(node: model.Node) -> bool:
    """Tell whether a node is the event's time, or some time before or after it."""
    return isinstance(node, model.Call) and node.name in {model.TIME_CALL, model.SHIFT_CALL}


def _is_text(node: model.Node) -> bool:
    return isinstance(node, model.Value) and node.literal.type is LiteralType.STRING


def check_size(node: model.Node, text: str) -> None:
    """Refuse an expression with too many parts, or too deep: it is computed for every event."""
    count, deepest, stack = 0, 0, [(node, 1)]
    while stack:
        part, depth = stack.pop()
        if isinstance(part, model.Narrow):
            raise FilterError(
                "a number in an expression has no suffix S, Y or F: write it without", text, part.start
            )
        count, deepest = count + 1, max(deepest, depth)
        stack += [(child, depth + 1) for child in model.children(part)]
    if count > model.MAX_NODES:
        reason = f"an expression has {count:,} parts, and at most {model.MAX_NODES} are computed for an event"
        raise FilterError(reason, text, None)
    if deepest > model.MAX_DEPTH:
        raise FilterError(f"an expression nests deeper than {model.MAX_DEPTH}", text, None)
