"""Filters in clauses."""

from __future__ import annotations

import random

import pytest

from headgate.contents.protocol import Clause
from headgate.errors import FilterError
from headgate.xml.events.reading import read_document
from headgate.xml.language.parse import parse_filter
from headgate.xml.language.printing import print_pattern, print_tree
from headgate.xml.whole.reading import clauses
from tests.seeds import seeds, share
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.reference import matches


def test_each_leaf_is_a_clause() -> None:
    assert clauses("//News[company = 'ACME'][author{val}]//Headline{id,cont}", "xpath") == (
        Clause("//News/company = 'ACME'", ("company",)),
        Clause("//News/author{}", ("author",)),
        Clause("//News//Headline{}", ("headline",)),
    )


def test_tests_on_the_way_are_kept() -> None:
    assert clauses("//a[@x > 3][. != 'y'][b and c = 2] and /d//text()", "xpath") == (
        Clause("//a[. != 'y']/@x > 3", ("@x",)),
        Clause("//a[. != 'y']/b{}", ("b",)),
        Clause("//a[. != 'y']/c = 2", ("c",)),
        Clause("/d//text(){}", ("text()",)),
    )


def test_the_tree_notation_is_split_alike() -> None:
    for seed in seeds(200):
        pattern = random_pattern(random.Random(seed))
        assert clauses(print_tree(pattern), "tree") == clauses(print_pattern(pattern), "xpath")


def test_a_clause_taken_apart_is_itself() -> None:
    for seed in seeds(500):
        for clause in clauses(print_pattern(random_pattern(random.Random(seed))), "xpath"):
            assert clauses(clause.filter, "xpath") == (clause,)
            pattern = parse_filter(clause.filter)
            assert not pattern.returning
            assert all(len(children) < 2 for children in pattern.children)


def test_what_is_written_twice_counts_twice() -> None:
    assert len(clauses("//a[b][b]", "xpath")) == 2


def test_refused_filters_are_refused() -> None:
    with pytest.raises(FilterError):
        clauses("//a[1]", "tree")


def test_clauses_hold_when_the_filter_does() -> None:
    held = 0
    for seed in seeds(800):
        rng = random.Random(seed)
        pattern, document = random_pattern(rng), read_document(random_document(rng))
        parts = [parse_filter(each.filter) for each in clauses(print_pattern(pattern), "xpath")]
        if matches(pattern, document):
            held += 1
            assert all(matches(each, document) for each in parts)
        elif len(parts) == 1:
            assert not matches(parts[0], document)
    assert held > share(100)
