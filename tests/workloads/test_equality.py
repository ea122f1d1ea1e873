"""W-eq is as its page says: two equalities or more in each conjunction, and few matches."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.workload_statistics import measure
from headgate.workloads.records.equality import Equality
from headgate.workloads.records.specification import Operator

SEED = 5
WORKLOAD = Equality()
SPEC = WORKLOAD.specification(np.arange(20_000), SEED)
SIZES = np.diff(SPEC.predicate_start)


def test_attributes() -> None:
    texts = [each for each in WORKLOAD.attributes if each.is_text]
    assert (len(texts), len(WORKLOAD.attributes)) == (20, 30)
    assert (texts[0].size, texts[-1].size) == (4, 50_000)
    assert {each.exponent for each in texts} == {0.95}


def test_each_conjunction_has_two_equalities() -> None:
    equal = SPEC.is_operator(Operator.EQ, Operator.IN).astype(np.int64)
    assert np.add.reduceat(equal, SPEC.predicate_start[:-1]).min() == 2
    assert np.array([each.is_text for each in WORKLOAD.attributes])[SPEC.attribute][equal > 0].all()
    assert 4 < SIZES.mean() < 5
    assert (SIZES.min(), SIZES.max()) == (2, 7)


def test_one_filter_in_five_uses_or() -> None:
    conjunctions = np.diff(SPEC.conjunction_start)
    assert {*conjunctions.tolist()} == {1, 2, 3}
    assert (conjunctions > 1).mean() == pytest.approx(0.2, abs=0.01)


def test_all_but_not_between_are_used() -> None:
    shares = np.bincount(SPEC.operator, minlength=len(Operator)) / SPEC.predicates
    assert shares[Operator.EQ] == pytest.approx(0.58, abs=0.02)
    assert shares[Operator.IN] == pytest.approx(0.145, abs=0.02)
    assert (shares[: Operator.NOT_BETWEEN] > 0.01).all()
    assert shares[Operator.NOT_BETWEEN] == 0


def test_events_have_25_attributes_of_30() -> None:
    drawn = WORKLOAD.numbers(np.arange(20_000), SEED)
    assert (drawn >= 0).sum(axis=1).mean() == pytest.approx(24.9, abs=0.1)
    assert (drawn >= 0).mean(axis=0) == pytest.approx(0.83, abs=0.02)
    last = drawn[:, 19]
    assert last.max() > 40_000
    assert np.bincount(last[last >= 0]).argmax() == 0


def test_an_event_matches_few_filters() -> None:
    found = measure(WORKLOAD, 40_000, 80, SEED)
    assert found["matches an event"] == pytest.approx(0.4 * 17.2, rel=0.3)
