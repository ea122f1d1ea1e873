"""Patterns in other spellings than those that printing chooses, and texts that are nearly filters."""

from __future__ import annotations

import random
from itertools import zip_longest
from typing import TYPE_CHECKING

from msgspec.structs import replace

from headgate.core.subscription import TREE
from headgate.xml.language.model import (
    CHILD,
    CONTAINS,
    DESCENDANT,
    ID,
    ROOT,
    STARTS_WITH,
    TEXT,
    WORD,
    Pattern,
    is_attribute,
)
from headgate.xml.language.printing import print_label, print_number, print_pattern, print_tree
from headgate.xml.language.words import cut
from tests.xml.random_patterns import random_pattern

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.xml.language import model

_GAPS = ("", "", "", " ", "  ", "\n", "\t\r\n")
_TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
PLAIN_SOUP = cut(
    """/ // [ ] ( ) , . .. @a @* a b c * text() = != < <= > >= - + 1 -2 2.5 .5 'x' "y" '' and or div mod
    contains( starts-with( not( count( position( last( string( child:: descendant:: attribute:: self::
    parent:: ancestor:: following-sibling:: | $x and and [ ] [ ] / // / a . = 'x' node( )
    true( ) comment( )"""
)
SOUP = [
    *PLAIN_SOUP,
    *cut(
        """{id} {val,cont} {} {foo} _{ID} _{} {id,id} Q{urn:x}a Q{}b Q{u}* *:a dc:title @dc:x x:* val
        1e3 union eq if for == <> && || ! ~ # ? \\ ( ( ) ) :: : } $ & é 日 xml:lang Q{id} {"""
    ),
    "'",
    '"',
    "(: x :)",
    "\u00a0",
    "“",
    "text( )",
    "1e999",
    "9" * 400,
]


class Speller:
    """Writes patterns in random spelling; `plain` in words of XPath 1.0 alone, without marks."""

    def __init__(self, rng: random.Random, pattern: Pattern, dialect: str, *, plain: bool = False) -> None:
        self._rng = rng
        self._pattern = pattern
        self._tree = dialect == TREE
        self._plain = plain

    def text(self) -> str:
        """Write the pattern, with marks on all nodes that return something, and at times on others."""
        return spaced(self._rng, self._joined([self._condition(root, ROOT) for root in self._pattern.roots]))

    def _joined(self, parts: Sequence[str]) -> str:
        """Join conditions by and, some of them in parentheses."""
        parts = [self._wrapped(each) for each in parts]
        if len(parts) > 2 and self._chance(0.3):
            return self._joined([f"({' and '.join(parts[:2])})", *parts[2:]])
        return " and ".join(parts)

    def _wrapped(self, part: str) -> str:
        return f"({part})" if self._chance(0.1) else part

    def _chance(self, share: float) -> bool:
        return self._rng.random() < share

    def _condition(self, place: int, parent: int) -> str:
        """Write a path from a node on; a test of the last node at times behind it."""
        text, last = self._path(place, parent)
        tests = self._pattern.nodes[last].tests
        return self._tested(text, tests[-1]) if tests and self._outer(last) else text

    def _outer(self, place: int) -> bool:
        """Tell whether the last test of a node stands behind its path; the same whenever it is asked."""
        return random.Random(f"{place} {self._pattern}").random() < 0.5

    def _path(self, place: int, parent: int) -> tuple[str, int]:
        text = self._begin(place, parent)
        while True:
            children = self._pattern.children[place]
            goes_on = bool(children) and self._chance(0.6)
            tests = self._pattern.nodes[place].tests
            inside = [self._tested("val" if self._tree else ".", each) for each in tests]
            if inside and not goes_on and self._outer(place):
                inside.pop()
            inside += [self._condition(each, place) for each in (children[:-1] if goes_on else children)]
            text += self._brackets(inside)
            if not goes_on:
                return text, place
            place = children[-1]
            text += self._step(place)

    def _brackets(self, parts: list[str]) -> str:
        """Write conditions in brackets, some of them joined."""
        text = ""
        while parts:
            count = self._rng.choice((1, 1, 1, 2, 3))
            text += f"[{self._joined(parts[:count])}]"
            parts = parts[count:]
        return text

    def _begin(self, place: int, parent: int) -> str:
        node = self._pattern.nodes[place]
        if parent == ROOT:
            return self._step(place)
        if self._tree:
            bare = node.axis == CHILD and node.label != "val" and self._chance(0.5)
            return self._name(place) if bare else self._step(place)
        if node.axis == CHILD and self._chance(0.6):
            return self._name(place)
        if node.axis == DESCENDANT and not is_attribute(node.label) and self._chance(0.3):
            return f"descendant::{self._name(place, bare=True)}"
        return f".{self._step(place)}"

    def _step(self, place: int) -> str:
        node = self._pattern.nodes[place]
        if node.axis == DESCENDANT and not self._tree and not is_attribute(node.label) and self._chance(0.2):
            return f"{self._rng.choice(('/', '//'))}descendant::{self._name(place, bare=True)}"
        return f"{node.axis}{self._name(place)}"

    def _name(self, place: int, *, bare: bool = False) -> str:
        """Write a name with its mark; `bare` if there is an axis before it."""
        node = self._pattern.nodes[place]
        name = print_label(node.label)
        if node.label == TEXT:
            name = self._rng.choice(("text()", "text ( )", "text\n()"))
        elif is_attribute(node.label):
            name = f"{'@' if self._tree else self._rng.choice(('@', '@ ', 'attribute::'))}{name[1:]}"
        elif name.isalpha() and not self._plain and self._chance(0.1):
            name = f"Q{{}}{name}"
        if not (bare or self._tree or is_attribute(node.label)) and self._chance(0.2):
            name = f"child::{name}"
        return name + self._mark(place)

    def _mark(self, place: int) -> str:
        node = self._pattern.nodes[place]
        silent = not self._pattern.returning and len(self._pattern.roots) == 1
        if self._plain or not (node.returns or silent or self._chance(0.05)):
            return ""
        names = [
            each.upper() if each == ID and self._tree else self._rng.choice((each, each.title()))
            for each in self._rng.sample(node.returns, len(node.returns))
        ]
        mark = self._rng.choice((",", ", ", " ,\n")).join(names)
        return f"{'_' if self._tree else self._rng.choice(('', ' '))}{{{self._rng.choice(('', ' '))}{mark}}}"

    def _tested(self, path: str, test: model.Test) -> str:
        if test.sign == WORD:
            pattern = self._rng.choice((r"\b{}\b", r"(^|\W){}(\W|$)")).format(test.value)
            return f"re:test({path}, {self._literal(pattern)}, {self._literal('i')})"
        value = self._literal(test.value)
        if test.sign in (CONTAINS, STARTS_WITH):
            return f"{test.sign}{self._rng.choice(('', ' '))}({path}, {value})"
        if self._chance(0.3):
            return f"{value} {_TURNED[test.sign]} {path}"
        return f"{path} {test.sign} {value}"

    def _literal(self, value: str | float) -> str:
        if isinstance(value, float):
            text = print_number(value)
            text = text.replace("-", self._rng.choice(("-", "- ")))
            return text if "." in text else text + self._rng.choice(("", "", ".", ".0", ".00"))
        quotes = ["'", '"']
        if self._plain:
            quotes = [quote for quote in quotes if quote not in value]
        quote = self._rng.choice(quotes)
        return f"{quote}{value.replace(quote, quote * 2)}{quote}"


def spelled(rng: random.Random, pattern: Pattern, dialect: str) -> str:
    """Write a pattern in some spelling, with explicit marks."""
    return Speller(rng, pattern, dialect).text()


def plainly(rng: random.Random, pattern: Pattern) -> str:
    """Write a pattern in some spelling of XPath 1.0, without what it returns."""
    return Speller(rng, pattern, "xpath", plain=True).text()


def plain_pattern(rng: random.Random) -> Pattern:
    """Draw a pattern that XPath 1.0 can write: without namespaces, and no text has both quotes."""
    while True:
        pattern = random_pattern(rng)
        if all(
            ":" not in node.label and not any({"'", '"'} <= {*str(test.value)} for test in node.tests)
            for node in pattern.nodes
        ):
            return Pattern(tuple(replace(node, returns=()) for node in pattern.nodes))


def spaced(rng: random.Random, text: str) -> str:
    """Put any blanks between the words of a text; none only where the words stay as they are."""
    words = cut(text)
    parts: list[str] = []
    for word, behind in zip_longest(words, words[1:], fillvalue=""):
        gap = rng.choice(_GAPS)
        parts.append(word)
        parts.append(gap if gap or cut(word + behind) == [each for each in (word, behind) if each] else " ")
    return rng.choice(_GAPS) + "".join(parts)


def nearly(rng: random.Random, dialect: str, *, plain: bool = False) -> str:
    """Write a filter with up to three words too many, too few, or wrong."""
    if plain:
        words, soup = cut(plainly(rng, plain_pattern(rng))), PLAIN_SOUP
    else:
        pattern = random_pattern(rng)
        text = spelled(rng, pattern, dialect) if rng.random() < 0.5 else ""
        words, soup = cut(text or (print_tree if dialect == TREE else print_pattern)(pattern)), SOUP
    for _ in range(rng.randrange(4)):
        place, draw = rng.randrange(len(words) + 1), rng.random()
        if draw < 0.3:
            del words[place : place + 1]
        elif draw < 0.6:
            words.insert(place, rng.choice(soup))
        elif draw < 0.8:
            words[place : place + 1] = [rng.choice(soup)]
        else:
            other = rng.randrange(len(words) + 1)
            words[place : place + 1], words[other : other + 1] = (
                words[other : other + 1],
                words[place : place + 1],
            )
    return spaced(rng, " ".join(words))
