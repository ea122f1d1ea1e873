"""What must hold for an expression to be true: tree patterns, of which a document must have one.

The expression is walked as if it were true, and what that needs of the document is noted as nodes of a
pattern. `or` and `|` are choices; the walk is repeated for each combination, and each gives a pattern. What
no pattern can say is left out: what is under `not()`, positions, the order of siblings, arithmetic. So a
pattern asks for less than the expression, never for more, and a document that has none of them cannot match.

    //a[b or not(c)][2]/parent::d       //d/a[b]      //d/a
    //item[price * 2 > 10]              //item[price]
    count(//bid[@by = 'x']) > 2         //bid[@by = 'x']

Upward axes are rewritten where the way up is known. Where it is not, what is found there stands as a tree of
its own. lxml rounds numbers in its own way, so bounds are loosened in the twelfth digit; what else it reads
otherwise than the index is the matter of `deciding.py`.
"""

from __future__ import annotations

import contextlib
from math import isfinite
from typing import TYPE_CHECKING

from headgate.xml.language import model, syntax
from headgate.xml.language.values import COMPARE, implies
from headgate.xml.language.words import XML_NAMESPACE
from headgate.xml.views.embedding import pairs
from headgate.xml.whole.paths import DOCUMENT, FREE, NeverError, Paths, Place, Spot, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.xml.language.model import Node


MOST_CHOICES = 32
"""Patterns of one filter; choices beyond that are left out."""
MOST_WALKS = 4 * MOST_CHOICES
_POINTS = (64, 6, 4, 3, 2, 1, 0)
"""Where choices are made, from the first on: fewer and fewer, until there are few enough combinations."""
_SLACK = 1e-12
_WORDS = 8
"""Words of a text that are looked for, each by itself."""


def needs_of(expression: syntax.Expression) -> tuple[model.Pattern, ...] | None:
    """List patterns of which one holds wherever an expression is true; None if nothing of it can be indexed.

    There are none if the expression is never true.

    >>> from headgate.xml.language.grammar import parse_expression
    >>> from headgate.xml.language.printing import print_pattern
    >>> from headgate.xml.language.words import cut
    >>> expression = parse_expression(cut("//a[b = 'x' or @c][2]/parent::d"), "xpath")
    >>> [print_pattern(each) for each in needs_of(expression)]
    ["//d/a/b = 'x'", '//d/a/@c{}']
    """
    patterns: list[model.Pattern] = []
    for run in _runs(expression):
        pattern = run.pattern()
        if not tells(pattern):
            return None
        if pattern not in patterns:
            patterns.append(pattern)
    return tuple(widest(patterns))


def _runs(expression: syntax.Expression) -> list[_Run]:
    """Walk an expression once for each combination of choices; what can never be true is passed over."""
    for points in _POINTS:
        done: list[_Run] = []
        picks: list[int] = []
        for _ in range(MOST_WALKS):
            run = _Run(picks, points)
            with contextlib.suppress(NeverError):
                run.condition(expression, DOCUMENT)
                done.append(run)
            # The next combination: a counter whose digits are known only once they are reached.
            picks = run.picked
            while picks and picks[-1] + 1 >= run.sizes[len(picks) - 1]:
                picks.pop()
            if not picks:
                break
            picks[-1] += 1
        if not picks and len(done) <= MOST_CHOICES:
            return done
    raise AssertionError("a walk without choices is one walk")


class _Run(Paths):
    """One walk, with its choices: what conditions need."""

    def condition(self, expression: syntax.Expression, here: Spot) -> None:
        """Note what is needed for an expression to be true at a node."""
        match expression:
            case syntax.Chain(signs, operands):
                self._chain(signs, operands, here)
            case syntax.Path() | syntax.Filtered():
                self._walk(expression, here)
            case syntax.Call(name, arguments):
                self._call(name, arguments, here)
            case syntax.Negative(operand):
                self._number(operand, here)
            case syntax.Literal(value):
                if not value:
                    raise NeverError
            case syntax.Number(value):
                if value == 0:
                    raise NeverError

    def _chain(self, signs: tuple[str, ...], operands: tuple[syntax.Expression, ...], here: Spot) -> None:
        sign = signs[0]
        if sign == "and":
            for each in operands:
                self.condition(each, here)
        elif sign == "or":
            pick = self._choose(len(operands))
            if pick >= 0:
                self.condition(operands[pick], here)
        elif sign == "|":
            self._walk(syntax.Chain(signs, operands), here)
        elif sign not in syntax.COMPARING:
            self._number(syntax.Chain(signs, operands), here)
        elif len(signs) == 1:
            self._compare(sign, operands[0], operands[1], here)

    def _call(self, name: str, arguments: tuple[syntax.Expression, ...], here: Spot) -> None:
        if name == "boolean":
            self.condition(arguments[0], here)
        elif name == "not":
            inner = arguments[0]
            if isinstance(inner, syntax.Call) and inner.name == "not":
                self.condition(inner.arguments[0], here)
        elif name == "false":
            raise NeverError
        elif name in (model.CONTAINS, model.STARTS_WITH):
            if isinstance(arguments[1], syntax.Literal) and arguments[1].value:
                self._string(arguments[0], name, arguments[1].value, here)
        elif name == "lang":
            self._new(f"@{{{XML_NAMESPACE}}}lang", model.DESCENDANT, None)
        elif name == "id":
            self._walk(syntax.Call(name, arguments), here)
        elif name in ("count", "sum", "string-length"):
            self._some(arguments, here)
        elif name in ("number", "floor", "ceiling", "round"):
            self._number(syntax.Call(name, arguments), here)
        elif name in ("string", "normalize-space", "name", "local-name", "namespace-uri") or (
            name in ("substring", "substring-before", "substring-after", "translate")
        ):
            self._some(arguments[:1], here)

    def _some(self, arguments: Sequence[syntax.Expression], here: Spot) -> None:
        """Note that an argument finds something, if it is a path."""
        if arguments and syntax.type_of(arguments[0]) == syntax.NODES:
            self._walk(arguments[0], here)

    def _number(self, expression: syntax.Expression, here: Spot) -> None:
        """Note what is needed for an expression to be a number at all: paths in it find something."""
        match expression:
            case syntax.Negative(operand):
                self._number(operand, here)
            case syntax.Chain(signs, operands) if syntax.LEVELS[signs[0]] in (5, 6):
                for each in operands:
                    self._number(each, here)
            case syntax.Call(name, arguments) if name in ("floor", "ceiling", "round", "number"):
                if arguments:
                    self._number(arguments[0], here)
            case _:
                if syntax.type_of(expression) == syntax.NODES:
                    self._walk(expression, here)

    def _compare(self, sign: str, left: syntax.Expression, right: syntax.Expression, here: Spot) -> None:
        kinds = syntax.type_of(left), syntax.type_of(right)
        if syntax.BOOLEAN in kinds:
            # Only what is compared with a truth value may be true of nothing.
            return
        if kinds == (syntax.NODES, syntax.NODES):
            self._walk(left, here)
            self._walk(right, here)
            return
        if kinds[1] == syntax.NODES or isinstance(left, syntax.Literal | syntax.Number) or _is_minus(left):
            left, right, sign = right, left, syntax.TURNED[sign]
            kinds = kinds[1], kinds[0]
        value = _constant(right)
        if kinds[0] == syntax.NODES:
            self._against(self._walk(left, here), sign, value)
            if value is None and kinds[1] == syntax.NUMBER and sign != "!=":
                self._number(right, here)
        elif isinstance(value, str) and kinds[0] == syntax.STRING:
            if sign == "=" and value:
                self._string(left, "=", value, here)
        elif sign in ("=", "!=") and syntax.STRING in kinds and syntax.NUMBER not in kinds:
            return
        elif (
            isinstance(left, syntax.Call)
            and left.name in ("count", "sum", "string-length")
            and value is not None
        ):
            if not isinstance(value, str) and not COMPARE[sign](0.0, value):
                self._some(left.arguments, here)
        elif sign != "!=":
            if isinstance(left, syntax.Call) and left.name == "number" and len(left.arguments) == 1:
                argument = left.arguments[0]
                if syntax.type_of(argument) == syntax.NODES and isinstance(value, float):
                    self._against(self._walk(argument, here), sign, value)
                    return
            self._number(left, here)
            self._number(right, here)

    def _string(self, expression: syntax.Expression, sign: str, value: str, here: Spot) -> None:
        """Note what is needed for the text of an expression to be or to have a value that is not empty."""
        match expression:
            case syntax.Literal(text):
                if not _text_holds(text, sign, value):
                    raise NeverError
            case syntax.Call("string", arguments):
                if not arguments:
                    self._against(here, sign, value)
                else:
                    self._string(arguments[0], sign, value, here)
            case syntax.Call("normalize-space", arguments):
                spot = self._first(arguments, here)
                for word in value.split()[:_WORDS]:
                    self._against(spot, model.CONTAINS, word)
            case syntax.Call("substring" | "substring-before" | "substring-after", arguments):
                self._against(self._first(arguments, here), model.CONTAINS, value)
            case syntax.Call("translate", arguments):
                self._first(arguments, here)
            case syntax.Call("name" | "local-name", arguments):
                spot = self._first(arguments, here)
                if sign == "=" and isinstance(spot, Place):
                    name_of(spot, value.rpartition(":")[2])
            case syntax.Call("namespace-uri", arguments):
                self._first(arguments, here)
            case _:
                if syntax.type_of(expression) == syntax.NODES:
                    self._against(self._walk(expression, here), sign, value)

    def _first(self, arguments: Sequence[syntax.Expression], here: Spot) -> Spot:
        """Return where the text of a function comes from."""
        if not arguments:
            return here
        return self._walk(arguments[0], here) if syntax.type_of(arguments[0]) == syntax.NODES else FREE

    def _against(self, spot: Spot, sign: str, value: str | float | None) -> None:
        """Note a test of the value of what was found."""
        if value is None or not isinstance(spot, Place):
            return
        if isinstance(value, str):
            if sign not in ("=", "!=", model.CONTAINS, model.STARTS_WITH):
                # lxml makes a number of both.
                return
            if value or sign in ("=", "!="):
                spot.tests.append(model.Test(sign, value))
            return
        if sign == "!=" or not isfinite(value):
            return
        slack = abs(value) * _SLACK
        if sign in ("=", ">", ">="):
            spot.tests.append(model.Test(">=", value - slack))
        if sign in ("=", "<", "<="):
            spot.tests.append(model.Test("<=", value + slack))


def _is_minus(expression: syntax.Expression) -> bool:
    return isinstance(expression, syntax.Negative) and isinstance(expression.operand, syntax.Number)


def _constant(expression: syntax.Expression) -> str | float | None:
    """Return the value of a literal; None if it is none."""
    match expression:
        case syntax.Literal(text):
            return text
        case syntax.Number(value):
            return value
        case syntax.Negative(syntax.Number(value)):
            return -value
        case _:
            return None


def _text_holds(text: str, sign: str, value: str) -> bool:
    if sign == model.CONTAINS:
        return value in text
    return text.startswith(value) if sign == model.STARTS_WITH else text == value


def tells(pattern: model.Pattern) -> bool:
    """Tell whether a pattern leaves any documents out: it names something, or tests a value."""
    return any(
        node.tests or node.label not in (model.ANY, model.ANY_ATTRIBUTE, model.TEXT) for node in pattern.nodes
    )


def widest(patterns: list[model.Pattern]) -> list[model.Pattern]:
    """Leave out patterns that ask for more than another."""
    kept: list[model.Pattern] = []
    for each in sorted(patterns, key=lambda pattern: len(pattern.nodes)):
        if not any(pairs(wide, each, _goes) for wide in kept):
            kept.append(each)
    return sorted(kept, key=patterns.index)


def _goes(wide: Node, narrow: Node) -> bool:
    """Tell whether a node holds wherever another does, if of that the tests of one kind are not asked."""
    texts, numbers = (
        [each for each in narrow.tests if isinstance(each.value, str) == kind] for kind in (True, False)
    )
    return model.covers(wide.label, narrow.label) and all(
        implies(texts if isinstance(test.value, str) else numbers, test) for test in wide.tests
    )
