"""Filters of the Subscriptions API: against their reference, and what is refused."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from headgate.core.subscription import CLOUDEVENTS
from headgate.errors import FilterError
from headgate.records.language.dialects import to_sql
from tests.importers.agreement import agree
from tests.importers.cloudevents import holds
from tests.importers.test_cesql import NAMES, TEXTS, event
from tests.seeds import seeds

EXPRESSIONS = ["subject LIKE 'a%'", "EXISTS flag", "type = 'a' OR subject = 'ab'", "NOT (subject = '1')"]


def filter_of(rng: random.Random, depth: int = 3) -> dict[str, Any]:
    """Draw a filter."""
    if depth and rng.random() < 0.4:
        dialect = rng.choice(["all", "any", "not"])
        inner = [filter_of(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
        return {dialect: inner[0] if dialect == "not" else inner}
    if rng.random() < 0.1:
        return {"sql": rng.choice(EXPRESSIONS)}
    names = rng.sample(NAMES, rng.choice([1, 1, 2]))
    texts = [text for text in TEXTS if text]
    return {rng.choice(["exact", "prefix", "suffix"]): {name: rng.choice(texts) for name in names}}


@pytest.mark.parametrize("seed", seeds(32))
def test_filters_hold_where_the_reference_says(seed: int) -> None:
    rng = random.Random(seed)
    drawn = [filter_of(rng) if rng.random() < 0.8 else [filter_of(rng), filter_of(rng)] for _ in range(200)]
    events = [event(rng) for _ in range(50)]
    found = agree(
        CLOUDEVENTS,
        [json.dumps(each) for each in drawn],
        events,
        lambda text, own: holds(json.loads(text), own),
        100,
    )
    assert found > 200


CONVERTED = [
    ('{"exact": {"type": "a"}}', "type = 'a'"),
    ('{"exact": {"hop": "1"}}', "hop LIKE '1'"),
    ('{"prefix": {"type": "50%"}}', r"type LIKE '50\\%%'"),
    (
        '{"not": {"exact": {"type": "a", "subject": "b"}}}',
        "type NOT LIKE 'a' OR subject IS NULL OR subject NOT LIKE 'b'",
    ),
    ("[]", "TRUE"),
    ('{"filters": [], "sink": "https://example.org"}', "TRUE"),
    (
        '{"filters": [{"suffix": {"type": ".x"}}], "source": "/s", "types": ["a", "b"], "protocol": "HTTP"}',
        "type LIKE '%.x' AND source = '/s' AND (type = 'a' OR type = 'b')",
    ),
    ('{"sql": "a = \'x\' OR EXISTS b"}', "a = 'x' OR a IS NOT NULL AND b IS NOT NULL"),
]


@pytest.mark.parametrize(("text", "sql"), CONVERTED)
def test_what_it_becomes(text: str, sql: str) -> None:
    assert to_sql(text, CLOUDEVENTS) == sql


REFUSED = [
    ('"x"', 'a filter is an object of one dialect: write {"exact": {"type": "…"}}', 0),
    ('{"exact": {}}', "exact takes an object of attributes and texts", 1),
    ('{"all": []}', "all takes a list of at least one filter", 1),
    ('{"exact": {"type": ""}}', "exact compares an attribute with a text that is not empty", 11),
    ('{"exact": {"type": 1}}', "exact compares an attribute with a text that is not empty", 11),
    (
        '{"exact": {"Type": "a"}}',
        "'Type' is no name of an attribute: CloudEvents have lower-case letters and digits",
        11,
    ),
    (
        '{"all": [{"regex": {"type": "a"}}]}',
        "'regex' is not a dialect of filters: they are exact, prefix, suffix, all, any, not, sql",
        10,
    ),
    (
        '[{"sql": "a = "}]',
        "sql: a value is missing at the end, at character 5: a = ⟪",
        2,
    ),
    ('{"filters": {}}', "filters takes a list of filters", 1),
    ('{"filters": [], "types": []}', "types takes a list of at least one type of events", 16),
]


@pytest.mark.parametrize(("text", "reason", "position"), REFUSED)
def test_what_is_refused(text: str, reason: str, position: int) -> None:
    with pytest.raises(FilterError) as caught:
        to_sql(text, CLOUDEVENTS)
    assert (caught.value.reason, caught.value.position) == (reason, position)
