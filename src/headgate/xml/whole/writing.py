"""An expression as lxml reads it: XPath 1.0, with a prefix for each namespace that is named."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from headgate.xml.language.words import XML_NAMESPACE
from headgate.xml.whole.syntax import (
    ANYWHERE,
    INSTRUCTIONS,
    LEVELS,
    NAMED,
    Call,
    Chain,
    Filtered,
    Literal,
    Negative,
    NodeTest,
    Number,
    Path,
    Step,
    is_positional,
)

if TYPE_CHECKING:
    from headgate.xml.whole.syntax import Expression

_NEGATIVE = 7


class Written:
    r"""The text of an expression, and the namespaces of its prefixes.

    >>> from headgate.xml.language.words import cut, kinds_of
    >>> from headgate.xml.whole.parse import parse_expression
    >>> words = cut("//Q{urn:x}a[*:b or 'it''s']")
    >>> found = Written(parse_expression(words, kinds_of(words, "xpath")))
    >>> found.text, found.namespaces
    ('/descendant::n0:a[*[local-name() = "b"] or "it\'s"]', {'n0': 'urn:x'})
    """

    def __init__(self, expression: Expression) -> None:
        self._prefixes: dict[str, str] = {XML_NAMESPACE: "xml"}
        self.text = self._write(expression, 0)
        self.namespaces = {prefix: space for space, prefix in self._prefixes.items() if prefix != "xml"}

    def _write(self, expression: Expression, level: int) -> str:
        """Write an operand of an operator of a level; one that binds less tight stands in parentheses."""
        match expression:
            case Literal(value):
                return _quoted(value)
            case Number(_, text):
                return text
            case Negative(operand):
                text = f"-{self._write(operand, _NEGATIVE)}"
                return f"({text})" if level >= _NEGATIVE else text
            case Chain(signs, operands):
                own = LEVELS[signs[0]]
                parts = [self._write(operands[0], own)]
                for sign, operand in zip(signs, operands[1:], strict=True):
                    parts += [sign, self._write(operand, own)]
                text = " ".join(parts)
                return f"({text})" if level >= own else text
            case Call(name, arguments):
                return f"{name}({', '.join(self._write(each, 0) for each in arguments)})"
            case Filtered(operand, conditions):
                return f"({self._write(operand, 0)}){self._conditions(conditions)}"
            case Path(steps, absolute, start):
                return self._path(steps, absolute=absolute, start=start)

    def _path(self, steps: tuple[Step, ...], *, absolute: bool, start: Expression | None) -> str:
        text = ""
        if start is not None:
            inner = self._write(start, 0)
            text = inner if isinstance(start, Filtered | Call) else f"({inner})"
        slash = "/" if absolute or start is not None else ""
        deep = False
        for place, step in enumerate(steps):
            # Two in a row are written out: /// means nothing.
            if step == ANYWHERE and slash and not deep and place + 1 < len(steps):
                deep = True
                continue
            if deep and step.axis == "child" and not any(map(is_positional, step.conditions)):
                # The same, and found without all nodes between.
                text += f"{slash}{self._step(replace(step, axis='descendant'))}"
            else:
                text += f"{slash}{'/' * deep}{self._step(step)}"
            slash, deep = "/", False
        return text or "/"

    def _step(self, step: Step) -> str:
        axis, test = step.axis, step.test
        if test.kind != NAMED:
            target = _quoted(test.local) if test.kind == INSTRUCTIONS and test.local is not None else ""
            name = f"{test.kind}({target})"
        else:
            name = self._name(test)
        written = "" if axis == "child" else "@" if axis == "attribute" else f"{axis}::"
        if axis == "attribute" and test.kind != NAMED:
            written = "attribute::"
        return f"{written}{name}{self._conditions(step.conditions)}"

    def _name(self, test: NodeTest) -> str:
        if test.space is None:
            return "*" if test.local is None else f"*[local-name() = {_quoted(test.local)}]"
        local = "*" if test.local is None else test.local
        if not test.space:
            return local if test.local is not None else "*[namespace-uri() = '']"
        prefix = self._prefixes.setdefault(test.space, f"n{len(self._prefixes) - 1}")
        return f"{prefix}:{local}"

    def _conditions(self, conditions: tuple[Expression, ...]) -> str:
        return "".join(f"[{self._write(each, 0)}]" for each in conditions)


def _quoted(text: str) -> str:
    r"""Write a literal; one that has both quotes is joined of parts, because XPath 1.0 escapes nothing.

    >>> _quoted("a'b"), _quoted("a'b\"")
    ('"a\'b"', 'concat("a\'b", \'"\')')
    """
    if '"' not in text:
        return f'"{text}"'
    if "'" not in text:
        return f"'{text}'"
    parts: list[str] = []
    for place, part in enumerate(text.split('"')):
        if place:
            parts.append("'\"'")
        if part:
            parts.append(f'"{part}"')
    return f"concat({', '.join(parts)})"
