"""Percolator queries: against their reference, and what is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headgate.core.subscription import ELASTICSEARCH
from headgate.errors import FilterError
from headgate.records.language.dialects import to_sql
from tests.importers.agreement import COMPUTED, agree
from tests.importers.elasticsearch import matches
from tests.seeds import seeds

TEXTS = ["", "a", "A", "ab", "abc", "b%", "it's", "x-y", "ß"]
NUMBERS: list[int | float] = [-1, 0, 1, 2.5, 18, 300]
DAYS = ["2023-12-31", "2024-01-01", "2024-01-15T10:00:00", "2024-02-29", "2025-01-01T00:00:00"]
POOLS: dict[str, list[Any]] = {
    "status": [*TEXTS],
    "user.name": [*TEXTS],
    "age": [*NUMBERS],
    "flag": [True, False],
    "day": [*DAYS],
}


def document(rng: random.Random) -> dict[str, Any]:
    """Draw a document: a field has one type, and one value, many or none."""
    found: dict[str, Any] = {"id": rng.choice("abc"), "user": {}}
    for field, pool in POOLS.items():
        at, name = (found["user"], "name") if field == "user.name" else (found, field)
        match rng.randrange(6):
            case 0:
                at[name] = [rng.choice([*pool, None]) for _ in range(rng.randrange(3))]
            case 1 | 2 | 3:
                at[name] = rng.choice([*pool, None]) if rng.random() < 0.2 else rng.choice(pool)
    return found


def leaf(rng: random.Random) -> dict[str, Any]:
    """Draw a query of one field."""
    field = rng.choice([*POOLS])
    pool, text = POOLS[field], field in {"status", "user.name"}
    folded = {"case_insensitive": True} if text and rng.random() < 0.3 else {}
    match rng.randrange(8):
        case 0 | 1:
            return {"term": {field: {"value": rng.choice(pool), **folded} if folded else rng.choice(pool)}}
        case 2:
            return {"terms": {field: rng.sample(pool, 2)}}
        case 3:
            return {"exists": {"field": field}}
        case 4:
            return rng.choice(
                [{"match_all": {}}, {"match_none": {}}, {"ids": {"values": rng.sample("abcd", 2)}}]
            )
        case 5 if text:
            return {"prefix": {field: {"value": rng.choice(TEXTS), **folded}}}
        case 6 if text:
            return {
                rng.choice(["wildcard"]): {field: {"value": rng.choice(["a*", "?", "*b?", "*", "A?", "b%"])}}
            }
        case 7 if text:
            return {"regexp": {field: rng.choice(["a.*", "[ab]+c?", "x-y|a", "(a|A)b{0,1}", "."])}}
    if field == "flag":
        return {"match": {field: rng.choice(pool)}}
    bounds = [*pool, "2024", "2024-01"] if field == "day" else pool
    low, high = rng.choice(bounds), rng.choice(bounds)
    return {
        "range": {
            field: rng.choice(
                [{"gte": low}, {"gt": low, "lt": high}, {"lte": high}, {"gte": low, "lte": high}]
            )
        }
    }


def query(rng: random.Random, depth: int = 2) -> dict[str, Any]:
    """Draw a query."""
    if not depth or rng.random() < 0.3:
        return leaf(rng)
    if rng.random() < 0.1:
        inner = query(rng, depth - 1)
        return rng.choice(
            [{"constant_score": {"filter": inner}}, {"dis_max": {"queries": [inner, leaf(rng)]}}]
        )
    body: dict[str, Any] = {}
    for name in rng.sample(["must", "filter", "must_not", "should"], rng.randrange(1, 3)):
        body[name] = [query(rng, depth - 1) for _ in range(rng.randrange(1, 5 if name == "should" else 3))]
    if "should" in body and rng.random() < 0.5:
        body["minimum_should_match"] = rng.choice([0, 1, 2, 3, -1, "50%", "-25%", "100%", 9])
    return {"bool": body}


@pytest.mark.parametrize("seed", seeds(32))
def test_queries_match_where_the_reference_says(seed: int) -> None:
    rng = random.Random(seed)
    queries = [json.dumps(query(rng)) for _ in range(70)]
    documents = [document(rng) for _ in range(40)]
    found = agree(ELASTICSEARCH, queries, documents, lambda text, own: matches(json.loads(text), own))
    assert found > (200 if COMPUTED else 10)


CONVERTED = [
    ('{"query": {"match_all": {}}}', "TRUE"),
    (
        '{"term": {"user.name.keyword": {"value": "x", "boost": 2}}}',
        "user.name = 'x' OR array_contains(user.name, 'x')",
    ),
    (
        '{"terms": {"a": [1, 2.5, "x"]}}',
        "a IN (2.5, 1) OR arrays_overlap(a, array(2.5e0, 1)) OR a = 'x' OR array_contains(a, 'x')",
    ),
    ('{"terms": {"a": []}}', "FALSE"),
    ('{"ids": {"values": ["1", "x"]}}', "id IN ('1', 'x') AND id >= ''"),
    ('{"bool": {"must_not": {"exists": {"field": "a"}}}}', "a IS NULL OR forall(a, x -> x IS NULL)"),
    ('{"bool": {"must": {"match_all": {}}, "should": {"term": {"a": 1}}}}', "TRUE"),
    (
        '{"range": {"d": {"gt": "2024-02", "lte": "2024-12-31T10:00:00.5+01:00"}}}',
        (
            "d >= TIMESTAMP '2024-03-01 00:00:00.000000Z' AND d < TIMESTAMP '2024-12-31 09:00:00.501000Z' OR "
            "exists(d, x -> "
            "x >= TIMESTAMP '2024-03-01 00:00:00.000000Z' AND x < TIMESTAMP '2024-12-31 09:00:00.501000Z')"
        ),
    ),
    (
        '{"regexp": {"a": "^x.*$"}}',
        (
            r"concat(a, '.') RLIKE '(?s)^(?:\\^x.*\\$)[.]$' OR "
            r"exists(a, x -> concat(x, '.') RLIKE '(?s)^(?:\\^x.*\\$)[.]$')"
        ),
    ),
]


@pytest.mark.parametrize(("text", "sql"), CONVERTED)
def test_what_it_becomes(text: str, sql: str) -> None:
    assert to_sql(text, ELASTICSEARCH) == sql


def test_many_clauses_are_counted() -> None:
    clauses = [{"term": {"a": number}} for number in range(12)]
    sql = to_sql(json.dumps({"bool": {"should": clauses, "minimum_should_match": 6}}), ELASTICSEARCH)
    assert sql.startswith("CASE WHEN a = 0 OR array_contains(a, 0) THEN 1 ELSE 0 END + ")
    assert sql.endswith(" END >= 6")


REFUSED = [
    ("[]", 'a query is an object of one name: write {"term": {"field": "…"}}', 0),
    (
        '{"bool": {"must": [{"fuzzy": {"a": "x"}}]}}',
        "the query 'fuzzy' is not converted: filters compare texts exactly: write wildcard or regexp",
        20,
    ),
    (
        '{"match": {"title": "big news"}}',
        (
            "match analyses texts by the mapping of the field, which filters do not have: "
            "write term for the whole text"
        ),
        11,
    ),
    ('{"term": {"a": 1, "b": 2}}', "term takes one field, and this has 2", 1),
    ('{"term": {"a": null}}', "a value is a text, a number, true or false, not None", 10),
    ('{"prefix": {"a": 5}}', "prefix takes a text, not 5", 12),
    (
        '{"terms": {"a": {"index": "x"}}}',
        "terms takes a list of values; those of another document are not looked up",
        11,
    ),
    (
        '{"range": {"a": {"gte": "now-1d"}}}',
        "dates that depend on the clock are not converted: an event means the same at any time",
        17,
    ),
    ('{"range": {"a": {"gte": 1, "lt": "x"}}}', "the bounds of a range are all numbers or all texts", 17),
    ('{"range": {"a": {}}}', 'range takes at least one bound: write {"gte": 1}', 11),
    ('{"range": {"a": {"lt": "2024-13-01"}}}', "'2024-13-01' is not a date", 17),
    (
        '{"range": {"a": {"lt": 1, "time_zone": "+01:00"}}}',
        "filters are in UTC: write the zone into the bounds",
        26,
    ),
    (
        '{"bool": {"should": [], "minimum_should_match": "3<90%"}}',
        "minimum_should_match takes a number or a percentage here: write 2, -1, '75%' or '-25%'",
        24,
    ),
    (
        '{"bool": {"mustnt": []}}',
        (
            "'mustnt' of bool is not converted: it takes must, filter, must_not, should, "
            "minimum_should_match, boost"
        ),
        10,
    ),
    (
        '{"regexp": {"a": "a&b"}}',
        "& is an operator of Lucene that is not converted: write \\& for the letter",
        12,
    ),
    ('{"exists": {"field": "a.*"}}', "the name of one field is expected here", 12),
    ('{"ids": {"values": [1]}}', "ids takes a list of texts as values", 1),
]


@pytest.mark.parametrize(("text", "reason", "position"), REFUSED)
def test_what_is_refused(text: str, reason: str, position: int) -> None:
    with pytest.raises(FilterError) as caught:
        to_sql(text, ELASTICSEARCH)
    assert (caught.value.reason, caught.value.position) == (reason, position)
