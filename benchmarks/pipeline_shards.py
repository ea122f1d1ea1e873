"""What shards cost: W-eq in several numbers, by hash and by what the filters demand; the same rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.measure import once
from benchmarks.results import Result
from headgate.runtime.sharding import ACCESS, HASH, Sharding
from headgate.spark.compile.compile import compile_subscriptions
from headgate.spark.match.match import match_events

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.spark.match.match import Matched

COLUMN = "cat04"
"""The attribute of the rule `access`: some filters demand a value of it, the others are open."""
PLAIN = "in one piece"


def measure(
    session: SparkSession,
    here: Path,
    subscriptions: str,
    events: str,
    filters: int,
    runs: int,
    counts: Sequence[int],
) -> list[Result]:
    """Compile and match with each number and rule; the matches must be those of one piece."""
    rows: list[Result] = []
    wanted = found = None
    for count in counts:
        for by in (HASH, ACCESS) if count > 1 else (HASH,):
            name = PLAIN if count == 1 else f"{count} shards by {by}"
            place = here / f"{by}-{count}"
            sharding = Sharding.of(count, by, COLUMN if by == ACCESS else None)
            compile_subscriptions(
                session,
                subscriptions,
                str(place / "snapshot"),
                rejected=str(place / "refused.jsonl"),
                sharding=sharding,
                quiet=True,
            )
            done = _match(session, place, events)
            wall = min(once(partial(_match, session, place, events)) for _ in range(runs))
            found = _sum(session, place)
            wanted = found if wanted is None else wanted
            if found != wanted:
                raise AssertionError(f"{name}: not the matches of one piece")
            section = f"W-eq in shards, {filters:,} filters, {done.events:,} events"
            rows.append(Result(f"{name}: events a second", done.events / wall, "/s", section=section))
            if count > 1:
                met = done.met / done.events
                rows.append(
                    Result(f"{name}: shards that an event meets", met, f"of {count}", section=section)
                )
    return rows


def _match(session: SparkSession, place: Path, events: str) -> Matched:
    return match_events(
        session,
        str(place / "snapshot"),
        events,
        str(place / "matches.parquet"),
        rejected=str(place / "rejected.jsonl"),
        quiet=True,
    )


def _sum(session: SparkSession, place: Path) -> tuple[int, int]:
    """Return the number of matches, and a sum that depends on each of them."""
    row = (
        session.read.parquet(str(place / "matches.parquet"))
        .selectExpr("count(*)", "sum(cast(xxhash64(event_id, subscription_id) as decimal(38, 0)))")
        .first()
    )
    assert row is not None
    return int(row[0]), int(row[1])
