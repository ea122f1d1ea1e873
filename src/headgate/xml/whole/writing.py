"""An expression as lxml reads it: XPath 1.0, with a prefix for each namespace that is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.xml.language import syntax
from headgate.xml.language.words import XML_NAMESPACE

if TYPE_CHECKING:
    from headgate.xml.language.syntax import Expression


class Written:
    r"""The text of an expression, and the namespaces of its prefixes.

    >>> from headgate.xml.language.grammar import parse_expression
    >>> from headgate.xml.language.words import cut
    >>> found = Written(parse_expression(cut("//Q{urn:x}a[*:b or 'it''s']"), "xpath"))
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
            case syntax.Literal(value):
                return _quoted(value)
            case syntax.Number(_, text):
                return text
            case syntax.Negative(operand):
                text = f"-{self._write(operand, syntax.NEGATIVE)}"
                return f"({text})" if level >= syntax.NEGATIVE else text
            case syntax.Chain(signs, operands):
                own = syntax.LEVELS[signs[0]]
                parts = [self._write(operands[0], own)]
                for sign, operand in zip(signs, operands[1:], strict=True):
                    parts += [sign, self._write(operand, own)]
                text = " ".join(parts)
                return f"({text})" if level >= own else text
            case syntax.Call(name, arguments):
                return f"{name}({', '.join(self._write(each, 0) for each in arguments)})"
            case syntax.Filtered(operand, conditions):
                return f"({self._write(operand, 0)}){self._conditions(conditions)}"
            case syntax.Path(steps, absolute, start):
                return self._path(steps, absolute=absolute, start=start)

    def _path(self, steps: tuple[syntax.Step, ...], *, absolute: bool, start: Expression | None) -> str:
        text = ""
        if start is not None:
            inner = self._write(start, 0)
            text = inner if isinstance(start, syntax.Filtered | syntax.Call) else f"({inner})"
        slash = "/" if absolute or start is not None else ""
        deep = False
        for index, step in enumerate(steps):
            # Two in a row are written out: /// means nothing.
            if step is syntax.ANYWHERE and slash and not deep and index + 1 < len(steps):
                deep = True
                continue
            if deep and step.axis == "child" and not any(map(syntax.is_positional, step.conditions)):
                # The same, and found without all nodes between.
                text += f"{slash}{self._step(step, 'descendant')}"
            else:
                text += f"{slash}{'/' * deep}{self._step(step, step.axis)}"
            slash, deep = "/", False
        return text or "/"

    def _step(self, step: syntax.Step, axis: str) -> str:
        label = step.label
        written = "" if axis == "child" else f"{axis}::"
        if label.startswith(f"{syntax.INSTRUCTION}("):
            target = label[len(syntax.INSTRUCTION) + 1 : -1]
            label = f"{syntax.INSTRUCTION}({_quoted(target) if target else ''})"
        elif label[-1] != ")":
            label = self._name(label.removeprefix("@"))
            written = "@" if axis == "attribute" else written
        return f"{written}{label}{self._conditions(step.conditions)}"

    def _name(self, name: str) -> str:
        if name.startswith("*:"):
            return f"*[local-name() = {_quoted(name[2:])}]"
        if name[0] != "{":
            return name
        space, _, local = name[1:].rpartition("}")
        if not space:
            return "*[namespace-uri() = '']"
        prefix = self._prefixes.setdefault(space, f"n{len(self._prefixes) - 1}")
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
    for index, part in enumerate(text.split('"')):
        if index:
            parts.append("'\"'")
        if part:
            parts.append(f'"{part}"')
    return f"concat({', '.join(parts)})"
