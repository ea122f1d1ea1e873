"""How much lxml may have to do for an expression and a document, at most, about.

A step costs the nodes that it visits, a text its letters. What is found below several nodes counts for each
of those that lie above each other, and no more: below all nodes of a document there are as many nodes as it
has, times its depth. A set of nodes that several nodes lead to is made without duplicates by comparing each
with each, which is most of the work for large documents. Nothing is measured: the answer is the same
everywhere.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from headgate.xml.language import syntax
from headgate.xml.language.model import TEXT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.xml.language.syntax import Expression, Step

MOST_STEPS = 1 << 25
"""What one filter may cost for one document: some tenths of a second."""
_UNIQUE = frozenset(("child", "attribute", "self", "namespace"))
"""Axes that lead from different nodes to different ones."""
_COMPARED = 32
"""So many comparisons of nodes take as long as one step."""
_TRANSLATED = 8
_NUMBER = 32


class Sizes(NamedTuple):
    """A document: nodes, how deep they lie, the most children, bytes of text, declared namespaces, names."""

    nodes: float
    depth: float
    wide: float
    text: float
    spaces: float
    names: Callable[[str], Extent]
    """By local name, and with @ before those of attributes."""


class Extent(NamedTuple):
    """The nodes that have a name: how many, and how many nodes and letters all of them have below them."""

    named: float
    nodes: float
    text: float


class _At(NamedTuple):
    """What is below a node at hand, on average over its peers: different nodes that take its place in turn.

    What is below different nodes is no more than the document has, times its depth; so an average is less
    than the most by as much as there are peers.
    """

    nodes: float
    text: float
    peers: float = 1.0


class _Found(NamedTuple):
    """What an expression costs, and what comes of it: nodes, or letters; and what is below such a node."""

    work: float
    size: float
    at: _At


def work_of(expression: Expression, sizes: Sizes) -> float:
    """Bound the steps that an expression takes."""
    return _Bound(sizes).of(expression, _At(sizes.nodes, sizes.text)).work


class _Bound:
    """The bounds for one document."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes

    def of(self, expression: Expression, at: _At) -> _Found:
        match expression:
            case syntax.Literal(value):
                return _Found(1.0, float(len(value)), at)
            case syntax.Number():
                return _Found(1.0, _NUMBER, at)
            case syntax.Negative(operand):
                return self._numbers((operand,), at)
            case syntax.Chain(signs, operands):
                return self._chain(signs[0], operands, at)
            case syntax.Call(name, arguments):
                return self._call(name, arguments, at)
            case syntax.Filtered(operand, conditions):
                bound = self.of(operand, at)
                return self._filtered(bound, conditions)
            case syntax.Path(steps, absolute, start):
                return self._path(steps, at, absolute=absolute, start=start)

    def _chain(self, sign: str, operands: Sequence[Expression], at: _At) -> _Found:
        bounds = [self.of(each, at) for each in operands]
        work = sum(each.work for each in bounds) + len(bounds)
        if sign == "|":
            size = sum(each.size for each in bounds)
            return _Found(work + size * size / _COMPARED, min(size, self._sizes.nodes), self._anywhere(size))
        if sign in ("or", "and"):
            return _Found(work, 1.0, at)
        work += sum(self._texts(each, one) for each, one in zip(operands, bounds, strict=True))
        if (
            sign not in ("+", "-", "*", "div", "mod")
            and syntax.type_of(operands[0]) == syntax.type_of(operands[1]) == syntax.NODES
        ):
            work += bounds[0].size * bounds[1].size / _COMPARED
        return _Found(work, _NUMBER, at)

    def _numbers(self, operands: Sequence[Expression], at: _At) -> _Found:
        bounds = [self.of(each, at) for each in operands]
        work = sum(each.work + self._texts(given, each) for given, each in zip(operands, bounds, strict=True))
        return _Found(work, _NUMBER, at)

    def _texts(self, expression: Expression, bound: _Found) -> float:
        """Bound the letters of all that an expression finds."""
        return bound.size * bound.at.text if syntax.type_of(expression) == syntax.NODES else bound.size

    def _length(self, expression: Expression, bound: _Found) -> float:
        """Bound the letters of an expression as a text: that of the first node."""
        kind = syntax.type_of(expression)
        return (
            bound.at.text * min(1.0, bound.size)
            if kind == syntax.NODES
            else bound.size
            if kind == syntax.STRING
            else _NUMBER
        )

    def _call(self, name: str, arguments: Sequence[Expression], at: _At) -> _Found:
        bounds = [self.of(each, at) for each in arguments]
        work = sum(each.work for each in bounds) + 1
        if name in ("count", "boolean", "not", "true", "false", "last", "position"):
            return _Found(work, _NUMBER, at)
        if name == "sum":
            return _Found(work + self._texts(arguments[0], bounds[0]), _NUMBER, at)
        if name == "id":
            work += self._texts(arguments[0], bounds[0])
            return _Found(work, self._sizes.nodes, self._anywhere(self._sizes.nodes))
        if name == "lang":
            return _Found(work + self._sizes.depth, _NUMBER, at)
        if name in ("name", "local-name", "namespace-uri"):
            return _Found(work, 2 * _NUMBER, at)
        lengths = [self._length(each, one) for each, one in zip(arguments, bounds, strict=True)] or [at.text]
        work += sum(lengths)
        if name == "translate":
            work += lengths[0] * lengths[1] / _TRANSLATED
        elif name in ("contains", "starts-with", "substring-before", "substring-after"):
            work += lengths[0] * lengths[1] / _NUMBER
        if name == "concat":
            return _Found(work, sum(lengths), at)
        short = name not in ("string", "normalize-space", "translate") and not name.startswith("substring")
        return _Found(work, _NUMBER if short else lengths[0], at)

    def _anywhere(self, count: float) -> _At:
        """Return what is below each of some different nodes, wherever they are."""
        count = max(count, 1.0)
        share = min(count, self._sizes.depth) / count
        return _At(max(1.0, share * self._sizes.nodes), share * self._sizes.text, count)

    def _filtered(self, bound: _Found, conditions: Sequence[Expression]) -> _Found:
        work, size = bound.work, bound.size
        for each in conditions:
            work += size * (self.of(each, bound.at).work + 1)
            if isinstance(each, syntax.Number):
                size = min(size, 1.0)
        return _Found(work, size, bound.at)

    def _path(self, steps: Sequence[Step], at: _At, *, absolute: bool, start: Expression | None) -> _Found:
        work, count = 0.0, 1.0
        # The nodes of a set are asked together, those that it is asked of one after another.
        peers = 1.0 if absolute else at.peers
        if absolute:
            at = _At(self._sizes.nodes, self._sizes.text)
        elif start is not None:
            work, count, at = self.of(start, at)
            at = at._replace(peers=1.0 if at.peers == 1 else peers)
        skip = False
        for step, after in zip_longest(steps, steps[1:]):
            if skip:
                skip = False
                continue
            # Two steps that are written as one.
            skip = step is syntax.ANYWHERE and after is not None and after.axis == "child"
            skip = skip and not any(map(syntax.is_positional, after.conditions))
            bound = self._step("descendant" if skip else step.axis, after if skip else step, count, at)
            work += bound.work
            count, at = bound.size, bound.at._replace(peers=peers)
        return _Found(work, count, at)

    def _step(self, axis: str, step: Step, count: float, at: _At) -> _Found:
        sizes, extent = self._sizes, self._extent(axis, step.label)
        named, peers = extent.named, at.peers
        match axis:
            case "child" | "attribute":
                visited = min(count * at.nodes, count * sizes.wide, max(1.0, sizes.nodes / peers))
            case "descendant" | "descendant-or-self":
                visited = count * at.nodes + count
            case "ancestor" | "ancestor-or-self":
                visited = count * sizes.depth
            case "following-sibling" | "preceding-sibling":
                visited = count * sizes.wide
            case "following" | "preceding":
                visited = count * sizes.nodes
            case "namespace":
                visited = count * sizes.spaces
            case _:
                visited = count
        # Each of the nodes that there are, from each of those that can lead to it.
        if axis in ("child", "attribute"):
            leading = 1.0 / peers
        elif axis.startswith("descendant"):
            leading = min(count * peers, sizes.depth) / peers
        else:
            leading = count
        hits = min(visited, leading * named)
        size = min(hits, named)
        work = visited
        inner = self._below(axis, extent, size, count, at)
        kept = hits
        for each in step.conditions:
            work += kept * (self.of(each, inner).work + 1)
            if isinstance(each, syntax.Number):
                kept = min(kept, count)
        size = min(size, kept)
        if axis not in _UNIQUE and count > 1:
            work += kept * size / _COMPARED
        return _Found(work, size, inner)

    def _below(self, axis: str, extent: Extent, size: float, count: float, at: _At) -> _At:
        """Return what is below each of the nodes that a step finds."""
        sizes = self._sizes
        if axis == "self":
            return at
        if axis in ("attribute", "namespace"):
            return _At(0.0, extent.text / max(extent.named, 1.0), max(1.0, size * at.peers))
        if axis not in ("child", "descendant", "descendant-or-self"):
            # From different nodes it may lead to the same one, which has most below it.
            return self._anywhere(size) if at.peers == 1 else _At(sizes.nodes, sizes.text)
        anywhere = self._anywhere(size * at.peers)
        # All nodes of the name, if all are found; if fewer are, they may be those that have the most.
        nodes, text = extent.nodes / anywhere.peers, extent.text / anywhere.peers
        anywhere = _At(max(1.0, min(anywhere.nodes, nodes)), min(anywhere.text, text), anywhere.peers)
        if axis != "child":
            return anywhere
        # Below children there is no more than below their parents, all together.
        most = max(size, 1.0)
        nodes, text = count * at.nodes / most, count * at.text / most
        return _At(max(1.0, min(anywhere.nodes, nodes)), min(anywhere.text, text), anywhere.peers)

    def _extent(self, axis: str, label: str) -> Extent:
        """Return what a step can find in the document."""
        sizes = self._sizes
        local = syntax.local_name(label)
        if local is not None and axis != "namespace":
            return sizes.names(local)
        times = 1.0 if axis == "attribute" or label == TEXT else sizes.depth
        return Extent(sizes.nodes, sizes.nodes * times, sizes.text * times)
