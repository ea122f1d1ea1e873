"""Snapshots in shards: a stream changes, folds and goes over to others as with one in one piece."""

from __future__ import annotations

import random
import shutil
from dataclasses import asdict, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Engine, Event, Subscription
from headgate.contents.kind import DocumentEvents
from headgate.contents.registry import kind_of
from headgate.core.rooms import RECORDS
from headgate.core.snapshot import room_of
from headgate.core.subscription import SQL
from headgate.core.versions.current import resolved
from headgate.core.versions.replacing import new_version
from headgate.engine.question import Top
from headgate.errors import HeadgateError
from headgate.records.keys import text_key
from headgate.runtime.engines import SHARDED, Runtime
from headgate.runtime.operations import SUBSCRIBE, Put, Unsubscribe
from headgate.runtime.sharding import ACCESS, HASH, Sharding
from headgate.runtime.shards import Routes, save_shards
from headgate.runtime.state import State
from headgate.runtime.targets import open_target
from headgate.tables.requests import contained
from headgate.tables.results import Tables
from tests.lanes import some
from tests.seeds import NIGHTLY
from tests.spark.files import put_lines
from tests.spark.jobs import compile_graph, compile_subscriptions
from tests.spark.shard_cases import draw_case
from tests.streaming.killing import run_and_kill, save
from tests.streaming.test_run import Running
from tests.streaming.world import World, answer, do, log_of, published, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.spark.files import Row
    from tests.spark.shard_cases import Case

    Make = Callable[[str, str, int, str], "Made"]

COMPILED = 45
"""Subscriptions of a case that are in the snapshot; the others come live."""
KINDS = [
    ("records", "plain", 3, ACCESS),
    ("records", "ranked", 3, HASH),
    ("records", "graph", 3, ACCESS),
    ("rdf", "plain", 3, ACCESS),
    ("xml", "graph", 2, ACCESS),
]
"""Every content, and every kind."""
USUAL = (0, 4)
"""Those in the default lane."""
EVERY = 6 if NIGHTLY else 18
"""After how many changes all questions are asked of shards that change."""


class Made:
    """A case whose first subscriptions are compiled to shards, and the rest of it as changes."""

    def __init__(self, folder: Path, content: str, kind: str, count: int, by: str) -> None:
        self.kind = kind
        self.case = draw_case(content, 11)
        self.given = replace(self.case, subscriptions=self.case.subscriptions[:COMPILED])
        self.shards, self.whole = folder / "shards", folder / "whole"
        self.settings = World(folder).settings()
        column = "country" if by == ACCESS and content == "records" else None
        compile_case(folder, self.given, kind, Sharding.of(count, by, column), self.shards)
        self.given.engine(kind).save(self.whole)

    @cached_property
    def asked(self) -> list[Event]:
        """List the events as workers have them: documents are read."""
        given = self.case.asked()
        if self.case.content == RECORDS:
            return given
        read = kind_of(self.case.content).read(given)
        return [event for each in read if isinstance(each, DocumentEvents) for event in each.events]

    @property
    def ranked(self) -> bool:
        return self.kind != "plain"

    def world(self, root: Path, **more: Any) -> World:
        """Make a stream of the shards."""
        found = World(root, more, whole=self.whole)
        shutil.copytree(self.shards, found.snapshot)
        return found

    def changes(self) -> list[Row]:
        """List sound changes: each operation, ids that come back, and nodes that are on few shards."""
        rows = self.case.rows(graph=self.kind == "graph", ranked=self.ranked)
        for row in rows:
            row.pop("tenant", None)
        fresh, known = rows[COMPILED:], rows[:COMPILED]
        found = [{"op": "subscribe", **row} for row in fresh]
        found += [{"op": "unsubscribe", "id": row["id"]} for row in (*known[::5], *fresh[::4])]
        # With another filter, and where there is a graph perhaps on another shard.
        found += [
            {"op": "subscribe", **known[n + 1], "id": known[n]["id"]} for n in range(0, COMPILED - 5, 10)
        ]
        if self.kind == "graph":
            found += [
                {"op": "subscribe", **fresh[1], "id": f"at-{node}", "node": node}
                for node in ("idle", "leaf1")
            ]
            found += [{"op": "unsubscribe", "id": "node2"}, {"op": "score", "id": "node3", "score": 2}]
        if self.ranked:
            found += [{"op": "score", "id": row["id"], "score": n % 4} for n, row in enumerate(known[1::5])]
            found += [{"op": "weights", "id": row["id"], "weights": _weights(row)} for row in known[2::5]]
        return found

    def wrong(self) -> list[Row]:
        """List changes that every snapshot of the case refuses; ids of all shards are among them."""
        row = {"op": "subscribe", "filter": self.case.subscriptions[0].filter, "node": "n0"}
        if self.kind != "graph":
            del row["node"]
        wrong: list[Row] = [{**row, "id": each.id} for each in self.given.subscriptions[1:5]]
        wrong += [{"op": "unsubscribe", "id": each} for each in ("nobody", 7)]
        wrong += [{**row, "id": 7}, {**row, "id": "new", "node": "nowhere"}]
        wrong += [{**row, "id": "new", "filter": "((("}, {"op": "score", "id": "nobody", "score": 1}]
        return wrong


def _weights(row: Row) -> dict[str, float] | None:
    """Weigh what a filter of records looks at; those of others are not."""
    if row["dialect"] != SQL:
        return None
    named = [name for name in ("country", "age", "price", "member") if name in row["filter"]]
    return {name: 2.5 + n for n, name in enumerate(named)} or None


def compile_case(folder: Path, case: Case, kind: str, sharding: Sharding, place: Path) -> None:
    """Compile a case as users do."""
    options: dict[str, Any] = {"rejected": str(folder / "refused.jsonl"), "quiet": True}
    options |= {"sharding": sharding, "ranked": kind != "plain", "taxonomy": case.taxonomy}
    rows = case.rows(graph=kind == "graph", ranked=kind != "plain")
    table = put_lines(folder / "subscriptions.jsonl", rows)
    if kind != "graph":
        done: Any = compile_subscriptions(None, table, str(place), **options)
    else:
        nodes = [{k: v for k, v in asdict(each).items() if v is not None} for each in case.nodes]
        edges = [asdict(each) for each in case.edges]
        tables = Tables(
            put_lines(folder / "nodes.jsonl", nodes), put_lines(folder / "edges.jsonl", edges), table
        )
        done = compile_graph(None, tables, str(place), **options)
    assert (done.rejected, done.shards) == (0, sharding.count)


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Compile each case once."""
    made: dict[tuple[str, str, int, str], Made] = {}

    def get(*asked: Any) -> Made:
        if asked not in made:
            made[asked] = Made(tmp_path_factory.mktemp("case"), *asked)
        return made[asked]

    return get


def test_events_pass_shards_by(make: Make) -> None:
    """Some shards are met by all events, and others are not: all that follows is about both."""
    for number, asked in enumerate(KINDS):
        if not NIGHTLY and number not in USUAL:
            continue
        routes = open_target(str(make(*asked).shards)).routes
        assert routes is not None
        assert routes.open.any()
        assert asked[3] == HASH or not routes.open.all()


def check(engines: Runtime, engine: Engine, made: Made) -> None:
    """Assert that shards answer as the engine, to every question about all events at once, in its order."""
    tops = (Top.of(3), Top.of(5, "relaxed")) if made.ranked else ()
    ids = pa.array([str(event.id) for event in made.asked])
    for top in (None, *tops):
        settings = made.settings if top is None else replace(made.settings, top=top.k, mode=top.mode)
        wanted = [row for event in made.asked for row in answer(engine, event, settings)]
        found = [tuple(row.values()) for row in rows_of(engines, made.asked, ids, top)]
        # All matches come shard by shard; the best of an event are in their order.
        assert (sorted(found) if top is None else found) == (sorted(wanted) if top is None else wanted)


@pytest.mark.parametrize(("content", "kind", "count", "by"), some(KINDS, *USUAL))
def test_changes_and_folding(
    tmp_path: Path, make: Make, content: str, kind: str, count: int, by: str
) -> None:
    """Changes in small steps, some refused; folded into shards again and again, they answer as the engine."""
    made = make(content, kind, count, by)
    world = made.world(tmp_path)
    engine = Engine.open(made.whole)
    dialect = made.case.subscriptions[0].dialect
    rng = random.Random(5)
    subscriptions = log_of(world.settings(fold=6), State(world.state))
    check(subscriptions.at(**subscriptions.pin()).open(), engine, made)
    changes, wrong, since, refused = made.changes(), made.wrong(), set(), 0
    for number in range(0, len(changes), 6):
        next_changes = changes[number : number + 6]
        bad = [each for each in rng.sample(wrong, 3) if _refused(engine, each, dialect)]
        world.change(f"{number:03d}.jsonl", [*bad, *next_changes])
        for change in next_changes:
            do(engine, change, dialect)
        pin = subscriptions.pin()
        if number % EVERY == 0:
            check(subscriptions.at(**pin).open(), engine, made)
        refused += len(bad)
        assert (subscriptions.refused, len(world.rejected())) == (refused, refused)
        since.add(pin["since"])
        # What is being folded is done now, and used by the next batch.
        subscriptions.close()
    assert len(since) > 2
    folded = subscriptions.pin()
    place = world.state / "snapshots" / folded["snapshot"]
    assert room_of(place) == room_of(made.shards)
    assert len(list(place.glob("shard-*"))) == count
    subscriptions.close()
    again = log_of(world.settings(), State(world.state))
    check(again.at(**again.pin()).open(), engine, made)
    assert again.count == subscriptions.count


def test_routes_live(tmp_path: Path) -> None:
    """Events pass a shard by until it gets a subscription live; folded, that is still so of the others."""
    countries = ("CH", "DE", "FR")
    staged = [tmp_path / country for country in countries]
    for place in staged:
        # What leads there is narrower than the filters, to see that it counts.
        some = [Subscription(f"{place.name}-{n}", f"age > {n}") for n in range(2)]
        Engine.build(some).backend.save(place, source=None)
    keys = [(2, [frozenset([text_key(country)])]) for country in countries]
    routes = Routes.make(RECORDS, ("country",), keys)
    sharding = Sharding(3, ACCESS, "country")
    save_shards(tmp_path / "shards", staged, ranked=False, routes=routes, sharding=sharding)
    engines = Runtime.open(tmp_path / "shards")
    here, other = (Event(n, {"country": country, "age": 9}) for n, country in enumerate(("DE", "IT")))
    assert (published(engines, here), published(engines, other)) == (["DE-0", "DE-1"], [])
    with pytest.raises(HeadgateError, match="subscribed already"):
        engines.apply(Put(SUBSCRIBE, Subscription("DE-1", "age > 5")))
    with pytest.raises(HeadgateError, match="ids here are text"):
        engines.apply(Put(SUBSCRIBE, Subscription(7, "age > 5")))
    assert published(engines, other) == []
    engines.apply(Unsubscribe("FR-0"))
    # The one with the fewest gets it, and the next, too: every event meets that one anyway.
    for number in range(4):
        engines.apply(Put(SUBSCRIBE, Subscription(f"new-{number}", f"age > {number}")))
    engines.apply(Unsubscribe("new-0"))
    engines.save(tmp_path / "folded", source={})
    for each in (engines, Runtime.open(tmp_path / "folded")):
        assert published(each, here) == ["DE-0", "DE-1", "FR-1", "new-1", "new-2", "new-3"]
        assert published(each, other) == ["FR-1", "new-1", "new-2", "new-3"]
        assert len(each) == 8
    folded = open_target(str(tmp_path / "folded")).routes
    assert folded is not None
    assert (folded.open.tolist(), folded.subscriptions.tolist()) == ([False, False, True], [2, 2, 4])


def _refused(engine: Engine, change: Row, dialect: str) -> bool:
    """Tell whether the engine refuses a change, too; an id may have been given up by now."""
    try:
        do(engine, change, dialect)
    except HeadgateError:
        return True
    # It was taken: then it is no longer wrong, and is taken back.
    engine.unsubscribe(change["id"])
    return False


@pytest.fixture
def running(spark: SparkSession, tmp_path: Path) -> Iterator[Running]:
    """Start a stream with a snapshot in one piece."""
    world = World(tmp_path)
    Engine.build([Subscription("s0", "n > 0")]).save(world.snapshot)
    yield Running(spark, world)
    for end in world.ends:
        end()


@pytest.mark.nightly
def test_replaced_while_it_runs(spark: SparkSession, running: Running) -> None:
    """By one in shards, by other numbers of them, by one in one piece: the next batch uses it, live."""
    world = running.world
    for number, count in enumerate((3, 2, 1)):
        rows = [{"id": f"s{number}-{n}", "filter": f"n > {n}"} for n in range(6)]
        if count == 3:
            table = put_lines(world.root / "subscriptions.jsonl", rows)
            refused = str(world.root / "refused.jsonl")
            sharding = Sharding(count)
            log = str(world.changes)
            place = str(world.snapshot)
            compile_subscriptions(
                spark, table, place, rejected=refused, sharding=sharding, changes=log, quiet=True
            )
        else:
            given = [Subscription(row["id"], row["filter"]) for row in rows]
            with new_version(world.snapshot, contained(str(world.changes))) as staged:
                if count == 1:
                    Engine.build(given).backend.save(staged, source=None)
                else:
                    save(staged, given, count, world.root)
        assert (room_of(world.snapshot) in SHARDED) is (count > 1)
        live: list[Row] = [{"op": "subscribe", "id": f"t{number}", "filter": "n > 2"}]
        live += [{"op": "unsubscribe", "id": f"s{number}-{n}"} for n in (0, 3)]
        world.send(f"{number}.jsonl", [{"id": f"first {number}", "n": 4}])
        running.wait(partial(_answered, world, f"first {number}", 4))
        world.change(f"{number}.jsonl", live)
        world.send(f"{number}-then.jsonl", [{"id": f"then {number}", "n": 4}])
        running.wait(partial(_answered, world, f"then {number}", 3))
        assert {match[1] for match in world.matches() if match[0] == f"then {number}"} == {
            f"s{number}-1", f"s{number}-2", f"t{number}",
        }  # fmt: skip
    done = running.end()
    assert (done.events, done.changes, done.rejected_changes, done.subscriptions) == (6, 9, 0, 5)


def _answered(world: World, event: str, matches: int) -> bool:
    return len([match for match in world.matches() if match[0] == event]) == matches


def test_unusable_shards(tmp_path: Path, make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    """A shard that is damaged, or of another snapshot, is told and passed over; a stream begins with none."""
    made = make("records", "plain", 3, ACCESS)
    other = make("records", "ranked", 3, HASH)
    world = made.world(tmp_path)
    subscriptions = log_of(world.settings(), State(world.state))
    pin = subscriptions.pin()
    shutil.rmtree(world.snapshot)
    shutil.copytree(resolved(other.shards), tmp_path / "mixed")
    shutil.rmtree(tmp_path / "mixed" / "shard-001")
    shutil.copytree(resolved(made.shards) / "shard-001", tmp_path / "mixed" / "shard-001")
    (tmp_path / "mixed").rename(world.snapshot)
    assert subscriptions.pin() == pin
    told = capsys.readouterr().err
    assert "continuing with the snapshot in use" in told
    assert "does not belong to it" in told
    subscriptions.close()
    with pytest.raises(HeadgateError, match="does not belong to it"):
        log_of(world.settings(), State(tmp_path / "another"))


@pytest.mark.nightly
def test_killed_with_shards(tmp_path: Path) -> None:
    """One kill, with a snapshot in three shards."""
    assert len(run_and_kill(tmp_path, 1, seed=7, shards=3)) == 1
