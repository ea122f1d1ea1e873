"""Filters of other systems in sets whose names mean what they mean there."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Event, Subscription
from headgate.core.subscription import CESQL, CLOUDEVENTS, ELASTICSEARCH, EVENTBRIDGE, VESPA
from headgate.records.importers import cesql_parse, cesql_reference, vespa
from headgate.records.importers.registry import EXACTLY
from headgate.records.index.index import RecordIndex
from tests.importers import cloudevents as cloudevents_reference
from tests.importers import elasticsearch as elasticsearch_reference
from tests.importers import eventbridge as eventbridge_reference
from tests.importers import test_cesql, test_cloudevents, test_elasticsearch, test_vespa
from tests.importers import vespa as vespa_reference
from tests.importers.agreement import agree
from tests.importers.test_eventbridge import expanded
from tests.seeds import seeds

if TYPE_CHECKING:
    from collections.abc import Callable


def with_case(event: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Add attributes whose names differ in case from those that filters name, with others' values."""
    values = [*event.values()]
    return {**event, **{name.upper(): rng.choice(values) for name in event if rng.random() < 0.7}}


def queries(rng: random.Random) -> list[str]:
    return [json.dumps(test_elasticsearch.query(rng)) for _ in range(20)]


def documents(rng: random.Random) -> dict[str, Any]:
    """Draw a document; a field of an object may be one with a dot in its name."""
    found = test_elasticsearch.document(rng)
    if rng.random() < 0.5:
        found |= {f"user.{name}": value for name, value in found.pop("user").items()}
    return found


DRAWN: dict[str, tuple[Callable[..., list[str]], Callable[..., dict[str, Any]], Callable[..., bool]]] = {
    ELASTICSEARCH: (
        queries,
        documents,
        lambda text, event: elasticsearch_reference.matches(json.loads(text), expanded(event)),
    ),
    CESQL: (
        lambda rng: [*filter(test_cesql.accepted, (test_cesql.condition(rng, 2) for _ in range(40)))],
        test_cesql.event,
        lambda text, event: cesql_reference.holds(cesql_parse.parse(text), event),
    ),
    CLOUDEVENTS: (
        lambda rng: [json.dumps(test_cloudevents.filter_of(rng)) for _ in range(40)],
        test_cesql.event,
        lambda text, event: cloudevents_reference.holds(json.loads(text), event),
    ),
    VESPA: (
        lambda rng: [test_vespa.predicate(rng) for _ in range(30)],
        test_vespa.event,
        lambda text, event: vespa_reference.holds(vespa.parse(text), event),
    ),
}


@pytest.mark.parametrize("dialect", DRAWN)
@pytest.mark.parametrize("seed", seeds(16))
def test_names_mean_what_they_mean_there(seed: int, dialect: str) -> None:
    rng = random.Random(seed)
    filters, event, holds = DRAWN[dialect]
    events = [with_case(event(rng), rng) for _ in range(15)]
    assert agree(dialect, filters(rng), events, holds, settings=EXACTLY[dialect])


OBJECTS = [
    # What is asked of an element's field finds nothing here, and something there.
    (EVENTBRIDGE, '{"items": {"price": [5]}}', {"items": [{"price": 5}]}, True, False),
    (EVENTBRIDGE, '{"items": {"price": [{"exists": false}]}}', {"items": [{"price": 5}]}, False, True),
    (EVENTBRIDGE, '{"items": [{"anything-but": "x"}]}', {"items": [{"price": 5}]}, False, False),
    (EVENTBRIDGE, '{"items": [{"exists": true}]}', {"items": [{"price": 5}]}, False, False),
    (ELASTICSEARCH, '{"term": {"items.price": 5}}', {"items": [{"price": 5}]}, True, False),
    (ELASTICSEARCH, '{"exists": {"field": "items"}}', {"items": [{"price": 5}]}, True, True),
]


@pytest.mark.parametrize(("dialect", "text", "event", "there", "here"), OBJECTS)
def test_names_do_not_go_into_arrays_of_objects(
    dialect: str, text: str, event: dict[str, Any], *, there: bool, here: bool
) -> None:
    reference = eventbridge_reference if dialect == EVENTBRIDGE else elasticsearch_reference
    assert reference.matches(json.loads(text), event) is there
    index = RecordIndex.build([Subscription(1, text, dialect)], settings=EXACTLY[dialect])
    assert (index.match(Event(1, event)) == [1]) is here
