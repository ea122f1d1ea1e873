"""Words to a tree: XPath 1.0, with the marks and words of tree patterns, in both dialects.

Operators are read by their precedence, everything else by descent. A row of operators is one chain and depth
is bounded, so no filter exhausts a stack. What cannot be evaluated is refused here too: a count of what is no
path, a path without a beginning. What is more than a tree pattern is not: `parse.py` tells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.subscription import TREE
from headgate.core.text.cutting import RefusedFilterError
from headgate.xml.language import refusal, syntax, words
from headgate.xml.language.model import TEXT
from headgate.xml.language.refusal import MAX_DEPTH, MAX_WORDS, shown
from headgate.xml.language.words import (
    END,
    kind_of,
    label_of,
    name_in,
    number_of,
    returns_of,
    step_of,
    text_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.xml.language.syntax import Expression

_SLASHES = frozenset(("/", "//"))
_QUOTES, _DIGITS = "'\"", "0123456789"
_LONE = frozenset((*syntax.LEVELS, END, "]", ")", ",")) - {"*", "and", "or", "div", "mod"}
"""Behind a / that is the document itself."""
_BEHIND = frozenset((*_LONE, *syntax.LEVELS, *_SLASHES, "["))
"""Signs behind a step; another word may be its mark."""
_GOING_ON = frozenset((*_SLASHES, "["))
_KINDS = {
    "node": syntax.NODE,
    "comment": syntax.COMMENT,
    "processing-instruction": syntax.INSTRUCTION,
    "text": TEXT,
}
_SHORT = {".": "self", "..": "parent"}
_BEGINNINGS = frozenset((*_SLASHES, *_SHORT))
_STEPS = frozenset((words.AXIS, words.WILD, words.PREFIXED))
_HERE_ONLY = frozenset(("position", "last", "name", "local-name", "namespace-uri", "lang"))
"""Functions about the node at hand, which a filter as a whole has none of."""


def parse_expression(texts: Sequence[str], dialect: str) -> Expression:
    """Read the words of a filter; refuses what neither XPath 1.0 nor a tree pattern has, at the word.

    >>> from headgate.xml.language.words import cut
    >>> parse_expression(cut("//a[b or 2]"), "xpath").steps[1].conditions[0].signs
    ('or',)
    """
    if len(texts) > MAX_WORDS:
        raise RefusedFilterError(
            f"the filter has {len(texts):,} words and at most {MAX_WORDS:,} are taken", MAX_WORDS
        )
    return _Parser(texts, dialect).whole()


class _Parser:
    """Words, and how far they are read."""

    def __init__(self, texts: Sequence[str], dialect: str) -> None:
        self._words = [*texts, END]
        self._dialect = dialect
        self._mark = "_{" if dialect == TREE else "{"
        self._at = 0
        self._depth = 0
        """How many brackets and parentheses are open."""
        self._inside = 0
        """How many brackets are open: within one there is a node at hand."""
        self._late: RefusedFilterError | None = None
        """What is refused if the filter is well-formed."""

    def whole(self) -> Expression:
        """Read all words."""
        if self._words[0] == END:
            raise RefusedFilterError("the filter is empty: write a path such as //news[company = 'ACME']", 0)
        expression = self._expression()
        if self._at < len(self._words) - 1:
            raise refusal.not_behind(self._words, self._at, "and or the end", self._dialect)
        if self._late is not None:
            raise self._late
        return expression

    def _expression(self, least: int = 0) -> Expression:
        """Read operands and the operators between them that bind tighter than `least`."""
        return self._joined(self._operand(), least)

    def _joined(self, left: Expression, least: int) -> Expression:
        """Read operators that bind tighter than `least`, and what they join an operand with."""
        texts = self._words
        sign = texts[self._at]
        level = syntax.LEVELS.get(sign, 0)
        while level > least:
            begin = self._at
            self._at = begin + 1
            operands, signs = [left, self._joined(self._operand(), level)], [sign]
            while syntax.LEVELS.get(sign := texts[self._at], 0) == level:
                signs.append(sign)
                self._at += 1
                operands.append(self._joined(self._operand(), level))
            if level == syntax.UNION and any(syntax.type_of(each) != syntax.NODES for each in operands):
                raise RefusedFilterError("| joins paths, and one side is none: join conditions by or", begin)
            left = syntax.Chain(tuple(signs), tuple(operands), begin)
            level = syntax.LEVELS.get(sign, 0)
        return left

    def _operand(self) -> Expression:
        """Read a text, or a path that begins with a usual step, or what else is an operand."""
        begin = self._at
        word = self._words[begin]
        operand: Expression
        if word[0] in _QUOTES and not words.is_open(word):
            operand = syntax.Literal(text_of(word), begin)
        elif word[0] in _DIGITS and word.replace(".", "", 1).isdigit():
            operand = self._number(word)
        elif word in _BEGINNINGS or step_of[word]:
            return self._path()
        else:
            return self._unusual_operand()
        self._at = begin + 1
        self._check_nodes(operand, begin)
        return operand

    def _number(self, word: str) -> syntax.Number:
        value = number_of(word, negative=False)
        if value is None:
            raise RefusedFilterError("the number is too large", self._at)
        return syntax.Number(value, word, self._at)

    def _unusual_operand(self) -> Expression:
        """Read what is neither a text nor a path that begins with a usual step."""
        texts, begin = self._words, self._at
        word = texts[begin]
        kind = kind_of(word, self._dialect)
        if word == "-":
            while texts[self._at] == "-":
                self._at += 1
            odd = (self._at - begin) % 2
            operand: Expression = syntax.Negative(self._expression(syntax.NEGATIVE), begin)
            # Two of them are one number, not nothing: they make a number of what is none.
            return operand if odd else syntax.Negative(operand, begin)
        if self._is_step(word, kind):
            return self._path()
        if kind == words.NUMBER:
            primary: Expression = self._number(word)
            self._at += 1
        elif word == "(":
            self._open()
            primary = self._expression()
            self._close(")", "')' or and")
            # A minus or an operator in parentheses is an operand of its own.
            if isinstance(primary, syntax.Path):
                primary = syntax.Filtered(primary, (), self._at)
        elif kind == words.FUNCTION:
            primary = self._call()
        else:
            raise refusal.no_operand(texts, begin, self._dialect)
        self._check_nodes(primary, begin)
        if texts[self._at] == "[":
            at = self._at
            operand = (
                primary.operand
                if isinstance(primary, syntax.Filtered) and not primary.conditions
                else primary
            )
            primary = syntax.Filtered(operand, self._conditions(), at)
        if texts[self._at] in _SLASHES:
            at = self._at
            steps = [syntax.ANYWHERE] if texts[at] == "//" else []
            self._at += 1
            return syntax.Path(self._steps(steps), start=primary, at=at)
        return primary

    def _path(self) -> syntax.Path:
        texts, begin = self._words, self._at
        if texts[begin] not in _SLASHES:
            if not self._inside and self._late is None:
                self._late = RefusedFilterError(
                    f"a filter begins at the document: write {self._begins()}", begin
                )
            return syntax.Path(self._steps([]), False, None, begin)
        self._at = begin + 1
        if texts[begin] == "//":
            return syntax.Path(self._steps([syntax.ANYWHERE]), True, None, begin)
        if texts[self._at] in _LONE:
            return syntax.Path((), True, None, begin)
        return syntax.Path(self._steps([]), True, None, begin)

    def _begins(self) -> str:
        """Write how a path begins at the document in place of the word at hand."""
        word, behind = self._words[self._at : self._at + 2]
        if word in _SHORT:
            return f"/ or // in place of {word}"
        axis = name_in(word) if word.endswith("::") else ""
        label = step_of[behind if axis else word]
        name = shown(behind if axis else word)
        if not label or axis not in ("", "child", "descendant", "attribute"):
            return "/ or // first"
        if axis == "attribute" or label[0] == "@" or label == TEXT:
            return f"//@{name}" if axis == "attribute" else f"//{name}"
        return f"//{name}" if axis == "descendant" else f"//{name} or /{name}"

    def _steps(self, steps: list[syntax.Step]) -> tuple[syntax.Step, ...]:
        """Read steps and the slashes between them; hot."""
        texts, at = self._words, self._at
        while True:
            begin = at
            label = step_of[texts[at]]
            if label:
                axis = "attribute" if label[0] == "@" else "child"
                at += 1
            else:
                self._at = at
                axis, label = self._unusual_step()
                at = self._at
            word = texts[at]
            returns = None
            if word not in _BEHIND and word.startswith(self._mark) and label != syntax.NODE:
                marked = returns_of[word]
                if isinstance(marked, str):
                    raise RefusedFilterError(marked, at)
                returns = marked
                at += 1
                word = texts[at]
            if word == "[":
                self._at = at
                conditions = self._conditions()
                at = self._at
                word = texts[at]
                steps.append(syntax.Step(axis, label, conditions, returns, begin))
            elif axis == "descendant-or-self" and label == syntax.NODE:
                steps.append(syntax.ANYWHERE)
            else:
                steps.append(syntax.Step(axis, label, (), returns, begin))
            if word == "/":
                at += 1
            elif word == "//":
                steps.append(syntax.ANYWHERE)
                at += 1
            else:
                self._at = at
                return tuple(steps)

    def _is_step(self, word: str, kind: str) -> bool:
        return kind in _STEPS or (kind == words.FUNCTION and name_in(word) in _KINDS)

    def _unusual_step(self) -> tuple[str, str]:
        """Read a step that is no plain name; return its axis and its label."""
        texts, begin = self._words, self._at
        word = texts[begin]
        if word in _SHORT:
            self._at += 1
            if texts[self._at] == "[":
                raise RefusedFilterError(
                    "brackets cannot stand behind . and ..: write self::node() or parent::node()", self._at
                )
            return _SHORT[word], syntax.NODE
        kind = kind_of(word, self._dialect)
        axis = "child"
        if kind == words.AXIS:
            axis = name_in(word)
            self._check_axis(axis)
            self._at += 1
            word = texts[self._at]
            label = step_of[word]
            if label:
                if label[0] == "@":
                    raise RefusedFilterError(
                        f"{shown(word)} cannot stand behind an axis: leave the axis out", self._at
                    )
                self._at += 1
                return axis, f"@{label}" if axis == "attribute" and label != TEXT else label
            kind = kind_of(word, self._dialect)
        if not self._is_step(word, kind) or kind == words.AXIS:
            raise refusal.no_step(texts, self._at, self._dialect)
        if kind == words.FUNCTION:
            label = self._node_test(name_in(word))
            return axis, "@*" if axis == "attribute" and label == syntax.NODE else label
        if kind == words.PREFIXED or not word.lstrip("@" + words.GAPS).startswith(("Q{", "xml:")):
            raise refusal.no_step(texts, self._at, self._dialect)
        self._at += 1
        label = label_of[word]
        if label[0] == "@":
            axis = "attribute"
        return axis, f"@{label}" if axis == "attribute" and label[0] != "@" else label

    def _check_axis(self, axis: str) -> None:
        if axis not in syntax.AXES:
            raise RefusedFilterError(f"{shown(axis)}:: is no axis", self._at)
        if self._dialect == TREE:
            reason = (
                refusal.not_an_axis(axis)
                if axis in refusal.AXES
                else "axes have no names in the tree notation: write / or //"
            )
            raise RefusedFilterError(reason, self._at)

    def _node_test(self, name: str) -> str:
        """Read what asks for a kind of nodes."""
        self._at += 1
        label, word = _KINDS[name], self._words[self._at]
        if label == syntax.INSTRUCTION:
            target = text_of(word) if word[0] in _QUOTES and not words.is_open(word) else ""
            self._at += word[0] in _QUOTES
            label = f"{syntax.INSTRUCTION}({target})"
        if self._words[self._at] != ")":
            raise RefusedFilterError(f"{name}() has nothing between its parentheses", self._at)
        self._at += 1
        return label

    def _conditions(self) -> tuple[Expression, ...]:
        """Read brackets one after another; hot."""
        texts = self._words
        conditions: list[Expression] = []
        self._inside += 1
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse_depth()
        while texts[self._at] == "[":
            at = self._at = self._at + 1
            if step_of[texts[at]]:
                condition: Expression = syntax.Path(self._steps([]), False, None, at)
            else:
                condition = self._operand()
            if texts[self._at] != "]":
                condition = self._joined(condition, 0)
                if texts[self._at] != "]":
                    raise refusal.not_behind(texts, self._at, "']' or and", self._dialect)
            conditions.append(condition)
            self._at += 1
        self._depth -= 1
        self._inside -= 1
        return tuple(conditions)

    def _open(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._refuse_depth()
        self._at += 1

    def _refuse_depth(self) -> None:
        raise RefusedFilterError(f"the filter nests deeper than {MAX_DEPTH}", self._at)

    def _close(self, word: str, expected: str) -> None:
        if self._words[self._at] != word:
            raise refusal.not_behind(self._words, self._at, expected, self._dialect)
        self._depth -= 1
        self._at += 1

    def _call(self) -> syntax.Call:
        begin, texts = self._at, self._words
        name = name_in(texts[begin])
        self._check_function(name)
        self._open()
        arguments: list[Expression] = []
        if texts[self._at] != ")":
            arguments.append(self._argument(name))
            while texts[self._at] == ",":
                self._at += 1
                arguments.append(self._argument(name))
        self._close(")", "')'" if len(arguments) == syntax.FUNCTIONS[name][2] else "',' or ')'")
        _, least, most = syntax.FUNCTIONS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = (
                f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            )
            advice = f": {refusal.ARGUMENTS}" if name in syntax.PATTERN_CALLS else ""
            raise RefusedFilterError(
                f"{name}() takes {wanted} arguments, not {len(arguments)}{advice}", begin
            )
        if name in syntax.OF_NODES and arguments and syntax.type_of(arguments[0]) != syntax.NODES:
            raise RefusedFilterError(f"{name}() takes a path", begin)
        if not self._inside and name in _HERE_ONLY and not (arguments and name != "lang"):
            raise RefusedFilterError(f"{name}() is about the node at hand: write it in brackets", begin)
        return syntax.Call(name, tuple(arguments), begin)

    def _argument(self, name: str) -> Expression:
        if self._words[self._at] == END and name in syntax.PATTERN_CALLS:
            raise RefusedFilterError(refusal.ARGUMENTS, self._at)
        return self._expression()

    def _check_function(self, name: str) -> None:
        """Refuse a function that the dialect has not."""
        if name in syntax.PATTERN_CALLS:
            return
        if self._dialect == TREE or name in refusal.OPERATORS:
            raise RefusedFilterError(refusal.unsupported(name), self._at)
        if name not in syntax.FUNCTIONS:
            advice = f": {refusal.FUNCTIONS[name]}" if name in refusal.FUNCTIONS else ""
            raise RefusedFilterError(f"{shown(name)}() is not a function of XPath 1.0{advice}", self._at)

    def _check_nodes(self, primary: Expression, begin: int) -> None:
        """Refuse brackets and slashes behind what is no path."""
        if self._words[self._at] in _GOING_ON and syntax.type_of(primary) != syntax.NODES:
            raise RefusedFilterError("brackets and / stand behind paths only, and this is none", begin)
