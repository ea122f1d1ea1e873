"""What importers share: the languages, and what they may write."""

from __future__ import annotations

import pytest

from headgate import Engine, Subscription
from headgate.core.subscription import FOREIGN, dialects
from headgate.errors import SubscriptionError
from headgate.records.importers.reading import place_of
from headgate.records.kind import KIND
from headgate.records.language.dialects import to_sql
from tests.importers.agreement import COMPUTED, expressions_are_there

EXAMPLES = {
    "vespa": ("type in ['news']", "type = 'news' OR array_contains(type, 'news')"),
    "elasticsearch": ('{"term": {"type": "news"}}', "type = 'news' OR array_contains(type, 'news')"),
    "cloudevents": ('{"exact": {"type": "news"}}', "type = 'news'"),
    "cesql": ("type = 'news'", "type = 'news'"),
    "eventbridge": ('{"type": ["news"]}', "type = 'news' OR array_contains(type, 'news')"),
}


def test_expressions_are_known_where_they_are() -> None:
    assert expressions_are_there() == COMPUTED, "set COMPUTED in tests/importers/agreement.py"


def test_every_language_is_a_dialect_of_records() -> None:
    assert set(FOREIGN) <= set(dialects())
    assert set(FOREIGN) <= set(KIND.dialects)
    assert sorted(EXAMPLES) == sorted(FOREIGN)


@pytest.mark.parametrize("dialect", EXAMPLES)
def test_engines_take_it(dialect: str) -> None:
    text, sql = EXAMPLES[dialect]
    assert to_sql(text, dialect) == sql
    engine = Engine.build([Subscription("s", text, dialect)])
    assert engine.match({"type": "news"}) == ["s"]
    assert engine.match({"type": "art"}) == []
    engine.subscribe(Subscription("t", text, dialect))
    assert sorted(engine.match({"type": "news"})) == ["s", "t"]
    assert sql in repr(engine.explain({"type": "news"}, "s"))


def test_other_dialects_are_refused() -> None:
    with pytest.raises(
        SubscriptionError, match="is not for records: filters of records are 'sql', 'labels', 'eventb"
    ):
        to_sql("ASK {}", "sparql")


def test_places_are_found_in_any_json() -> None:
    text = '{"a": {"b": [1, {"c\\"": [true, "]"]}]}, "d": [[2], 3]}'
    expected = {(): 0, ("a",): 1, ("a", "b"): 7, ("a", "b", 1): 16, ("a", "b", 1, 'c"'): 17}
    expected |= {("a", "b", 1, 'c"', 1): 31, ("d",): 40, ("d", 0): 46, ("d", 0, 0): 47, ("d", 1): 51}
    assert {place: place_of(text, place) for place in expected} == expected
    assert place_of(text, ("e",)) is None
