"""Texts in any case and whole words: what they mean, and the ways from filters to answers that they take."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Event, Schema, Subscription
from headgate.core.text.alphabets import wanted_word, words
from headgate.errors import FilterError
from headgate.records import reference
from headgate.records.compiling import check_types
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from headgate.records.language.printing import print_filter
from tests.records.programs import bindable

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def index_of(filters: dict[int, str]) -> RecordIndex:
    return RecordIndex.build(Subscription(number, text) for number, text in filters.items())


HOLDS = [
    ("t ILIKE '%NEWS%'", "No news is good", True),
    ("t ILIKE 'straße'", "STRASSE", False),
    ("t ILIKE 'STRAẞE'", "Straße", True),
    ("t ILIKE 'i̇%'", "İstanbul", True),
    ("t ILIKE 'ΣΊΣΥΦΟΣ'", "σίσυφος", True),
    ("t ILIKE '%ΦΟΣ'", "ΣΊΣΥΦΟΣ", True),
    ("t NOT ILIKE '%x!%%' ESCAPE '!'", "5 X% off", False),
    ("lower(t) LIKE 'A%'", "abc", False),
    ("lower(t) = 'abc'", "aBC", True),
    ("lower(t) IN ('x', 'abc')", "ABC", True),
    ("lower(t) IS NULL", "x", False),
    ("lower(t) < 'b'", "B", False),
    ("contains(t, '50%')", "at 50% off", True),
    ("contains(t, '50%')", "at 50 off", False),
    ("contains(lower(t), 'news')", "NEWS", True),
    (r"t RLIKE '(?i)\\bnews\\b'", "No News!", True),
    (r"t RLIKE '(?i)\\bnews\\b'", "newsletter", False),
    (r"t RLIKE '(?i)\\bnews\\b'", "news_2", False),
    (r"t RLIKE '(?i)\\bnews\\b'", "good-news", True),
    (r"t RLIKE r'(?iU)\bÜBER\b'", "hier über", True),
    (r"regexp_like(t, '(?iu)\\bnews\\b')", "NEWS", True),
    (r"t NOT RLIKE '(?i)\\bnews\\b'", "no such thing", True),
    (r"t NOT RLIKE '(?i)\\bnews\\b'", "", True),
    (r"t NOT RLIKE '(?i)\\bnews\\b'", None, None),
    (r"t RLIKE '(?i)\\b12\\b'", 12, True),
    (r"t RLIKE '(?i)\\btrue\\b'", True, True),
    (r"t RLIKE '(?i)\\b1\\b'", 1.5, None),
    ("t ILIKE 'TRUE'", True, True),
]


@pytest.mark.parametrize(("text", "value", "held"), HOLDS)
def test_what_they_mean(text: str, value: object, held: bool | None) -> None:
    tree = parse_filter(text)
    assert reference.evaluate(tree, {("t",): value}) is held
    assert parse_filter(print_filter(tree)) == tree
    index = index_of({1: text, 2: f"NOT ({text})"})
    expected = [] if held is None else [1] if held else [2]
    assert index.match(Event("e", {"t": value})) == expected
    assert index.explain(Event("e", {"t": value}), 1).matches is (held is True)


def test_names_of_functions_are_names_as_well() -> None:
    index = index_of({1: "lower = 'x'", 2: "words.a = 1", 3: "`LOWER`.t = 1", 4: "lower(`lower`) = 'x'"})
    assert index.match(Event("e", {"LOWER": "x", "words": {"a": 1}})) == [1, 2, 4]
    assert index.match(Event("e", {"lower": {"t": 1}})) == [3]


def test_all_ways_give_the_same(tmp_path: Path) -> None:
    """In the base, in the tail, compacted, saved; event by event, of JSON and in a table."""
    rng = random.Random(4)
    vocabulary = ["".join(rng.choices("abcdeÉé", k=rng.randint(1, 4))) for _ in range(60)]
    forms = [
        r"t RLIKE '(?i)\\b{}\\b'",
        "t ILIKE '%{}%'",
        r"t NOT RLIKE '(?i)\\b{}\\b' AND u = 1",
        "lower(t) LIKE '{}%' OR u = 2",
        r"u > 1 AND t RLIKE '(?i)\\b{}\\b'",
        r"o.t RLIKE '(?i)\\b{}\\b' OR t RLIKE '(?i)\\bab\\b' OR u = 5",
        r"NOT (t RLIKE '(?i)\\b{}\\b' OR o.t ILIKE 'a%')",
    ]
    texts = [rng.choice(forms).format(rng.choice(vocabulary)) for _ in range(120)]
    rows = [
        {
            "t": rng.choice(
                [None, 3, " ".join(w.title() for w in rng.choices(vocabulary, k=rng.randint(0, 9)))]
            ),
            "u": rng.randint(0, 6),
            "o": {"t": rng.choice(vocabulary)},
        }
        for _ in range(40)
    ]
    events = [Event(number, row) for number, row in enumerate(rows)]
    trees = [parse_filter(text) for text in texts]
    expected = [
        [number for number, tree in enumerate(trees) if reference.matches(tree, event.attributes)]
        for event in events
    ]
    subscriptions = [Subscription(number, text) for number, text in enumerate(texts)]
    index = RecordIndex.build(subscriptions)
    index.built.lines.check()
    index.built.arrays.check()
    assert [index.match(event) for event in events] == expected
    late = RecordIndex.build(subscriptions[:70])
    for each in subscriptions[70:]:
        late.subscribe(each)
    assert [late.match(event) for event in events] == expected
    strings = [row | {"t": None if row["t"] is None else str(row["t"])} for row in rows]
    table = pa.RecordBatch.from_pylist([{"id": number, **row} for number, row in enumerate(strings)])
    pairs = [(number, each) for number, found in enumerate(expected) for each in found]
    for tried in (index, late):
        assert [tuple(row.values()) for row in tried.match_batch(table).to_pylist()] == pairs
    late.compact()
    late.save(tmp_path / "snapshot")
    for tried in (late, RecordIndex.open(tmp_path / "snapshot")):
        assert [tried.match(event) for event in events] == expected
        assert [tuple(row.values()) for row in tried.match_batch(table).to_pylist()] == pairs
        walked = [one for one in range(120) if tried.next(events[7], one) == one]
        assert walked == expected[7]


def test_what_is_told() -> None:
    index = index_of({1: r"text RLIKE '(?i)\\bnews\\b'", 2: "text ILIKE '%NEWS%'"})
    assert index.explain(Event("e", {"text": "newsletter"}), 1).clauses[0].note == (
        "the text has 'newsletter', and not the word alone"
    )
    assert index.explain(Event("e", {"text": "x"}), 1).clauses[0].note == "the text does not have the word"
    assert (
        index.explain(Event("e", {"text": "x"}), 2).clauses[0].note
        == "the text does not fit the pattern in any case"
    )
    assert index.explain(Event("e", {}), 2).clauses[0].note == "the event has no such attribute"
    assert index.explain(Event("e", {"text": "x"}), 2).filter == "text ILIKE '%news%'"
    assert RecordIndex.build(
        [Subscription(1, "lower(a) = 'x'"), Subscription(2, "b.c ILIKE 'x%'")]
    ).attributes == [
        "a",
        "b.c",
    ]
    assert RecordIndex.clauses("lower(a) = 'x' AND b = 1")[0].names == ("a",)


def test_a_schema_knows_what_has_text() -> None:
    schema = Schema.from_json({"t": "string", "f": "float64"})
    for text in ("lower(t) = 'x'", "t ILIKE 'x'", r"t RLIKE '(?i)\\bx\\b'"):
        check_types(parse_filter(text), schema, text)
        with pytest.raises(FilterError, match=r"f is float64, so .* can never hold"):
            check_types(parse_filter(text.replace("t", "f", 1).replace("lower(t)", "lower(f)")), schema, text)


@pytest.mark.parametrize("text", [r"a RLIKE '(?i)\\bNews\\b'", "a ILIKE '%x%' AND b NOT ILIKE 'y'"])
def test_many_of_them_get_by_without_the_parser(text: str) -> None:
    assert bindable(text)


ODD = [
    "İstanbul",
    "ΣΊΣΥΦΟΣ ΣΑΣ",
    "Straße STRASSE STRAẞE ẞ",
    "K \u017f µ",
    "ǅ Ǆ",
    "aΣ.b Σ",
    "ÉCOLE é",
    "naïve_x",
    "日本 語",
    "Ⓐ",
    "x²",
]


@pytest.mark.nightly
def test_spark_folds_alike(spark: SparkSession) -> None:
    """All characters that have a lower case, alone and in words."""
    every = [chr(code) for code in range(0x80, 0x20000) if chr(code).lower() != chr(code)]
    texts = [*ODD, *(f"a{each} {each}" for each in every)]
    table = pa.table({"id": range(len(texts)), "t": texts})
    patterns = sorted({word for each in ODD for word in words(each) if wanted_word(rf"\b{word}\b")})
    columns = [f"t RLIKE '(?iU)\\\\b{word}\\\\b' AS w{place}" for place, word in enumerate(patterns)]
    found = spark.createDataFrame(table).selectExpr("id", "lower(t) AS low", *columns).toArrow().sort_by("id")
    for row, text in zip(found.to_pylist(), texts, strict=True):
        assert row["low"] == text.lower(), text
        for place, word in enumerate(patterns):
            assert row[f"w{place}"] is (word in words(text)), (text, word)
