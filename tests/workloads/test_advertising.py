"""The advertising workload is reproducible, hangs together, and uses the whole filter language."""

from __future__ import annotations

import re
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.workloads.records import advertising
from headgate.workloads.records.advertising_filters import CITIES_EACH, COUNTRIES, DAYS, START, WEEKDAYS
from tests.seeds import examples

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Make = Callable[[NDArray[np.int64], int], pa.RecordBatch]

SEED = 5
FILTERS: list[str] = [
    str(text) for text in advertising.subscriptions(np.arange(5000), SEED).column("filter").to_pylist()
]
EVENTS = advertising.events(np.arange(20_000), SEED)


@pytest.mark.parametrize("make", [advertising.subscriptions, advertising.events])
@examples(25)
@given(cuts=st.lists(st.integers(0, 120), max_size=6), seed=st.integers(0, 2**40))
def test_rows_are_the_same_whatever_the_batches(make: Make, cuts: list[int], seed: int) -> None:
    rows = np.arange(1000, 1120)
    whole = pa.Table.from_batches([make(rows, seed)])
    parts = [make(part, seed) for part in np.split(rows, sorted(cuts))]
    assert pa.Table.from_batches(parts).combine_chunks().equals(whole.combine_chunks())


@pytest.mark.parametrize("make", [advertising.subscriptions, advertising.events])
def test_rows_may_come_in_any_order(make: Make) -> None:
    backward = make(np.arange(50)[::-1], SEED)
    assert backward.take(pa.array(range(49, -1, -1))).to_pylist() == make(np.arange(50), SEED).to_pylist()


def test_a_seed_makes_its_own_rows() -> None:
    rows = np.arange(10)
    assert advertising.subscriptions(rows, 1).column(1) != advertising.subscriptions(rows, 2).column(1)


def test_schemas_and_ids() -> None:
    assert EVENTS.schema == advertising.schema()
    EVENTS.validate(full=True)
    batch = advertising.subscriptions(np.array([123, 12_345_678]), SEED)
    assert batch.schema == advertising.subscription_schema()
    assert batch.column("id").to_pylist() == ["campaign-0000123", "campaign-12345678"]
    assert EVENTS.column("id")[42].as_py() == "impression-0000042"
    assert advertising.events(np.array([], np.int64), SEED).num_rows == 0


def test_events_hang_together() -> None:
    cities = {country.code: country.cities for country in COUNTRIES}
    assert {len(names) for names in cities.values()} == {CITIES_EACH}
    for event in EVENTS.slice(0, 2000).to_pylist():
        assert event["city"] is None or event["city"] in cities[event["country"]]
        assert event["hour"] == event["time"].hour
        assert event["weekday"] == WEEKDAYS[event["time"].weekday()]
        assert timedelta(0) <= event["time"] - START < timedelta(days=DAYS)
        assert event["path"].startswith(f"/{event['category']}/")
        assert event["os"] != "ios" or event["device"] in {"phone", "tablet"}
        for names in (event["interests"], event["blocked_categories"]):
            assert names is None or len(names) == len(set(names))


@pytest.mark.parametrize("column", ["age", "income", "is_member", "city", "interests", "user"])
def test_some_values_are_missing(column: str) -> None:
    share = EVENTS.column(column).null_count / EVENTS.num_rows
    assert 0.02 < share < 0.3


def test_popular_names_lead() -> None:
    by_name = Counter(EVENTS.column("country").to_pylist())
    assert by_name.most_common(1)[0][0] == COUNTRIES[0].code
    assert by_name[COUNTRIES[0].code] > 5 * by_name[COUNTRIES[20].code]


@pytest.mark.parametrize(
    "form",
    [
        r"\w = '", r"\w != '", r"\w < \d", r"\w <= \d", r"\w > \d", r"\w >= \d", r" BETWEEN \d+ AND \d",
        r"\w IN \('", r" NOT IN \('", r" IS NULL", r" IS NOT NULL", r" LIKE '/[^%']+%'", r" LIKE '%[^%']+%'",
        r"array_contains\(interests, '", r"arrays_overlap\(interests, array\('[^)]+', '", r" OR ", r"NOT \(",
        r"NOT array_contains", r"TIMESTAMP '2026-03-", r"user\.segment", r"user\.score >=? 0\.\d\d",
        r"user\.visits", r"is_member( AND|$)", r"is_member = (true|false)",
    ],
)  # fmt: skip
def test_filters_use_the_language(form: str) -> None:
    assert sum(bool(re.search(form, text)) for text in FILTERS) >= 5


def test_filters_are_mostly_conjunctions() -> None:
    mixed = [text for text in FILTERS if re.search(r" OR |NOT \(|NOT array", text)]
    assert 0.12 < len(mixed) / len(FILTERS) < 0.18
    assert len(set(FILTERS)) > 0.99 * len(FILTERS)


def test_filters_name_attributes_of_events_only() -> None:
    known = set(advertising.schema().names)
    words = {"AND", "OR", "NOT", "IN", "IS", "NULL", "LIKE", "BETWEEN", "TIMESTAMP", "true", "false"}
    functions = {"array", "array_contains", "arrays_overlap"}
    for text in FILTERS:
        outside = re.sub(r"'[^']*'", "", text)
        names = {name.split(".")[0] for name in re.findall(r"[A-Za-z_][\w.]*", outside)}
        assert names <= known | words | functions, text
        assert text.count("(") == text.count(")")
