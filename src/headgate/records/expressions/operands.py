"""What stands between operators in expressions: literals, names, CASE and parentheses; and parts of these."""

from __future__ import annotations

import re

from headgate.core.event import EVENT_TIME, TIME
from headgate.core.values import PRESENT, fold, part_of
from headgate.records.expressions import model, types
from headgate.records.expressions.calls import Calls
from headgate.records.expressions.functions import REFUSED
from headgate.records.expressions.printing import INTERVALS
from headgate.records.expressions.reader import NO_OPERAND, NO_VALUE, SIGNS
from headgate.records.language.lexing import (
    BARE_FUNCTIONS,
    END,
    NUMBER,
    QUOTED,
    RESERVED,
    STRING,
    STRINGS,
    is_word,
)
from headgate.records.language.limits import MAX_LIST, MAX_NAME_PARTS
from headgate.records.language.literals import LiteralError, moment_of, number_of, string_of, suffix_of
from headgate.records.language.model import NULL, Literal, LiteralType

_CALLED = {"array", "exists", "regexp", "rlike"}
"""Those of them, and others, that are functions before a parenthesis."""
_INFIX = frozenset({"and", "or", "is", "in", "like", "ilike", "rlike", "regexp", "between", "escape"})
_CONSTANTS = {
    "true": Literal(LiteralType.BOOL, True),
    "false": Literal(LiteralType.BOOL, False),
    "null": NULL,
}
_MOMENTS = {
    "date": LiteralType.DATE,
    "timestamp": LiteralType.TIMESTAMP,
    "timestamp_ltz": LiteralType.TIMESTAMP,
}
_OTHER_MOMENTS = {"timestamp_ntz", "timestamptz", "timestampltz", "datetime", "time"}
_OTHER_TEXTS = {"n": "N'…'", "x": "a hexadecimal literal", "b": "a binary literal"}
_HEXADECIMAL = re.compile(r"0x[0-9a-f]+")
_EXPONENT = re.compile(r"[0-9]+e")
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)
_LONGEST_INTERVAL = 10**17
"""Microseconds: three thousand years."""
_PARTS = {"[", ".", "::"}


class Operands(Calls):
    """Reads what stands between operators."""

    def operand(self) -> model.Node:
        """Read a value, and what is taken out of it."""
        return self.postfix(self.primary())

    def postfix(self, node: model.Node) -> model.Node:
        """Read what is taken out of a value."""
        while self.keys[self.at] in _PARTS:
            if self.take("["):
                self.deeper()
                element = self.expression(5)
                self.depth -= 1
                self.expect("]", "a bracket is still open: write a[0]")
                node = self.make("element", node, element)
            elif self.take("."):
                node = self.make("field", node, model.Value(Literal(LiteralType.STRING, fold(self.part()))))
            else:
                self.at += 1
                node = model.Cast(node, self.type())
        return node

    def primary(self) -> model.Node:
        """Read a literal, a name, a call, CASE, CAST or parentheses."""
        at, key = self.at, self.keys[self.at]
        if key == NUMBER:
            return self.number(at)
        if key in STRINGS:
            self.at += 1
            self.one_string()
            return self.placed(model.Value(Literal(LiteralType.STRING, self.string(at))), at)
        if key == "(":
            self.at += 1
            self.deeper()
            node = self.expression()
            self.close()
            self.depth -= 1
            return node
        if key == QUOTED:
            return self.name()
        if is_word(key):
            return self.word(key, at)
        return self.no_operand(key)

    def one_string(self) -> None:
        """Refuse a string behind another."""
        if self.keys[self.at] in STRINGS:
            self.refuse("two strings stand side by side: write one, with \\' for a quote in it")

    def word(self, key: str, at: int) -> model.Node:
        """Read what begins with a word."""
        following = self.keys[at + 1]
        if key in _CONSTANTS:
            self.at += 1
            return self.placed(model.Value(_CONSTANTS[key]), at)
        if key == "case":
            return self.case()
        if following in STRINGS:
            return self.moment(key)
        if following == "(" and (key in _CALLED or key not in RESERVED):
            return self.placed(self.call(key), at)
        if key not in RESERVED:
            return self.name()
        return self.reserved(key)

    def no_operand(self, key: str) -> model.Node:
        """Refuse a sign, or the end, where a value is expected."""
        if key == ":" and self.keys[self.at + 1] == "event_time":
            return self.event_time()
        if key == END:
            if self.at and self.keys[self.at - 1] == "(":
                self.refuse("a parenthesis is still open at the end")
            self.refuse(
                NO_VALUE if self.at else "the filter holds no expression: write TRUE to match every event",
                self.at - 1,
            )
        if key == "." and self.keys[self.at + 1] == NUMBER:
            self.refuse("a number is cut in two by a blank or a comment")
        if key == ",":
            self.refuse("a literal is missing before this comma")
        if key == ")" and not self.depth:
            self.misplaced()
        if key in SIGNS or key in {")", "]"}:
            self.refuse(NO_OPERAND)
        return self.refuse_sign()

    def reserved(self, key: str) -> model.Node:
        """Refuse a word that is no name."""
        written = self.texts[self.at]
        if key in _INFIX:
            name = "" if key in {"and", "or"} else f"; an attribute of that name is `{written}`"
            self.refuse(f"nothing stands before {written}{name}")
        if key == "interval":
            self.refuse(
                "INTERVAL is not part of the filter language; date_add and add_months are, and only "
                ":event_time takes one"
            )
        if key in {"select", "with"} and self.at and self.keys[self.at - 1] == "(":
            self.refuse("a subquery is not part of the filter language")
        if key == "select":
            self.refuse_query()
        if key == "array":
            self.refuse(
                f"types are not part of the filter language; an attribute of that name is `{written}`"
            )
        meant = f"an attribute of that name is `{written}`"
        return self.refuse(f"{written.upper()} is not part of the filter language here; {meant}")

    def event_time(self) -> model.Node:
        """Read `:event_time`: the time of the event, else its attribute `time`, as a timestamp."""
        if self.settings.spelled((TIME,)) != (TIME,):
            self.refuse(":event_time is not known where case or dots are part of names: leave it out")
        self.at += 2
        given = model.Name(EVENT_TIME), model.Name((TIME,), (TIME,))
        return self.make(model.TIME_CALL, *(model.Cast(each, types.TIMESTAMP) for each in given))

    def interval(self, sign: str) -> model.Node:
        """Read what follows INTERVAL: microseconds, which a minus makes negative."""
        begin = self.at
        self.at += 1
        literal = self.primary() if self.keys[self.at] in {NUMBER, STRING} else None
        count = literal.literal.value if isinstance(literal, model.Value) else None
        unit = self.keys[self.at].removesuffix("s")
        if isinstance(count, str) and _WHOLE.fullmatch(count):
            count = int(count)
        size = INTERVALS.get(unit, 0)
        if type(count) is not int or not size or abs(count) > _LONGEST_INTERVAL // size:
            self.refuse(
                "INTERVAL takes a whole number of days, hours, minutes or seconds, as in INTERVAL 1 DAY; for "
                "months there is add_months",
                begin,
            )
        self.at += 1
        micros = count * size
        return model.Value(Literal(LiteralType.INT, -micros if sign == "-" else micros), wide=True)

    def number(self, at: int, *, negative: bool = False) -> model.Value:
        """Read a number."""
        written = self.texts[at]
        self.at = at + 1
        try:
            literal = number_of(written, negative=negative)
        except LiteralError as error:
            self.refuse(str(error), at)
        last = written[-1]
        if last.isdigit() or last == ".":
            value = model.Value(literal)
        else:
            suffix = suffix_of(written)
            narrow = suffix in {"S", "Y", "F"}
            value = (
                model.Narrow(literal, start=self.start(at))
                if narrow
                else model.Value(literal, wide=suffix == "L")
            )
        self.places[id(value)] = value, at
        return value

    def string(self, at: int) -> str:
        """Read the text of a token in quotes."""
        try:
            return string_of(self.texts[at])
        except LiteralError as error:
            self.refuse(str(error), at)

    def moment(self, key: str) -> model.Node:
        """Read a word before a text: DATE or TIMESTAMP."""
        at = self.at
        if key in _MOMENTS:
            self.at += 2
            self.one_string()
            try:
                return self.placed(model.Value(moment_of(self.string(at + 1), _MOMENTS[key])), at + 1)
            except LiteralError as error:
                self.refuse(str(error), at + 1)
        written = self.texts[at]
        if key in _OTHER_MOMENTS:
            self.refuse(f"{written} is not part of the filter language: write TIMESTAMP '…'")
        if key in _OTHER_TEXTS and self.start(at + 1) == self.start(at) + len(written):
            self.refuse(f"{_OTHER_TEXTS[key]} is not part of the filter language: write '…'")
        return self.reserved(key) if key in RESERVED else self.name()

    def part(self) -> str:
        """Read one part of a dotted name."""
        at, key = self.at, self.keys[self.at]
        written = self.texts[at]
        if key == QUOTED:
            self.at += 1
            return written[1:-1].replace("``", "`")
        if not is_word(key):
            cut_number = key == NUMBER and self.texts[at - 1] == "."
            self.refuse(
                "a number is cut in two by a blank or a comment"
                if cut_number
                else "a name is missing after this dot",
                at - 1,
            )
        if not written.isascii():
            self.refuse(f"the name {written} needs backticks: `{written}`")
        if "0" <= key[0] <= "9":
            if _HEXADECIMAL.fullmatch(key):
                self.refuse("a hexadecimal literal is not part of the filter language: write '…'")
            if _EXPONENT.fullmatch(key):
                self.refuse(f"{written} is not a number")
        self.at += 1
        return written

    def name(self) -> model.Node:
        """Read a dotted name: of an attribute, or of a variable and a field in it."""
        begin = self.at
        first = self.part()
        if self.variables and fold(first) in self.variables:
            return self.placed(model.Variable(fold(first)), begin)
        if self.keys[begin] in BARE_FUNCTIONS:
            self.refuse(f"{first} is not part of the filter language: {REFUSED[first.lower()]}", begin)
        if self.keys[begin] == "timestamp" and self.keys[self.at] in {"with", "without"}:
            word = f"{first} {self.texts[self.at]}"
            self.refuse(f"{word} is not part of the filter language: write TIMESTAMP '…'", begin)
        parts = [first]
        while self.keys[self.at] == ".":
            self.at += 1
            parts.append(self.part())
            if len(parts) > MAX_NAME_PARTS:
                self.refuse(f"the name has more than {MAX_NAME_PARTS} parts")
        spelled = self.settings.spelled(tuple(parts))
        name = model.Name(tuple(map(part_of, spelled)), spelled)
        self.places[id(name)] = name, begin
        return name

    def present(self, begin: int) -> model.Node:
        """Read what `present` is asked about: an attribute, by its name."""
        if not self.name_next() or self.keys[self.at] in RESERVED:
            self.refuse("present takes one attribute", begin)
        name = self.name()
        if not self.take(")") or not isinstance(name, model.Name):
            self.refuse("present takes one attribute", begin)
        return model.Name((PRESENT, *name.path), (PRESENT, *name.spelled))

    def items(self, why: str = "", *, functions: bool = True) -> list[model.Node]:
        """Read values between commas, and the parenthesis that ends them; `why` there must be a value."""
        if self.take(")"):
            if why:
                self.refuse(why, self.at - 1)
            return []
        nodes = [self.item(functions=functions)]
        while self.take(","):
            if len(nodes) >= MAX_LIST:
                self.refuse(f"the list is longer than {MAX_LIST:,}", self.at - 1)
            if self.keys[self.at] == ")":
                self.refuse("a literal is missing after this comma", self.at - 1)
            if self.keys[self.at] == "all" and (
                is_word(self.keys[self.at + 1]) or self.keys[self.at + 1] == NUMBER
            ):
                self.refuse("ALL may stand before the first argument only; `all` is an attribute")
            nodes.append(self.item(functions=functions))
        self.close()
        return nodes

    def item(self, *, functions: bool = False) -> model.Node:
        """Read one argument: an expression, or a function of an element."""
        if functions and self.keys[self.at + 1] == "->" and self.name_next():
            variable = fold(self.part())
            self.at += 1
            self.variables.append(variable)
            if len(self.variables) > model.MAX_LAMBDAS:
                self.refuse(f"functions of elements nest deeper than {model.MAX_LAMBDAS}")
            body = self.expression()
            self.variables.pop()
            return model.Lambda(variable, body)
        self.deeper()
        node = self.expression()
        self.depth -= 1
        return node

    def case(self) -> model.Node:
        """Read CASE; `CASE a WHEN 1` is `CASE WHEN a = 1`."""
        begin = self.at
        self.at += 1
        subject = None if self.keys[self.at] == "when" else self.item()
        parts: list[model.Node] = []
        while self.take("when"):
            when = self.item()
            self.expect("then", "THEN is missing before this")
            parts += [when if subject is None else self.make("=", subject, when), self.item()]
        if not parts:
            self.refuse("CASE takes WHEN … THEN …", begin)
        if self.take("else"):
            parts.append(self.item())
        if self.keys[self.at] == END:
            self.refuse("CASE is still open at the end: write END")
        self.expect("end", "END is missing before this")
        return self.placed(self.make("case", *parts), begin)
