"""A process that dies at any step of a batch: done again by another, each match is there once.

All that outlives a process is put in place by renaming. So dying before and after each rename is dying at
every step. A process that dies leaves nothing in memory: each attempt opens everything again.
"""

from __future__ import annotations

import datetime as dt
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Engine, Subscription
from headgate.engine.question import ALL
from headgate.runtime.state import State
from headgate.spark.stream.batch import match_rows
from headgate.spark.stream.sinks import open_sink
from headgate.stream.batch import Batches
from headgate.stream.reporting import StreamReporter
from headgate.stream.rows import match_schema
from headgate.stream.sources.logs import DDL
from tests.lanes import some
from tests.streaming.world import World, lines, log_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Died(BaseException):
    """The process is gone."""


class Reaper:
    """Dies at the n-th rename, before it or after it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.after = False
        self.count = 0
        for name in ("replace", "rename"):
            self._watch(monkeypatch, name, getattr(Path, name))

    def _watch(self, monkeypatch: pytest.MonkeyPatch, name: str, real: Any) -> None:
        def step(place: Path, target: Path) -> Path:
            self.count += 1
            if self.left is not None:
                self.left -= 1
                if self.left == 0 and not self.after:
                    raise Died
            found: Path = real(place, target)
            if self.left == 0:
                raise Died
            return found

        monkeypatch.setattr(Path, name, step)


def attempt(world: World, batches: list[DataFrame], spark: SparkSession) -> None:
    """Do batches as one process would that has just started."""
    settings = world.settings(fold=3)
    state = State(world.state)
    subscriptions = log_of(settings, state)
    try:
        numbered = bool(state.fixed("numbered", subscriptions.numbered))
        schema = match_schema(ALL, numbered=numbered)
        sink = open_sink(spark, settings)
        telling = StreamReporter(settings, state.root, quiet=True)
        do = Batches(settings, state, subscriptions, sink, schema, telling)
        for number, rows in enumerate(batches):
            do(partial(match_rows, rows=rows), number)
    finally:
        subscriptions.close()


def make(world: World, spark: SparkSession) -> list[DataFrame]:
    """Make three batches with duplicates and bad lines, and changes of which some are refused."""
    Engine.build([Subscription("s1", "n > 1"), Subscription("s2", "n > 2")]).save(world.snapshot)
    rows: list[dict[str, Any]] = [{"op": "subscribe", "id": f"t{n}", "filter": f"n > {n}"} for n in range(5)]
    world.change("1.jsonl", [*rows, {"op": "unsubscribe", "id": "s1"}, {"op": "unsubscribe", "id": "none"}])
    found = []
    for batch in range(3):
        name = f"{batch}.jsonl"
        text: list[Any] = [
            *({"id": f"{batch} {n}", "n": n} for n in range(6)),
            {"id": "twice", "n": 9},
            "bad",
        ]
        world.send(name, text)
        origin, now = str(world.events / name), dt.datetime(2026, 5, 10, tzinfo=dt.UTC)
        values = [(line.encode(), None, origin, now) for line in lines(text).splitlines()]
        found.append(spark.createDataFrame(values, DDL).coalesce(1 + batch % 2))
    return found


@pytest.mark.parametrize("after", some([False, True], 1), ids=["before", "after"])
def test_dying_again_and_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """Dying again and again, each process one step further than the one before it."""
    reaper = Reaper(monkeypatch)
    world = World(tmp_path / "whole")
    attempt(world, make(world, spark), spark)
    steps = reaper.count
    assert steps > 20
    # One stream that dies at step 1, 2, 3, … of each process, until one comes through.
    world = World(tmp_path / "stubborn")
    batches = make(world, spark)
    deaths = 0
    for step in range(1, steps + 1):
        reaper.left, reaper.after = step, after
        try:
            attempt(world, batches, spark)
            break
        except Died:
            deaths += 1
    reaper.left = None
    assert deaths > 5
    attempt(world, batches, spark)
    check(world)


@pytest.mark.nightly
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_dying_at_every_step(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """A stream that dies once, for every step one."""
    reaper = Reaper(monkeypatch)
    step = 0
    while True:
        step += 1
        reaper.left = None
        world = World(tmp_path / str(step))
        batches = make(world, spark)
        reaper.left, reaper.after = step, after
        try:
            attempt(world, batches, spark)
            if reaper.left > 0:
                break
            # It came to that step aside, where it folds, and nobody was there any more to be told.
        except Died:
            pass
        reaper.left = None
        attempt(world, batches, spark)
        check(world)
    assert step > 20


def check(world: World, rejected: int = 1) -> None:
    """Compare all that was written with what the engine gives; so many changes are refused."""
    assert world.matches() == world.expected()
    assert world.matches()
    dead = [row["row"] for row in world.dead()]
    assert sorted(dead) == sorted(["bad"] * 3 + ['{"id": "twice", "n": 9}'] * 2)
    assert len(world.rejected()) == rejected
    staged = [file for folder in (world.output, Path(world.settings().dead)) for file in folder.glob("_*/*")]
    assert not staged


@pytest.mark.parametrize("stage", some(["pinned", "ready", "renamed", "committed"], 1))
def test_dying_between_stages(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """Dying between the stages of a batch; subscriptions change and the snapshot is replaced meanwhile."""
    world = World(tmp_path)
    batches = make(world, spark)
    real = State.put

    def put(state: State, number: int, record: Any) -> Any:
        if number == 1 and stage == "renamed" and record["stage"] == "committed":
            raise Died
        found = real(state, number, record)
        if number == 1 and record["stage"] == stage:
            raise Died
        return found

    monkeypatch.setattr(State, "put", put)
    with pytest.raises(Died):
        attempt(world, batches, spark)
    monkeypatch.setattr(State, "put", real)
    pinned = State(world.state).batch(1)
    assert pinned is not None
    world.change("2.jsonl", [{"op": "subscribe", "id": "new", "filter": "n >= 0"}])
    # Kept for the comparison: a batch that is not yet done must find it, too.
    Engine.build([Subscription("other", "n > 0")]).save(world.snapshot)
    attempt(world, batches, spark)
    done = State(world.state).batch(1)
    assert done is not None
    assert [done[name] for name in ("snapshot", "version", "at")] == [
        pinned[name] for name in ("snapshot", "version", "at")
    ]
    last = State(world.state).batch(2)
    assert last is not None
    assert last["snapshot"] != pinned["snapshot"]
    # All changes are done to the other snapshot, too, and there two of them are refused.
    check(world, 1 + 2)
