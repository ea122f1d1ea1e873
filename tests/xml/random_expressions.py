"""Random expressions of the whole of XPath 1.0, and documents in which they may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

NAMESPACES = {"p": "urn:p", "q": "urn:q"}
_NAMES = ("a", "b", "c", "d")
_ATTRIBUTES = ("x", "y", "p:x", "xml:lang", "xml:id")
_TEXTS = (
    "x",
    "y",
    "xy",
    "1",
    "2",
    "10",
    "1.5",
    "2e1",
    "-3",
    " x  y ",
    "e",
    "X",
    "0.1",
    "en",
    "en-GB",
    "",
    "é",
)
_LITERALS = (*_TEXTS, "a", "p:a", "urn:p", "it's")
_NUMBERS = ("0", "1", "2", "3", "10", "1.5", "20", ".5", "0.1")
_AXES = (
    *("child", "descendant", "descendant-or-self", "self", "parent", "ancestor", "ancestor-or-self"),
    *("following-sibling", "preceding-sibling", "following", "preceding", "attribute", "namespace"),
)
_COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")


def random_source(rng: random.Random, size: int = 14) -> str:
    """Write a small document with all that expressions can ask about."""
    parts: list[str] = []
    left = [size]

    def element(depth: int) -> None:
        left[0] -= 1
        prefix = rng.choice(("", "", "", "p:", "q:"))
        name = prefix + rng.choice(_NAMES)
        declared = rng.choice(("", "", "", ' xmlns="urn:p"', ' xmlns=""', ' xmlns:q="urn:p"'))
        parts.append(f"<{name}{declared}")
        for each in rng.sample(_ATTRIBUTES, rng.choice((0, 0, 1, 2))):
            # Ids are unique in a document that is to be taken without a word.
            value = f"i{left[0]}" if each == "xml:id" else _escaped(rng.choice(_TEXTS))
            parts.append(f' {each}="{value}"')
        parts.append(">")
        for _ in range(rng.choice((0, 1, 2, 3)) if depth < 5 else 0):
            kind = rng.random()
            if kind < 0.45 and left[0] > 0:
                element(depth + 1)
            elif kind < 0.85:
                parts.append(_escaped(rng.choice(_TEXTS)))
            elif kind < 0.93:
                parts.append(f"<!--{rng.choice(('x', 'note', '1'))}-->")
            else:
                parts.append(f"<?{rng.choice(('t', 'u'))} x?>")
        parts.append(f"</{name}>")

    parts.append(rng.choice(("", "", "<!--before-->")))
    root = rng.choice(_NAMES)
    parts.append(f'<{root} xmlns:p="urn:p" xmlns:q="urn:q">')
    while left[0] > 0:
        element(1)
    parts.append(f"</{root}>{rng.choice(('', '', '<?after x?>'))}")
    return "".join(parts)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def random_expression(rng: random.Random, depth: int = 3) -> str:
    """Write an expression from the document."""
    return _Maker(rng).condition(depth, top=True)


class _Maker:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def condition(self, depth: int, *, top: bool = False) -> str:
        """Write what is true or false, or is taken for that."""
        rng = self._rng
        if depth <= 0:
            return self.path(0, top=top)
        match rng.choices(range(9), (6, 3, 3, 2, 5, 2, 2, 1, 1))[0]:
            case 0:
                return self.path(depth, top=top)
            case 1:
                return f"{self.operand(depth - 1, top=top)} or {self.operand(depth - 1, top=top)}"
            case 2:
                return f"{self.operand(depth - 1, top=top)} and {self.operand(depth - 1, top=top)}"
            case 3:
                return f"not({self.condition(depth - 1, top=top)})"
            case 4:
                left, right = self.value(depth - 1, top=top), self.value(depth - 1, top=top)
                return f"{left} {rng.choice(_COMPARISONS)} {right}"
            case 5:
                name = rng.choice(("contains", "starts-with"))
                return f"{name}({self.text(depth - 1, top=top)}, {self.text(0, top=top)})"
            case 6:
                return f"boolean({self.value(depth - 1, top=top)})"
            case 7:
                return rng.choice(("true()", "false()", "lang('en')" if not top else "true()"))
            case _:
                return self.value(depth - 1, top=top)

    def operand(self, depth: int, *, top: bool) -> str:
        """Write an operand of and, or."""
        return f"({self.condition(depth, top=top)})"

    def value(self, depth: int, *, top: bool) -> str:
        """Write what can be compared."""
        match self._rng.choices(range(4), (5, 2, 3, 1))[0]:
            case 0:
                return self.path(depth, top=top)
            case 1:
                return self.text(depth, top=top)
            case 2:
                return self.number(depth, top=top)
            case _:
                return f"({self.condition(depth, top=top)})"

    def text(self, depth: int, *, top: bool) -> str:
        """Write a text."""
        rng = self._rng
        if depth <= 0 or rng.random() < 0.4:
            return self.literal() if rng.random() < 0.7 else f"string({self.path(0, top=top)})"
        some, other = self.text(depth - 1, top=top), self.text(0, top=top)
        path = self.path(depth - 1, top=top)
        found: str = rng.choice(
            (
                f"string({path})",
                f"normalize-space({path})",
                f"concat({some}, {other})",
                f"substring({path}, {self.number(0, top=top)})",
                f"substring({path}, {self.number(0, top=top)}, 2)",
                f"substring-before({path}, {other})",
                f"substring-after({some}, {other})",
                f"translate({path}, 'xe1', 'XE')",
                f"name({path})",
                f"local-name({path})",
                f"namespace-uri({path})",
                *(() if top else ("name()", "local-name()", "string()", "normalize-space()")),
            )
        )
        return found

    def number(self, depth: int, *, top: bool) -> str:
        """Write a number."""
        rng = self._rng
        if depth <= 0 or rng.random() < 0.4:
            return rng.choice(_NUMBERS)
        path = self.path(depth - 1, top=top)
        found: str = rng.choice(
            (
                f"count({path})",
                f"sum({path})",
                f"number({path})",
                f"string-length({path})",
                f"floor({path})",
                f"ceiling({self.number(depth - 1, top=top)})",
                f"round({path})",
                f"({self.number(depth - 1, top=top)} {rng.choice(('+', '-', '*', 'div', 'mod'))} {path})",
                f"-{self.number(depth - 1, top=top)}",
                *(() if top else ("position()", "last()")),
            )
        )
        return found

    def literal(self) -> str:
        """Write a text in quotes."""
        text = self._rng.choice(_LITERALS)
        return f'"{text}"' if "'" in text or self._rng.random() < 0.5 else f"'{text}'"

    def path(self, depth: int, *, top: bool) -> str:
        """Write a path."""
        rng = self._rng
        chance = rng.random()
        if depth > 0 and chance < 0.08:
            return f"({self.path(depth - 1, top=top)} | {self.path(depth - 1, top=top)})"
        if depth > 0 and chance < 0.14:
            inner = f"({self.path(depth - 1, top=top)})[{self.bracket(depth - 1)}]"
            return inner if rng.random() < 0.5 else f"{inner}/{self.step(depth - 1)}"
        if chance < 0.16:
            return f"id('i{rng.randrange(14)}')"
        if top or rng.random() < 0.1:
            start = rng.choice(("//", "//", "//", "/"))
        else:
            start = rng.choice(("", "", "", ".//", "./", "../"))
        if not top and rng.random() < 0.1:
            return rng.choice((".", ".."))
        steps = [self.step(depth) for _ in range(rng.choice((1, 1, 2, 3)))]
        text = steps[0]
        for each in steps[1:]:
            text += rng.choice(("/", "/", "//")) + each
        return start + text

    def step(self, depth: int) -> str:
        """Write a step."""
        rng = self._rng
        chance = rng.random()
        if chance < 0.05:
            return rng.choice((".", ".."))
        axis = "" if chance < 0.65 else rng.choice((*(f"{each}::" for each in _AXES), "@", "@", "@"))
        name = rng.choice((*_NAMES, *_NAMES, "*", "p:a", "p:*", "q:b", "node()", "text()"))
        if axis in ("@", "attribute::"):
            name = rng.choice(("x", "y", "*", "p:x", "p:*", "xml:lang", "xml:id", "node()"))
            if name == "node()":
                axis = "attribute::"
        elif rng.random() < 0.05:
            name = rng.choice(("comment()", "processing-instruction()", "processing-instruction('t')"))
        brackets = "".join(
            f"[{self.bracket(depth - 1)}]" for _ in range(rng.choice((0, 0, 1, 2))) if depth > 0
        )
        return f"{axis}{name}{brackets}"

    def bracket(self, depth: int) -> str:
        """Write a condition, or a position."""
        rng = self._rng
        if rng.random() < 0.25:
            return rng.choice(("1", "2", "last()", "position() < 3", "position() = last()", "last() - 1"))
        return self.condition(depth)
