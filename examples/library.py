"""Headgate as a library: subscribe, match, explain, without Spark.

Run it with `.venv/bin/python examples/library.py`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from headgate import Event, Subscription
from headgate.errors import FilterError
from headgate.records.index.index import RecordIndex
from headgate.records.language.parse import parse_filter

SUBSCRIPTIONS = [
    Subscription("anna", "topic = 'news' AND country IN ('CH', 'DE')"),
    Subscription("ben", "age BETWEEN 18 AND 30 OR array_contains(interests, 'cycling')"),
    Subscription("carla", "user.city LIKE 'Z%' AND NOT is_member"),
]


def main() -> None:
    """Walk through the library."""
    index = RecordIndex.build(SUBSCRIPTIONS)
    event = Event("e1", {"topic": "news", "country": "CH", "age": 44, "interests": ["cycling", "art"]})
    print("matches:", index.match(event))

    why = index.explain(event, "carla")
    print("carla:", "match" if why.matches else "no match, because of", why.nearest_miss[0].text)

    try:
        parse_filter("age > now()")
    except FilterError as error:
        print("refused:", error)

    # Batches go through Arrow, and a snapshot is opened by any number of processes at once.
    with tempfile.TemporaryDirectory() as directory:
        index.save(Path(directory) / "snapshot")
        opened = RecordIndex.open(Path(directory) / "snapshot")
        batch = pa.RecordBatch.from_pylist([{"id": 1, "age": 20}, {"id": 2, "age": 50}])
        print("batch:", opened.match_batch(batch).to_pylist())


if __name__ == "__main__":
    main()
