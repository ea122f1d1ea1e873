"""Expressions over attributes: what they mean, the ways that they take to answers, and their bounds."""

from __future__ import annotations

import datetime as dt
import math
import pickle
import random
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Event, Schema, Subscription
from headgate.core.values import flatten
from headgate.errors import FilterError
from headgate.records import reference
from headgate.records.compiling import check_types
from headgate.records.expressions.bound import take_trouble
from headgate.records.expressions.expression import Expression
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_filter
from tests.records.random_expressions import SCHEMA, TYPES, random_expression, random_row

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FORMS = [
    "price * quantity > {}",
    "a - b BETWEEN {} AND 2",
    "a + negative(3) < b * {}",
    "substring(sku, 1, 3) IN ('abc', 'x,y')",
    "length(sku) > {} AND a = 1",
    "CASE WHEN a > b THEN 'x' ELSE sku END = 'x'",
    "date_trunc('HOUR', t) = TIMESTAMP '2024-02-29 12:00:00'",
    "a = b",
    "a < b OR lower(sku) = 'abc'",
    "coalesce(missing, b) = {}",
    "split(sku, ',')[0] = 'x' AND b != {}",
    "startswith(sku, 'ab')",
    "NOT (a > b)",
    "a IN ({}, '2', b)",
    "upper(sku) LIKE '%BC%'",
    "a / b LIKE '1.%'",
    "concat(sku, '!') ILIKE '%C!' AND price > {}",
    "User.Age + 1 > {}",
    "a + b IS NULL",
    "exists(tags, x -> x = 'q')",
    "size(tags) = {}",
    "array_contains(split(sku, ','), 'y')",
    "NOT contains(upper(sku), 'B') AND b = {}",
    "a * 2 != {} AND sku RLIKE '^[a-c]+$'",
    "to_date(t) = '2024-02-29 10:00:00'",
    "-a > {} OR a % 2 = 0",
    "exists(items, i -> i.Price > {} AND i.name = sku)",
]


def drawn_rows(rng: random.Random) -> list[dict[str, Any]]:
    """Draw events of which expressions are NULL, raise, or are of several types."""
    moment = dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)
    return [
        {
            "a": rng.choice([None, 1, 2, 3, 2**63 - 1]),
            "b": rng.choice([0, 1, 2]),
            "price": rng.choice([1.5, 20.0, 60.0]),
            "quantity": rng.choice([1, 2, 5]),
            "sku": rng.choice(["abc", "ABC", "x,y", "abcdef", None]),
            "t": rng.choice([None, moment]),
            "user": rng.choice([None, {"age": 12}, {"age": 5}]),
            "tags": rng.choice([None, [], ["q", "r"], ["r"]]),
            "items": rng.choice([None, [{"price": 3, "name": "abc"}, {"price": 1, "name": "x,y"}]]),
        }
        for _ in range(50)
    ]


def test_all_ways_give_the_same(tmp_path: Path) -> None:
    """In the base, in the tail, compacted, saved; event by event, of JSON and in a table."""
    rng = random.Random(4)
    texts = [form.format(number) for form in FORMS for number in ((1, 3) if "{}" in form else (1,))]
    rows = drawn_rows(rng)
    events = [Event(number, row) for number, row in enumerate(rows)]
    trees = [parse_filter(text) for text in texts]
    for tree in trees:
        assert parse_filter(print_filter(tree)) == tree
    expected = [
        [number for number, tree in enumerate(trees) if reference.matches(tree, event.attributes)]
        for event in events
    ]
    assert len({number for found in expected for number in found}) > 0.8 * len(texts)
    subscriptions = [Subscription(number, text) for number, text in enumerate(texts)]
    index = RecordIndex.build(subscriptions)
    assert [index.match(event) for event in events] == expected
    late = RecordIndex.build(subscriptions[:20])
    for each in subscriptions[20:]:
        late.subscribe(each)
    assert [late.match(event) for event in events] == expected
    table = pa.RecordBatch.from_pylist([{"id": number, **row} for number, row in enumerate(rows)])
    pairs = [(number, each) for number, found in enumerate(expected) for each in found]
    for tried in (index, late):
        assert [tuple(row.values()) for row in tried.match_batch(table).to_pylist()] == pairs
    late.compact()
    late.save(tmp_path / "snapshot")
    for tried in (late, RecordIndex.open(tmp_path / "snapshot")):
        assert [tried.match(event) for event in events] == expected
        assert [tuple(row.values()) for row in tried.match_batch(table).to_pylist()] == pairs
    spelled = [
        Event(number, {name.upper(): value for name, value in row.items()}) for number, row in enumerate(rows)
    ]
    assert [index.match(event) for event in spelled] == expected


def test_every_attribute_is_named() -> None:
    index = RecordIndex.build([Subscription(1, "a.b * c > 1"), Subscription(2, "lower(d) = 'x'")])
    assert index.attributes == ["a.b", "c", "d"]
    assert RecordIndex.clauses("a * b = 1 AND c = 1")[0].names == ("a", "b")


def test_what_is_told() -> None:
    index = RecordIndex.build([Subscription(1, "price / quantity > 100")])
    told = index.explain(Event("e", {"price": 30.0, "quantity": 2}), 1)
    assert told.clauses[0].value == 15.0
    assert told.clauses[0].note == "off by 85; price is 30.0, quantity is 2"
    told = index.explain(Event("e", {"price": 30.0, "quantity": 0}), 1)
    assert told.clauses[0].note == "the expression is NULL: division by zero; price is 30.0, quantity is 0"
    assert told.clauses[0].attribute == "price / quantity"
    told = index.explain(Event("e", {"price": 30.0}), 1)
    assert told.clauses[0].note == "the expression is NULL; price is 30.0, quantity is missing"


def test_an_expression_alone() -> None:
    score = Expression.parse("0.3 * price + bid")
    assert score.attributes == (("price",), ("bid",))
    assert score.evaluate({"price": 10, "bid": 1}) == Decimal("4.0")
    assert score.evaluate({"price": 10.0, "bid": 1}) == 4.0
    assert score.evaluate({"price": "x", "bid": 1}) is None
    assert score.trouble(flatten({"price": "x", "bid": 1})) == "'x' is no DOUBLE"
    again = pickle.loads(pickle.dumps(score))
    assert again == score
    assert hash(again) == hash(score)
    assert Expression.parse("Price*2") == Expression.parse("price * 2")


REFUSED = [
    ("a > now()", "now is not part of the filter language: it asks the clock"),
    ("rand() > a", "rand is not part of the filter language: it gives another answer each time"),
    ("sum(a) > 1", "sum is not part of the filter language: it looks at many rows"),
    ("log(a) > 1", "log is not part of the filter language: its last digit depends on the machine"),
    ("lenght(a) > 1", "there is no function lenght (did you mean length?)"),
    ("length(a, b) > 1", "length takes 1 argument"),
    ("round(a, b) > 1", "round: argument 2 is a whole number, and no attribute"),
    ("date_trunc('EON', a) > b", "date_trunc: 'EON' is no unit: use one of YEAR"),
    ("split(a, 'x+')[0] = 'b'", "split: split takes a separator that is no regular expression"),
    ("cast(a AS BINARY) = 'x'", "a cast goes to INT, BIGINT, DOUBLE"),
    ("cast(a AS DECIMAL(50, 2)) = 1", "a decimal has at most 38 digits"),
    ("cast(a AS DECIMAL(102)) = 1", "a decimal has at most 38 digits"),
    ("cast(a AS DECIMAL(²)) = 1", "a decimal has at most 38 digits"),
    ("cast(a AS DECIMAL()) = 1", "a decimal has at most 38 digits"),
    ("cast(a AS DECIMAL(b, 2)) = 1", "a decimal has at most 38 digits"),
    ("cast(a AS DECIMAL(10, 1e1)) = 1", "a decimal has at most 38 digits"),
    ("get_json_object(a, '$..b') = 1", "'$..b' is no simple path"),
    ("a RLIKE '(?=x)'", "of groups with ? only (?: is taken"),
    ("a RLIKE '(x)\\\\1'", "is not taken"),
    ("a RLIKE 'x*+'", "possessive quantifiers are not taken"),
    ("a + 1", "a condition is expected, and a + 1 is of type int"),
    ("length('x') = 1", "length('x') names no attribute, so no event matters"),
    ("exists(a, x) AND b", "argument 2 is a function of an element"),
    ("a + INTERVAL 1 DAY > b", "INTERVAL is not part of the filter language; date_add and add_months are"),
    ("a + 5S = b", "a number in an expression has no suffix S"),
    ("a = b = c", "put parentheses around one of two comparisons"),
    ("a = b IS NULL", "put parentheses around this comparison"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_refused(text: str, reason: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert reason in caught.value.reason
    assert len(str(caught.value).splitlines()) == 1


BOMBS = [
    "a" + " + a" * 300 + " > 1",
    "CASE " + "WHEN a = 1 THEN 2 " * 300 + "END = 2",
    "length(" * 65 + "a" + ")" * 65 + " > 1",
    "(" * 65 + "a + 1" + ")" * 65 + " > 1",
    "- " * 65 + "a > 1",
    "if(" * 5_000,
    "a[" * 5_000,
    "CASE WHEN " * 5_000,
    "exists(a, x -> " * 5 + "x" + ")" * 5,
    "a RLIKE '" + "(" * 100 + "x" + ")" * 100 + "'",
    "a RLIKE '" + "x{900}" * 100 + "'",
]


@pytest.mark.parametrize("text", BOMBS, ids=range(len(BOMBS)))
def test_bombs_are_refused(text: str) -> None:
    before = time.process_time()
    with pytest.raises(FilterError):
        parse_filter(text)
    assert time.process_time() - before < 2


def test_work_of_one_event_is_bounded() -> None:
    """What grows beyond its bound is NULL, for that filter alone; others get the event."""
    many = [1] * 2_000
    texts = [
        "repeat(repeat(s, 100000), 100000) = 'x'",
        "lpad(s, 2000000000, 'ab') = 'x'",
        "replace(repeat(s, 1000), 'a', repeat(s, 10000)) = 'x'",
        "exists(n, x -> exists(n, y -> exists(n, z -> x + y + z > 9)))",
        "s RLIKE '^(a|aa)*(a|aa)*(a|aa)*(a|aa)*b$'",
        "length(s) = 400",
    ]
    index = RecordIndex.build([Subscription(number, text) for number, text in enumerate(texts)])
    before = time.process_time()
    assert index.match(Event("e", {"s": "a" * 400, "n": many})) == [5]
    assert time.process_time() - before < 2
    told = index.explain(Event("e", {"s": "a", "n": many}), 3)
    assert "functions of elements are called more than 100,000 times" in told.clauses[0].note


def test_a_schema_types_expressions() -> None:
    schema = Schema.from_json({"a": "int64", "s": "string", "t": "timestamp", "tags": "array<string>"})
    for text in ("a * 2 > 1", "length(s) > 1", "exists(tags, x -> x = s)", "year(t) = 2024", "a = s"):
        check_types(parse_filter(text), schema, text)
    for text, reason in (
        ("a * b > 1", "attribute b is not in the schema"),
        ("t * 2 > 1", "t is timestamp, and * does not take these types"),
        ("a = t", "= does not take these types"),
        ("length(s) = TRUE", "s is string, so length(s) = TRUE can never hold"),
    ):
        with pytest.raises(FilterError) as caught:
            check_types(parse_filter(text), schema, text)
        assert reason in str(caught.value)


MEETINGS = [
    ("a = b", {"a": 1, "b": "1"}, True),
    ("a = b", {"a": 1, "b": "x"}, None),
    ("a = b", {"a": 1, "b": True}, None),
    ("a < b", {"a": 1, "b": Decimal("1.5")}, True),
    ("a = b", {"a": 2**53 + 1, "b": 2.0**53}, True),
    ("a = b", {"a": math.nan, "b": math.nan}, True),
    ("coalesce(a, 'x') = 'x'", {}, True),
    ("coalesce(a, 'x') = 'x'", {"a": 5}, None),
    ("a + b > 1", {"a": [1], "b": 1}, None),
    ("a || b = '1true'", {"a": 1, "b": True}, True),
    ("exists(a, x -> x = 1)", {"a": [1, "x"]}, True),
    ("exists(a, x -> x = 2)", {"a": [1, "x"]}, None),
    ("CASE WHEN a THEN 1 ELSE 2 END = 2", {}, True),
    ("a IN (1, 'x')", {"a": 1}, True),
    ("typeof(a) = 'decimal(3,2)'", {"a": Decimal("1.50")}, True),
    ("a RLIKE 'b.c'", {"a": "b\rc"}, False),
    ("a RLIKE '(?s)b.c$'", {"a": "b\nc\n"}, True),
    ("a RLIKE '(?i)k'", {"a": "\u212a"}, False),
]


@pytest.mark.parametrize(("text", "event", "verdict"), MEETINGS)
def test_types_are_those_of_values(text: str, event: dict[str, Any], verdict: bool | None) -> None:
    assert reference.evaluate(parse_filter(text), flatten(event)) is verdict
    index = RecordIndex.build([Subscription(1, text), Subscription(2, f"NOT ({text})")])
    assert index.match(Event("e", event)) == ([] if verdict is None else [1] if verdict else [2])


def same(ours: Any, theirs: Any) -> bool:
    """Compare values of Python and of Spark, with their types; NaN equals itself."""
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours == {name: value for name, value in theirs.items() if value is not None}
    return type(ours) is type(theirs) and bool(ours == theirs)


# What Spark wants of types, and events have not: a type for NULL, and INT beside BIGINT.
_LENIENT = ('"VOID"', 'requires the "INT" type')


class Agreement:
    """Spark over the same rows, column by column, where no row raises here; types are compared, too."""

    def __init__(self, spark: SparkSession, seed: int, expressions: int, rows: int) -> None:
        rng = random.Random(seed)
        table = pa.Table.from_pylist([random_row(rng, number) for number in range(rows)], schema=SCHEMA)
        self.frame = spark.createDataFrame(table)
        self.rows = table.to_pylist()
        self.pairs = 0
        self.wrong: list[str] = []
        self.asked: list[tuple[Expression, list[int], list[Any], str]] = []
        for _ in range(expressions):
            self.prepare(random_expression(rng))

    def prepare(self, text: str) -> None:
        """Compute an expression for all rows, and note for which Spark would raise."""
        found = Expression.parse(text)
        if Expression.parse(found.text).text != found.text:
            self.wrong.append(f"{text} is printed as {found.text}")
        if not found.attributes:
            return
        form = found.form_of(tuple(TYPES[path] for path in found.attributes))
        if form.refused:
            # Objects are compared by no operator here, nor by a function of their arrays.
            if "items" not in text and not self.refuses(text):
                self.wrong.append(f"{text}: Spark takes what is refused here: {form.refused}")
            return
        values, able = [], []
        for row in self.rows:
            flat = flatten(row)
            take_trouble()
            values.append(form.run([flat.get(path) for path in found.attributes]))
            if not take_trouble():
                able.append(row["id"])
        if able:
            self.asked.append((found, able, values, text))

    def refuses(self, text: str) -> bool:
        """Tell whether Spark refuses an expression for its types."""
        try:
            _ = self.frame.selectExpr(f"{text} AS c").schema
        except Exception as error:  # noqa: BLE001 -- Spark's errors have no common class
            return "DATATYPE_MISMATCH" in str(error) or "cannot" in str(error).lower()
        return False

    def check(self, first: int = 0, last: int | None = None) -> None:
        """Compare the expressions from one to another; where Spark raises, by halves."""
        last = len(self.asked) if last is None else last
        if first == last:
            return
        columns = [
            f"CASE WHEN id IN ({', '.join(map(str, able))}) THEN {text} END AS c{number}"
            for number, (_, able, _, text) in enumerate(self.asked[first:last], first)
        ]
        try:
            answer = self.frame.selectExpr("id", *columns)
            kinds = {field.name: field.dataType.simpleString() for field in answer.schema}
            rows = answer.toArrow().sort_by("id").to_pylist()
        except Exception as error:  # noqa: BLE001 -- Spark's errors have no common class
            if last - first > 1:
                middle = (first + last) // 2
                self.check(first, middle)
                self.check(middle, last)
            elif not any(each in str(error) for each in _LENIENT):
                self.wrong.append(f"{self.asked[first][3]}: Spark raises {str(error)[:200]}")
            return
        for number, (found, able, values, text) in enumerate(self.asked[first:last], first):
            kind = found.form_of(tuple(TYPES[path] for path in found.attributes)).type
            if str(kind) != kinds[f"c{number}"] and "struct" not in str(kind):
                self.wrong.append(f"{text}: {kind} here, {kinds[f'c{number}']} in Spark")
            for row, value in zip(rows, values, strict=True):
                if row["id"] in able:
                    self.pairs += 1
                    if not same(value, row[f"c{number}"]):
                        self.wrong.append(
                            f"{text} on row {row['id']}: {value!r}, Spark {row[f'c{number}']!r}"
                        )


@pytest.fixture
def interpreted(spark: SparkSession) -> Any:
    """Let Spark interpret expressions: compiling each of them would take longer than all else."""
    settings = {
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.subexpressionElimination.enabled": "false",
    }
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield spark
    for name, given in before.items():
        spark.conf.set(name, given)


def test_spark_agrees(interpreted: SparkSession) -> None:
    found = Agreement(interpreted, 7, expressions=30, rows=20)
    found.check()
    assert found.wrong == []
    assert found.pairs > 300


@pytest.mark.nightly
def test_spark_agrees_on_a_hundred_thousand_pairs(interpreted: SparkSession) -> None:
    pairs = 0
    for seed in range(1_000, 1_034):
        found = Agreement(interpreted, seed, expressions=150, rows=30)
        found.check()
        assert found.wrong == []
        pairs += found.pairs
    assert pairs > 100_000
