"""Paths of an expression that is walked as if it were true: the nodes that they need, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.xml.language.model import (
    ANY,
    CHILD,
    CONTAINS,
    DESCENDANT,
    ROOT,
    TEXT,
    Node,
    Pattern,
    Test,
    is_attribute,
)
from headgate.xml.language.refusal import MAX_NODES, MAX_TESTS
from headgate.xml.language.words import XML_NAMESPACE
from headgate.xml.whole.places import (
    DOCUMENT,
    FREE,
    KINDLESS,
    OTHER,
    Document,
    Free,
    NeverError,
    Place,
    Spot,
    label_of,
    restrict,
)
from headgate.xml.whole.syntax import (
    ANYWHERE,
    NUMBER,
    Call,
    Chain,
    Expression,
    Filtered,
    Literal,
    Path,
    Step,
    type_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


class Paths:
    """The paths of one walk, its choices, and the nodes that it has noted."""

    def __init__(self, picks: Sequence[int], points: int) -> None:
        self._given = picks
        self._points = points
        self.picked: list[int] = []
        self.sizes: list[int] = []
        self._roots: list[Place] = []

    def condition(self, expression: Expression, here: Spot) -> None:
        """Note what is needed for an expression to be true at a node."""
        raise NotImplementedError

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
        axis, label = step.axis, label_of(step.axis, step.test)
        if axis == "namespace":
            return FREE
        if axis in ("child", "descendant", "attribute"):
            return self._down(axis, label, spot, deep=deep)
        if deep:
            # From a node, or from any below it.
            return self._anywhere(label)
        if isinstance(spot, Document):
            if label == KINDLESS and axis in ("self", "ancestor-or-self"):
                return spot
            if axis == "descendant-or-self":
                return self._anywhere(label)
            raise NeverError
        if axis in ("following", "preceding", "descendant-or-self", "ancestor-or-self"):
            return self._anywhere(label)
        if isinstance(spot, Free):
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
        if isinstance(spot, Free):
            return self._anywhere(label)
        if isinstance(spot, Document):
            if edge == CHILD and (label == TEXT or is_attribute(label)):
                raise NeverError
            parent = None
        else:
            if spot.label is not None and (spot.label == TEXT or is_attribute(spot.label)):
                raise NeverError
            spot.element = True
            parent = spot
        if label == OTHER:
            return FREE
        return self._new(None if label == KINDLESS else label, edge, parent)

    def _self(self, label: str, spot: Place) -> Spot:
        if label == KINDLESS:
            return spot
        if label == OTHER:
            if spot.label is None and not spot.element:
                return FREE
            raise NeverError
        restrict(spot, label)
        return spot

    def _parent(self, label: str, spot: Place) -> Spot:
        if label in (OTHER, TEXT):
            raise NeverError
        if spot.axis == CHILD:
            if spot.parent is None:
                if label == KINDLESS:
                    return DOCUMENT
                raise NeverError
            if label != KINDLESS:
                restrict(spot.parent, label)
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

    def _ancestor(self, label: str, spot: Place) -> Spot:
        if label == KINDLESS:
            return FREE
        if label in (OTHER, TEXT):
            raise NeverError
        above = self._new(label, DESCENDANT, None)
        if spot.label is not None:
            self._new(spot.label, DESCENDANT, above)
        return above

    def _sibling(self, label: str, spot: Place) -> Spot:
        if spot.label is not None and is_attribute(spot.label):
            raise NeverError
        if label in (KINDLESS, OTHER):
            return FREE
        if spot.axis == CHILD:
            if spot.parent is None:
                raise NeverError
            return self._new(label, CHILD, spot.parent)
        above = self._new(ANY, DESCENDANT, None)
        if spot.label is not None:
            self._new(spot.label, CHILD, above)
        return self._new(label, CHILD, above)

    def _new(self, label: str | None, axis: str, parent: Place | None) -> Place:
        place = Place(label, axis, parent)
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
