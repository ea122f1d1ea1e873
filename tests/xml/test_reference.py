"""The definition of right, against an XPath processor, and word by word."""

from __future__ import annotations

import random

import pytest

from headgate.xml.events.reading import parse, read_document
from headgate.xml.language.model import CHILD, CONT, DESCENDANT, ID, VAL, Node, Pattern, StructuralId
from headgate.xml.language.model import Test as Condition
from tests.seeds import seeds, share
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.reference import combinations, matches, taking_part, tuples
from tests.xml.xpath import NAMESPACES, holds_expression, node_expression

BOOKS = (
    "<books><book id='1'><title>A</title><author>x</author><author>y</author></book>"
    "<book><title>B</title></book></books>"
)


@pytest.mark.parametrize("seed", seeds(40))
def test_agrees_with_an_xpath_processor(seed: int) -> None:
    rng = random.Random(seed)
    text = random_document(rng)
    document, root = read_document(text), parse(text.encode())
    for _ in range(15):
        pattern = random_pattern(rng)
        expected = root.xpath(holds_expression(pattern), namespaces=NAMESPACES)
        assert matches(pattern, document) is expected
        for place, nodes in enumerate(taking_part(pattern, document)):
            values = root.xpath(f"count({node_expression(pattern, place)})", namespaces=NAMESPACES)
            assert len(nodes) == values
            found = root.xpath(node_expression(pattern, place), namespaces=NAMESPACES)
            assert isinstance(found, list)
            texts = [each if isinstance(each, str) else "".join(each.itertext()) for each in found]  # type: ignore[union-attr, arg-type]
            assert [document.val(node) for node in nodes] == texts


def test_about_a_third_of_random_pairs_match() -> None:
    found = 0
    for seed in seeds(400):
        rng = random.Random(seed)
        found += matches(random_pattern(rng), read_document(random_document(rng)))
    assert share(80) < found < share(200)


def test_rows_are_distinct_by_nodes_and_in_document_order() -> None:
    document = read_document(BOOKS)
    book = Node("book", DESCENDANT, returns=(ID,))
    title = Node("title", CHILD, 0, (), (VAL, CONT))
    author = Node("author", CHILD, 0)
    assert tuples(Pattern((book, title)), document) == [
        (StructuralId(1, 7, 1), "A", "<title>A</title>"),
        (StructuralId(9, 10, 1), "B", "<title>B</title>"),
    ]
    # Two authors are two embeddings, and one row.
    assert len(tuples(Pattern((book, title, author)), document)) == 1
    named = Node("author", CHILD, 0, (), (VAL,))
    assert [row[-1] for row in tuples(Pattern((book, title, named)), document)] == ["x", "y"]


def test_different_nodes_may_stand_for_one() -> None:
    document = read_document("<a><b/></a>")
    twice = Pattern((Node("a"), Node("b", CHILD, 0, (), (ID,)), Node("b", CHILD, 0, (), (ID,))))
    assert combinations(twice, document) == [(1, 1)]


def test_all_trees_must_embed() -> None:
    document = read_document("<a><b>1</b></a>")
    one, other = Node("b", DESCENDANT, returns=(VAL,)), Node("c", DESCENDANT)
    assert matches(Pattern((one, Node("a"))), document)
    assert not matches(Pattern((one, other)), document)
    assert tuples(Pattern((one, other)), document) == []
    assert matches(Pattern(()), document)


def test_child_of_the_document_is_the_root_element() -> None:
    document = read_document("<a><a x='1'/></a>")
    assert taking_part(Pattern((Node("a", CHILD),)), document) == [[0]]
    assert taking_part(Pattern((Node("a", DESCENDANT),)), document) == [[0, 1]]
    below = Pattern((Node("a", DESCENDANT), Node("@x", DESCENDANT, 0, (Condition("=", 1.0),))))
    assert taking_part(below, document) == [[0, 1], [2]]
