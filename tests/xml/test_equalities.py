"""Sets of tests that cannot hold in a document are passed over, and nothing else."""

from __future__ import annotations

import random

import numpy as np
import pytest

from headgate import Omissions, Subscription
from headgate.xml.events.reading import read_document
from headgate.xml.index import matching
from headgate.xml.index.index import XmlIndex
from headgate.xml.index.matching import Equalities
from tests.seeds import seeds
from tests.xml.random_patterns import random_document, random_pattern
from tests.xml.test_agreement import event_of, right, subscriptions


@pytest.mark.parametrize("seed", seeds(32))
def test_what_is_passed_over_changes_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_WORTH", 0)
    rng = random.Random(seed)
    patterns = [random_pattern(rng) for _ in range(60)]
    index = XmlIndex.build(subscriptions(patterns))
    for _ in range(5):
        document = read_document(random_document(rng))
        assert index.match(event_of(document)) == right(patterns, document)


def test_what_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["//a = 'x'", "//a = 'y'", "//b = 'y'", "//a > 3", "//a[. = 'z' and . != 'w']", "//a = ''"]
    index = XmlIndex.build([Subscription(number, text, "xpath") for number, text in enumerate(texts)])
    tests = index._state.base.arrays.tests  # noqa: SLF001 -- nothing public tells
    found = Equalities(tests)
    document = read_document("<a><b>y</b></a>")
    assert found.impossible(document) is None
    monkeypatch.setattr(matching, "_WORTH", 0)
    marks = found.impossible(document)
    assert marks is not None
    # x, z, and nothing at all are not there; y is, and a number is another matter.
    assert (found.count, int(np.sum(marks))) == (4, 3)
    assert index.match(event_of(document)) == [1, 2]


def test_filters_that_search_too_much_are_found_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_WORTH", 0)
    monkeypatch.setattr(matching, "MOST_LETTERS", 1000)
    texts = ["//*[contains(., 'q')]", "//a = 'x'", "//b = 'nowhere'", "//b[contains(., 'y')]"]
    index = XmlIndex.build([Subscription(number, text, "xpath") for number, text in enumerate(texts)])
    document = read_document(f"<r><a>x</a><c>{'z' * 600}</c><b>y</b></r>")
    with Omissions() as left_out:
        assert index.match(event_of(document)) == [1, 3]
    assert [each.subscription for each in left_out] == [0]
    assert index.match(event_of(read_document("<r><b>y</b></r>"))) == [3]
