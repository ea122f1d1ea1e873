"""Explanations agree with the definition, and name what is missing."""

from __future__ import annotations

import json
import random
from dataclasses import asdict

import pytest

from headgate.xml.events.reading import read_document
from headgate.xml.explain.explain import Explanation, explain, nearest, reachable
from headgate.xml.language.model import ROOT
from headgate.xml.language.parse import parse_filter
from tests.seeds import seeds
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.reference import matches, satisfies

NEWS = (
    '<news xmlns:n="urn:n"><item id="1"><company>Acme</company><price>4.5</price>'
    "<deep><author>Ann</author></deep><n:x/></item><item><company>Other</company></item></news>"
)


def explained(text: str, document: str = NEWS) -> Explanation:
    """Explain a filter."""
    return explain(parse_filter(text), read_document(document))


@pytest.mark.parametrize("seed", seeds(100))
def test_agrees_with_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    document = read_document(random_document(rng))
    for _ in range(8):
        pattern = random_pattern(rng)
        found = explain(pattern, document)
        assert found.matches == matches(pattern, document)
        assert len(found.lines()) == 1 + len(pattern.nodes)
        assert (found.lines()[0] == "match") == found.matches
        images = nearest(pattern, document)
        for place, (node, image, clause) in enumerate(zip(pattern.nodes, images, found.nodes, strict=True)):
            above = ROOT if node.parent == ROOT else images[node.parent]
            assert clause.held == (None if above is None else image is not None)
            assert bool(clause.note) == (clause.held is False)
            if image is not None:
                assert above is not None
                assert image in reachable(node, above, document)
                assert satisfies(node, image, document), place
            elif above is not None:
                fitting = (one for one in reachable(node, above, document) if satisfies(node, one, document))
                assert next(fitting, None) is None, "what is missing could not be found there"


def test_a_match_says_where_everything_is() -> None:
    assert explained("//item[company = 'Acme']/price{val}").lines() == [
        "match",
        "  found   //item                   /news/item[1]",
        "  found     /company[. = 'Acme']   /news/item[1]/company = 'Acme'",
        "  found     /price                 /news/item[1]/price",
    ]


def test_the_nearest_miss_is_the_largest_part() -> None:
    assert explained("//item[company = 'Other'][@id]/price").lines() == [
        "no match: at best 3 of 4 nodes can be found together",
        "  found   //item                    /news/item[1]",
        "  missing   /company[. = 'Other']   (/news/item[1]/company: . = 'Other' fails for 'Acme')",
        "  found     /@id                    /news/item[1]/@id",
        "  found     /price                  /news/item[1]/price",
    ]


@pytest.mark.parametrize(
    ("text", "place", "note"),
    [
        ("//item[price > 5]", 1, "/news/item[1]/price: . > 5 fails for '4.5': short by 0.5"),
        ("//item[price <= 4]", 1, "/news/item[1]/price: . <= 4 fails for '4.5': over by 0.5"),
        ("//item[company = 3]", 1, ". = 3 fails for 'Acme', which is not a number"),
        ("//item[company = 'ACME']", 1, ". = 'ACME' fails for 'Acme', but for case"),
        ("//company[. = ' Acme']", 0, "/news/item[1]/company: . = ' Acme' fails for 'Acme', but for blanks"),
        (
            "//company[contains(., 'CM')]",
            0,
            "none of 2 passes; /news/item[1]/company: contains(., 'CM') fails",
        ),
        (
            "//item/author",
            1,
            "has no child author, but /news/item[1]/deep/author is deeper: // would find it",
        ),
        ("/item", 0, "the root element is news, but /news/item[1] is deeper: // would find it"),
        ("/feed", 0, "the root element is news"),
        ("//item/x", 1, "has no child x, but Q{urn:n}x: another namespace, *:x would find it"),
        ("//item/Price", 1, "has no child Price, but price: names differ in case"),
        ("//item/id", 1, "but @id: an attribute is written with @, an element without"),
        ("//item/who", 1, "/news/item[1] has no child who; there are @id, company, price, deep, Q{urn:n}x"),
        ("//Q{urn:n}x//who", 1, "has no descendant who; there is nothing below it"),
        (
            "//who/name",
            0,
            "the document has no node who; there are news, item, @id, company, text(), price and 3 more",
        ),
    ],
)
def test_notes_say_what_is_missing(text: str, place: int, note: str) -> None:
    found = explained(text)
    assert not found.matches
    assert note in found.nodes[place].note
    assert found.nodes[place].held is False
    assert f"({found.nodes[place].note})" in "\n".join(found.lines())


def test_an_attribute_of_another_namespace_is_named_as_one() -> None:
    document = read_document("<a xmlns:n='urn:n' n:x='1'/>")
    note = explain(parse_filter("//a/@x"), document).nodes[1].note
    assert note == "/a has no child @x, but @Q{urn:n}x: another namespace, @*:x would find it"


def test_blanks_that_look_alike_are_told_apart() -> None:
    document = read_document("<a>x\ny\xa0z</a>")
    note = explain(parse_filter("//a[. = 'x y z']"), document).nodes[0].note
    assert note == r"/a: . = 'x y z' fails for 'x\ny\xa0z'"


def test_what_is_below_something_missing_was_not_looked_for() -> None:
    assert [clause.held for clause in explained("//who[name]//item").nodes] == [False, None, None]


def test_explanations_are_ready_for_json() -> None:
    found = explained("//item[company = 'Zed']/price")
    assert json.loads(json.dumps(found.plain())) == json.loads(json.dumps(asdict(found)))
    assert found.plain()["filter"].startswith("//item[company = 'Zed']/price")
