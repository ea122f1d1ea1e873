"""W-mix and its variants are as their page says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.workload_statistics import matches, measure
from headgate.errors import HeadgateError
from headgate.workloads.catalogue import NAMES, synthetic, workload
from headgate.workloads.records.mixed import VARIANTS, Mixed
from headgate.workloads.records.specification import Operator

SEED = 5
ROWS = np.arange(20_000)
SPECS = {variant: Mixed(variant).specification(ROWS, SEED) for variant in VARIANTS}


def shares(variant: str) -> dict[Operator, float]:
    """Return the part of the predicates that each operator has."""
    spec = SPECS[variant]
    counts = np.bincount(spec.operator, minlength=len(Operator)) / spec.predicates
    return {each: float(counts[each]) for each in Operator if counts[each]}


def test_attributes() -> None:
    attributes = Mixed().attributes
    texts = [each for each in attributes if each.is_text]
    assert (len(texts), len(attributes)) == (16, 30)
    assert (texts[0].size, texts[-1].size) == (5, 10_000)
    assert {each.exponent for each in texts} == {0.85}
    assert {each.size for each in attributes if not each.is_text} == {10_000}


@pytest.mark.parametrize("variant", VARIANTS)
def test_filters_are_conjunctions_of_3_to_6(variant: str) -> None:
    spec = SPECS[variant]
    more = int(variant == "growth")
    assert spec.conjunction_start.tolist() == list(range(len(ROWS) + 1))
    sizes = np.bincount(np.diff(spec.predicate_start) - more)
    assert sizes[:3].sum() == 0
    assert sizes[3:] / len(ROWS) == pytest.approx([0.27, 0.25, 0.24, 0.24], abs=0.015)


def test_operators_of_mixed() -> None:
    expected = {Operator.EQ: 0.43, Operator.IN: 0.26, Operator.BETWEEN: 0.30}
    assert shares("mixed") == pytest.approx(expected, abs=0.015)
    spec = SPECS["mixed"]
    only = np.logical_and.reduceat(spec.is_operator(Operator.BETWEEN), spec.predicate_start[:-1])
    assert 0.03 < only.mean() < 0.05
    assert shares("ranges") == {Operator.BETWEEN: 1}


def test_lists_and_ranges_have_their_sizes() -> None:
    spec = SPECS["mixed"]
    lengths = np.diff(spec.operand_start)[spec.is_operator(Operator.IN)]
    assert (lengths.min(), lengths.max()) == (2, 8)
    at = spec.operand_start[:-1][spec.is_operator(Operator.BETWEEN)]
    widths = spec.operands[at + 1] - spec.operands[at] + 1
    assert widths.min() >= 50
    assert widths.max() <= 2500
    assert widths.mean() == pytest.approx(1275, abs=20)
    assert spec.operands[at].min() < 10
    assert spec.operands[at + 1].max() > 9990


def test_two_thirds_are_negations() -> None:
    found = shares("negations")
    negated = sum(share for each, share in found.items() if each.is_negation)
    assert 0.6 < negated < 0.7
    assert len(found) == 6
    spec = SPECS["negations"]
    marked = spec.is_operator(Operator.NE, Operator.NOT_IN, Operator.NOT_BETWEEN)
    assert np.logical_and.reduceat(marked, spec.predicate_start[:-1]).mean() == pytest.approx(0.1, abs=0.01)
    assert np.logical_or.reduceat(marked, spec.predicate_start[:-1]).all()


def test_events() -> None:
    drawn = Mixed().numbers(ROWS, SEED)
    assert (drawn >= 0).mean(axis=0) == pytest.approx(0.83, abs=0.02)
    last = drawn[:, -1]
    assert last.max() > 9900
    assert last[last >= 0].mean() == pytest.approx(4999.5, abs=100)


def test_an_event_matches_few_filters() -> None:
    found = measure(Mixed(), 40_000, 80, SEED)
    assert found["matches an event"] == pytest.approx(0.4 * 23, rel=0.3)


def test_growth_is_mixed_with_an_account() -> None:
    grown, plain = SPECS["growth"], SPECS["mixed"]
    account = grown.attribute == 30
    assert grown.attribute[~account].tolist() == plain.attribute.tolist()
    assert len(ROWS) == np.count_nonzero(account)
    events = np.arange(10)
    with_account = Mixed("growth").numbers(events, SEED)
    assert with_account[:, :-1].tolist() == Mixed().numbers(events, SEED).tolist()
    assert [matches(grown, event).tolist() for event in with_account] == [
        matches(plain, event).tolist() for event in with_account
    ]


def test_matches_of_growth_stay() -> None:
    """As many accounts as filters grow: of ten times the filters, an event may match a tenth."""
    large = Mixed("growth", total=1_000_000)
    assert large.attributes[-1] == Mixed("growth").attributes[-1]._replace(size=10)
    spec = large.specification(ROWS, SEED)
    accounts = np.bincount(spec.operands[spec.operand_start[:-1]][spec.attribute == 30])
    assert accounts / len(ROWS) == pytest.approx([0.1] * 10, abs=0.01)
    assert np.bincount(large.numbers(ROWS, SEED)[:, -1]) / len(ROWS) == pytest.approx([0.1] * 10, abs=0.01)
    assert replace(large, total=99).attributes[-1].size == 1


def test_unknown_names_are_refused() -> None:
    with pytest.raises(HeadgateError, match="W-mix has no variant 'equality'; there are mixed, ranges,"):
        Mixed("equality")
    with pytest.raises(HeadgateError, match="no specified workload is named 'advertising'"):
        synthetic("advertising", 5)
    for name in NAMES:
        assert workload(name, 5).subscriptions(np.arange(2), SEED).num_rows == 2
