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
otherwise than the index is the matter of `loosening.py`.
"""

from __future__ import annotations

import contextlib
import operator
from math import isfinite
from typing import TYPE_CHECKING, TypeAlias

from headgate.xml.language.model import (
    ANY,
    ANY_ATTRIBUTE,
    CHILD,
    CONTAINS,
    DESCENDANT,
    ROOT,
    STARTS_WITH,
    TEXT,
    Node,
    Pattern,
    Test,
    covers,
    is_attribute,
)
from headgate.xml.language.refusal import MAX_NODES, MAX_TESTS
from headgate.xml.language.words import XML_NAMESPACE
from headgate.xml.whole.pruning import tells, widest
from headgate.xml.whole.syntax import (
    ANY_NODE,
    ANYWHERE,
    BOOLEAN,
    COMPARING,
    LEVELS,
    NAMED,
    NODES,
    NUMBER,
    STRING,
    TEXTS,
    Call,
    Chain,
    Expression,
    Filtered,
    Literal,
    Negative,
    NodeTest,
    Number,
    Path,
    Step,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MOST_CHOICES = 32
"""Patterns of one filter; choices beyond that are left out."""
MOST_WALKS = 4 * MOST_CHOICES
_POINTS = (64, 6, 4, 3, 2, 1, 0)
"""Where choices are made, from the first on: fewer and fewer, until there are few enough combinations."""
_SLACK = 1e-12
_WORDS = 8
"""Words of a text that are looked for, each by itself."""
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class _Free:
    """Some node, of which nothing is known."""


class _Document:
    """The document itself."""


FREE, DOCUMENT = _Free(), _Document()
KINDLESS, OTHER = "node()", "comment()"
"""In place of a label: any node, and one that no pattern has."""


class _Place:
    """A node of a pattern that is being made. `label` is None for a node of any kind."""

    def __init__(self, label: str | None, axis: str, parent: _Place | None) -> None:
        self.label = label
        self.axis = axis
        self.parent = parent
        """None for the document."""
        self.tests: list[Test] = []
        self.below: list[_Place] = []
        self.element = False
        """Whether something below it says that it is an element."""


Spot: TypeAlias = "_Place | _Free | _Document"


class _NeverError(Exception):
    """What is walked can never be true."""


def needs_of(expression: Expression) -> tuple[Pattern, ...] | None:
    """List patterns of which one holds wherever an expression is true; None if nothing of it can be indexed.

    There are none if the expression is never true.

    >>> from headgate.xml.language.printing import print_pattern
    >>> from headgate.xml.language.words import cut, kinds_of
    >>> from headgate.xml.whole.parse import parse_expression
    >>> words = cut("//a[b = 'x' or @c][2]/parent::d")
    >>> [print_pattern(each) for each in needs_of(parse_expression(words, kinds_of(words, "xpath")))]
    ["//d/a/b = 'x'", '//d/a/@c{}']
    """
    found: list[Pattern] = []
    for run in _runs(expression):
        pattern = run.pattern()
        if not tells(pattern):
            return None
        if pattern not in found:
            found.append(pattern)
    return tuple(widest(found))


def _runs(expression: Expression) -> list[_Run]:
    """Walk an expression once for each combination of choices; what can never be true is passed over."""
    for points in _POINTS:
        done: list[_Run] = []
        picks: list[int] = []
        for _ in range(MOST_WALKS):
            run = _Run(picks, points)
            with contextlib.suppress(_NeverError):
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


class _Run:
    """One walk, with its choices."""

    def __init__(self, picks: Sequence[int], points: int) -> None:
        self._given = picks
        self._points = points
        self.picked: list[int] = []
        self.sizes: list[int] = []
        self._roots: list[_Place] = []

    # Choices

    def _choose(self, count: int) -> int:
        """Choose one of some; -1 if there are too many choices already."""
        place = len(self.picked)
        if place >= self._points:
            return -1
        pick = self._given[place] if place < len(self._given) else 0
        self.picked.append(pick)
        self.sizes.append(count)
        return pick

    # Conditions

    def condition(self, expression: Expression, here: Spot) -> None:
        """Note what is needed for an expression to be true at a node."""
        match expression:
            case Chain(signs, operands):
                self._chain(signs, operands, here)
            case Path() | Filtered():
                self._walk(expression, here)
            case Call(name, arguments):
                self._call(name, arguments, here)
            case Negative(operand):
                self._number(operand, here)
            case Literal(value):
                if not value:
                    raise _NeverError
            case Number(value):
                if value == 0:
                    raise _NeverError

    def _chain(self, signs: tuple[str, ...], operands: tuple[Expression, ...], here: Spot) -> None:
        sign = signs[0]
        if sign == "and":
            for each in operands:
                self.condition(each, here)
        elif sign == "or":
            pick = self._choose(len(operands))
            if pick >= 0:
                self.condition(operands[pick], here)
        elif sign == "|":
            self._walk(Chain(signs, operands), here)
        elif sign not in COMPARING:
            self._number(Chain(signs, operands), here)
        elif len(signs) == 1:
            self._compare(sign, operands[0], operands[1], here)

    def _call(self, name: str, arguments: tuple[Expression, ...], here: Spot) -> None:
        if name == "boolean":
            self.condition(arguments[0], here)
        elif name == "not":
            inner = arguments[0]
            if isinstance(inner, Call) and inner.name == "not":
                self.condition(inner.arguments[0], here)
        elif name == "false":
            raise _NeverError
        elif name in (CONTAINS, STARTS_WITH):
            if isinstance(arguments[1], Literal) and arguments[1].value:
                self._string(arguments[0], name, arguments[1].value, here)
        elif name == "lang":
            self._new(f"@{{{XML_NAMESPACE}}}lang", DESCENDANT, None)
        elif name == "id":
            self._walk(Call(name, arguments), here)
        elif name in ("count", "sum", "string-length"):
            self._some(arguments, here)
        elif name in ("number", "floor", "ceiling", "round"):
            self._number(Call(name, arguments), here)
        elif name in ("string", "normalize-space", "name", "local-name", "namespace-uri") or (
            name in ("substring", "substring-before", "substring-after", "translate")
        ):
            self._some(arguments[:1], here)

    def _some(self, arguments: Sequence[Expression], here: Spot) -> None:
        """Note that an argument finds something, if it is a path."""
        if arguments and type_of(arguments[0]) == NODES:
            self._walk(arguments[0], here)

    def _number(self, expression: Expression, here: Spot) -> None:
        """Note what is needed for an expression to be a number at all: paths in it find something."""
        match expression:
            case Negative(operand):
                self._number(operand, here)
            case Chain(signs, operands) if LEVELS[signs[0]] in (5, 6):
                for each in operands:
                    self._number(each, here)
            case Call(name, arguments) if name in ("floor", "ceiling", "round", "number"):
                if arguments:
                    self._number(arguments[0], here)
            case _:
                if type_of(expression) == NODES:
                    self._walk(expression, here)

    def _compare(self, sign: str, left: Expression, right: Expression, here: Spot) -> None:
        kinds = type_of(left), type_of(right)
        if BOOLEAN in kinds:
            # Only what is compared with a truth value may be true of nothing.
            return
        if kinds == (NODES, NODES):
            self._walk(left, here)
            self._walk(right, here)
            return
        if kinds[1] == NODES or isinstance(left, Literal | Number) or _is_minus(left):
            left, right, sign = right, left, _TURNED[sign]
            kinds = kinds[1], kinds[0]
        value = _constant(right)
        if kinds[0] == NODES:
            self._against(self._walk(left, here), sign, value)
            if value is None and kinds[1] == NUMBER and sign != "!=":
                self._number(right, here)
        elif isinstance(value, str) and kinds[0] == STRING:
            if sign == "=" and value:
                self._string(left, "=", value, here)
        elif sign in ("=", "!=") and STRING in kinds and NUMBER not in kinds:
            return
        elif isinstance(left, Call) and left.name in ("count", "sum", "string-length") and value is not None:
            if not isinstance(value, str) and not _holds(0.0, sign, value):
                self._some(left.arguments, here)
        elif sign != "!=":
            if isinstance(left, Call) and left.name == "number" and len(left.arguments) == 1:
                argument = left.arguments[0]
                if type_of(argument) == NODES and isinstance(value, float):
                    self._against(self._walk(argument, here), sign, value)
                    return
            self._number(left, here)
            self._number(right, here)

    def _string(self, expression: Expression, sign: str, value: str, here: Spot) -> None:
        """Note what is needed for the text of an expression to be or to have a value that is not empty."""
        match expression:
            case Literal(text):
                if not _text_holds(text, sign, value):
                    raise _NeverError
            case Call("string", arguments):
                if not arguments:
                    self._against(here, sign, value)
                else:
                    self._string(arguments[0], sign, value, here)
            case Call("normalize-space", arguments):
                spot = self._first(arguments, here)
                for word in value.split()[:_WORDS]:
                    self._against(spot, CONTAINS, word)
            case Call("substring" | "substring-before" | "substring-after", arguments):
                self._against(self._first(arguments, here), CONTAINS, value)
            case Call("translate", arguments):
                self._first(arguments, here)
            case Call("name" | "local-name", arguments):
                spot = self._first(arguments, here)
                if sign == "=" and isinstance(spot, _Place):
                    _name(spot, value.rpartition(":")[2])
            case Call("namespace-uri", arguments):
                self._first(arguments, here)
            case _:
                if type_of(expression) == NODES:
                    self._against(self._walk(expression, here), sign, value)

    def _first(self, arguments: Sequence[Expression], here: Spot) -> Spot:
        """Return where the text of a function comes from."""
        if not arguments:
            return here
        return self._walk(arguments[0], here) if type_of(arguments[0]) == NODES else FREE

    def _against(self, spot: Spot, sign: str, value: str | float | None) -> None:
        """Note a test of the value of what was found."""
        if value is None or not isinstance(spot, _Place):
            return
        if isinstance(value, str):
            if sign not in ("=", "!=", CONTAINS, STARTS_WITH):
                # lxml makes a number of both.
                return
            if value or sign in ("=", "!="):
                spot.tests.append(Test(sign, value))
            return
        if sign == "!=" or not isfinite(value):
            return
        slack = abs(value) * _SLACK
        if sign in ("=", ">", ">="):
            spot.tests.append(Test(">=", value - slack))
        if sign in ("=", "<", "<="):
            spot.tests.append(Test("<=", value + slack))

    # Paths

    def _walk(self, expression: Expression, here: Spot) -> Spot:
        """Note that a path finds something; returns where."""
        match expression:
            case Path(steps, absolute, start):
                spot: Spot = DOCUMENT if absolute else here if start is None else self._walk(start, here)
                return self._steps(steps, spot)
            case Filtered(operand, conditions):
                spot = self._walk(operand, here)
                for each in conditions:
                    self._bracket(each, spot)
                return spot
            case Chain(("|", *_), operands):
                pick = self._choose(len(operands))
                return FREE if pick < 0 else self._walk(operands[pick], here)
            case Call("id", arguments):
                spot = self._new(f"@{{{XML_NAMESPACE}}}id", DESCENDANT, None)
                if isinstance(arguments[0], Literal) and len(arguments[0].value.split()) == 1:
                    spot.tests.append(Test(CONTAINS, arguments[0].value.strip()))
                return FREE
            case _:
                return FREE

    def _steps(self, steps: Sequence[Step], spot: Spot) -> Spot:
        deep = False
        for step in steps:
            if step == ANYWHERE:
                deep = True
                continue
            spot = self._step(step, spot, deep=deep)
            deep = False
            for each in step.conditions:
                self._bracket(each, spot)
        return FREE if deep else spot

    def _bracket(self, condition: Expression, spot: Spot) -> None:
        """Note what a condition in brackets needs; a number is a position."""
        if type_of(condition) != NUMBER:
            self.condition(condition, spot)

    def _step(self, step: Step, spot: Spot, *, deep: bool) -> Spot:
        axis, label = step.axis, _label(step.axis, step.test)
        if axis == "namespace":
            return FREE
        if axis in ("child", "descendant", "attribute"):
            return self._down(axis, label, spot, deep=deep)
        if deep:
            # From a node, or from any below it.
            return self._anywhere(label)
        if isinstance(spot, _Document):
            if label == KINDLESS and axis in ("self", "ancestor-or-self"):
                return spot
            if axis == "descendant-or-self":
                return self._anywhere(label)
            raise _NeverError
        if axis in ("following", "preceding", "descendant-or-self", "ancestor-or-self"):
            return self._anywhere(label)
        if isinstance(spot, _Free):
            return self._anywhere(label)
        if axis == "self":
            return self._self(label, spot)
        if axis == "parent":
            return self._parent(label, spot)
        if axis == "ancestor":
            return self._ancestor(label, spot)
        return self._sibling(label, spot)

    def _anywhere(self, label: str) -> Spot:
        """Note that there is such a node in the document."""
        return FREE if label in (KINDLESS, OTHER) else self._new(label, DESCENDANT, None)

    def _down(self, axis: str, label: str, spot: Spot, *, deep: bool) -> Spot:
        edge = DESCENDANT if deep or axis == "descendant" else CHILD
        if isinstance(spot, _Free):
            return self._anywhere(label)
        if isinstance(spot, _Document):
            if edge == CHILD and (label == TEXT or is_attribute(label)):
                raise _NeverError
            parent = None
        else:
            if spot.label is not None and (spot.label == TEXT or is_attribute(spot.label)):
                raise _NeverError
            spot.element = True
            parent = spot
        if label == OTHER:
            return FREE
        return self._new(None if label == KINDLESS else label, edge, parent)

    def _self(self, label: str, spot: _Place) -> Spot:
        if label == KINDLESS:
            return spot
        if label == OTHER:
            if spot.label is None and not spot.element:
                return FREE
            raise _NeverError
        _restrict(spot, label)
        return spot

    def _parent(self, label: str, spot: _Place) -> Spot:
        if label in (OTHER, TEXT):
            raise _NeverError
        if spot.axis == CHILD:
            if spot.parent is None:
                if label == KINDLESS:
                    return DOCUMENT
                raise _NeverError
            if label != KINDLESS:
                _restrict(spot.parent, label)
            return spot.parent
        inner = spot.label is not None and (spot.label == TEXT or is_attribute(spot.label))
        if label == KINDLESS:
            if spot.parent is None and not inner:
                return FREE
            label = ANY
        above = self._new(label, DESCENDANT, None)
        above.element = True
        if spot.parent is None:
            self._roots.remove(spot)
            spot.axis, spot.parent = CHILD, above
            above.below.append(spot)
        elif spot.label is not None:
            self._new(spot.label, CHILD, above)
        return above

    def _ancestor(self, label: str, spot: _Place) -> Spot:
        if label == KINDLESS:
            return FREE
        if label in (OTHER, TEXT):
            raise _NeverError
        above = self._new(label, DESCENDANT, None)
        if spot.label is not None:
            self._new(spot.label, DESCENDANT, above)
        return above

    def _sibling(self, label: str, spot: _Place) -> Spot:
        if spot.label is not None and is_attribute(spot.label):
            raise _NeverError
        if label in (KINDLESS, OTHER):
            return FREE
        if spot.axis == CHILD:
            if spot.parent is None:
                raise _NeverError
            return self._new(label, CHILD, spot.parent)
        above = self._new(ANY, DESCENDANT, None)
        if spot.label is not None:
            self._new(spot.label, CHILD, above)
        return self._new(label, CHILD, above)

    def _new(self, label: str | None, axis: str, parent: _Place | None) -> _Place:
        place = _Place(label, axis, parent)
        if parent is None:
            self._roots.append(place)
        else:
            parent.below.append(place)
        return place

    # What comes of it

    def pattern(self) -> Pattern:
        """Return what was noted, as a pattern that returns nothing."""
        nodes: list[Node] = []
        waiting = [(root, ROOT) for root in reversed(self._roots)]
        while waiting:
            place, parent = waiting.pop()
            label = place.label
            if label is None:
                if not place.below and not place.element:
                    continue
                label = ANY
            if len(nodes) == MAX_NODES:
                break
            tests = tuple(dict.fromkeys(place.tests))[:MAX_TESTS]
            nodes.append(Node(label, place.axis, parent, tests))
            seen = len(nodes) - 1
            waiting += [(each, seen) for each in reversed(place.below)]
        return Pattern(tuple(nodes))


def _label(axis: str, test: NodeTest) -> str:
    """Return the label that a step asks for; `KINDLESS` or `OTHER` where there is none."""
    if test.kind == ANY_NODE:
        return ANY_ATTRIBUTE if axis == "attribute" else KINDLESS
    if test.kind != NAMED:
        if axis == "attribute":
            raise _NeverError
        return TEXT if test.kind == TEXTS else OTHER
    sign = "@" if axis == "attribute" else ""
    if test.local is None:
        return f"{sign}{ANY}"
    if test.space is None:
        return f"{sign}*:{test.local}"
    return f"{sign}{{{test.space}}}{test.local}" if test.space else f"{sign}{test.local}"


def _restrict(place: _Place, label: str) -> None:
    """Note that a node has another label too."""
    if place.label is None:
        if place.element and label == TEXT:
            raise _NeverError
        place.label = label
    elif covers(place.label, label):
        place.label = label
    elif not covers(label, place.label):
        raise _NeverError


def _name(place: _Place, local: str) -> None:
    """Note the local name of a node, if its label leaves it open."""
    if place.label in (ANY, ANY_ATTRIBUTE) and local and local.isprintable() and "*" not in local:
        place.label = place.label[:-1] + f"*:{local}"


def _is_minus(expression: Expression) -> bool:
    return isinstance(expression, Negative) and isinstance(expression.operand, Number)


def _constant(expression: Expression) -> str | float | None:
    """Return the value of a literal; None if it is none."""
    match expression:
        case Literal(text):
            return text
        case Number(value):
            return value
        case Negative(Number(value)):
            return -value
        case _:
            return None


def _holds(left: float, sign: str, right: float) -> bool:
    return _COMPARE[sign](left, right)


_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _text_holds(text: str, sign: str, value: str) -> bool:
    if sign == CONTAINS:
        return value in text
    return text.startswith(value) if sign == STARTS_WITH else text == value
