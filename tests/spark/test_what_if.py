"""The what-if job against the in-process engine: what it had before, what one built anew has after."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headgate.spark as hg
from headgate import Edge, Engine, Event, Node, Subscription
from headgate.backtest.effects import NOISY, NOTHING, WhatIf
from headgate.backtest.trial import try_changes
from headgate.engine.question import Top
from headgate.errors import SnapshotError, TableError
from headgate.jobs.what_if import read_rows
from headgate.tables.places import check_input
from headgate.tables.requests import WhatIfRequest
from tests.contract.frames import hostile
from tests.contract.rooms import ROOMS, Room
from tests.lanes import some
from tests.spark.files import FORMS, Row, get_lines, get_table, names, put, put_lines, put_table
from tests.spark.jobs import on_both, runner_of, what_if
from tests.spark.without_spark import compile_lines, compile_shards

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

NODES = ("pub", "mid", "far", "off")
one_content = pytest.mark.parametrize("room", ROOMS[:3], ids=[room.name for room in ROOMS[:3]])


def draw_subscription(
    rng: random.Random, room: Room, identity: int, *, graph: bool, ranked: bool
) -> Subscription:
    text = room.draw_filter(rng)
    if room.name != "records" and rng.random() < 0.3:
        text = room.index.always
    return Subscription(
        identity,
        text,
        room.index.dialect,
        node=rng.choice(NODES[1:]) if graph else None,
        score=rng.randrange(4) if ranked else 0.0,
    )


def as_row(subscription: Subscription, op: str | None) -> Row:
    row: Row = {"id": subscription.id, "filter": subscription.filter, "dialect": subscription.dialect}
    if subscription.node is not None:
        row["node"] = subscription.node
    if subscription.score:
        row["score"] = subscription.score
    return row if op is None else {"op": op, **row}


def draw_changes(
    rng: random.Random, room: Room, model: dict[int, Subscription], *, graph: bool, ranked: bool
) -> tuple[list[Row], list[bool]]:
    """Draw rows of changes and do them to the model; some make no sense, and which is told beside them."""
    rows: list[Row] = []
    sound: list[bool] = []
    for _ in range(rng.randrange(4, 14)):
        identity = rng.randrange(40)
        drawn = draw_subscription(rng, room, identity, graph=graph, ranked=ranked)
        there = identity in model
        op = rng.choice([None, None, "subscribe", "replace", "unsubscribe", "unsubscribe"])
        rows.append({"op": op, "id": identity} if op == "unsubscribe" else as_row(drawn, op))
        sound.append(op is None or there != (op == "subscribe"))
        if sound[-1] and op == "unsubscribe":
            del model[identity]
        elif sound[-1]:
            model[identity] = drawn
    return rows, sound


def difference(
    before: Engine, after: Engine, events: list[Event], top: Top | None
) -> tuple[Counter[tuple[Any, Any]], Counter[Any], Counter[Any]]:
    """Ask both engines for every event: by how much pairs differ, and the matches of subscriptions."""
    net: Counter[tuple[Any, Any]] = Counter()
    counts: tuple[Counter[Any], Counter[Any]] = Counter(), Counter()
    for engine, sign, count in ((before, -1, counts[0]), (after, 1, counts[1])):
        for event in events:
            if top is None:
                found = engine.match(event)
            else:
                best = engine.top(event, top.k, top.mode, factors=top.weighing)
                found = [each.subscription for each in best]
            for identity in found:
                net[event.id, identity] += sign
                count[identity] += 1
    return Counter({pair: by for pair, by in net.items() if by}), *counts


def check(done: WhatIf, output: Path, net: Counter[tuple[Any, Any]], concerned: set[Any]) -> None:
    told: Counter[tuple[Any, Any]] = Counter()
    for row in get_table(output):
        told[row["event_id"], row["subscription_id"]] += {"gained": 1, "lost": -1}[row["change"]]
    assert told == net
    assert done.gained == sum(by for by in net.values() if by > 0)
    assert done.lost == -sum(by for by in net.values() if by < 0)
    assert {each.id for each in done.effects} == concerned | {identity for _, identity in net}


KINDS = ("plain", "ranked", "exact", "relaxed", "graph", "graph top")
USUAL = [(0, kind) for kind in KINDS] + [
    (1, "plain"),
    (1, "exact"),
    (1, "graph"),
    (2, "plain"),
    (2, "graph top"),
]


@pytest.mark.parametrize(
    ("place", "kind"),
    some(USUAL, 5),
    ids=[f"{ROOMS[place].name} {kind}" for place, kind in USUAL],
)
@pytest.mark.nightly
def test_it_says_what_the_engine_says(spark: SparkSession, tmp_path: Path, place: int, kind: str) -> None:
    agree(partial(what_if, spark), tmp_path, ROOMS[place], kind, 0)


@pytest.mark.parametrize(
    ("place", "kind"),
    some([(place, kind) for place in range(3) for kind in KINDS], 0),
    ids=[f"{ROOMS[place].name} {kind}" for place in range(3) for kind in KINDS],
)
def test_dataframes_say_what_the_engine_says(
    spark: SparkSession, tmp_path: Path, place: int, kind: str
) -> None:
    agree(partial(on_frames, spark), tmp_path, ROOMS[place], kind, 0)


def on_frames(
    spark: SparkSession, question: WhatIfRequest, *, output: str, effects: str, rejected: str, quiet: bool
) -> Any:
    """Ask the function of DataFrames what the job is asked, and write its tables."""
    del quiet
    session = hostile(spark, 0)
    top = question.top
    asked: dict[str, Any] = {} if top is None else {"k": top.k, "mode": top.mode}
    events = session.read.parquet(question.events)
    done = hg.what_if(events, question.snapshot, get_lines(question.changes), **asked)
    put_lines(Path(output), [row.asDict() for row in done.changed.collect()])
    put_lines(Path(rejected), [row.asDict() for row in done.refused.collect()])
    put_table(Path(effects), [{"subscription_id": each.id} for each in done.effects])
    return done


@pytest.mark.parametrize("kind", KINDS)
@one_content
def test_in_this_process_it_says_what_the_engine_says(tmp_path: Path, room: Room, kind: str) -> None:
    agree(partial(what_if, None), tmp_path, room, kind, 0)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(1, 8))
@pytest.mark.parametrize("kind", KINDS)
@one_content
def test_it_says_what_the_engine_says_often(
    spark: SparkSession, tmp_path: Path, room: Room, kind: str, seed: int
) -> None:
    agree(partial(what_if, spark), tmp_path, room, kind, seed)


def agree(run: Callable[..., WhatIf], tmp_path: Path, room: Room, kind: str, seed: int) -> None:
    rng = random.Random(f"{room.name} {kind} {seed}")
    graph, ranked = kind.startswith("graph"), kind not in {"plain", "graph"}
    model = {
        identity: draw_subscription(rng, room, identity, graph=graph, ranked=ranked)
        for identity in rng.sample(range(40), 20)
    }
    more: dict[str, Any] = {}
    if graph:
        dialect = room.index.dialect
        more["nodes"] = [
            Node(name) if name == "pub" else Node(name, room.draw_filter(rng), dialect=dialect)
            for name in NODES
        ]
        more["edges"] = [
            Edge("pub", "mid"),
            Edge("mid", "far"),
            Edge("pub", "off", room.draw_filter(rng), dialect=dialect),
        ]
    else:
        more["ranked"] = ranked
    Engine.build(model.values(), **more).save(tmp_path / "snapshot")
    # Two events may have one id.
    drawn = [room.draw_row(rng, number % 23) for number in range(30)]
    if graph:
        drawn = [{**row, "source": "pub"} for row in drawn]
        schema = room.schema.append(pa_field("source"))
    else:
        schema = room.schema
    events = put_table(tmp_path / "events.parquet", drawn, schema)
    rows, sound = draw_changes(rng, room, model, graph=graph, ranked=ranked)
    changes = put_lines(tmp_path / "changes.jsonl", rows)
    top = {"exact": Top.of(3), "relaxed": Top.of(3, "relaxed"), "graph top": Top.of(2)}.get(kind)
    question = WhatIfRequest(changes, str(tmp_path / "snapshot"), events, top, cost=False)
    done = run(
        question,
        output=str(tmp_path / "change.jsonl"),
        effects=str(tmp_path / "effects.parquet"),
        rejected=str(tmp_path / "rejected.jsonl"),
        quiet=True,
    )
    before, after = Engine.open(tmp_path / "snapshot"), Engine.build(model.values(), **more)
    asked = [Event.from_row(row) for row in drawn]
    net, was, now = difference(before, after, asked, top)
    refused = [row for row, good in zip(rows, sound, strict=True) if not good]
    assert [json.loads(row["row"]) for row in get_lines(tmp_path / "rejected.jsonl")] == refused
    assert done.rejected == len(refused)
    named = {row["id"] for row, good in zip(rows, sound, strict=True) if good}
    assert {each.id for each in done.effects if each.op} == named
    check(done, tmp_path / "change.jsonl", net, named)
    for each in done.effects:
        assert (each.before, each.after) == (was[each.id], now[each.id])
        assert each.share == now[each.id] / 30
        assert each.gained - each.lost == each.after - each.before
    assert [each.after for each in done.effects] == sorted(
        (each.after for each in done.effects), reverse=True
    )
    told = get_table(tmp_path / "effects.parquet")
    assert [row["subscription_id"] for row in told] == [each.id for each in done.effects]
    assert names(tmp_path) == [
        "change.jsonl", "changes.jsonl", "effects.parquet", "events.parquet", "rejected.jsonl", "snapshot",
    ]  # fmt: skip


def pa_field(name: str) -> Any:
    import pyarrow as pa

    return pa.field(name, pa.string())


SUBSCRIPTIONS: list[Row] = [
    {"id": 1, "filter": "age > 30"},
    {"id": 2, "filter": "topic = 'news'"},
    {"id": 3, "filter": "age < 20"},
]
EVENTS: list[Row] = [
    {
        "id": f"e{n}",
        "time": f"2026-03-0{1 + n // 4}T00:00:00Z",
        "age": 10 * n,
        "topic": "news" if n % 2 else "art",
    }
    for n in range(8)
]
CHANGES: list[Row] = [
    {"op": "replace", "id": 1, "filter": "age > 50"},
    {"op": "unsubscribe", "id": 2},
    {"op": "", "id": 3, "filter": "age < 10 OR age > 60"},
    {"op": "", "id": 4, "filter": "age IS NOT NULL"},
    {"op": "subscribe", "id": 5, "filter": "age > 1000"},
]
EFFECTS = {
    4: (0, 8, 8, 0, NOISY),
    3: (2, 2, 1, 1, NOISY),
    1: (4, 2, 0, 2, NOISY),
    2: (4, 0, 0, 4, ""),
    5: (0, 0, 0, 0, NOTHING),
}


def snapshot(folder: Path, shards: int = 1, *, ranked: bool = False) -> str:
    place = folder / "snapshot"
    if shards == 1:
        assert not compile_lines(place, SUBSCRIPTIONS, ranked=ranked).refused
    else:
        compile_shards(place, SUBSCRIPTIONS, shards, ranked=ranked)
    return str(place)


@pytest.mark.parametrize(("form", "shards"), some([("csv", 1), ("csv", 3)], 0))
@pytest.mark.nightly
def test_csv_and_shards(spark: SparkSession, tmp_path: Path, form: str, shards: int) -> None:
    check_format(spark, tmp_path, form, shards)


@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_every_format_and_shards(
    session: SparkSession | None, tmp_path: Path, form: str, shards: int
) -> None:
    check_format(session, tmp_path, form, shards)


def check_format(session: SparkSession | None, tmp_path: Path, form: str, shards: int) -> None:
    made = snapshot(tmp_path, shards)
    rows = [{"op": None, "filter": None, **row} for row in CHANGES] if form != "jsonl" else CHANGES
    changes = put_table(tmp_path / f"changes.{form}", [dict(row) for row in rows])
    events = put_table(tmp_path / f"events.{form}", EVENTS)
    done = what_if(
        session,
        WhatIfRequest(changes, made, events, noise=0.2),
        output=str(tmp_path / f"change.{form}"),
        effects=str(tmp_path / f"effects.{form}"),
        rejected=str(tmp_path / "rejected.jsonl"),
        quiet=True,
    )
    assert get_lines(tmp_path / "rejected.jsonl") == []
    found = {each.id: (each.before, each.after, each.gained, each.lost, each.flag) for each in done.effects}
    assert found == EFFECTS
    assert [each.id for each in done.effects] == [4, 1, 3, 2, 5]
    assert done.changes == {"subscribe": 2, "replace": 2, "unsubscribe": 1}
    assert (done.events, done.gained, done.lost, done.days) == (8, 9, 7, 1.0)
    assert done.deliveries_a_day == 2
    rows = get_table(tmp_path / f"change.{form}")
    assert [row["event_id"] for row in rows] == sorted(row["event_id"] for row in rows)
    assert [row["change"] for row in rows if str(row["subscription_id"]) == "1"] == ["lost", "lost"]
    if shards > 1:
        assert done.cost is None
        return
    assert done.cost is not None
    assert (done.cost.sample, done.cost.bytes_before > 0, done.cost.bytes_after > 0) == (8, True, True)
    assert (done.cost.micros_before or 0) > 0
    assert (done.cost.micros_after or 0) > 0


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.nightly
def test_changes_come_in_every_format(spark: SparkSession, tmp_path: Path, form: str) -> None:
    made = snapshot(tmp_path)
    rows = [{"op": None, "filter": None, **row} for row in CHANGES] if form != "jsonl" else CHANGES
    changes = put_table(tmp_path / f"changes.{form}", [dict(row) for row in rows])
    rows_read = read_rows(runner_of(spark).table(changes))
    trial = try_changes(made, check_input(changes), rows_read, tmp_path / "work", None).trial
    assert trial.refused == []
    assert {identity: (change.op, change.filter) for identity, change in trial.changes.items()} == {
        1: ("replace", "age > 50"),
        2: ("unsubscribe", "topic = 'news'"),
        3: ("replace", "age < 10 OR age > 60"),
        4: ("subscribe", "age IS NOT NULL"),
        5: ("subscribe", "age > 1000"),
    }


def test_rows_that_make_no_sense_are_refused_with_the_reason(
    session: SparkSession | None, tmp_path: Path
) -> None:
    made = snapshot(tmp_path)
    lines = [
        '{"op": "subscribe", "id": 1, "filter": "age > 1"}',
        '{"op": "replace", "id": 9, "filter": "age > 1"}',
        '{"op": "unsubscribe", "id": 9}',
        '{"op": "score", "id": 1, "score": 2}',
        '{"op": "remove", "id": 1}',
        '{"id": 1, "filter": "age +"}',
        '{"id": 1}',
        '{"id": "one", "filter": "age > 1"}',
        '{"filter": "age > 1"}',
        '{"id": 7, "filter": "//a", "dialect": "xpath"}',
        '{"id": 7, "filter": "age > 1", "node": "n"}',
        '{"id": 7, "filter": "age > 1", "weights": [1]}',
        "[1]",
        "{bad",
        "",
        '{"id": 8, "filter": "age > 1"}',
    ]
    changes = put(tmp_path / "changes.jsonl", "\n".join(lines))
    events = put(tmp_path / "events.jsonl", '{"id": 1, "age": 5}\n{"no": "id"}\n')
    done = what_if(
        session,
        WhatIfRequest(changes, made, events, cost=False),
        rejected=str(tmp_path / "rejected.jsonl"),
        quiet=True,
    )
    assert (done.changes, done.rejected, done.rejected_events, done.gained) == ({"subscribe": 1}, 14, 1, 1)
    refused = get_lines(tmp_path / "rejected.jsonl")
    assert [row["table"] for row in refused] == ["changes"] * 14 + ["events"]
    assert [row["row"] for row in refused[:14]] == [line for line in lines[:-1] if line]
    reasons = [row["reason"] for row in refused]
    for reason, said in zip(
        reasons,
        [
            "id 1 is subscribed already: use the op 'replace'",
            "there is no subscription 9 to replace",
            "there is no subscription 9 to take away",
            "nothing is ranked here",
            "op is 'remove': use one of 'subscribe', 'replace', 'upsert', 'unsubscribe', 'score', ",
            "at character 5",
            "the row has no 'filter': a subscription is an id and a filter",
            "id 'one' has the wrong type: ids here are whole numbers",
            "the row has no 'id': a subscription is an id and a filter",
            "xpath",
            "'n'",
            "subscription 7 has weights",
            "expected a JSON object, found list",
            "not valid JSON",
            "the event has no id",
        ],
        strict=True,
    ):
        assert said in reason
        assert "\n" not in reason


@on_both()
def test_who_is_pushed_out_of_the_best(session: SparkSession | None, tmp_path: Path) -> None:
    subs = [
        Subscription("a", "x > 0", score=1),
        Subscription("b", "x > 0", score=2),
        Subscription("c", "x > 1", score=3),
    ]
    Engine.build(subs).save(tmp_path / "snapshot")
    events = put_lines(tmp_path / "events.jsonl", [{"id": 1, "x": 1}, {"id": 2, "x": 2}])
    changes = put_lines(
        tmp_path / "changes.jsonl",
        [{"op": "score", "id": "a", "score": 5}, {"id": "d", "filter": "x = 2", "score": 4}],
    )
    done = what_if(
        session,
        WhatIfRequest(changes, str(tmp_path / "snapshot"), events, Top.of(2)),
        output=str(tmp_path / "change.jsonl"),
        rejected=str(tmp_path / "rejected.jsonl"),
        quiet=True,
    )
    rows = get_lines(tmp_path / "change.jsonl")
    assert {(row["event_id"], row["subscription_id"], row["change"]) for row in rows} == {
        (2, "a", "gained"), (2, "d", "gained"), (2, "b", "lost"), (2, "c", "lost"),
    }  # fmt: skip
    assert {each.id: each.op for each in done.effects} == {"a": "score", "d": "subscribe", "b": "", "c": ""}
    assert done.cost is not None
    assert done.cost.sample == 2


def test_the_graph_may_change_too(session: SparkSession | None, tmp_path: Path) -> None:
    """All subscriptions are compared then, and events may enter at nodes that come or go."""
    nodes = [Node("pub"), Node("old"), Node("net", "x > 1"), Node("leaf", subscription="served")]
    edges = [Edge("pub", "net"), Edge("old", "net"), Edge("net", "leaf")]
    subs = [Subscription("a", "x > 0", node="net"), Subscription("b", "x > 2", node="leaf")]
    Engine.build(subs, nodes=nodes, edges=edges).save(tmp_path / "snapshot")
    drawn = [
        {"id": f"{source} {x}", "x": x, "source": source} for source in ("pub", "old", "new") for x in (1, 3)
    ]
    events = put_lines(tmp_path / "events.jsonl", [*drawn, {"id": "lost", "x": 1, "source": "nowhere"}])
    rows: list[Row] = [
        {"op": "remove_node", "id": "old"},
        {"op": "set_filter", "id": "net", "filter": "x < 2"},
        {"op": "add_node", "id": "new"},
        {"op": "add_edge", "source": "new", "target": "leaf"},
        {"op": "remove_edge", "source": "leaf", "target": "pub"},
        {"op": "weights", "id": "a", "weights": {"x": 2}},
    ]
    changes = put_lines(tmp_path / "changes.jsonl", rows)
    done = what_if(
        session,
        WhatIfRequest(changes, str(tmp_path / "snapshot"), events),
        output=str(tmp_path / "change.jsonl"),
        rejected=str(tmp_path / "rejected.jsonl"),
        quiet=True,
    )
    told = {
        (row["event_id"], row["subscription_id"], row["change"])
        for row in get_lines(tmp_path / "change.jsonl")
    }
    lost = {(f"{source} 3", each, "lost") for source in ("pub", "old") for each in ("a", "b", "served")}
    gained = {("pub 1", each, "gained") for each in ("a", "served")}
    gained |= {("new 1", "served", "gained"), ("new 3", "served", "gained"), ("new 3", "b", "gained")}
    assert told == lost | gained
    assert {each.id: each.op for each in done.effects} == dict.fromkeys(("a", "b", "served"), "")
    assert done.changes == {"add_node": 1, "remove_node": 1, "add_edge": 1, "set_filter": 1}
    assert (done.rejected, done.rejected_events) == (2, 1)
    assert [row["reason"] for row in get_lines(tmp_path / "rejected.jsonl")][:2] == [
        "there is no edge from 'leaf' to 'pub'",
        "clauses are not ranked here: build the engine with ranked=True",
    ]


def test_nothing_to_do_is_no_error(session: SparkSession | None, tmp_path: Path) -> None:
    Engine.build([]).save(tmp_path / "snapshot")
    empty = put(tmp_path / "changes.jsonl", "")
    events = put_lines(tmp_path / "events.jsonl", EVENTS)
    where = {"output": str(tmp_path / "change.csv"), "rejected": str(tmp_path / "rejected.jsonl")}
    asked = WhatIfRequest(empty, str(tmp_path / "snapshot"), events, cost=False)
    done = what_if(session, asked, quiet=True, **where)
    assert (done.events, done.effects, done.gained, done.changes) == (8, (), 0, {})
    assert get_table(tmp_path / "change.csv") == []
    # Another comes and goes in the same table.
    both = [{"id": "t", "filter": "age > 5"}, {"id": "t", "op": "unsubscribe"}]
    first = put_lines(tmp_path / "first.jsonl", [{"id": "s", "filter": "age > 5"}, *both])
    done = what_if(session, replace(asked, changes=first), quiet=True, **where)
    assert (done.gained, done.lost, done.effects[0].id, done.effects[0].after) == (7, 0, "s", 7)
    # Snapshots that were compared lay beside the output, and are gone.
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]
    nobody = put(tmp_path / "nobody.jsonl", "")
    asked = WhatIfRequest(first, str(tmp_path / "snapshot"), nobody)
    done = what_if(session, asked, quiet=True, **where)
    assert (done.events, done.gained, done.days, done.effects[0].share) == (0, 0, None, 0.0)
    assert done.cost is not None
    assert (done.cost.micros_before, done.cost.sample) == (None, 0)


def test_whoever_comes_and_goes_in_one_table_is_nobody(session: SparkSession | None, tmp_path: Path) -> None:
    Engine.build([]).save(tmp_path / "snapshot")
    both = [{"id": "s", "filter": "age > 5"}, {"id": "s", "op": "unsubscribe"}]
    changes = put_lines(tmp_path / "changes.jsonl", both)
    asked = WhatIfRequest(changes, str(tmp_path / "snapshot"), put_lines(tmp_path / "events.jsonl", EVENTS))
    done = what_if(
        session, asked, output=str(tmp_path / "change.jsonl"), quiet=True, rejected=str(tmp_path / "r.jsonl")
    )
    assert (done.gained, done.lost) == (0, 0)
    # Snapshots that were compared lay beside the output, and are gone.
    assert not [each.name for each in tmp_path.iterdir() if each.name.startswith(".")]


def test_what_cannot_be_asked_is_one_line(tmp_path: Path) -> None:
    made = snapshot(tmp_path, 2, ranked=True)
    events = put_lines(tmp_path / "events.jsonl", EVENTS)
    changes = put_lines(tmp_path / "changes.jsonl", CHANGES)
    asked = WhatIfRequest(changes, made, events)
    for question, error, said in (
        (replace(asked, top=Top.of(3)), SnapshotError, "is cut into shards, and who is reached"),
        (replace(asked, noise=2.0), TableError, "noise 2.0 is not a share of the events"),
        (replace(asked, content_type="xml"), TableError, "leave out --format"),
        (replace(asked, changes="missing.jsonl"), TableError, "missing.jsonl does not exist"),
        (replace(asked, events=changes), TableError, "is named twice"),
    ):
        with pytest.raises(error, match=said) as caught:
            question.check(None)
        assert "\n" not in str(caught.value)


@pytest.mark.nightly
def test_the_cost_is_that_of_the_whole(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.jobs.what_if.SAMPLE", 100)
    subs = [Subscription(number, f"age > {number % 90} AND topic != 'x{number}'") for number in range(150)]
    Engine.build(subs).save(tmp_path / "snapshot")
    events = put_lines(
        tmp_path / "events.jsonl", [{"id": n, "age": n % 99, "topic": "t"} for n in range(150)]
    )
    rows = [{"id": 1000 + n, "filter": f"age < {n % 50} AND city = 'c{n}'"} for n in range(150)]
    changes = put_lines(tmp_path / "changes.jsonl", rows)
    done = what_if(
        spark,
        WhatIfRequest(changes, str(tmp_path / "snapshot"), events),
        rejected=str(tmp_path / "r.jsonl"),
        quiet=True,
    )
    assert done.cost is not None
    assert done.cost.sample == 100
    assert done.cost.bytes_after > done.cost.bytes_before * 1.3


def test_all_rooms_are_here() -> None:
    assert [room.name for room in ROOMS[:3]] == ["records", "rdf", "xml"]
