"""Filter text to a tree pattern: the tree of the text, if it says no more than a pattern can.

A tree pattern is a path downwards, or several, with conditions that must all hold: paths, and comparisons of
paths with texts and numbers. Nodes of the pattern are in the order in which they are written. In the tree
notation a path in brackets begins with / or // at the step before them, and `val` is that step itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.subscription import TREE, XPATH, check_dialect
from headgate.core.text.cutting import BoundedCache, RefusedFilterError
from headgate.errors import FilterError
from headgate.xml.language import model, refusal, syntax
from headgate.xml.language.grammar import parse_expression
from headgate.xml.language.refusal import MAX_NODES, MAX_TESTS, check_text, shown
from headgate.xml.language.values import wanted_word
from headgate.xml.language.words import cut, places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.xml.language.syntax import Expression, Step

_EQUAL = frozenset(("=", "!="))
_KINDS = frozenset((model.ANY, model.ANY_ATTRIBUTE, model.TEXT))
"""Labels of patterns that are no names."""


def _below(label: str) -> str:
    """Say why nothing is below a node with a label; nothing if it may be."""
    if label == model.TEXT:
        return "a text has nothing below it: put text() last"
    if label[0] == "@":
        return "an attribute has nothing below it: put it last, or in brackets"
    return "" if label == model.ANY or label[-1] not in "*)" else "only elements have something below them"


_closed = BoundedCache(_below)


def parse_filter(text: str, dialect: str = XPATH) -> model.Pattern:
    """Parse a filter; refuse what is no tree pattern, with position and reason.

    >>> [(node.label, node.returns) for node in parse_filter("//news[company = 'ACME']//headline{id}").nodes]
    [('news', ()), ('company', ()), ('headline', ('id',))]
    >>> parse_filter("//news[1]")
    Traceback (most recent call last):
    ...
    headgate.errors.FilterError: [1] asks for a position, which is not supported: tell nodes apart by what they contain, at character 8: //news[⟪1]
    """  # noqa: E501 -- the message is one line
    check_dialect(dialect, (XPATH, TREE), "XML events")
    texts = cut(check_text(text))
    try:
        return pattern_of(parse_expression(texts, dialect), texts, dialect)
    except RefusedFilterError as refused:
        raise placed(refused, text) from None


def placed(refused: RefusedFilterError, text: str) -> FilterError:
    """Say where in a text a word is refused."""
    return FilterError(refused.reason, text, places(text)[refused.number])


def pattern_of(tree: Expression, texts: Sequence[str], dialect: str) -> model.Pattern:
    """Make the pattern of a tree; refuses one that is more, at the first word that is."""
    reader = _Reader(texts, dialect)
    last = reader.condition(tree, model.ROOT)
    nodes = reader.nodes
    while type(tree) is syntax.Filtered:
        tree = tree.operand
    if type(tree) is syntax.Path and not reader.marked:
        node = nodes[last]
        nodes[last] = model.Node(node.label, node.axis, node.parent, node.tests, (model.CONT,))
    return model.Pattern(tuple(nodes))


class _Reader:
    """Walks a tree and collects the nodes of the pattern."""

    def __init__(self, texts: Sequence[str], dialect: str) -> None:
        self._texts = texts
        self._tree = dialect == TREE
        self.nodes: list[model.Node] = []
        self._tests: dict[int, tuple[model.Test, ...]] = {}
        """Those of nodes whose brackets are still being walked."""
        self.marked = False

    def condition(self, expression: Expression, base: int) -> int:
        """Walk a condition on a node, or on the document; return the node where its last path ends."""
        if isinstance(expression, syntax.Path):
            return self._path(expression, base)
        if isinstance(expression, syntax.Chain):
            sign = expression.signs[0]
            if sign in syntax.COMPARING:
                return self._compare(expression, base)
            if sign == "and":
                last = base
                for each in expression.operands:
                    last = self.condition(each, base)
                return last
            raise RefusedFilterError(refusal.not_an_operator(sign), expression.at)
        if isinstance(expression, syntax.Call):
            return self._call(expression, base)
        if isinstance(expression, syntax.Filtered):
            if expression.conditions:
                raise RefusedFilterError(refusal.BEHIND, expression.at)
            return self.condition(expression.operand, base)
        raise self._alone(expression)

    def _alone(self, value: Expression) -> RefusedFilterError:
        """Refuse a value that is a condition by itself."""
        at, sign = value.at, ""
        while isinstance(value, syntax.Negative):
            value, sign = value.operand, "-"
        if isinstance(value, syntax.Number):
            text = f"{sign}{value.text}"
            if at and self._texts[at - 1] == "[":
                return RefusedFilterError(
                    f"[{text}] asks for a position, which is not supported: {refusal.POSITION}", at
                )
            return RefusedFilterError(f"{text} alone is not a condition: compare a path with it", at)
        if isinstance(value, syntax.Literal):
            text = self._texts[value.at]
            return RefusedFilterError(f"{shown(text)} alone is not a condition: compare a path with it", at)
        return RefusedFilterError(refusal.not_an_operator("-"), at)

    def _compare(self, comparison: syntax.Chain, base: int) -> int:
        signs, operands = comparison.signs, comparison.operands
        if len(signs) > 1:
            raise RefusedFilterError(
                f"one comparison at a time: join two by and, as in [a > 1 and a {signs[1]} 5]", comparison.at
            )
        left, right = operands
        sign = signs[0]
        if type(left) is not syntax.Path:
            if type(right) is not syntax.Path:
                raise self._uncompared(left, comparison.at)
            left, right, sign = right, left, syntax.TURNED[sign]
        value: str | float
        if type(right) is syntax.Literal:
            value = right.value
            if sign not in _EQUAL:
                raise RefusedFilterError(
                    "texts have no order: compare with a number, without quotes", right.at
                )
        elif type(right) is syntax.Number:
            value = right.value
        elif type(right) is syntax.Negative and type(right.operand) is syntax.Number:
            value = 0.0 - right.operand.value
        elif type(right) is syntax.Path:
            word = shown(self._texts[right.at])
            raise RefusedFilterError(
                f"{word} is a path, and paths are compared with a text in quotes or a number only", right.at
            )
        else:
            raise self._uncompared(right, comparison.at)
        return self._path(left, base, model.Test(sign, value), right.at)

    def _uncompared(self, operand: Expression, at: int) -> RefusedFilterError:
        """Refuse an operand that is neither a path nor a value, or two values."""
        match operand:
            case syntax.Literal() | syntax.Number():
                word = shown(self._texts[at + 1])
                return RefusedFilterError(
                    f"{word} is compared with another value: one side is a path", at + 1
                )
            case syntax.Call(name) if name not in syntax.PATTERN_CALLS:
                return RefusedFilterError(refusal.unsupported(name), operand.at)
            case syntax.Chain((sign, *_)) if sign not in syntax.COMPARING and sign != "and":
                return RefusedFilterError(refusal.not_an_operator(sign), operand.at)
            case syntax.Negative():
                return RefusedFilterError(refusal.not_an_operator("-"), operand.at)
            case syntax.Filtered():
                return RefusedFilterError(refusal.BEHIND, operand.at)
            case _:
                return RefusedFilterError("a condition is not compared: write it alone", at)

    def _call(self, call: syntax.Call, base: int) -> int:
        name, arguments = call.name, call.arguments
        if name not in syntax.PATTERN_CALLS:
            raise RefusedFilterError(refusal.unsupported(name), call.at)
        path, value = arguments[:2]
        if type(path) is not syntax.Path:
            first = shown(self._texts[path.at])
            raise RefusedFilterError(
                f"{first} is no path: the first argument is a path, the second a text in quotes", path.at
            )
        if type(value) is not syntax.Literal:
            second = shown(self._texts[value.at])
            raise RefusedFilterError(
                f"{name}() needs a text: write '{second}' in quotes"
                if type(value) is syntax.Number
                else f"{second} is a path: the second argument is a text in quotes"
                if type(value) is syntax.Path
                else f"{second} is no text: the second argument is a text in quotes",
                value.at,
            )
        wanted = value.value
        if name == model.WORD:
            word = wanted_word(wanted)
            if word is None:
                raise RefusedFilterError(refusal.BAD_REGEX, value.at)
            wanted = word
            if len(arguments) == 2 or type(arguments[2]) is not syntax.Literal or arguments[2].value != "i":
                raise RefusedFilterError(refusal.BAD_FLAGS, arguments[-1].at)
        return self._path(path, base, model.Test(name, wanted), value.at)

    def _test(self, node: int, test: model.Test, at: int) -> None:
        """Put a test on a node."""
        tests = self._tests[node] = (*self._tests.get(node, ()), test)
        if len(tests) > MAX_TESTS:
            raise RefusedFilterError(f"a step has more than {MAX_TESTS} conditions on its value", at)

    def _path(self, path: syntax.Path, base: int, test: model.Test | None = None, at: int = -1) -> int:
        """Walk a path, and put a test on the node where it ends; returns that; hot."""
        steps = path.steps
        if path.start is not None:
            raise RefusedFilterError(refusal.BEHIND, path.at)
        if path.absolute:
            if not steps:
                raise RefusedFilterError("/ alone is the document: write /* for its root element", path.at)
            if base != model.ROOT and not self._tree:
                raise self._absolute(path)
        elif (steps[0].axis == "self" or self._tree) and len(steps) == 1 and self._own(steps[0], test):
            if test is not None:
                self._test(base, test, at)
            return base
        nodes, node, axis, last = self.nodes, base, model.CHILD, steps[-1]
        closed = "" if base == model.ROOT else _closed[nodes[base].label]
        for step in steps:
            if step is syntax.ANYWHERE:
                axis = model.DESCENDANT
                continue
            label = step.label
            if step.axis != "child":
                if step.axis == "descendant":
                    axis = model.DESCENDANT
                elif self._is_own(step) and step is steps[0] and not (path.absolute or self._tree):
                    continue
                elif step.axis != "attribute":
                    raise self._unusual(step)
            if closed:
                raise RefusedFilterError(closed, step.at)
            closed = _closed[label]
            if closed:
                self._check_closed(step, root=node == model.ROOT and axis == model.CHILD)
            parent, node = node, len(nodes)
            if node == MAX_NODES:
                raise RefusedFilterError(f"the filter has more than {MAX_NODES} steps", step.at)
            returns = step.returns
            if returns is None:
                returns = ()
            else:
                self.marked = True
            tests: tuple[model.Test, ...]
            if not step.conditions:
                tests = () if test is None or step is not last else (test,)
                nodes.append(model.Node(label, axis, parent, tests, returns))
            else:
                nodes.append(model.Node(label, axis, parent, (), returns))
                for each in step.conditions:
                    if type(each) is syntax.Path:
                        self._path(each, node)
                    else:
                        self.condition(each, node)
                if test is not None and step is last:
                    self._test(node, test, at)
                tests = self._tests.pop(node, ())
                if tests:
                    nodes[node] = model.Node(label, axis, parent, tests, returns)
            axis = model.CHILD
        if axis != model.CHILD:
            raise RefusedFilterError(refusal.not_an_axis("descendant-or-self"), path.at)
        return node

    def _check_closed(self, step: Step, *, root: bool) -> None:
        """Refuse a kind of nodes that patterns have not, and what cannot be right below the document."""
        label = step.label
        if label[-1] in "*)" and (label not in _KINDS or (label == model.TEXT and step.axis == "attribute")):
            raise self._unusual(step)
        if root:
            raise RefusedFilterError(
                f"only the root element is right below the document: write //{label}", step.at
            )

    def _own(self, step: Step, test: model.Test | None) -> bool:
        """Tell whether a path of one step is the node itself."""
        if self._tree:
            if test is None or step.at < 0 or self._texts[step.at] != "val" or step.conditions:
                return False
            if step.returns is not None:
                raise RefusedFilterError("val is the node's own value: a child of that name is /val", step.at)
            return True
        if not self._is_own(step):
            return False
        if test is None:
            raise RefusedFilterError("'.' is always there: compare it with something", step.at)
        return True

    @staticmethod
    def _is_own(step: Step) -> bool:
        return step.axis == "self" and step.label == syntax.NODE and not step.conditions

    def _absolute(self, path: syntax.Path) -> RefusedFilterError:
        """Refuse a path in brackets that begins at the document."""
        first = path.steps[1] if path.steps[0] is syntax.ANYWHERE else path.steps[0]
        deep = path.steps[0] is syntax.ANYWHERE or first.axis == "descendant"
        name = self._texts[first.at + self._texts[first.at].endswith("::")]
        relative = f"{'.//' * deep}{'@' * (first.label[0] == '@' and name[0] != '@')}{shown(name)}"
        return RefusedFilterError(
            f"a path in brackets begins at the step before them: write {relative}", path.at
        )

    def _unusual(self, step: Step) -> RefusedFilterError:
        """Refuse a step that patterns have not."""
        word = self._texts[step.at]
        if self._tree and word == ".":
            last = self._texts[step.at + 1 : step.at + 2] not in (["/"], ["//"])
            reason = f"'.' is not in the tree notation: {'write val' if last else 'leave it out'}"
        elif word == ".":
            reason = "'.' stands at the beginning of a path only: leave it out"
        elif word == "..":
            reason = f".. is not supported: {refusal.AXES['parent']}"
        elif step.axis in refusal.AXES:
            reason = refusal.not_an_axis(step.axis)
        elif step.axis == "attribute" and step.label[-1] == ")":
            reason = f"{step.label} is not looked for behind an axis: leave the axis out"
        elif step.label[-1] == "*":
            reason = refusal.all_names("@" * (word[0] == "@"))
        else:
            reason = refusal.unsupported(step.label.partition("(")[0])
        return RefusedFilterError(reason, step.at)
