"""Texts of filters to patterns."""

from __future__ import annotations

import random
import re

import pytest
from lxml import etree

from headgate.errors import FilterError, SubscriptionError
from headgate.xml.language import model
from headgate.xml.language import refusal as text_limits
from headgate.xml.language.model import CHILD, CONT, DESCENDANT, ID, ROOT, VAL, Node, Pattern
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_pattern
from headgate.xml.language.words import cut, places
from tests.seeds import seeds, share
from tests.timing import thread_time
from tests.xml.random_patterns import random_pattern
from tests.xml.spelling import SOUP, nearly, plain_pattern, plainly, spelled

DIALECTS = ("xpath", "tree")
XML = "http://www.w3.org/XML/1998/namespace"


def outcome(text: str, dialect: str) -> Pattern | str:
    """Parse a text, or return what is said when it is refused."""
    try:
        return parse_filter(text, dialect)
    except FilterError as error:
        return str(error)


def test_a_filter() -> None:
    assert parse_filter("//news[company = 'ACME'][author{val}]//headline{id,cont}").nodes == (
        Node("news", DESCENDANT),
        Node("company", CHILD, 0, (model.Test("=", "ACME"),)),
        Node("author", CHILD, 0, (), (VAL,)),
        Node("headline", DESCENDANT, 0, (), (ID, CONT)),
    )


def test_a_filter_in_the_tree_notation() -> None:
    assert parse_filter('//a_{ID}[//c][/d_{val}="x"][val>3]//b_{ID,cont}', "tree").nodes == (
        Node("a", DESCENDANT, ROOT, (model.Test(">", 3.0),), (ID,)),
        Node("c", DESCENDANT, 0),
        Node("d", CHILD, 0, (model.Test("=", "x"),), (VAL,)),
        Node("b", DESCENDANT, 0, (), (ID, CONT)),
    )


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("//a[b and c]", "//a[b][c]"),
        ("//a[(b and (c)) and d]", "//a[b][c][d]"),
        ("//a[./b]", "//a[child::b]"),
        ("//a[.//b]", "//a[descendant::b]"),
        ("//a[.//b]", "//a[.//descendant::b]"),
        ("//a//b", "//a/descendant-or-self::node()/b"),
        ("//a[b = 'x']", "//a[b = ('x')]"),
        ("/a//b", "/child::a/descendant::b"),
        ("//a/@b", "//a/attribute::b"),
        ("//a//@*", "//a//attribute::*"),
        ("//a[3 < b]", "//a[b > 3]"),
        ("//a['x' = @b]", "//a[@b = 'x']"),
        ("//a[b{val} >= 3]", "//a[b{val}[. >= 3]]"),
        ("//a[b/c = 'x']", "//a[b[c[. = 'x']]]"),
        ("//a[contains(b, 'x')]", "//a[b[contains(., 'x')]]"),
        ("//a[starts-with (.,'x')]", '//a[starts-with(., "x")]'),
        ("//a[b = -3]", "//a[b = - 3.0]"),
        ("//a[b = .5]", "//a[b = 0.50]"),
        ("//a[b = 3.]", "//a[b = 03]"),
        ("//a[b = 0]", "//a[b = -0]"),
        ("//a[b = 'it''s']", '//a[b = "it\'s"]'),
        ("//a[b = 'say \"hi\"']", '//a[b = "say ""hi"""]'),
        ("//a[ text ( ) = 'x']", "//a[text()='x']"),
        ("//Q{}a", "//a"),
        ("//Q{ urn:x }a", "//Q{urn:x}a"),
        ("//a[@xml:lang]", f"//a[@Q{{{XML}}}lang]"),
        ("(//a)", "//a"),
        ("//a", "//a{cont}"),
        ("//a/b[c]", "//a/b{cont}[c]"),
        ("//a and //b", "//a{} and //b"),
        ("//a = 'x'", "//a{}[. = 'x']"),
        ("contains(//a/b, 'x')", "//a/b{}[contains(., 'x')]"),
        ("//a{ CONT , Id }", "//a{id,cont}"),
        ("//and[and and and]", "//and[and][and]"),
        ("//a[and = 'x' and or and div]", "//a[and = 'x'][or][div]"),
        ("//a[contains]", "//a[child::contains]"),
        ("//text[text]", "//text[child::text]"),
        ("//Q{id}", "//child::Q{id}"),
        ("//a_ {id}", "//child::a_ {id}"),
    ],
)  # fmt: skip
def test_abbreviations(short: str, long: str) -> None:
    assert parse_filter(short) == parse_filter(long)


@pytest.mark.parametrize(
    ("tree", "xpath"),
    [
        ("//a", "//a"),
        ("/a[b]", "/a[b]"),
        ("//a[//c]//b", "//a[.//c]//b"),
        ("//a[/c/d]", "//a[c/d]"),
        ("//a[/@c]/text()", "//a[@c]/text()"),
        ('//a[val="c"]', "//a[. = 'c']"),
        ('//a[contains(val, "c")]', "//a[contains(., 'c')]"),
        ("//a[3<val]", "//a[. > 3]"),
        ("//a[val]", "//a[val]"),
        ("//a[/val=3]", "//a[val = 3]"),
        ("//a[val/b=3]", "//a[val/b = 3]"),
        ("//val[val]", "//val[val]"),
        ("//a_{}", "//a{}"),
        ("//a__{id}", "//a_ {id}"),
        ("//Q{urn:x}a_{ID}", "//Q{urn:x}a{id}"),
        ("//a_{ID}[b] and //c", "//a{id}[b] and //c"),
    ],
)
def test_the_tree_notation(tree: str, xpath: str) -> None:
    assert parse_filter(tree, "tree") == parse_filter(xpath)


def test_what_is_written_twice_is_there_twice() -> None:
    assert len(parse_filter("//a[b][b]").nodes) == 3
    assert parse_filter("//a[. = 'x'][. = 'x']").nodes[0].tests == (model.Test("=", "x"),) * 2


@pytest.mark.parametrize("dialect", DIALECTS)
def test_any_spelling_is_the_same_pattern(dialect: str) -> None:
    for seed in seeds(2_000):
        rng = random.Random(seed)
        pattern = random_pattern(rng)
        text = spelled(rng, pattern, dialect)
        assert parse_filter(text, dialect) == pattern, text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_is_nearly_a_filter_is_a_pattern_or_refused(dialect: str) -> None:
    """Texts that are nearly filters, and soups of words: no other error than ours."""
    taken = 0
    for seed in seeds(1_500):
        rng = random.Random(seed)
        text = nearly(rng, dialect) if seed % 5 else " ".join(rng.choices(SOUP, k=rng.randrange(1, 12)))
        found = outcome(text, dialect)
        taken += isinstance(found, Pattern)
        if isinstance(found, Pattern):
            assert parse_filter(print_pattern(found)) == found
        else:
            assert len(found.splitlines()) == 1
    assert taken > share(300)


def test_any_characters_give_a_pattern_or_a_refusal() -> None:
    signs = "/[]().,@*{}_Q:=!<>-+'\"|$&ab1 \t\n\x00\ud800é\u00a0"
    for seed in seeds(1_500):
        rng = random.Random(seed)
        text = "".join(rng.choices(signs, k=rng.randrange(12)))
        for dialect in DIALECTS:
            outcome(text, dialect)


def plain_differences(numbers: range) -> int:
    """Hold texts that are nearly XPath 1.0 against lxml; count those that both take.

    What is taken here, it takes; what it takes and we do not is refused for something that we name.
    """
    taken = 0
    for seed in numbers:
        text = nearly(random.Random(seed), "xpath", plain=True)
        found = outcome(text, "xpath")
        if isinstance(found, Pattern):
            etree.XPath(text)
            taken += 1
            continue
        try:
            etree.XPath(text)
        except etree.XPathSyntaxError:
            continue
        # lxml forgives a call that ends where its arguments would begin.
        assert text.rstrip().endswith("(") or not re.search("cannot stand|too early|no part of", found), found
    return taken


def test_xpath_takes_what_is_taken() -> None:
    for seed in seeds(1_000):
        rng = random.Random(seed)
        text = plainly(rng, plain_pattern(rng))
        parse_filter(text)
        etree.XPath(text)
    assert plain_differences(seeds(2_000)) > share(500)


@pytest.mark.nightly
def test_xpath_takes_what_is_taken_of_many() -> None:
    assert plain_differences(range(2_000, 60_000)) > 10_000


def test_every_word_has_its_place() -> None:
    for seed in seeds(500):
        text = nearly(random.Random(seed), "xpath")
        words = cut(text)
        *starts, end = places(text)
        assert end == len(text)
        assert len(starts) == len(words)
        assert all(text.startswith(word, start) for word, start in zip(words, starts, strict=True))
        assert sum(map(len, words)) == len(re.sub(r"[ \t\r\n]", "", text)) + sum(
            len(re.findall(r"[ \t\r\n]", word)) for word in words
        )


def test_other_dialects_are_not_read() -> None:
    with pytest.raises(
        SubscriptionError, match=r"dialect 'sql' is not for XML events: .* are 'xpath' or 'tree'"
    ):
        parse_filter("a = 1", "sql")


def test_the_largest_filters_are_taken() -> None:
    tests = "[. != 'x']" * text_limits.MAX_TESTS
    assert len(parse_filter(f"//a{tests}").nodes[0].tests) == text_limits.MAX_TESTS
    assert len(parse_filter("//a" * text_limits.MAX_NODES).nodes) == text_limits.MAX_NODES
    assert len(parse_filter("//a" + "[b]" * (text_limits.MAX_NODES - 1)).nodes) == text_limits.MAX_NODES
    nested = "//a" + "[a" * text_limits.MAX_DEPTH + "]" * text_limits.MAX_DEPTH
    pattern = parse_filter(nested)
    assert len(pattern.nodes) == text_limits.MAX_DEPTH + 1
    wrapped = "(" * text_limits.MAX_DEPTH + "//a" + ")" * text_limits.MAX_DEPTH
    assert parse_filter(wrapped) == parse_filter("//a")


def test_hard_texts_are_refused_at_once() -> None:
    """Nothing takes long, and no stack overflows."""
    many = text_limits.MAX_CHARACTERS
    hard = [
        "[" * many,
        "(" * many,
        "/" * many,
        "a-" * (many // 2),
        "{" * many,
        "Q{" * (many // 2),
        "'" * many,
    ]
    hard += [
        "//a" + "[b" * (many // 4),
        "not(" * (many // 4),
        "a:" * (many // 2),
        "_" * many,
        "@ " * (many // 2),
    ]
    hard += [
        "//a[b = " + "9" * 60_000 + "]",
        "text (" + " " * 60_000,
        "a" + " " * 60_000 + ":",
        "//a" * 1_000,
    ]
    for text in hard:
        with thread_time() as spent, pytest.raises(FilterError):
            parse_filter(text)
        assert spent.seconds < 2.0, text[:20]
