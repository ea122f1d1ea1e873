"""Headgate inside a Spark job of your own.

Run it with `.venv/bin/python examples/spark_job.py`. `open_session` makes an embedded session with the
settings that filters rely on: ANSI mode, UTC, names without regard to case.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from headgate.jobs.compile import compile_subscriptions
from headgate.jobs.match import match_events
from headgate.spark.runner import SparkRunner
from headgate.spark.session.session import close_session, open_session

SUBSCRIPTIONS = [
    {"id": 1, "filter": "temperature > 30 AND site = 'roof'"},
    {"id": 2, "filter": "temperature NOT BETWEEN 5 AND 35"},
    {"id": 3, "filter": "temperature > (SELECT max(t) FROM limits)"},
]
EVENTS = [
    {"id": "a", "site": "roof", "temperature": 36.5},
    {"id": "b", "site": "cellar", "temperature": 12},
    {"id": "c", "site": "roof", "temperature": 31},
]


def main() -> None:
    """Compile three subscriptions, one of them refused, and match three events."""
    with tempfile.TemporaryDirectory() as directory:
        here = Path(directory)
        for name, rows in (("subs", SUBSCRIPTIONS), ("events", EVENTS)):
            (here / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), "utf-8")
        session = open_session()
        try:
            done = compile_subscriptions(
                SparkRunner(session, quiet=True),
                str(here / "subs.jsonl"),
                str(here / "snapshot"),
                rejected=str(here / "refused.jsonl"),
            )
            print(f"compiled {done.subscriptions}, refused {done.rejected}")
            print(json.loads((here / "refused.jsonl").read_text("utf-8"))["reason"])
            match_events(
                SparkRunner(session, quiet=True),
                str(here / "snapshot"),
                str(here / "events.jsonl"),
                str(here / "matches.parquet"),
                rejected=str(here / "refused-events.jsonl"),
            )
            # The answer is an ordinary table, ready to be joined.
            matches = session.read.parquet(str(here / "matches.parquet"))
            for row in matches.orderBy("event_id", "subscription_id").collect():
                print(row["event_id"], row["subscription_id"])
        finally:
            close_session(session)


if __name__ == "__main__":
    main()
