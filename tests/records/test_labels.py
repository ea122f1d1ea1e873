"""The dialect of labels: against sets, against Spark, and what it refuses."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pytest

from headgate import Event, Subscription
from headgate.core.subscription import FOREIGN, LABELS, dialects
from headgate.errors import FilterError, SubscriptionError
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.dialects import to_sql
from headgate.records.language.labels import labels_to_sql
from headgate.records.language.parse import parse_filter
from tests.docs.test_language import code, read_event, table
from tests.records.programs import bindable
from tests.records.random_filters import quote
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

TEXTS = [
    "",
    "a",
    "A",
    "b",
    "it's",
    'say "x"',
    "back\\slash",
    "zoë",
    "日本",
    "🎈",
    "a b",
    "1",
    "%",
    "NULL",
    "x\ny\t\0",
]
NUMBERS: list[object] = [-1, 0, 1, 2, 2**53 + 1, -(2**63), 2**63 - 1]
MATCHES: dict[str, Callable[[set[object], set[object]], bool]] = {
    "subset": set.issubset,
    "superset": set.issuperset,
    "intersects": lambda own, other: bool(own & other),
}
SCHEMA = pa.schema({"id": pa.int64(), "tags": pa.list_(pa.string()), "sizes": pa.list_(pa.int64())})


class Call(NamedTuple):
    """A call and what it was written from."""

    name: str
    attribute: str
    labels: list[object]

    @property
    def text(self) -> str:
        written = [quote(label) if isinstance(label, str) else str(label) for label in self.labels]
        return f"{self.name}({', '.join([self.attribute, *written])})"

    def matches(self, row: dict[str, object]) -> bool:
        """The definition: the node's labels and the event's, as sets."""
        values = row.get(self.attribute)
        event = {value for value in values if value is not None} if isinstance(values, list) else set()
        return MATCHES[self.name](set(self.labels), event)


def drawn(seed: int, calls: int, events: int) -> tuple[list[Call], list[dict[str, object]]]:
    """Draw calls and events of few labels, so that all outcomes are common; labels may repeat."""
    rng = random.Random(seed)
    pools: dict[str, list[object]] = {"tags": [*TEXTS], "sizes": NUMBERS}
    found = []
    for _ in range(calls):
        attribute, pool = rng.choice([*pools.items()])
        found.append(
            Call(rng.choice([*MATCHES]), attribute, rng.choices(pool, k=rng.choice([0, 1, 2, 3, 8, 30])))
        )
    rows: list[dict[str, object]] = []
    for number in range(events):
        row: dict[str, object] = {"id": number}
        for attribute, pool in pools.items():
            if rng.random() < 0.9:
                row[attribute] = rng.choices([*pool, None], k=rng.choice([0, 0, 1, 1, 2, 3]))
        rows.append({**row, "tags": None} if rng.random() < 0.1 else row)
    return found, rows


def expected(calls: list[Call], rows: list[dict[str, object]]) -> set[tuple[object, int]]:
    return {(row["id"], number) for row in rows for number, call in enumerate(calls) if call.matches(row)}


def pairs(index: RecordIndex, rows: list[dict[str, object]]) -> set[tuple[object, int]]:
    found = index.match_batch(pa.RecordBatch.from_pylist(rows, schema=SCHEMA)).to_pydict()
    return set(zip(found["event_id"], found["subscription_id"], strict=True))


def subscriptions(calls: list[Call]) -> list[Subscription]:
    return [Subscription(number, call.text, LABELS) for number, call in enumerate(calls)]


@pytest.mark.parametrize("seed", seeds(3))
def test_the_index_agrees_with_sets(seed: int, tmp_path: Path) -> None:
    calls, rows = drawn(seed, 150, 200)
    wanted = expected(calls, rows)
    assert len(wanted) > 3000
    index = RecordIndex.build(subscriptions(calls))
    assert pairs(index, rows) == wanted
    for row in rows:
        matching = [number for number in range(len(calls)) if (row["id"], number) in wanted]
        assert index.match(Event.from_row(row)) == matching
    index.save(tmp_path / "snapshot")
    assert pairs(RecordIndex.open(tmp_path / "snapshot"), rows) == wanted


def test_subscribing_agrees_with_sets() -> None:
    calls, rows = drawn(7, 100, 100)
    index = RecordIndex.build([])
    for subscription in subscriptions(calls):
        index.subscribe(subscription)
    assert pairs(index, rows) == expected(calls, rows)
    index.compact()
    assert pairs(index, rows) == expected(calls, rows)


def test_spark_runs_the_translation(spark: SparkSession) -> None:
    calls, rows = drawn(5, 120, 150)
    columns = [f"({labels_to_sql(call.text)}) AS c{number}" for number, call in enumerate(calls)]
    frame = spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA))
    answers = frame.selectExpr("id", *columns).toArrow().to_pylist()
    found = {
        (answer["id"], number)
        for answer in answers
        for number in range(len(calls))
        if answer[f"c{number}"] is True
    }
    assert found == expected(calls, rows)


@pytest.mark.parametrize(
    "row", table("call", "event", "holds"), ids=lambda row: f"{row['call']} {row['event']}"
)
def test_the_table_of_the_page(row: dict[str, str]) -> None:
    event, holds = read_event(code(row["event"])), {"yes": True, "no": False}[row["holds"]]
    text = code(row["call"])
    assert RecordIndex.build([Subscription("s", text, LABELS)]).match(event) == (["s"] if holds else [])
    assert reference.matches(parse_filter(labels_to_sql(text)), event.attributes) is holds


def test_the_page_has_the_translations() -> None:
    rows = table("call", "SQL")
    assert len(rows) == 6
    for row in rows:
        assert labels_to_sql(code(row["call"])) == code(row["SQL"])


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("SUBSET(User.`first tags`, 'x')", "array_contains(User.`first tags`, 'x')"),
        ("intersects(a, 'x', \"x\", r'x')", "arrays_overlap(a, array('x'))"),
        ("intersects(a, 1, -2L, 1.5) -- numbers", "arrays_overlap(a, array(1, -2, 1.5))"),
        ("subset(`subset`, 'subset')", "array_contains(subset, 'subset')"),
        ("superset\n( a , 'x' )", "a IS NULL OR forall(a, x -> x IS NULL OR x IN ('x'))"),
    ],
)
def test_spellings(text: str, sql: str) -> None:
    assert labels_to_sql(text) == sql
    assert to_sql(text, LABELS) == sql


def test_translations_need_no_parser_where_sql_needs_none() -> None:
    assert bindable(labels_to_sql("subset(a, 'x', 'y')"))
    assert bindable(labels_to_sql("intersects(a, 'x', 'y')"))


ONE_CALL = "the dialect labels takes one call: subset(attribute, 'label', …), superset("
# ⟪ stands before the character that the error must point at; without one, it points at none.
REFUSED = [
    ("", "the filter is empty: write subset("),
    (" \n", "the filter is empty: write subset("),
    ("/* nothing */", "the filter is empty: write subset("),
    ("⟪a = 'x'", ONE_CALL),
    ("⟪TRUE", ONE_CALL),
    ("⟪a", ONE_CALL),
    (" ⟪NOT subset(a, 'x')", ONE_CALL),
    ("⟪(subset(a, 'x'))", ONE_CALL),
    ("⟪subset(a, 'x') AND subset(b, 'y')", ONE_CALL),
    ("⟪subset(a, 'x') = TRUE", ONE_CALL),
    ("⟪a.subset(b, 'x')", ONE_CALL),
    ("⟪array_contains(a, 'x')", ONE_CALL),
    ("⟪equals(a, 'x')", ONE_CALL),
    ("⟪subset()", "subset takes an attribute and labels: subset(tags, 'new', 'cheap')"),
    ("subset(⟪'a', 'x')", "an attribute is expected here"),
    ("subset(a, 'x', ⟪b)", "a literal is expected here, not an attribute"),
    ("superset(a, ⟪NULL)", "a label is a string or a number, not NULL"),
    ("superset(a, ⟪TRUE)", "a label is a string or a number, not TRUE"),
    ("superset(a, DATE ⟪'2024-01-01')", "a label is a string or a number, not DATE '2024-01-01'"),
    ("⟪intersects(a, 'x', 1)", "the list mixes string and whole number; write all of them in one type"),
    ("intersects(a, ('x'⟪, 'y'))", "a comma stands between arguments and in lists only"),
    ("intersects(a, 'x'⟪,)", "a literal is missing after this comma"),
    ("intersects(a, 'x'⟪", "a parenthesis is still open at the end"),
    ("intersects(a, 'x⟪", "a quote or a comment is still open at the end"),
    ("intersects(a, 'x' ⟪'y')", "two strings stand side by side"),
    ("subset(⟪größe, 'x')", "the name größe needs backticks: `größe`"),
    ("intersects(a, x ⟪-> x = 1)", "'->' is not part of the filter language here"),
    ("subset(" * 64 + "⟪(" + ")" * 65, "the filter nests deeper than 64"),
    ("subset(a" + ", 'x'" * 9_999 + "⟪, 'x')", "the list is longer than 10,000"),
    ("subset(a, '" + "x" * 262_144 + "')", "the filter has 262,157 characters and at most 262,144 are taken"),
    (
        "subset(a" + "".join(f", '{number}'" for number in range(9_999)) + ")",
        "as SQL the filter has 298,855 characters and at most 262,144 are taken; write fewer labels",
    ),
]


@pytest.mark.parametrize(("marked", "reason"), REFUSED, ids=[row[0][:40] for row in REFUSED])
def test_refusals(marked: str, reason: str) -> None:
    text = marked.replace("⟪", "")
    index = RecordIndex.build([])
    for refuse in (
        lambda: labels_to_sql(text),
        lambda: RecordIndex.build([Subscription("s", text, LABELS)]),
        lambda: index.subscribe(Subscription("s", text, LABELS)),
    ):
        with pytest.raises(FilterError) as refused:
            refuse()
        assert refused.value.reason.startswith(reason)
        assert refused.value.position == (marked.index("⟪") if "⟪" in marked else None)
        assert "\n" not in str(refused.value)
    assert len(index) == 0


def test_only_known_dialects() -> None:
    assert dialects() == ("sql", "labels", "sparql", "tuples", "xpath", "tree", *FOREIGN)
    for refuse in (lambda: Subscription("s", "a", "graph"), lambda: to_sql("a", "graph")):
        with pytest.raises(
            SubscriptionError, match=r"dialect 'graph' is not known: use 'sql', .* or 'vespa'$"
        ):
            refuse()
    with pytest.raises(
        SubscriptionError, match="dialect 'tuples' is not for records: filters of records are 'sql'"
    ):
        to_sql("a", "tuples")


def test_what_stands_behind_sees_sql() -> None:
    index = RecordIndex.build([Subscription("s", "superset(tags, 'x', 'y')", LABELS)])
    index.subscribe(Subscription("t", "intersects(tags, 'x')", LABELS))
    assert index.filter("s") == "tags IS NULL OR forall(tags, x -> x IS NULL OR x IN ('x', 'y'))"
    assert index.filter("t") == "arrays_overlap(tags, array('x'))"
    event = Event("e", {"tags": ["y", "z"]})
    found = index.explain(event, "s")
    assert not found.matches
    assert [clause.note for clause in found.nearest_miss] == ["the attribute is not NULL"]
    assert found.clauses[1].note == "the element 'z' is not in the list"
    assert [miss.id for miss in index.why_not(event)] == ["s", "t"]
