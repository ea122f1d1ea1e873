"""Words to an expression of XPath 1.0: operators by their precedence, and everything else by descent.

Depth is bounded before (`check_shape`), and a row of operators is one chain, so no filter exhausts a stack.
What is well-formed and cannot be evaluated is refused here too: a count of what is no path, a path without a
beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.xml.language import refusal, words
from headgate.xml.language.refusal import RefusedFilterError, shown
from headgate.xml.language.words import label_of, number_of, text_of
from headgate.xml.whole.syntax import (
    ABOVE,
    ANY_NODE,
    ANYWHERE,
    AXES,
    COMMENTS,
    FUNCTIONS,
    HERE,
    INSTRUCTIONS,
    LEVELS,
    NAMED,
    NODES,
    OF_NODES,
    TEXTS,
    Call,
    Chain,
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
    from collections.abc import Sequence

    from headgate.xml.language.words import Kinds
    from headgate.xml.whole.syntax import Expression

_NEGATIVE = 7
_SLASHES = ("/", "//")
_KINDS = {"node": ANY_NODE, "comment": COMMENTS, "processing-instruction": INSTRUCTIONS}
_STEPS = frozenset(
    (
        *(words.NAME, words.ATTRIBUTE, words.TEXT_STEP, words.WILD, words.SELF, words.PARENT, words.AXIS),
        *(words.AND, *words.AXES.values()),
    )
)
_CALLS = frozenset((words.FUNCTION, *words.FUNCTIONS.values()))
_HERE_ONLY = frozenset(("position", "last", "name", "local-name", "namespace-uri", "lang"))
"""Functions about the node at hand, which a filter as a whole has none of."""
_END = ""


def parse_expression(texts: Sequence[str], kinds: Kinds) -> Expression:
    """Read the words of a filter; refuses what XPath 1.0 has not, at the word.

    >>> from headgate.xml.language.words import cut, kinds_of
    >>> texts = cut("//a[b or 2]")
    >>> parse_expression(texts, kinds_of(texts, "xpath")).steps[1].conditions[0].signs
    ('or',)
    """
    parser = _Parser(texts, kinds)
    found = parser.expression(0)
    if parser.at < len(texts):
        raise parser.misplaced()
    return found


class VagueRefusalError(RefusedFilterError):
    """A word that cannot stand where it stands, and nothing more is known."""


class _Parser:
    """Words, and how far they are read."""

    def __init__(self, texts: Sequence[str], kinds: Kinds) -> None:
        self._texts = (*texts, _END)
        self._kinds = (*kinds, _END)
        self.at = 0
        self._inside = 0
        """How many brackets are open: within one there is a node at hand."""

    def refused(self, reason: str, at: int | None = None) -> RefusedFilterError:
        return RefusedFilterError(reason, self.at if at is None else at)

    def misplaced(self) -> RefusedFilterError:
        """Refuse the word at hand."""
        word, kind = self._texts[self.at], self._kinds[self.at]
        if kind == words.PREFIXED and self._texts[self.at + 1] == "(":
            return self.refused(f"{shown(word)}() is an extension: only functions of XPath 1.0 are evaluated")
        reason = _cannot(word, kind)
        return (
            self.refused(reason) if reason else VagueRefusalError(f"{shown(word)} cannot stand here", self.at)
        )

    def expression(self, least: int) -> Expression:
        """Read operands and the operators between them that bind tighter than `least`."""
        left = self._operand()
        while True:
            word = self._texts[self.at]
            level = LEVELS.get(word, 0)
            if level <= least:
                return left
            begin = self.at
            signs: list[str] = []
            operands = [left]
            while LEVELS.get(self._texts[self.at], 0) == level:
                signs.append(self._texts[self.at])
                self.at += 1
                operands.append(self.expression(level))
            left = Chain(tuple(signs), tuple(operands))
            if level == LEVELS["|"]:
                for each in operands:
                    if type_of(each) != NODES:
                        raise self.refused(
                            "| joins paths, and one side is none: join conditions by or", begin
                        )

    def _operand(self) -> Expression:
        minus = 0
        while self._texts[self.at] == "-":
            minus += 1
            self.at += 1
        if not minus:
            return self._path()
        # Two of them are one number, not nothing: they make a number of what is none.
        operand: Expression = Negative(self.expression(_NEGATIVE))
        return operand if minus % 2 else Negative(operand)

    def _path(self) -> Expression:
        begin, word, kind = self.at, self._texts[self.at], self._kinds[self.at]
        if word in _SLASHES:
            self.at += 1
            steps: list[Step] = [] if word == "/" else [ANYWHERE]
            if word == "/" and not self._is_step():
                return Path((), absolute=True)
            steps.append(self._step())
            return Path(self._more(steps), absolute=True)
        if self._is_step():
            if not self._inside:
                raise VagueRefusalError(_begin(word, kind), self.at)
            return Path(self._more([self._step()]))
        primary = self._primary()
        conditions = self._conditions()
        if conditions:
            primary = Filtered(primary, conditions)
        if (conditions or self._texts[self.at] in _SLASHES) and (
            type_of(primary.operand if isinstance(primary, Filtered) else primary) != NODES
        ):
            raise self.refused("brackets and / stand behind paths only, and this is none", begin)
        if self._texts[self.at] in _SLASHES:
            return Path(self._more([]), start=primary)
        return primary

    def _more(self, steps: list[Step]) -> tuple[Step, ...]:
        while (word := self._texts[self.at]) in _SLASHES:
            self.at += 1
            if word == "//":
                steps.append(ANYWHERE)
            if not self._is_step():
                if self.at == len(self._texts) - 1:
                    raise VagueRefusalError("the filter ends too early: expected a step", self.at)
                raise self.misplaced()
            steps.append(self._step())
        return tuple(steps)

    def _is_step(self) -> bool:
        kind = self._kinds[self.at]
        if kind in _CALLS:
            return self._texts[self.at][:-1].rstrip(words.GAPS) in _KINDS
        return kind in _STEPS

    def _step(self) -> Step:
        word, kind = self._texts[self.at], self._kinds[self.at]
        if kind in (words.SELF, words.PARENT):
            self.at += 1
            if self._texts[self.at] == "[":
                raise self.refused(
                    "brackets cannot stand behind . and ..: write self::node() or parent::node()"
                )
            return HERE if kind == words.SELF else ABOVE
        axis = "child"
        if kind in (words.AXIS, *words.AXES.values()):
            axis = word[:-2].rstrip(words.GAPS)
            if axis not in AXES:
                raise self.refused(f"{shown(axis)}:: is no axis")
            self.at += 1
        elif word[0] == "@":
            axis = "attribute"
        test = self._test(behind_axis=word.endswith("::"))
        return Step(axis, test, self._conditions())

    def _test(self, *, behind_axis: bool) -> NodeTest:
        word, kind = self._texts[self.at], self._kinds[self.at]
        if kind in _CALLS and self._is_step():
            name = word[:-1].rstrip(words.GAPS)
            self.at += 1
            target = None
            if name == INSTRUCTIONS and self._kinds[self.at] == words.STRING:
                target = text_of(self._texts[self.at])
                self.at += 1
            self._take(")", f"{name}() has nothing between its parentheses")
            return NodeTest(_KINDS[name], None, target)
        if kind == words.WILD and not word.lstrip("@" + words.GAPS).startswith(("Q{", "xml:")):
            raise self.refused(_undeclared(word))
        self.at += 1
        if kind == words.TEXT_STEP:
            return NodeTest(TEXTS)
        if kind in (words.NAME, words.WILD, words.AND, words.ATTRIBUTE) and not (
            behind_axis and word[0] == "@"
        ):
            return _named(label_of[word].removeprefix("@"))
        self.at -= 1
        if kind == _END:
            raise VagueRefusalError("the filter ends too early: expected a name", self.at)
        raise self.misplaced()

    def _conditions(self) -> tuple[Expression, ...]:
        found: list[Expression] = []
        while self._texts[self.at] == "[":
            self.at += 1
            if self._texts[self.at] == "]":
                raise self.refused("the brackets are empty: write a condition, such as [b] or [. = 'x']")
            self._inside += 1
            found.append(self.expression(0))
            self._inside -= 1
            self._take("]", "a bracket is still open")
        return tuple(found)

    def _primary(self) -> Expression:
        word, kind, begin = self._texts[self.at], self._kinds[self.at], self.at
        self.at += 1
        if kind == words.STRING:
            return Literal(text_of(word))
        if kind == words.NUMBER:
            value = number_of(word, negative=False)
            if value is None:
                raise self.refused("the number is too large", begin)
            return Number(value, word)
        if word == "(":
            inner = self.expression(0)
            self._take(")", "a parenthesis is still open")
            # A minus or an operator in parentheses is an operand of its own: a path in them is the same path.
            return inner
        if kind in _CALLS:
            return self._call(word[:-1].rstrip(words.GAPS), begin)
        self.at = begin
        if kind == _END:
            raise VagueRefusalError("the filter ends too early: expected a path or a condition", self.at)
        raise self.misplaced()

    def _call(self, name: str, begin: int) -> Expression:
        if name not in FUNCTIONS:
            advice = f": {refusal.FUNCTIONS[name]}" if name in refusal.FUNCTIONS else ""
            raise self.refused(f"{shown(name)}() is not a function of XPath 1.0{advice}", begin)
        arguments: list[Expression] = []
        if self._texts[self.at] != ")":
            arguments.append(self.expression(0))
            while self._texts[self.at] == ",":
                self.at += 1
                arguments.append(self.expression(0))
        self._take(")", "a parenthesis is still open")
        _, least, most = FUNCTIONS[name]
        if len(arguments) < least or (most is not None and len(arguments) > most):
            wanted = (
                f"{least}" if least == most else f"{least} or more" if most is None else f"{least} to {most}"
            )
            raise self.refused(f"{name}() takes {wanted} arguments, not {len(arguments)}", begin)
        if name in OF_NODES and arguments and type_of(arguments[0]) != NODES:
            raise self.refused(f"{name}() takes a path", begin)
        if not self._inside and name in _HERE_ONLY and not (arguments and name != "lang"):
            raise self.refused(f"{name}() is about the node at hand: write it in brackets", begin)
        return Call(name, tuple(arguments))

    def _take(self, word: str, otherwise: str) -> None:
        if self._texts[self.at] != word:
            if self.at == len(self._texts) - 1:
                raise VagueRefusalError(otherwise, self.at)
            raise self.misplaced()
        self.at += 1


def _named(label: str) -> NodeTest:
    """Return the test of a label.

    >>> _named("{urn:x}a"), _named("*:a").space, _named("*").local
    (NodeTest(kind='name', space='urn:x', local='a'), None, None)
    """
    if label == "*":
        return NodeTest(NAMED)
    if label.startswith("*:"):
        return NodeTest(NAMED, None, label[2:])
    space, _, local = label[1:].rpartition("}") if label.startswith("{") else ("", "", label)
    return NodeTest(NAMED, space, None if local == "*" else local)


def _begin(word: str, kind: str) -> str:
    if kind in (words.SELF, words.PARENT):
        return "a filter begins at the document: write / or // in place of ."
    return f"a filter begins at the document: write //{shown(word)} or /{shown(word)}"


def _cannot(word: str, kind: str) -> str:
    """Say why a word can stand nowhere; nothing if it can."""
    if kind == words.MARK:
        return "marks go with tree patterns only, and this filter asks for more: leave the marks out"
    if kind == words.VARIABLE:
        return f"{shown(word)} is a variable, and filters have none: write the value"
    if kind == words.EXPONENT:
        return f"{shown(word)} has an exponent: write the number with digits and a point"
    return _undeclared(word) if kind == words.PREFIXED else ""


def _undeclared(word: str) -> str:
    prefix, _, local = word.lstrip("@" + words.GAPS).partition(":")
    return f"the prefix {prefix}: is not declared: declare it for the set, or write Q{{namespace}}{local}"
