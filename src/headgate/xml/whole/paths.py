"""Paths of an expression that is walked as if it were true: the nodes that they need, step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from headgate.xml.language import model, syntax
from headgate.xml.language.refusal import MAX_NODES, MAX_TESTS
from headgate.xml.language.words import XML_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence


class Free:
    """Some node, of which nothing is known."""


class Document:
    """The document itself."""


FREE, DOCUMENT = Free(), Document()
KINDLESS, OTHER = syntax.NODE, syntax.COMMENT
"""In place of a label: any node, and one that no pattern has."""


class Place:
    """A node of a pattern that is being made. `label` is None for a node of any kind."""

    def __init__(self, label: str | None, axis: str, parent: Place | None) -> None:
        self.label = label
        self.axis = axis
        self.parent = parent
        """None for the document."""
        self.tests: list[model.Test] = []
        self.below: list[Place] = []
        self.element = False
        """Whether something below it says that it is an element."""


Spot: TypeAlias = "Place | Free | Document"


class NeverError(Exception):
    """What is walked can never be true."""


def label_of(step: syntax.Step) -> str:
    """Return the label that a step asks for; `KINDLESS` or `OTHER` where there is none."""
    label = step.label
    if label[-1] == "*":
        return model.ANY_ATTRIBUTE if label[0] == "@" else model.ANY
    if label[-1] != ")" or label == KINDLESS:
        return label
    if step.axis == "attribute":
        raise NeverError
    return model.TEXT if label == model.TEXT else OTHER


def restrict(node: Place, label: str) -> None:
    """Note that a node has another label too."""
    if node.label is None:
        if node.element and label == model.TEXT:
            raise NeverError
        node.label = label
    elif model.covers(node.label, label):
        node.label = label
    elif not model.covers(label, node.label):
        raise NeverError


def name_of(node: Place, local: str) -> None:
    """Note the local name of a node, if its label leaves it open."""
    if node.label in (model.ANY, model.ANY_ATTRIBUTE) and local and local.isprintable() and "*" not in local:
        node.label = node.label[:-1] + f"*:{local}"


class Paths:
    """The paths of one walk, its choices, and the nodes that it has noted."""

    def __init__(self, picks: Sequence[int], points: int) -> None:
        self._given = picks
        self._points = points
        self.picked: list[int] = []
        self.sizes: list[int] = []
        self._roots: list[Place] = []

    def condition(self, expression: syntax.Expression, here: Spot) -> None:
        """Note what is needed for an expression to be true at a node."""
        raise NotImplementedError

    # Choices

    def _choose(self, count: int) -> int:
        """Choose one of some; -1 if there are too many choices already."""
        index = len(self.picked)
        if index >= self._points:
            return -1
        pick = self._given[index] if index < len(self._given) else 0
        self.picked.append(pick)
        self.sizes.append(count)
        return pick

    # Paths

    def _walk(self, expression: syntax.Expression, here: Spot) -> Spot:
        """Note that a path finds something; returns where."""
        match expression:
            case syntax.Path(steps, absolute, start):
                spot: Spot = DOCUMENT if absolute else here if start is None else self._walk(start, here)
                return self._steps(steps, spot)
            case syntax.Filtered(operand, conditions):
                spot = self._walk(operand, here)
                for each in conditions:
                    self._bracket(each, spot)
                return spot
            case syntax.Chain(("|", *_), operands):
                pick = self._choose(len(operands))
                return FREE if pick < 0 else self._walk(operands[pick], here)
            case syntax.Call("id", arguments):
                spot = self._new(f"@{{{XML_NAMESPACE}}}id", model.DESCENDANT, None)
                if isinstance(arguments[0], syntax.Literal) and len(arguments[0].value.split()) == 1:
                    spot.tests.append(model.Test(model.CONTAINS, arguments[0].value.strip()))
                return FREE
            case _:
                return FREE

    def _steps(self, steps: Sequence[syntax.Step], spot: Spot) -> Spot:
        deep = False
        for step in steps:
            if step is syntax.ANYWHERE:
                deep = True
                continue
            spot = self._step(step, spot, deep=deep)
            deep = False
            for each in step.conditions:
                self._bracket(each, spot)
        return FREE if deep else spot

    def _bracket(self, condition: syntax.Expression, spot: Spot) -> None:
        """Note what a condition in brackets needs; a number is a position."""
        if syntax.type_of(condition) != syntax.NUMBER:
            self.condition(condition, spot)

    def _step(self, step: syntax.Step, spot: Spot, *, deep: bool) -> Spot:
        axis, label = step.axis, label_of(step)
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
        return FREE if label in (KINDLESS, OTHER) else self._new(label, model.DESCENDANT, None)

    def _down(self, axis: str, label: str, spot: Spot, *, deep: bool) -> Spot:
        edge = model.DESCENDANT if deep or axis == "descendant" else model.CHILD
        if isinstance(spot, Free):
            return self._anywhere(label)
        if isinstance(spot, Document):
            if edge == model.CHILD and (label == model.TEXT or model.is_attribute(label)):
                raise NeverError
            parent = None
        else:
            if spot.label is not None and (spot.label == model.TEXT or model.is_attribute(spot.label)):
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
        if label in (OTHER, model.TEXT):
            raise NeverError
        if spot.axis == model.CHILD:
            if spot.parent is None:
                if label == KINDLESS:
                    return DOCUMENT
                raise NeverError
            if label != KINDLESS:
                restrict(spot.parent, label)
            return spot.parent
        inner = spot.label is not None and (spot.label == model.TEXT or model.is_attribute(spot.label))
        if label == KINDLESS:
            if spot.parent is None and not inner:
                return FREE
            label = model.ANY
        above = self._new(label, model.DESCENDANT, None)
        above.element = True
        if spot.parent is None:
            self._roots.remove(spot)
            spot.axis, spot.parent = model.CHILD, above
            above.below.append(spot)
        elif spot.label is not None:
            self._new(spot.label, model.CHILD, above)
        return above

    def _ancestor(self, label: str, spot: Place) -> Spot:
        if label == KINDLESS:
            return FREE
        if label in (OTHER, model.TEXT):
            raise NeverError
        above = self._new(label, model.DESCENDANT, None)
        if spot.label is not None:
            self._new(spot.label, model.DESCENDANT, above)
        return above

    def _sibling(self, label: str, spot: Place) -> Spot:
        if spot.label is not None and model.is_attribute(spot.label):
            raise NeverError
        if label in (KINDLESS, OTHER):
            return FREE
        if spot.axis == model.CHILD:
            if spot.parent is None:
                raise NeverError
            return self._new(label, model.CHILD, spot.parent)
        above = self._new(model.ANY, model.DESCENDANT, None)
        if spot.label is not None:
            self._new(spot.label, model.CHILD, above)
        return self._new(label, model.CHILD, above)

    def _new(self, label: str | None, axis: str, parent: Place | None) -> Place:
        node = Place(label, axis, parent)
        if parent is None:
            self._roots.append(node)
        else:
            parent.below.append(node)
        return node

    # What comes of it

    def pattern(self) -> model.Pattern:
        """Return what was noted, as a pattern that returns nothing."""
        nodes: list[model.Node] = []
        waiting = [(root, model.ROOT) for root in reversed(self._roots)]
        while waiting:
            spot, parent = waiting.pop()
            label = spot.label
            if label is None:
                if not spot.below and not spot.element:
                    continue
                label = model.ANY
            if len(nodes) == MAX_NODES:
                break
            tests = tuple(dict.fromkeys(spot.tests))[:MAX_TESTS]
            nodes.append(model.Node(label, spot.axis, parent, tests))
            seen = len(nodes) - 1
            waiting += [(each, seen) for each in reversed(spot.below)]
        return model.Pattern(tuple(nodes))
