"""The Spark jobs end to end, Parquet in and out, against Spark SQL itself."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from benchmarks.measure import once
from benchmarks.results import Result
from headgate.spark.compile import compile_subscriptions
from headgate.spark.generate import generate
from headgate.spark.match import match_events
from headgate.spark.session import close_session, open_session
from headgate.workloads import advertising

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIZES = {"quick": (1_000, 2_000), "full": (100_000, 100_000)}
ORACLE = 200
"""Filters that Spark SQL evaluates for the baseline; all of them would take hours."""


def run(size: str) -> list[Result]:
    """Measure compile and match; check the answers against Spark SQL."""
    filters, events = SIZES[size]
    session = open_session()
    try:
        with tempfile.TemporaryDirectory() as directory:
            return _measure(session, Path(directory), filters, events)
    finally:
        close_session(session)


def _measure(session: SparkSession, here: Path, filters: int, events: int) -> list[Result]:
    paths = {
        name: str(here / name) for name in ("subs.parquet", "events.parquet", "snapshot", "matches.parquet")
    }
    refused = str(here / "rejected.jsonl")
    schema = advertising.subscription_schema()
    generate(session, advertising.subscriptions, schema, filters, paths["subs.parquet"], seed=1)
    generate(session, advertising.events, advertising.schema(), events, paths["events.parquet"], seed=1)
    print(f"{filters:,} filters, {events:,} events", file=sys.stderr, flush=True)
    done = compile_subscriptions(session, paths["subs.parquet"], paths["snapshot"], rejected=refused)

    def match() -> int:
        found = match_events(
            session, paths["snapshot"], paths["events.parquet"], paths["matches.parquet"], rejected=refused
        )
        return found.matches

    match()
    matching = min(once(match), once(match))
    read = once(
        lambda: (
            session.read.parquet(paths["events.parquet"]).write.mode("overwrite").parquet(str(here / "copy"))
        )
    )
    spark = once(lambda: _oracle(session, paths)) * filters / ORACLE
    scale = 1e6 / events
    return [
        Result("compile: parse", done.parse_seconds / filters * 1e6, "µs a filter"),
        Result("compile: build and write", done.build_seconds / filters * 1e6, "µs a filter"),
        Result(
            "match, Parquet to Parquet",
            matching * scale,
            "µs an event",
            spark * scale,
            "Spark SQL, from 200 filters",
        ),
        Result("Spark reads and writes the events", read * scale, "µs an event"),
    ]


def _oracle(session: SparkSession, paths: dict[str, str]) -> None:
    """Evaluate some filters as Spark SQL over all events, and compare every count with our matches."""
    some = session.read.parquet(paths["subs.parquet"]).orderBy("id").limit(ORACLE).collect()
    events = session.read.parquet(paths["events.parquet"])
    theirs = (
        events.agg(*[sf.count_if(sf.expr(row["filter"])).alias(row["id"]) for row in some])
        .collect()[0]
        .asDict()
    )
    ours = session.read.parquet(paths["matches.parquet"]).groupBy("subscription_id").count().collect()
    counts = {row["subscription_id"]: row["count"] for row in ours}
    wrong = [name for name, count in theirs.items() if counts.get(name, 0) != count]
    if wrong:
        raise AssertionError(f"Spark SQL counts other matches than Headgate for {wrong[:5]}")
