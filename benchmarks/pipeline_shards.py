"""What shards cost: W-eq in several numbers, by hash and by what the filters demand; the same rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from benchmarks.results import Result
from headgate.jobs.compile import compile_subscriptions
from headgate.jobs.match import match_events
from headgate.runtime.sharding import ACCESS, HASH, Sharding
from headgate.spark.runner import SparkRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.tables.results import MatchResult

COLUMN = "cat04"
"""The attribute of the rule `access`: some filters demand a value of it, the others are open."""
PLAIN = "in one piece"


GOALS = {4: 1.5, 16: 3.3}
"""CPU against one piece, at most, for numbers of shards by hash."""


def measure(
    session: SparkSession,
    here: Path,
    subscriptions: str,
    events: str,
    filters: int,
    runs: int,
    counts: Sequence[int],
    spent: Callable[[Callable[[], MatchResult]], tuple[float, tuple[float, float], MatchResult]],
) -> list[Result]:
    """Compile and match with each number and rule; the matches must be those of one piece.

    The runs of all of them take turns, and the cheapest of each counts: its clock, and its CPU by `spent`.
    """
    places: dict[tuple[int, str], Path] = {}
    wanted = None
    for count in counts:
        for by in (HASH, ACCESS) if count > 1 else (HASH,):
            place = places[count, by] = here / f"{by}-{count}"
            compile_subscriptions(
                SparkRunner(session, quiet=True),
                subscriptions,
                str(place / "snapshot"),
                rejected=str(place / "refused.jsonl"),
                sharding=Sharding.of(count, by, COLUMN if by == ACCESS else None),
            )
            _match(session, place, events)
            found = _sum(session, place)
            wanted = found if wanted is None else wanted
            if found != wanted:
                raise AssertionError(f"{_name(count, by)}: not the matches of one piece")
    done: dict[tuple[int, str], list[tuple[float, float, MatchResult]]] = {case: [] for case in places}
    for _ in range(runs):
        for case, place in places.items():
            wall, both, matched = spent(partial(_match, session, place, events))
            done[case].append((sum(both), wall, matched))
    rows: list[Result] = []
    plain = min(cpu for cpu, _, _ in done[1, HASH])
    for (count, by), tried in done.items():
        cpu, matched = min(each[0] for each in tried), tried[0][2]
        name, wall = _name(count, by), min(each[1] for each in tried)
        section = f"W-eq in shards, {filters:,} filters, {matched.events:,} events"
        rows.append(Result(f"{name}: events a second", matched.events / wall, "/s", section=section))
        rows.append(Result(f"{name}: CPU", cpu / matched.events * 1e6, "µs an event", section=section))
        if count > 1:
            goal = GOALS.get(count) if by == HASH and runs > 1 else None
            rows.append(
                Result(f"{name}: CPU against one piece", cpu / plain, "times", section=section, goal=goal)
            )
            met = matched.met / matched.events
            rows.append(Result(f"{name}: shards that an event meets", met, f"of {count}", section=section))
    return rows


def _name(count: int, by: str) -> str:
    return PLAIN if count == 1 else f"{count} shards by {by}"


def _match(session: SparkSession, place: Path, events: str) -> MatchResult:
    return match_events(
        SparkRunner(session, quiet=True),
        str(place / "snapshot"),
        events,
        str(place / "matches.parquet"),
        rejected=str(place / "rejected.jsonl"),
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
