"""Filter text to the model, through sqlglot's Spark dialect.

sqlglot accepts far more than the language: what is not translated here is refused, with its place.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, NoReturn

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from headgate.core.casts import INT64_MAX, INT64_MIN
from headgate.core.text.words import one_word
from headgate.core.values import PRESENT
from headgate.errors import FilterError
from headgate.records.language import patterns
from headgate.records.language.literals import EXPONENT, fits_one_decimal, literal_of
from headgate.records.language.model import (
    NULL,
    And,
    ArrayContains,
    ArraysOverlap,
    Attribute,
    Between,
    Comparison,
    Constant,
    Expression,
    ForAll,
    HasWord,
    In,
    IsNull,
    Like,
    Literal,
    LiteralType,
    Not,
    Op,
    Or,
    Truth,
    common_type,
)
from headgate.records.language.printing import KEYWORDS
from headgate.records.language.refusal import check_gaps, check_text, check_tokens, refusal
from headgate.records.names import USUAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headgate.records.names import NameSettings

_DIALECT = Spark()
_OPS: dict[type[exp.Expr], Op] = {
    exp.EQ: Op.EQ,
    exp.NEQ: Op.NE,
    exp.LT: Op.LT,
    exp.LTE: Op.LE,
    exp.GT: Op.GT,
    exp.GTE: Op.GE,
    exp.NullSafeEQ: Op.NULL_SAFE_EQ,
}
_CONNECTIVES = {"and", "or", "not", "is", "in", "like", "between", "null", "true", "false", "xor"}
# The lines that sqlglot counts; str.splitlines knows more ends of lines.
_LINES = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_MIRROR = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE}
_ONE_WORD = (
    r"RLIKE takes one whole word in any case, as in '(?i)\\bword\\b'; LIKE and ILIKE take other patterns"
)
_LAMBDAS = "forall takes an attribute and x -> x IN ('…', …), x -> x = '…' or x -> x IS NULL OR x IN ('…', …)"


def parse_filter(text: str, settings: NameSettings = USUAL) -> Expression:
    """Parse a Spark SQL Boolean expression; refuse what the language lacks, with position and reason.

    `settings` are for texts as they come in: those that an index keeps say by themselves what names mean.

    Time grows with the length of the text, about 0.15 ms for 150 characters.

    >>> parse_filter("age > 30").op
    <Op.GT: '>'>
    >>> parse_filter("age + 1 > 30").attribute.expression.text
    'age + 1'
    >>> parse_filter("a =")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: a value or a condition is missing after this, at character 3: a ⟪=
    """
    try:
        tree = parse_tree(text)
        if tree is None:
            raise FilterError("the filter holds no expression: write TRUE to match every event", text, None)
        return Translator(text, settings).expression(tree)
    except FilterError as plain:
        return _with_expressions(text, plain, settings)


_LIMITS = ("this clause never ends", "nests deeper than", "more than")
_LACKING = "not part of the filter language"


def _with_expressions(text: str, plain: FilterError, settings: NameSettings) -> Expression:
    """Parse a filter that has more than names and literals; where that fails too, give the better reason."""
    from headgate.records.expressions.parse import Parser
    from headgate.records.language.conditions import Conditions

    try:
        check_text(text)
        tokens = _DIALECT.tokenize(text)
        check_gaps(tokens, text)
        parser = Parser(text, tokens, settings)
    except (FilterError, TokenError):
        raise plain from None
    try:
        node = parser.whole()
    except FilterError as refused:
        bounded = any(each in plain.reason for each in _LIMITS)
        raise (refused if parser.sure and not bounded else plain) from None
    try:
        return Conditions(text).filter(node)
    except FilterError as refused:
        # The first reason has its place, unless it is that expressions are unknown to it.
        raise (refused if _LACKING in plain.reason else plain) from None


def parse_tree(text: str) -> exp.Expr | None:
    """Parse a text to sqlglot's tree, within the limits; None if there is nothing but comments."""
    check_text(text)
    try:
        tokens = _DIALECT.tokenize(text)
    except TokenError:
        reason = "a quote or a comment is still open at the end; write \\' for a quote inside a text"
        raise FilterError(reason, text, len(text)) from None
    check_tokens(_signs(tokens) if "->" in text else tokens, text)
    try:
        # As a condition, not as a statement: an attribute may be called comment, set or call.
        trees = _DIALECT.parser().parse_into(exp.Condition, tokens, text)
    except ParseError as error:
        _refuse_syntax(error, text)
    except IndexError:
        # MAP(1): the parser takes keys and values for pairs, whatever their number.
        raise FilterError("not a Boolean expression of the filter language", text, None) from None
    except ArithmeticError:
        # It makes a decimal of 1e99999999999999999999BD.
        raise FilterError(EXPONENT, text, None) from None
    return trees[0] if len(trees) == 1 else None


def _signs(tokens: Sequence[Token]) -> list[Token]:
    """Show the arrow of `f(a, x -> …)` to the checks as a sign that they know; they refuse every other one.

    Behind a comma only: there a clause begins, so that a text cannot nest arrows without parentheses.
    """
    found = list(tokens)
    for place, token in enumerate(tokens[2:], 2):
        if token.token_type is TokenType.ARROW and tokens[place - 2].token_type is TokenType.COMMA:
            found[place] = Token(
                TokenType.EQ, token.text, token.line, token.col, token.start, token.end, token.comments
            )
    return found


def _refuse_syntax(error: ParseError, text: str) -> NoReturn:
    if not error.errors:
        raise FilterError(f"not a Boolean expression: {error}", text, None) from None
    first = error.errors[0]
    lines = _LINES.findall(text)
    line, column = first.get("line") or 1, first.get("col") or 1
    # sqlglot counts columns to the token's end.
    end = sum(map(len, lines[: line - 1])) + column
    start = max(0, min(end, len(text)) - len(first.get("highlight") or " "))
    word = text[start : min(end, len(text))]
    reason = _lack(text[:start], word, text[end:])
    if reason is not None:
        raise FilterError(reason, text, start) from None
    hint = f"; if {word} is an attribute, write `{word}`" if word.lower() in KEYWORDS - _CONNECTIVES else ""
    raise FilterError(f"not a Boolean expression of the filter language{hint}", text, start) from None


_OPEN_END = re.compile(r"AND|OR|NOT|IN|LIKE|IS|[-<>=!+*/]+", re.IGNORECASE)
_BETWEEN = re.compile(r"\bBETWEEN\s+\Z", re.IGNORECASE)
_DONE = re.compile(r"[\w'\"`)]\s+\Z")
_QUERY = {"limit", "order", "group", "having", "where", "from"}
"""What goes on after a condition, in queries."""
_WORD_BEFORE = re.compile(r"(\S+)\s+\Z")


def _lack(before: str, word: str, behind: str) -> str | None:
    """Say what is missing at a word that cannot stand where it does, if that is clear."""
    if word.upper() == "CONTAINS" and (named := _WORD_BEFORE.search(before)):
        return f"CONTAINS is not part of the filter language: write array_contains({named[1]}, …)"
    if not behind.strip() and _OPEN_END.fullmatch(word):
        return "a value or a condition is missing after this"
    if not behind.strip() and _BETWEEN.search(before):
        return "BETWEEN takes two values: write BETWEEN 1 AND 9"
    if _DONE.search(before) and re.fullmatch(r"\w+|`.*`", word) and word.lower() not in KEYWORDS | _QUERY:
        return "AND, OR or an operator is missing before this"
    return None


class Translator:
    """Walks sqlglot's tree; a method for each thing that the language has."""

    def __init__(self, text: str, settings: NameSettings = USUAL) -> None:
        self.text = text
        self.settings = settings

    def expression(self, node: exp.Expr) -> Expression:
        """Translate a Boolean expression."""
        if isinstance(node, exp.Paren):
            return self.expression(node.this)
        if isinstance(node, exp.And):
            return And(tuple(self.expression(child) for child in _chain(node, exp.And)))
        if isinstance(node, exp.Or):
            return Or(tuple(self.expression(child) for child in _chain(node, exp.Or)))
        if isinstance(node, exp.Not):
            return Not(self.expression(node.this))
        if isinstance(node, exp.Boolean):
            return Constant(bool(node.this))
        if isinstance(node, exp.Null):
            return Constant(None)
        if isinstance(node, exp.Column | exp.Dot | exp.Identifier):
            return Truth(self.attribute(node))
        return self.predicate(node)

    def predicate(self, node: exp.Expr) -> Expression:
        """Translate a predicate, negated or not."""
        op = _OPS.get(type(node))
        if op is not None:
            return self.comparison(op, node)
        if isinstance(node, exp.Between):
            self.expect_only(node, "this", "low", "high")
            return Between(
                self.operand(node.this), self.ordered(node.args["low"]), self.ordered(node.args["high"])
            )
        if isinstance(node, exp.In):
            if node.args.get("query"):
                raise refusal("", self.text, node.args["query"])
            self.expect_only(node, "this", "expressions")
            if not node.expressions:
                raise refusal("IN takes at least one literal", self.text, node)
            return In(self.operand(node.this), self.literals(node.expressions, node))
        if isinstance(node, exp.Like | exp.ILike | exp.Escape):
            return self.like(node)
        if isinstance(node, exp.Contains):
            return self.contains(node)
        if isinstance(node, exp.RegexpLike):
            return self.has_word(node)
        if isinstance(node, exp.Is):
            self.expect_only(node, "this", "expression")
            if not isinstance(node.expression, exp.Null):
                raise refusal("IS takes NULL or NOT NULL only", self.text, node)
            return IsNull(self.operand(node.this))
        if isinstance(node, exp.ArrayContains):
            self.expect_only(node, "this", "expression")
            return self.array_contains(node)
        if isinstance(node, exp.ArrayOverlaps) or (
            isinstance(node, exp.Anonymous) and str(node.this).lower() == "arrays_overlap"
        ):
            return self.arrays_overlap(node)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == "forall":
            return self.forall(node)
        if isinstance(node, exp.Anonymous) and str(node.this).lower() == "present" and self.settings.told:
            return self.present(node)
        raise refusal("", self.text, node)

    def comparison(self, op: Op, node: exp.Expr) -> Comparison:
        """Translate `attribute op literal` or its mirror image."""
        left, right = _bare(node.this), _bare(node.expression)
        if _is_operand(left) and _is_operand(right):
            reason = f"this compares two attributes; one side must be a literal{_in_quotes(right)}"
            raise refusal(reason, self.text, node)
        literal = self.ordered if op in _MIRROR else self.literal
        if _is_operand(left):
            return Comparison(op, self.operand(left), literal(right))
        if _is_operand(right):
            return Comparison(_MIRROR.get(op, op), self.operand(right), literal(left))
        for side in (left, right):
            self.literal(side)
        raise refusal("this compares two literals, so no event matters; write TRUE or FALSE", self.text, node)

    def like(self, node: exp.Expr) -> Expression:
        """Translate LIKE, ILIKE, their negations and ESCAPE; ILIKE is LIKE of both sides in lower case."""
        escape = "\\"
        like = node
        if isinstance(node, exp.Escape):
            escape = self.string(node.expression, "ESCAPE takes one character in quotes")
            like = node.this
        if not isinstance(like, exp.Like | exp.ILike):
            raise refusal("", self.text, node)
        self.expect_only(like, "this", "expression", "negate")
        pattern = self.string(like.expression, f"{like.key.upper()} takes a pattern in quotes")
        attribute = self.operand(like.this)
        if isinstance(like, exp.ILike):
            attribute, pattern = attribute.lowered, pattern.lower()
        wrong = patterns.problem(pattern, escape)
        if wrong:
            raise refusal(wrong, self.text, like.expression)
        found = Like(attribute, pattern, escape)
        return Not(found) if like.args.get("negate") else found

    def contains(self, node: exp.Contains) -> Like:
        """Translate `contains(attribute, 'text')`: LIKE with `%` around the text."""
        self.expect_only(node, "this", "expression")
        part = self.string(node.expression, "contains takes a text in quotes")
        return Like(self.operand(node.this), f"%{patterns.escaped(part)}%")

    def has_word(self, node: exp.RegexpLike) -> HasWord:
        r"""Translate RLIKE of one whole word in any case, `(?i)\bword\b`."""
        self.expect_only(node, "this", "expression")
        pattern = self.string(node.expression, "RLIKE takes a pattern in quotes")
        word = one_word(pattern)
        if word is None:
            meant = "; \\b in a string is a backspace, and \\\\b a word's edge" if "\b" in pattern else ""
            raise refusal(f"{_ONE_WORD}{meant}", self.text, node.expression)
        return HasWord(self.attribute(node.this), word)

    def array_contains(self, node: exp.ArrayContains) -> ArrayContains:
        """Translate `array_contains(attribute, literal)`."""
        literal = self.literal(node.expression)
        if literal == NULL:
            raise refusal("array_contains takes no NULL (Spark refuses it too)", self.text, node)
        return ArrayContains(self.attribute(node.this), literal)

    def arrays_overlap(self, node: exp.Expr) -> ArraysOverlap:
        """Translate `arrays_overlap(attribute, array(…))`, in either order."""
        sides = node.expressions if isinstance(node, exp.Anonymous) else [node.this, node.expression]
        if len(sides) != 2:
            raise refusal("arrays_overlap takes two arguments", self.text, node)
        if isinstance(sides[0], exp.Array):
            sides = sides[::-1]
        if not isinstance(sides[1], exp.Array):
            raise refusal("arrays_overlap takes an attribute and array('…', …)", self.text, node)
        return ArraysOverlap(self.attribute(sides[0]), self.literals(sides[1].expressions, node))

    def forall(self, node: exp.Anonymous) -> ForAll:
        """Translate `forall(attribute, x -> …)`; the function may ask for a list, for NULL, or for either."""
        given = node.expressions
        if len(given) != 2 or not isinstance(given[1], exp.Lambda) or len(given[1].expressions) != 1:
            raise refusal(_LAMBDAS, self.text, given[-1] if given else node)
        variable = Attribute.of(*self.settings.spelled((str(given[1].expressions[0].this),)))
        body = self.expression(given[1].this)
        tests = body.children if isinstance(body, Or) else (body,)
        rest = tuple(test for test in tests if test != IsNull(variable))
        literals: tuple[Literal, ...] = ()
        match rest:
            case (In(attribute, found),) if attribute == variable:
                literals = found
            case (Comparison(Op.EQ, attribute, literal),) if attribute == variable:
                literals = (literal,)
            case ():
                pass
            case _:
                raise refusal(_LAMBDAS, self.text, given[1])
        return ForAll(self.attribute(given[0]), literals, nulls=len(rest) < len(tests))

    def present(self, node: exp.Anonymous) -> Truth:
        """Translate `present(attribute)`: whether the event has it, be it null."""
        if len(node.expressions) != 1 or not _is_attribute(_bare(node.expressions[0])):
            raise refusal("present takes one attribute", self.text, node)
        return Truth(Attribute.of(PRESENT, *self.attribute(node.expressions[0]).names))

    def operand(self, node: exp.Expr) -> Attribute:
        """Translate what is compared: a dotted name, or `lower` of one."""
        inner = _bare(node)
        if isinstance(inner, exp.Lower):
            self.expect_only(inner, "this")
            return self.attribute(inner.this).lowered
        return self.attribute(inner)

    def attribute(self, node: exp.Expr) -> Attribute:
        """Translate a dotted name."""
        names: list[str] = []
        rest: exp.Expr | None = _bare(node)
        while isinstance(rest, exp.Dot):
            if not isinstance(rest.expression, exp.Identifier):
                raise refusal("", self.text, rest.expression)
            names.append(str(rest.expression.this))
            rest = rest.this
        if isinstance(rest, exp.Identifier):
            names.append(str(rest.this))
        elif isinstance(rest, exp.Column) and isinstance(rest.this, exp.Identifier):
            parts = (rest.args.get(key) for key in ("this", "table", "db", "catalog"))
            names.extend(str(part.this) for part in parts if part is not None)
        else:
            raise refusal("an attribute is expected here", self.text, node)
        return Attribute.of(*self.settings.spelled(tuple(reversed(names))))

    def literals(self, nodes: Iterable[exp.Expr], whole: exp.Expr) -> tuple[Literal, ...]:
        """Translate a list of literals of one family."""
        found = tuple(self.literal(node) for node in nodes)
        if common_type(found) is None:
            kinds = " and ".join(dict.fromkeys(literal.type.value for literal in found if literal != NULL))
            raise refusal(f"the list mixes {kinds}; write all of them in one type", self.text, whole)
        if not fits_one_decimal(found):
            raise refusal(
                "no decimal of 38 digits holds all numbers of the list; write doubles", self.text, whole
            )
        return found

    def literal(self, node: exp.Expr) -> Literal:
        """Translate a literal."""
        if _is_attribute(node):
            reason = f"a literal is expected here, not an attribute{_in_quotes(node)}"
            raise refusal(reason, self.text, node)
        return literal_of(node, self.text)

    def ordered(self, node: exp.Expr) -> Literal:
        """Translate a literal to the right of <, <=, >, >= or in BETWEEN.

        Spark folds `bigint < 99999999999999999999` to TRUE, also for NULL; whether it would depends on a
        type that we do not know, so we refuse to guess.
        """
        literal = self.literal(node)
        if isinstance(literal.value, Decimal) and not INT64_MIN <= literal.value <= INT64_MAX:
            raise refusal(
                "this number lies beyond 64 bits; write it as a double, such as 1e20", self.text, node
            )
        return literal

    def string(self, node: exp.Expr, otherwise: str) -> str:
        """Translate a literal that must be a string."""
        if isinstance(node, exp.Literal | exp.RawString):
            literal = literal_of(node, self.text)
            if literal.type is LiteralType.STRING:
                return str(literal.value)
        raise refusal(f"{otherwise}{_in_quotes(node)}", self.text, node)

    def expect_only(self, node: exp.Expr, *keys: str) -> None:
        """Refuse a node with parts that the language lacks, so that none is ignored."""
        for key, value in node.args.items():
            if key not in keys and value:
                raise refusal("", self.text, node)


def _bare(node: exp.Expr) -> exp.Expr:
    """Take the parentheses off an attribute: `(a) = 1` is `a = 1`."""
    inner = node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    return inner if _is_operand(inner) else node


def _in_quotes(node: exp.Expr) -> str:
    """Ask whether a name was meant as text: `topic = news`."""
    if not isinstance(node, exp.Column | exp.Identifier) or len(list(node.find_all(exp.Identifier))) != 1:
        return ""
    name = next(node.find_all(exp.Identifier))
    return "" if name.quoted else f" (did you mean '{name.name}', in quotes?)"


def _is_attribute(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column | exp.Dot | exp.Identifier)


def _is_operand(node: exp.Expr) -> bool:
    return _is_attribute(node) or isinstance(node, exp.Lower)


def _chain(node: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """Unroll `a AND b AND c`, which sqlglot nests to the left; parentheses stay nested."""
    found: list[exp.Expr] = []
    while isinstance(node, kind):
        found.append(node.expression)
        node = node.this
    return [node, *reversed(found)]
