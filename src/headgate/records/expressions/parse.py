"""Expression text to the tree, by recursive descent over sqlglot's tokens.

sqlglot's own parser turns functions into others of its own, and orders some operators in another way than
Spark does. So expressions are read here, in the order of Spark's grammar; where that order surprises (a
comparison of a comparison), parentheses are asked for. `printing` must write what is read here.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import TokenType

from headgate.core.event import EVENT_TIME, TIME
from headgate.core.likeliest import likeliest
from headgate.core.text.words import one_word
from headgate.core.values import PRESENT, fold, part_of
from headgate.errors import FilterError
from headgate.records.expressions import types
from headgate.records.expressions.functions import ALIASES, FUNCTIONS, OPERATORS, REFUSED
from headgate.records.expressions.model import (
    MAX_DEPTH,
    MAX_LAMBDAS,
    MAX_NESTING,
    MAX_NODES,
    SHIFT_CALL,
    TIME_CALL,
    Call,
    Cast,
    Lambda,
    Name,
    Node,
    Value,
    Variable,
    children,
)
from headgate.records.expressions.printing import COMPARISONS, INTERVALS
from headgate.records.language.literals import literal_of
from headgate.records.language.model import Literal, LiteralType
from headgate.records.language.refusal import MAX_CLAUSES, MAX_LIST, MAX_NAME_PARTS, check_gaps, check_text
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlglot.tokenizer_core import Token

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
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
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
_BARE_FUNCTIONS = {"current_date", "current_timestamp", "current_user", "session_user", "localtimestamp"}
"""What Spark takes for functions without parentheses."""
_MOMENT_WORDS = {"date", "timestamp", "timestamp_ltz"}
_LOOSE = COMPARISONS | {"and", "or", "not", "in", "like", "ilike", "rlike", "is null", "between"}
_TRUTHS = {"true": True, "false": False}
_WHOLE = re.compile(r"\s*[+-]?[0-9]{1,18}\s*", re.ASCII)
_LONGEST_INTERVAL = 10**17
"""Microseconds: three thousand years."""


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


class Parser:
    """Reads tokens from left to right; a method for each level of the grammar."""

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

    def whole(self) -> Node:
        """Read all tokens."""
        if not self.tokens:
            raise FilterError("there is no expression", self.text, None)
        found = self.disjunction()
        if self.at < len(self.tokens):
            self.refuse(f"{self.written()!r} cannot stand here")
        return found

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

    def present(self, begin: int) -> Node:
        """Read what `present` is asked about: an attribute, by its name."""
        if not (self.kind() is TokenType.IDENTIFIER or (self.word() and self.word() not in _RESERVED)):
            self.wrong("present takes one attribute", begin)
        found = self.name()
        if not self.take(")") or not isinstance(found, Name):
            self.wrong("present takes one attribute", begin)
        return Name((PRESENT, *found.path), (PRESENT, *found.spelled))

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
