"""What stands between operators in expressions: literals, names, CASE and parentheses; and parts of these."""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError
from sqlglot.tokenizer_core import TokenType

from headgate.core.event import EVENT_TIME, TIME
from headgate.core.values import PRESENT, fold, part_of
from headgate.records.expressions import types
from headgate.records.expressions.calls import Calls
from headgate.records.expressions.functions import REFUSED
from headgate.records.expressions.model import (
    MAX_LAMBDAS,
    TIME_CALL,
    Cast,
    Lambda,
    Name,
    Node,
    Value,
    Variable,
)
from headgate.records.expressions.printing import INTERVALS
from headgate.records.language.literals import literal_of
from headgate.records.language.model import Literal, LiteralType
from headgate.records.language.refusal import MAX_LIST, MAX_NAME_PARTS

_DIALECT = Spark()
_RESERVED = frozenset(
    re.findall(
        r"\w+",
        """and any array as between case cast cross distinct else end escape except exists false for from
        full having ilike in inner intersect interval is join lateral like minus not null on or order
        outer regexp rlike select then true union using values when where with""",
    )
)
"""Words that are no names without backticks."""
_NO_FUNCTIONS = _RESERVED - {"array", "cast", "exists", "regexp", "rlike"}
_BARE_FUNCTIONS = {"current_date", "current_timestamp", "current_user", "session_user", "localtimestamp"}
"""What Spark takes for functions without parentheses."""
_MOMENT_WORDS = {"date", "timestamp", "timestamp_ltz"}
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)
_LONGEST_INTERVAL = 10**17
"""Microseconds: three thousand years."""


class Operands(Calls):
    """Reads what stands between operators."""

    def postfix(self) -> Node:
        """Read a value, and what is taken out of it."""
        found = self.primary()
        while True:
            if self.take("["):
                self.deeper()
                place = self.sum()
                self.depth -= 1
                self.expect("]", "a bracket is still open: write a[0]")
                found = self.make("element", found, place)
            elif self.kind() is TokenType.DOT and not isinstance(found, Name):
                self.at += 1
                field = Value(Literal(LiteralType.STRING, fold(self.part())))
                found = self.make("field", found, field)
            elif self.kind() is TokenType.DCOLON and self.written() == "::":
                self.at += 1
                found = Cast(found, self.type())
            else:
                return found

    def primary(self) -> Node:
        """Read a literal, a name, a call, CASE, CAST or parentheses."""
        kind, word = self.kind(), self.word()
        if kind is None:
            self.refuse(
                "a value or a condition is missing after this" if self.at else "there is no expression"
            )
        if kind is TokenType.L_PAREN:
            self.at += 1
            if self.word() in {"select", "with"}:
                self.refuse("a subquery is not part of the filter language")
            self.deeper()
            found = self.disjunction()
            self.depth -= 1
            self.expect(")", "a parenthesis is still open: close it here, or write AND or OR before this")
            self.bare.discard(id(found))
            return found
        if kind in {TokenType.NUMBER, TokenType.STRING, TokenType.RAW_STRING, TokenType.DASH}:
            return self.literal()
        if word in {"true", "false", "null"}:
            return self.literal()
        if word in _MOMENT_WORDS and self.kind(1) in {TokenType.STRING, TokenType.RAW_STRING}:
            return self.literal()
        if word == "case":
            return self.case()
        if word and self.kind(1) is TokenType.L_PAREN and word not in _NO_FUNCTIONS:
            return self.call(word)
        if kind is TokenType.IDENTIFIER or (word and word not in _RESERVED):
            return self.name()
        if kind is TokenType.COLON and self.word(1) == "event_time":
            return self.event_time()
        if word == "interval":
            self.wrong(
                "INTERVAL is not part of the filter language; date_add and add_months are, and only "
                ":event_time takes one",
                self.at,
            )
        if word:
            self.refuse(f"{self.written().upper()} cannot stand here; an attribute of that name is `{word}`")
        return self.refuse(f"{self.written()!r} is not part of the filter language here")

    def event_time(self) -> Node:
        """Read `:event_time`: the time of the event, else its attribute `time`, as a timestamp."""
        if self.settings.spelled((TIME,)) != (TIME,):
            self.wrong(":event_time is not known where case or dots are part of names: leave it out", self.at)
        self.at += 2
        given = Name(EVENT_TIME), Name((TIME,), (TIME,))
        return self.make(TIME_CALL, *(Cast(each, types.TIMESTAMP) for each in given))

    def interval(self, sign: str) -> Node:
        """Read what follows INTERVAL: microseconds, which a minus makes negative."""
        begin = self.at
        self.at += 1
        literal = self.primary() if self.kind() in {TokenType.NUMBER, TokenType.STRING} else None
        count = literal.literal.value if isinstance(literal, Value) else None
        unit = self.word().removesuffix("s")
        if isinstance(count, str) and _WHOLE.fullmatch(count):
            count = int(count)
        size = INTERVALS.get(unit, 0)
        if type(count) is not int or not size or abs(count) > _LONGEST_INTERVAL // size:
            self.wrong(
                "INTERVAL takes a whole number of days, hours, minutes or seconds, as in INTERVAL 1 DAY; for "
                "months there is add_months",
                begin,
            )
        self.at += 1
        micros = count * size
        return Value(Literal(LiteralType.INT, -micros if sign == "-" else micros), wide=True)

    def literal(self) -> Node:
        """Read a literal; sqlglot knows the forms of numbers and moments."""
        begin = self.at
        if self.kind() is TokenType.DASH or self.word() in _MOMENT_WORDS:
            self.at += 1
        number = self.kind() is TokenType.NUMBER
        string = self.kind() in {TokenType.STRING, TokenType.RAW_STRING}
        self.at += 1
        suffix = ""
        # The tokenizer splits 5L into 5, :: and L, all three at one place.
        if number and self.kind() is TokenType.DCOLON and self.written() != "::":
            suffix = self.tokens[self.at + 1].text.upper()
            self.at += 2
        if string and self.kind() in {TokenType.STRING, TokenType.RAW_STRING}:
            self.refuse("two strings stand side by side: write one, with \\' for a quote in it")
        try:
            trees = _DIALECT.parser().parse_into(exp.Condition, self.tokens[begin : self.at], self.text)
        except (ParseError, ArithmeticError):
            self.refuse("this is not a literal", begin)
        assert trees[0] is not None
        found = literal_of(trees[0], self.text)
        if suffix in {"S", "Y", "F"}:
            self.wrong(f"a number in an expression has no suffix {suffix}: write it without", begin)
        return Value(found, wide=suffix == "L")

    def part(self) -> str:
        """Read one part of a dotted name."""
        kind = self.kind()
        if kind is TokenType.IDENTIFIER:
            name = self.tokens[self.at].text
        elif self.word():
            name = self.written()
        else:
            self.refuse("a name is expected after this dot")
        self.at += 1
        return name

    def name(self) -> Node:
        """Read a dotted name: of an attribute, or of a variable and a field in it."""
        begin, quoted = self.at, self.kind() is TokenType.IDENTIFIER
        parts = [self.part()]
        variable = fold(parts[0]) in self.variables
        if not quoted and not variable and parts[0].lower() in _BARE_FUNCTIONS:
            self.wrong(f"{parts[0]} is not part of the filter language: {REFUSED[parts[0].lower()]}", begin)
        while not variable and self.kind() is TokenType.DOT:
            self.at += 1
            parts.append(self.part())
            if len(parts) > MAX_NAME_PARTS:
                self.refuse(f"the name has more than {MAX_NAME_PARTS} parts")
        if variable:
            return Variable(fold(parts[0]))
        spelled = self.settings.spelled(tuple(parts))
        return Name(tuple(map(part_of, spelled)), spelled)

    def present(self, begin: int) -> Node:
        """Read what `present` is asked about: an attribute, by its name."""
        if not (self.kind() is TokenType.IDENTIFIER or (self.word() and self.word() not in _RESERVED)):
            self.wrong("present takes one attribute", begin)
        found = self.name()
        if not self.take(")") or not isinstance(found, Name):
            self.wrong("present takes one attribute", begin)
        return Name((PRESENT, *found.path), (PRESENT, *found.spelled))

    def items(self, end: str, why: str, *, functions: bool = True) -> list[Node]:
        """Read values between commas, and the sign that ends them."""
        if self.take(end):
            self.refuse(why, self.at - 1)
        found = [self.item(functions=functions)]
        while self.take(","):
            if len(found) >= MAX_LIST:
                self.refuse(f"the list is longer than {MAX_LIST:,}")
            found.append(self.item(functions=functions))
        self.expect(end, f"a comma or {end} is missing before this")
        return found

    def item(self, *, functions: bool = False) -> Node:
        """Read one argument: an expression, or a function of an element."""
        if (
            functions
            and self.kind(1) is TokenType.ARROW
            and (self.word() or self.kind() is TokenType.IDENTIFIER)
        ):
            variable = fold(self.part())
            self.at += 1
            self.variables.append(variable)
            if len(self.variables) > MAX_LAMBDAS:
                self.wrong(f"functions of elements nest deeper than {MAX_LAMBDAS}", self.at)
            body = self.disjunction()
            self.variables.pop()
            return Lambda(variable, body)
        self.deeper()
        found = self.disjunction()
        self.depth -= 1
        self.bare.discard(id(found))
        return found

    def case(self) -> Node:
        """Read CASE; `CASE a WHEN 1` is `CASE WHEN a = 1`."""
        begin = self.at
        self.at += 1
        subject = None if self.word() == "when" else self.item()
        parts: list[Node] = []
        while self.take("when"):
            when = self.item()
            self.expect("then", "THEN is missing before this")
            parts += [when if subject is None else self.make("=", subject, when), self.item()]
        if not parts:
            self.refuse("CASE takes WHEN … THEN …", begin)
        if self.take("else"):
            parts.append(self.item())
        self.expect("end", "END is missing before this")
        return self.make("case", *parts)
