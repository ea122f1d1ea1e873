"""What explanations say of the index: which predicates lead to a filter, and which are verified."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from headgate import Engine, Event, Subscription
from headgate.backtest.checking import check_filter
from headgate.contents.kind import FilterSettings
from headgate.local.validate import validate
from headgate.records.events.columns import EventColumns
from headgate.records.explain import access
from headgate.records.index.index import RecordIndex
from tests.records.random_filters import random_event, random_filter
from tests.seeds import seeds
from tests.spark.files import put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from headgate.records.explain.explain import Explanation


class Told(NamedTuple):
    """What is said of a filter by itself."""

    indexed_by: str
    indexed: tuple[str, ...] = ()
    verified: tuple[str, ...] = ()
    computed: tuple[str, ...] = ()


EVERY = "every event"
CASES: dict[str, Told] = {
    # Plain clauses.
    "age > 30": Told("age", ("age > 30",)),
    "topic = 'art' AND age > 10": Told("age and topic", ("topic = 'art'", "age > 10")),
    "topic = 'art' OR array_contains(tags, 'x')": Told(
        "topic or elements of tags", ("topic = 'art'", "array_contains(tags, 'x')")
    ),
    "age BETWEEN 10 AND 20 AND age != 15": Told("age", ("age BETWEEN 10 AND 20", "age != 15")),
    "array_contains(tags, 'x') AND forall(tags, x -> x IN ('x', 'y'))": Told(
        "elements of tags", ("array_contains(tags, 'x')",), ("forall(tags, x -> x IN ('x', 'y'))",)
    ),
    "name LIKE 'ab%'": Told("name", ("name LIKE 'ab%'",)),
    "name LIKE '%smith%'": Told("letters of name", ("name LIKE '%smith%'",), ("name LIKE '%smith%'",)),
    "name = 'smith' AND name NOT LIKE '%mit%'": Told("name", ("name = 'smith'",), ("name NOT LIKE '%mit%'",)),
    # Computed attributes.
    "upper(topic) = 'ART' AND age * 2 > 5": Told(
        "age * 2 and upper(topic)",
        ("upper(topic) = 'ART'", "(age * 2) > 5"),
        (),
        ("upper(topic)", "age * 2"),
    ),
    "upper(topic) IN ('ART', 'NEWS')": Told(
        "upper(topic)", ("upper(topic) IN ('ART', 'NEWS')",), (), ("upper(topic)",)
    ),
    "typeof(a) = 'bigint' AND a > 3": Told("a", ("typeof(a) = 'bigint'", "a > 3")),
    "hour(:event_time) >= 22": Told(
        "hour(:event_time)", ("hour(:event_time) >= 22",), (), ("hour(:event_time)",)
    ),
    "name ILIKE '%smith%'": Told(
        "letters of lower(name)", ("name ILIKE '%smith%'",), ("name ILIKE '%smith%'",), ("lower(name)",)
    ),
    # RLIKE: a word is an element of the words, all else is TRUE or FALSE.
    r"name RLIKE '(?i)\\bsmith\\b'": Told(
        "words(name)", (r"name RLIKE '(?i)\\bsmith\\b'",), (), ("words(name)",)
    ),
    "name RLIKE 'a+b'": Told("name RLIKE 'a+b'", ("(name RLIKE 'a+b')",), (), ("name RLIKE 'a+b'",)),
    # Nothing to index.
    "name NOT LIKE '%smith%'": Told(EVERY, (), ("name NOT LIKE '%smith%'",)),
    "topic = 'art' OR name NOT LIKE '%smith%'": Told(EVERY, ("topic = 'art'",), ("name NOT LIKE '%smith%'",)),
    "TRUE": Told(EVERY),
    "FALSE": Told("nothing"),
}
"""Filters in SQL."""
_ART = ("topic = 'art'", "array_contains(topic, 'art')")
_AGE = ("age > 3", "exists(age, x -> x > 3)")
_YOUNG = ("age BETWEEN 3 AND 9", "exists(age, x -> x BETWEEN 3 AND 9)")
DIALECTS: dict[str, tuple[str, Told]] = {
    "labels": (
        "intersects(tags, 'new')",
        Told("elements of tags", ("arrays_overlap(tags, array('new'))",)),
    ),
    "eventbridge": (
        '{"type": ["sale"], "gone": [{"exists": false}]}',
        Told(
            "type and gone or elements of type",
            ("type = 'sale'", "array_contains(type, 'sale')", "gone IS NULL"),
            ("gone IS NULL",),
        ),
    ),
    "cloudevents": ('{"exact": {"type": "sale"}}', Told("type", ("type = 'sale'",))),
    "cesql": (
        "type = 'sale' AND subject LIKE 'a%'",
        Told("subject and type", ("type = 'sale'", "subject LIKE 'a%'")),
    ),
    "elasticsearch": (
        '{"bool": {"must": [{"term": {"topic": "art"}}, {"range": {"age": {"gt": 3}}}]}}',
        Told(
            "age and topic or elements of age or elements of topic", (*_ART, *_AGE), ("topic = 'art'", *_AGE)
        ),
    ),
    "vespa": (
        "topic in ['art'] and age in [3..9]",
        Told(
            "elements of age or age and topic or elements of topic",
            (*_ART, *_YOUNG),
            ("topic = 'art'", *_YOUNG),
        ),
    ),
}
"""One filter of each other dialect."""
EVENT = Event("e", {"topic": "art", "age": 35, "name": "ann"})


ALL = [("sql", text, told) for text, told in CASES.items()]
ALL += [(dialect, text, told) for dialect, (text, told) in DIALECTS.items()]


def explained(index: Any, identity: int) -> Explanation:
    found: Explanation = index.explain(EVENT, identity)
    return found


@pytest.mark.parametrize(("dialect", "text", "told"), ALL)
def test_what_is_said_of_a_filter(dialect: str, text: str, told: Told) -> None:
    """What leads there, what is verified, what is computed; and it is what `validate` says of it."""
    found = explained(RecordIndex.build([Subscription(0, text, dialect)]), 0)
    assert found.costs is not None
    assert found.indexed_by is not None
    assert Told(found.indexed_by, found.indexed, found.verified, found.costs.computed) == told
    assert found.costs.every_event is (found.indexed_by == EVERY)
    checked = check_filter(text, FilterSettings(dialect))
    assert (found.indexed_by, found.costs, found.notes) == (checked.indexed_by, checked.costs, checked.notes)


def test_among_others(tmp_path: Path) -> None:
    """It is what `validate` says of the same table; also of those that came later, and without those gone."""
    rows = [{"id": number, "filter": text, "dialect": name} for number, (name, text, _) in enumerate(ALL)]
    wanted = validate({"subscriptions": put_lines(tmp_path / "all.jsonl", rows)}, FilterSettings()).filters
    given = [Subscription(number, text, name) for number, (name, text, _) in enumerate(ALL)]
    live = Engine.build(given[:3])
    live.subscribe(Subscription(99, "zebra = 7"))
    live.explain(EVENT, 0)
    live.unsubscribe(99)
    for each in given[3:]:
        live.subscribe(each)
    for engine in (Engine.build(given), live):
        for check in wanted:
            assert isinstance(check.id, int)
            found = explained(engine, check.id)
            assert (found.indexed_by, found.costs) == (check.indexed_by, check.costs), check.filter
    assert any(check.costs is not None and check.costs.shared for check in wanted)


def test_large_sets_and_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many filters some are looked at, and the one that is asked about; a sample of events counts."""
    many = [Subscription(number, f"a = {number % 50} AND b = {number % 50}") for number in range(200)]
    whole = RecordIndex.build(many)
    assert explained(whole, 1).indexed_by == "b and a"
    events = [Event(number, {"a": 1, "b": number}) for number in range(4000)]
    sampled = RecordIndex.build(many, sample=EventColumns(events))
    assert explained(sampled, 1).indexed_by == "b"
    monkeypatch.setattr(access, "MOST", 20)
    for identity in (0, 1, 199):
        found = explained(RecordIndex.build(many), identity)
        assert found.costs is not None
        assert (found.indexed_by, found.costs.shared) == ("b and a", None)


@pytest.mark.parametrize("seed", seeds(48))
def test_nothing_is_left_unsaid(seed: int) -> None:
    """What leads to a filter, and what is verified, is a predicate of it."""
    rng = random.Random(seed)
    texts = [random_filter(rng) for _ in range(30)]
    event = Event.from_row(random_event(rng, 0))
    index = RecordIndex.build(Subscription(number, text) for number, text in enumerate(texts))
    for number, text in enumerate(texts):
        found: Any = index.explain(event, number)
        assert bool(found.indexed) is bool(found.costs.indexed), text
        assert bool(found.verified) is bool(found.costs.verified), text
        written = {clause.text for clause in found.clauses}
        assert {*found.indexed, *found.verified} <= written, text
        assert found.lines()[: len(found.alone().lines())] == found.alone().lines()
        json.dumps(asdict(found), default=str)
