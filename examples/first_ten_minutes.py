"""The first ten minutes: events that are dicts, lists, frames; a bad filter; why and why not; ranks; a graph.

Run it with `.venv/bin/python examples/first_ten_minutes.py`.
"""

from __future__ import annotations

import importlib
import importlib.util

from headgate import Edge, Engine, Node, Subscription
from headgate.errors import FilterError

EVENTS = [
    {"id": "e1", "topic": "news", "country": "CH", "age": 44},
    {"id": "e2", "topic": "sport", "country": "DE", "age": 17},
    {"id": "e3", "topic": "art", "country": "CH", "age": 25},
]


def main() -> None:
    """Walk through the engine."""
    title("Subscriptions are filters; the engine says which of them an event matches")
    engine = Engine.build(
        [
            {"id": "anna", "filter": "topic = 'news' AND country IN ('CH', 'AT')"},
            {"id": "ben", "filter": "age < 18 OR topic = 'sport'"},
            {"id": "carla", "filter": "topic LIKE 'a%' AND age >= 30"},
        ]
    )
    print(engine)
    print(engine.match({"topic": "news", "country": "CH", "age": 44}))

    title("Many events at once: a list, or a frame")
    print(engine.match_events(EVENTS))
    print(engine.match_batch(EVENTS).to_pylist())
    for library in ("pandas", "polars"):
        if importlib.util.find_spec(library):
            frame = importlib.import_module(library).DataFrame(EVENTS)
            print(f"{library}:", engine.match_batch(frame).to_pydict())

    title("A bad filter says where, and what would be right")
    try:
        engine.subscribe({"id": "dora", "filter": "topic = 'news' && age > 30"})
    except FilterError as error:
        print(error)
    some = [{"id": "dora", "filter": "lenght(topic) > 3"}, {"id": "emil", "filter": "age > 40"}]
    for refused in engine.subscribe(some, on_error="collect"):
        print(refused.reason)
    print(engine)

    title("Why, why not, and which names nobody knows")
    for line in engine.explain(EVENTS[2], "carla").lines():
        print(line)
    print(engine.unknown([{"topic": "news", "contry": "CH"}]))

    title("Who comes first: the best two of an event")
    ranked = Engine.build(
        [
            Subscription("silver", "country = 'CH'", score=2.0),
            Subscription("gold", "country = 'CH' AND age > 40", score=3.0),
            Subscription("bronze", "country = 'CH'", score=1.0),
        ]
    )
    for best in ranked.top(EVENTS[0], 2):
        print(best)
    for line in ranked.explain_rank(EVENTS[0], "bronze", 2).lines():
        print(line)

    title("Who may see it: subscriptions behind a graph of nodes and edges with filters")
    network = Engine.build(
        [Subscription("fan", "age < 30", node="club")],
        nodes=[Node("press"), Node("club", "topic = 'sport'")],
        edges=[Edge("press", "club", "country = 'DE'")],
    )
    print(network)
    print(network.match({**EVENTS[1], "source": "press"}))
    for line in network.explain({**EVENTS[2], "source": "press"}, "fan").lines():
        print(line)

    title("What each subscription matched, and what it cost to find that out")
    statistics = engine.statistics()
    engine.match_events(EVENTS)
    for row in statistics.table().select(["subscription_id", "events", "matches", "candidates"]).to_pylist():
        print(row)


def title(text: str) -> None:
    """Print what comes next."""
    print(f"\n# {text}")


if __name__ == "__main__":
    main()
