"""Spark SQL itself is the oracle: the same text in WHERE over the same rows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Event, Subscription
from headgate.core import casts
from headgate.records import reference
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter
from tests.records.random_filters import SCHEMA, random_event, random_filter
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

FILTERS, EVENTS = 40, 60


def differences(spark: SparkSession, seed: int) -> list[str]:
    """Compare Spark, the reference and the index on FILTERS times EVENTS pairs."""
    rng = random.Random(seed)
    rows = [random_event(rng, identity) for identity in range(EVENTS)]
    filters = [random_filter(rng) for _ in range(FILTERS)]
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    columns = [f"({text}) AS c{number}" for number, text in enumerate(filters)]
    answers = spark.createDataFrame(table).selectExpr("id", *columns).toArrow().sort_by("id").to_pylist()
    index = RecordIndex.build(Subscription(number, text) for number, text in enumerate(filters))
    found = index.match_batch(table.to_batches()[0]).to_pydict()
    pairs = set(zip(found["event_id"], found["subscription_id"], strict=True))
    wrong = []
    trees = [parse_filter(text) for text in filters]
    for row, answer in zip(rows, answers, strict=True):
        attributes = Event.from_row(row).attributes
        for number, text in enumerate(filters):
            expected = answer[f"c{number}"]
            logical = reference.evaluate(trees[number], attributes)
            if logical is not expected or ((row["id"], number) in pairs) is not (expected is True):
                wrong.append(f"{text}\n  on {row}\n  Spark {expected}, reference {logical}")
    return wrong


def test_thousands_of_pairs(spark: SparkSession) -> None:
    for seed in seeds(5):
        assert differences(spark, seed) == []


@pytest.mark.nightly
def test_a_hundred_thousand_pairs(spark: SparkSession) -> None:
    for seed in range(100, 142):
        assert differences(spark, seed) == []


CASTS: list[tuple[str, Callable[[str], object], str]] = [
    ("BIGINT", casts.to_int, "cast"),
    ("DOUBLE", casts.to_double, "cast"),
    ("BOOLEAN", casts.to_bool, "cast"),
    ("TIMESTAMP", casts.to_timestamp, "unix_micros"),
    ("DATE", casts.to_date, "days"),
]
NUMBERS = [
    "0",
    "1",
    "12",
    "+7",
    "-0",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "1E-3",
    "1d",
    "1F",
    "0x10",
    "1_000",
    "1,5",
    "--1",
    "+",
    "",
]
NUMBERS += [
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "1e400",
    "nan",
    "NaN",
    "+NaN",
    "Inf",
]
NUMBERS += [
    "-inf",
    "+Infinity",
    "infinity",
    "e5",
    "1e",
    "٣",
    "12 3",
    "1L",
    "true",
    "TRUE",
    "tRuE",
    "t",
    "f",
    "y",
    "n",
    "no",
]
NUMBERS += ["yes", "off", "on", "10", "00"]
MOMENTS = [
    "2024",
    "2024-1",
    "2024-01",
    "2024-1-5",
    "2024-01-05",
    "2024-13-01",
    "2024-02-30",
    "2023-02-29",
    "24-01-01",
]
MOMENTS += [
    "2024-01-05T",
    "2024-01-05 ",
    "2024-01-05 10",
    "2024-01-05 10:11",
    "2024-01-05T1:2:3",
    "2024-01-05 24:00:00",
]
MOMENTS += [
    "2024-01-05 10:11:12.",
    "2024-01-05 10:11:12.5",
    "2024-01-05 10:11:12.123456789",
    "2024-01-05 10:60:00",
]
MOMENTS += [
    "2024-01-05T10:11:12Z",
    "2024-01-05T10:11:12 Z",
    "2024-01-05 10:11:12+2",
    "2024-01-05 10:11:12+02:30",
]
MOMENTS += [
    "2024-01-05 10:11:12-0230",
    "2024-01-05 10:11:12+19:00",
    "2024-01-05 10:11:12 UTC",
    "2024-01-05 10:11:12UTC+3",
]
MOMENTS += [
    "2024-01-05 10:11:12 Europe/Berlin",
    "2024-07-05 10:11:12Europe/Berlin",
    "2024-01-05 10:11:12 Nowhere/Land",
]
MOMENTS += [
    "2024-01-05x",
    "2024/01/05",
    "20240105",
    "2024-001-05",
    "2024-01-005",
    "now",
    "today",
    "epoch",
    "T10:00:00",
]
MOMENTS += [
    "2024-01-05T10:11:12Z trailing",
    "2024-01-05 10:11:12 +02:00",
    "2024-01-05 10:11:12 GMT+01:00",
    "12:00",
    "-2024-01-01",
]
MOMENTS += [
    "2024-01-05T10:11+01:00",
    "2024-01-05 10Z",
    "2024-01-05Z",
    "2024-01-05 10:11:12z",
    "2024-01-05 10:11:12 PST",
]
MOMENTS += [
    "0001-01-01",
    "9999-12-31 23:59:59.999999",
    "10000-01-01",
    "2024-06-30 23:59:60",
    "2024-01-05t10:11:12",
]
ODD = ["1\x7f", "\x7fnan", "-NAN", "-NaN", "+nan", "\u0131nf", "0" * 500 + "1", "-" + "0" * 5000, "1" * 500]
ODD += ["+2024", "+2024-01-01", "002024-1-1", "0002024-01-01", "00002024-01-01", "-2024-01-01"]
ODD += ["2024-01-05 10:11:12.12345678901", "2024-01-05 10:11:12\t UTC", "2024-01-05 10:11:12\x7fUTC"]
ZONES = ["Zulu", "GMT0", "CET", "EST", "PST", "IST", "EDT", "ROC", "posix/Europe/Berlin", "Factory", "zulu"]
ZONES += [
    "+02:3",
    "+2:3",
    "+2:03:04",
    "+0230:00",
    "+02:3000",
    "+230",
    "+023000",
    "UTC+2:3",
    "UTC+",
    "Etc/GMT+5",
]
MOMENTS += [*ODD, *(f"2024-01-05 10:11:12 {zone}" for zone in ZONES), "1900-01-01 00:00:00 Africa/Bamako"]
# See the docstring of headgate.core.casts.
DEPARTURES = {"10000-01-01", "-2024-01-01", "12:00", "T10:00:00"}


@pytest.mark.parametrize(("target", "ours", "form"), CASTS)
def test_casts_from_strings(
    spark: SparkSession, target: str, ours: Callable[[str], object], form: str
) -> None:
    texts = [
        pad + text + pad for text in dict.fromkeys(NUMBERS + MOMENTS) for pad in ("", " ", "\t\n", "\u00a0")
    ]
    cast = f"try_cast(s AS {target})"
    shown = {"cast": cast, "unix_micros": f"unix_micros({cast})", "days": f"unix_date({cast}) * {casts.DAY}"}[
        form
    ]
    table = pa.table({"n": list(range(len(texts))), "s": texts})
    answers = (
        spark.createDataFrame(table).selectExpr("n", f"{shown} AS v").toArrow().sort_by("n")["v"].to_pylist()
    )
    wrong = [
        (text, theirs, ours(text))
        for text, theirs in zip(texts, answers, strict=True)
        if repr(ours(text)) != repr(theirs) and text.strip() not in DEPARTURES
    ]
    assert wrong == []
    assert all(casts.to_timestamp(text) is None for text in DEPARTURES)
