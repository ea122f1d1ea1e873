"""Patterns back to text; parsing it gives an equal pattern.

A node's last child goes on with the path, the others stand in brackets before it. The path of the whole ends
where the last node returns something, so that `//a{id}[b]` is written as that. Without any mark the last
step of a single path would return its subtree: where it is to return nothing it gets the mark {}.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, NamedTuple

from headgate.xml.language.model import CONT, CONTAINS, ID, ROOT, STARTS_WITH, WORD
from headgate.xml.language.words import XML_NAMESPACE

if TYPE_CHECKING:
    from headgate.xml.language.model import Label, Pattern, Test


class _Style(NamedTuple):
    """How a dialect writes what the dialects write differently."""

    own: str
    """What stands for the node itself."""
    mark: str
    identity: str
    blank: str
    """Around comparisons."""
    quotes: str
    relative: dict[str, str]
    """How a path in brackets begins, by its axis."""


_XPATH = _Style(".", "{", ID, " ", "'\"", {"/": "", "//": ".//"})
_TREE = _Style("val", "_{", "ID", "", "\"'", {"/": "/", "//": "//"})


def print_pattern(pattern: Pattern) -> str:
    """Write a pattern in XPath with marks.

    >>> from headgate.xml.language.parse import parse_filter
    >>> print_pattern(parse_filter('//a[./@b="x" and descendant::c]/child::d{ val,id }'))
    "//a[@b = 'x'][.//c]/d{id,val}"
    """
    return _Writer(pattern, _XPATH).whole()


def print_tree(pattern: Pattern) -> str:
    """Write a pattern in the tree notation.

    >>> from headgate.xml.language.parse import parse_filter
    >>> print_tree(parse_filter("//a[@b = 'x'][.//c]/d{id,val}[. > 3]"))
    '//a[/@b="x"][//c]/d_{ID,val}[val>3]'
    """
    return _Writer(pattern, _TREE).whole()


def print_label(label: Label) -> str:
    """Write a label as a step.

    >>> print_label("@{urn:x}a"), print_label("*:a"), print_label("text()")
    ('@Q{urn:x}a', '*:a', 'text()')
    """
    at, name = ("@", label[1:]) if label.startswith("@") else ("", label)
    if not name.startswith("{"):
        return label
    space, _, local = name[1:].rpartition("}")
    return f"{at}xml:{local}" if space == XML_NAMESPACE else f"{at}Q{{{space}}}{local}"


def print_number(value: float) -> str:
    """Write a number as XPath 1.0 does, with digits and a point.

    >>> print_number(3.0), print_number(-0.5), print_number(1e-7), print_number(1e22)
    ('3', '-0.5', '0.0000001', '10000000000000000000000')
    """
    text = format(Decimal(repr(float(value))), "f")
    return text.removesuffix(".0")


def print_text(value: str, quotes: str = "'\"") -> str:
    r"""Write a text in the first of the quotes that it lacks; if it has all, the first is doubled.

    >>> print_text("it's"), print_text("x"), print_text("'\"")
    ('"it\'s"', "'x'", '\'\'\'"\'')
    """
    for quote in quotes:
        if quote not in value:
            return f"{quote}{value}{quote}"
    quote = quotes[0]
    return f"{quote}{value.replace(quote, quote * 2)}{quote}"


class _Writer:
    """Writes one pattern in one style."""

    def __init__(self, pattern: Pattern, style: _Style) -> None:
        self._nodes = pattern.nodes
        self._children = pattern.children
        self._roots = pattern.roots
        self._returning = pattern.returning
        self._style = style
        self._marks = True
        """Whether marks are written: not if what is to be returned is what is returned without any."""

    def whole(self) -> str:
        """Write the pattern."""
        if len(self._roots) > 1:
            return " and ".join(self._condition(root, ROOT) for root in self._roots)
        (root,) = self._roots
        chain = self._chain(root)
        if not self._returning:
            return self._nothing(root, chain)
        ends = [index for index, node in enumerate(chain) if self._nodes[node].returns]
        if ends:
            chain = chain[: ends[-1] + 1]
            alone = self._returning == (chain[-1],)
            self._marks = not (alone and self._nodes[chain[-1]].returns == (CONT,))
        return self._path(chain, ROOT)

    def _nothing(self, root: int, chain: list[int]) -> str:
        """Write a single tree that returns nothing: as a comparison if it ends in one, or with a mark."""
        if len(self._nodes[chain[-1]].tests) == 1:
            return self._condition(root, ROOT)
        return self._path(chain, ROOT, silent=True)

    def _chain(self, index: int) -> list[int]:
        """List a node and its last child, and the last child of that, and so on."""
        chain = [index]
        while self._children[chain[-1]]:
            chain.append(self._children[chain[-1]][-1])
        return chain

    def _condition(self, index: int, parent: int) -> str:
        """Write the tree of a node as a condition: a path, or a comparison if its last node has one test."""
        chain = self._chain(index)
        tests = self._nodes[chain[-1]].tests
        if len(tests) != 1:
            return self._path(chain, parent)
        return self._test(self._path(chain, parent, tested=True), tests[0])

    def _path(self, chain: list[int], parent: int, *, tested: bool = False, silent: bool = False) -> str:
        """Write a path.

        `tested` if the tests of its last node are written elsewhere, `silent` if that is to say that it
        returns nothing.
        """
        parts: list[str] = []
        for number, index in enumerate(chain):
            node = self._nodes[index]
            inner = chain[number + 1] if number + 1 < len(chain) else None
            begin = node.axis if number or parent == ROOT else self._style.relative[node.axis]
            marked = (self._marks and node.returns) or (silent and inner is None)
            name = self._name(index) if marked else print_label(node.label)
            tests = () if tested and inner is None else node.tests
            parts.append(f"{begin}{name}{self._brackets(index, tests, inner)}")
        return "".join(parts)

    def _name(self, index: int) -> str:
        """Write the name of a step with its mark; an empty one returns nothing."""
        node = self._nodes[index]
        name = print_label(node.label)
        mark = ",".join(self._style.identity if each == ID else each for each in node.returns)
        # A name that ends with _ before a brace would be read as a mark of the tree notation.
        gap = " " if name.endswith("_") and self._style.mark == "{" else ""
        return f"{name}{gap}{self._style.mark}{mark}}}"

    def _brackets(self, index: int, tests: tuple[Test, ...], inner: int | None) -> str:
        """Write tests of a node, and its children but for the one that goes on with the path."""
        written = [self._test(self._style.own, each) for each in tests]
        children = self._children[index]
        written += [self._condition(each, index) for each in (children if inner is None else children[:-1])]
        return "".join([f"[{each}]" for each in written])

    def _test(self, path: str, test: Test) -> str:
        value = (
            print_text(test.value, self._style.quotes)
            if isinstance(test.value, str)
            else print_number(test.value)
        )
        if test.sign == WORD:
            pattern, flags = (print_text(each, self._style.quotes) for each in (rf"\b{test.value}\b", "i"))
            return f"{WORD}({path}, {pattern}, {flags})"
        if test.sign in (CONTAINS, STARTS_WITH):
            return f"{test.sign}({path}, {value})"
        return f"{path}{self._style.blank}{test.sign}{self._style.blank}{value}"
