"""Where our parser and Spark's could disagree: texts that are almost filters.

What we take, Spark must take too, and give the value that the reference gives. What only Spark takes is no
difference: we refuse it, with a reason.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from headgate import Event
from headgate.errors import FilterError
from headgate.records import reference
from headgate.records.language.model import NULL, In, Like, LiteralType, predicates
from headgate.records.language.parse import parse_filter
from tests.records.random_filters import SCHEMA, TEXTS, random_event
from tests.records.soup import chained, changed_filter, random_soup
from tests.seeds import share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

    from headgate.records.language.model import Expression, Predicate

BATCH = 20
# Spark writes doubles and timestamps out for LIKE; to us they have no text (docs/language.md).
UNSEEN_BY_LIKE = {("f",), ("t",)}
# Spelled out by hand: each was taken and read otherwise once, or is easy to get wrong.
BY_HAND = [
    "NOT b AND b",
    "NOT i = 5 AND b",
    "! i = 5 OR b",
    "NOT i BETWEEN 1 AND 7 AND b",
    "NOT i IN (5) OR s LIKE 'n%' AND b",
    "i BETWEEN 1 AND 7 AND f BETWEEN 1 AND 7 OR b",
    "b OR i = 5 AND NOT b OR f > 1",
    "NOT NOT NOT b",
    "i = - 5 OR i = -(-(5)) OR i = +5",
    "Big = 9223372036854775807.000000000000000001",
    "Big != -9223372036854775807.000000000000000001",
    "i = 5e0BD OR i = 1.5e0BD",
    "whole IN (5.0, 7) OR whole IN (5, 7.5e0)",
    "f = '0x1.4p1' OR real = 2.5",
    "i IS NOT DISTINCT FROM 5",
    "i IS UNKNOWN OR b IS NOT UNKNOWN",
    "t = DATE('2024-01-01') OR t > TIMESTAMP_LTZ '2024-01-01'",
    "s = 'a\\u0062\\143' OR s = r'x\\y' OR s = 'x\\\\y'",
    "s LIKE 'a!_b' ESCAPE '!' OR s NOT LIKE '%\\\\y' ESCAPE '|'",
    "i = 5 /* a /* b */ c */ -- d\r OR b -- e",
    "i\u00a0=\u30005\x0bOR\x0cb",
    "array_contains(ALL ints, 5) OR arrays_overlap(ints, array(ALL 5L))",
    f"i = {'0' * 400}5 OR i = {'0' * 400}5L OR whole = {'0' * 400}5",
    "f = 0e2147483647 OR f > 1e-2147483647 OR f < 1.7976931348623157e308 OR f < 3.4028234e38F",
    "user.age BETWEEN -3 AND 7 AND `User`.`first name` <=> NULL",
]
# Taken by sqlglot alone: Spark refuses them or reads something else.
REFUSED_BY_HAND = [
    "i BETWEEN 1 7",
    "b AND OR (b)",
    "OR b",
    "i NOT IS NULL",
    "i NOT NULL",
    "i ISNULL",
    "i ! IN (5)",
    "i IS ! NULL",
    "IS NOT NULL",
    "+ (b)",
    "i IN (5,)",
    "i = 5 {# comment #}",
    "i = 1e100BD",
    "i =\x1f5",
    "i\x00 = 5",
    "array_contains(ints, ALL 0)",
    "arrays_overlap(ints, array(0, ALL 1))",
    "array_contains(ints AS, 0)",
    "f = . 5",
    "f = ./**/5",
    "user.!=",
    "/*+ x */ i = 5",
    "i = 5 /*+*/",
    "i = 5 /* /*+ x */ */",
    "DOUBLE PRECISION = 5",
    "t = TIMESTAMPTZ '2024-01-01'",
    "t = TIMESTAMP WITHOUT TIME ZONE '2024-01-01'",
    "t = TIMESTAMP_LTZ('2024-01-01')",
    "f = 1e99999999999",
    "f = 0e-2147483648",
    "f = 1.5e-2147483647D",
    "f = 1.7976931348623158e308",
    "f = 3.4028235e38F",
]


@pytest.fixture(scope="module")
def rows() -> list[dict[str, object]]:
    rng = random.Random(2)
    return [random_event(rng, number) for number in range(16)]


@pytest.fixture(scope="module")
def table(spark: SparkSession, rows: list[dict[str, object]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=SCHEMA)).coalesce(1).cache()


def differences(table: DataFrame, rows: list[dict[str, object]], seed: int, count: int) -> list[object]:
    """Draw texts that we take and list what Spark does not parse, or answers otherwise."""
    taken = {text: parse_filter(text) for text in BY_HAND}
    rng = random.Random(seed)
    while len(taken) < len(BY_HAND) + count:
        text = rng.choice([random_soup, changed_filter, changed_filter, chained, chained])(rng)
        with contextlib.suppress(FilterError):
            tree = parse_filter(text)
            if comparable(tree):
                taken[text] = tree
    wrong: list[object] = [text for text in taken if not parses(text)]
    typed = [text for text in taken if resolves(table, text)]
    assert len(typed) > 0.7 * len(taken)
    answers = ask(table, typed)
    assert len(answers) > 0.8 * len(typed)
    assert set(BY_HAND) <= set(answers)
    for text, values in answers.items():
        for row, value in zip(rows, values, strict=True):
            ours = reference.evaluate(taken[text], Event.from_row(row).attributes)
            if ours is not value:
                wrong.append((text, row, value, ours))
    return wrong


@pytest.mark.usefixtures("spark")
def test_what_we_take_spark_takes_and_means(table: DataFrame, rows: list[dict[str, object]]) -> None:
    assert differences(table, rows, seed=1, count=share(240)) == []


@pytest.mark.nightly
@pytest.mark.usefixtures("spark")
def test_what_we_take_spark_takes_and_means_at_length(
    table: DataFrame, rows: list[dict[str, object]]
) -> None:
    assert differences(table, rows, seed=2, count=3000) == []


@pytest.mark.parametrize("text", REFUSED_BY_HAND)
def test_what_spark_refuses_we_refuse(table: DataFrame, text: str) -> None:
    assert not parses(text) or not resolves(table, text)
    with pytest.raises(FilterError):
        parse_filter(text)


def test_spark_goes_on_with_a_comment_after_a_backslash(spark: SparkSession) -> None:
    text = "TRUE -- \\\nAND FALSE"
    assert spark.sql(f"SELECT ({text}\n)").collect()[0][0] is True
    with pytest.raises(FilterError, match="a comment ends with a backslash"):
        parse_filter(text)


def test_the_order_of_a_mixed_list_matters_to_spark(spark: SparkSession) -> None:
    found = spark.sql("SELECT s IN (1, 1.5), s IN (1.5, 1) FROM VALUES ('1.54') AS t(s)").collect()[0]
    assert tuple(found) == (True, False)
    # A departure: we cast the text to double both times.
    for text in ("s IN (1, 1.5)", "s IN (1.5, 1)"):
        assert reference.matches(parse_filter(text), {("s",): "1.54"}) is False


def test_beside_a_timestamp_without_a_zone_spark_drops_the_zone_of_a_text(spark: SparkSession) -> None:
    text, typed = "t = '2024-01-01 01:00:00+01:00'", "t = TIMESTAMP '2024-01-01 01:00:00+01:00'"
    columns = [f"{each}, {each.replace('t', 'z', 1)}" for each in (text, typed)]
    moment = "TIMESTAMP '2024-01-01 00:00:00'"
    table = f"SELECT {moment} AS t, CAST({moment} AS TIMESTAMP_NTZ) AS z"
    found = spark.sql(f"SELECT {', '.join(columns)} FROM ({table})").collect()[0]
    assert tuple(found) == (True, False, True, True)
    # A departure: we read the zone both times. With TIMESTAMP there is none.
    for each in (text, typed):
        assert reference.matches(parse_filter(each), {("t",): dt.datetime(2024, 1, 1)})


def comparable(tree: Expression) -> bool:
    """Leave out what departs from Spark by decision."""
    return not any(
        (isinstance(found, Like) and found.attribute.path in UNSEEN_BY_LIKE) or rounds_texts(found)
        for found in predicates(tree)
    )


def rounds_texts(found: Predicate) -> bool:
    """Tell whether Spark would round texts to the digits of a list that begins with a whole number."""
    if not isinstance(found, In) or found.attribute.path[:1] not in {*((name,) for name in TEXTS), ("user",)}:
        return False
    kinds = [literal.type for literal in found.literals if literal != NULL]
    return bool(kinds) and kinds[0] is LiteralType.INT and LiteralType.DECIMAL in kinds


def inside(text: str) -> str:
    """Make an expression of a text; a line break ends its last comment, AND asks for a Boolean."""
    return f"(({text}\n) AND TRUE)"


def parses(text: str) -> bool:
    """Ask Spark's parser alone, which knows no columns."""
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as sf

    try:
        sf.expr(inside(text))
    except PySparkException:
        return False
    return True


def resolves(table: DataFrame, text: str) -> bool:
    """Tell whether Spark knows the names and compares the types."""
    from pyspark.errors import PySparkException

    try:
        table.selectExpr(inside(text))
    except PySparkException:
        return False
    return True


def ask(table: DataFrame, texts: Sequence[str]) -> dict[str, list[object]]:
    """Evaluate all texts on all rows, many in one query; leave out those that fail on some row's value."""
    from pyspark.errors import PySparkException

    answers: dict[str, list[object]] = {}
    waiting = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
    while waiting:
        some = waiting.pop()
        columns = [f"{inside(text)} AS c{number}" for number, text in enumerate(some)]
        try:
            found = table.selectExpr("id", *columns).toArrow().sort_by("id")
        except PySparkException:
            half = len(some) // 2
            waiting += [some[:half], some[half:]] if half else []
            continue
        answers.update((text, found[f"c{number}"].to_pylist()) for number, text in enumerate(some))
    return answers
