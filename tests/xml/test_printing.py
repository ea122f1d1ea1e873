"""Patterns to texts and back."""

from __future__ import annotations

import random

import pytest

from headgate.xml.language import model
from headgate.xml.language.model import CHILD, CONT, DESCENDANT, ID, ROOT, TEXT, VAL, Node, Pattern
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_number, print_pattern, print_tree
from tests.seeds import seeds, share
from tests.xml.random_patterns import random_pattern

XML = "{http://www.w3.org/XML/1998/namespace}"
NAMES = (
    "val",
    "and",
    "or",
    "Q",
    "a_",
    "_",
    "a-b",
    "a.b",
    "text",
    "contains",
    "child",
    "zoë",
    "div",
    "a__",
    "E1",
)
TEXTS = ("", "'", '"', "'\"", "''", "a'b\"c''", "]", "//a[1]", "{id}", "\n\t", "日本", "and", "\\", "\r\n")
NUMBERS = (0.0, -0.5, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, 0.1, 123456789.125, -3.0)


def odd_pattern(rng: random.Random) -> Pattern:
    """Draw a pattern of names, texts and numbers that are easily misread."""
    nodes: list[Node] = []
    for node in random_pattern(rng).nodes:
        label = node.label
        if label.isalpha():
            label = rng.choice(
                (*NAMES, f"{{urn:x y}}{rng.choice(NAMES)}", f"{XML}a", f"*:{rng.choice(NAMES)}")
            )
        elif label.startswith("@"):
            label = f"@{rng.choice((*NAMES, f'{XML}lang', '*', '*:Q'))}"
        tests = tuple(
            model.Test(each.sign, rng.choice(TEXTS) if isinstance(each.value, str) else rng.choice(NUMBERS))
            for each in node.tests
            if each.sign != model.WORD
        )
        nodes.append(Node(label, node.axis, node.parent, tests, node.returns))
    return Pattern(tuple(nodes))


@pytest.mark.parametrize("draw", [random_pattern, odd_pattern])
def test_printed_patterns_parse_to_themselves(draw: object) -> None:
    assert callable(draw)
    for seed in seeds(2_000):
        pattern = draw(random.Random(seed))
        for text, dialect in ((print_pattern(pattern), "xpath"), (print_tree(pattern), "tree")):
            assert parse_filter(text, dialect) == pattern, text


@pytest.mark.parametrize(
    ("pattern", "xpath", "tree"),
    [
        ([Node("a", DESCENDANT, ROOT, (), (CONT,))], "//a", "//a"),
        ([Node("a", DESCENDANT)], "//a{}", "//a_{}"),
        ([Node("a", CHILD, ROOT, (), (ID, VAL))], "/a{id,val}", "/a_{ID,val}"),
        ([Node("a", CHILD, ROOT, (model.Test("=", "x"),))], "/a = 'x'", '/a="x"'),
        ([Node("a", CHILD, ROOT, (model.Test("=", "x"),), (CONT,))], "/a[. = 'x']", '/a[val="x"]'),
        ([Node("a", CHILD), Node("b", DESCENDANT, 0, (), (CONT,))], "/a//b", "/a//b"),
        ([Node("a", CHILD, ROOT, (), (CONT,)), Node("b", DESCENDANT, 0)], "/a[.//b]", "/a[//b]"),
        ([Node("a", CHILD, ROOT, (), (ID,)), Node("b", CHILD, 0)], "/a{id}[b]", "/a_{ID}[/b]"),
        ([Node("a", CHILD), Node("b", CHILD, 0, (), (CONT,)), Node("c", CHILD, 0)], "/a[b{cont}]/c",
         "/a[/b_{cont}]/c"),
        ([Node("a", CHILD), Node("b", DESCENDANT)], "/a and //b", "/a and //b"),
        ([Node("a", CHILD), Node("b", DESCENDANT, ROOT, (), (CONT,))], "/a and //b{cont}",
         "/a and //b_{cont}"),
        ([Node("a", CHILD), Node(TEXT, CHILD, 0, (model.Test("contains", "x"),))], "contains(/a/text(), 'x')",
         'contains(/a/text(), "x")'),
        ([Node("a_", CHILD, ROOT, (), (ID,))], "/a_ {id}", "/a__{ID}"),
        ([Node(f"@{XML}lang", DESCENDANT, ROOT, (), (VAL,))], "//@xml:lang{val}", "//@xml:lang_{val}"),
    ],
)  # fmt: skip
def test_how_patterns_are_printed(pattern: list[Node], xpath: str, tree: str) -> None:
    assert print_pattern(Pattern(tuple(pattern))) == xpath
    assert print_tree(Pattern(tuple(pattern))) == tree
    assert parse_filter(xpath).nodes == parse_filter(tree, "tree").nodes == tuple(pattern)


def test_numbers_are_printed_exactly() -> None:
    rng = random.Random(7)
    for _ in range(share(2_000)):
        value = rng.choice(NUMBERS) * rng.uniform(-1, 1) + rng.randrange(3)
        text = print_number(value)
        assert float(text) == value
        assert "e" not in text
