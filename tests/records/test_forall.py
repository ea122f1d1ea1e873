"""`forall` against Spark and the reference in all its forms, also of filters that came late."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate import Event, Subscription
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from tests.records.random_filters import SCHEMA, random_event
from tests.seeds import NIGHTLY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BODIES = {
    "ints": [
        "x = 1",
        "x IN (1, 2, 5)",
        "x IN ('1', ' 7 ')",
        "x IN (1, NULL)",
        "x IN (0.5, 1e0, 7)",
        "x = NULL",
    ],
    "reals": ["x = 'NaN'", "x IN (0, 1, 2.5)", "x IN (-0e0, 1e300)"],
    "tags": ["x = ''", "x IN ('a', 'ab', 'it\\'s', 'zoë')", "x IN ('a', NULL)"],
    "flags": ["x = TRUE", "x IN ('yes', '0')"],
    "times": [
        "x = DATE '2024-01-01'",
        "x IN (TIMESTAMP '2024-01-01 00:00:01', DATE '2024-01-02')",
        "x = '2024'",
    ],
}
FILTERS = [
    f"{sign}forall({name}, x -> {form.format(body)})"
    for name, bodies in BODIES.items()
    for body in bodies
    for form in ("{}", "x IS NULL OR {}", "{} OR x IS NULL")
    for sign in ("", "NOT ")
]
FILTERS += [f"{sign}forall({name}, x -> x IS NULL)" for name in BODIES for sign in ("", "NOT ")]
EVENTS = 300 if NIGHTLY else 60


def rows() -> list[dict[str, object]]:
    rng = random.Random(11)
    return [random_event(rng, number) for number in range(EVENTS)]


def test_spark_agrees(spark: SparkSession) -> None:
    table = pa.Table.from_pylist(rows(), schema=SCHEMA)
    columns = [f"({text}) AS c{number}" for number, text in enumerate(FILTERS)]
    answers = spark.createDataFrame(table).selectExpr("id", *columns).toArrow().sort_by("id").to_pylist()
    trees = [parse_filter(text) for text in FILTERS]
    seen = set()
    for row, answer in zip(rows(), answers, strict=True):
        attributes = Event.from_row(row).attributes
        for number, text in enumerate(FILTERS):
            expected = answer[f"c{number}"]
            assert reference.evaluate(trees[number], attributes) is expected, (text, row)
            seen.add((text, expected))
    assert len(seen) > 2 * len(FILTERS)


def assert_right(index: RecordIndex) -> None:
    trees = [parse_filter(text) for text in FILTERS]
    found = index.match_batch(pa.RecordBatch.from_pylist(rows(), schema=SCHEMA)).to_pydict()
    pairs = set(zip(found["event_id"], found["subscription_id"], strict=True))
    for row in rows():
        event = Event.from_row(row)
        matching = [n for n, tree in enumerate(trees) if reference.matches(tree, event.attributes)]
        assert index.match(event) == matching, row
        assert [number for number in range(len(FILTERS)) if (row["id"], number) in pairs] == matching, row


def subscriptions() -> list[Subscription]:
    return [Subscription(number, text) for number, text in enumerate(FILTERS)]


def test_the_index_agrees() -> None:
    assert_right(RecordIndex.build(subscriptions()))


def test_late_filters_agree_before_and_after_compaction() -> None:
    index = RecordIndex.build([])
    for subscription in subscriptions():
        index.subscribe(subscription)
    assert_right(index)
    index.compact()
    assert_right(index)


def test_the_base_keeps_them_through_compaction() -> None:
    index = RecordIndex.build(subscriptions())
    index.subscribe(Subscription(len(FILTERS), "FALSE"))
    index.compact()
    assert_right(index)
