"""One vocabulary: a file of changes means the same to a what-if and to a stream, whole and in shards."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.backtest.changes import Row
from headgate.backtest.trial import try_changes
from headgate.engine.question import Top
from headgate.errors import HeadgateError
from headgate.runtime.engines import Runtime
from headgate.runtime.operations import GRAPH_OPERATIONS, OPERATIONS, read_change
from headgate.runtime.rows import MISFIT, read_line
from headgate.runtime.state import State
from headgate.tables.places import check_input
from tests.lanes import some
from tests.spark.without_spark import compile_graph_lines
from tests.streaming.killing import save
from tests.streaming.world import World, best, lines, log_of, published

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.core.event import Id

Given = dict[str, Any] | str

SUBSCRIBED = [Subscription(f"s{n}", f"age > {10 * n} AND price > {n}") for n in range(6)]
RANKED = [Subscription(each.id, each.filter, score=float(n)) for n, each in enumerate(SUBSCRIBED)]
HUNG = [Subscription(each.id, each.filter, node="net" if n % 2 else "leaf", score=float(n))
        for n, each in enumerate(SUBSCRIBED)]  # fmt: skip
NODES = [Node("pub"), Node("net", "topic = 'art'"), Node("leaf", cost=1), Node("own", subscription="mine")]
EDGES = [Edge("pub", "net"), Edge("net", "leaf"), Edge("pub", "own", "age > 50")]
EVENTS = [
    Event(n, {"age": 7 * n, "price": n % 9, "topic": topic}, source="pub")
    for n in range(12)
    for topic in ("art", "news")
]

SOUND: list[Given] = [
    {"op": "subscribe", "id": "t1", "filter": "age > 5"},
    {"op": "replace", "id": "s1", "filter": "age < 20"},
    {"op": "upsert", "id": "s2", "filter": "price = 3"},
    {"op": "upsert", "id": "t2", "filter": "price = 4", "dialect": "sql"},
    {"id": "t3", "filter": "age = 14"},
    {"op": "", "id": "t3", "filter": "age = 21"},
    {"OP": "subscribe", "Id": "t4", "Filter": "age = 28"},
    {"op": "unsubscribe", "id": "s3"},
    {"op": "subscribe", "id": "s3", "filter": "age > 60"},
    {"op": "unsubscribe", "id": "t4"},
]
KNOWN = ", ".join(map(repr, OPERATIONS))
WEIGHED = "give an object of attributes and numbers, or a list of numbers, one for each clause"
UNRANKED = "clauses are not ranked here: build the engine with ranked=True"
CUT = "the graph is cut into shards, and its nodes and edges stay as they are"
WRONG: list[tuple[Given, str]] = [
    ({"op": "subscribe", "id": "s0", "filter": "age > 5"},
     "id 's0' is subscribed already: use the op 'replace'"),
    ({"op": "replace", "id": "no", "filter": "age > 5"}, "there is no subscription 'no' to replace"),
    ({"op": "unsubscribe", "id": "no"}, "there is no subscription 'no' to take away"),
    ({"op": "unsubscribe", "id": "t4"}, "there is no subscription 't4' to take away"),
    ({"op": "score", "id": "no", "score": 1}, "there is no subscription 'no' to give a score to"),
    ({"op": "weights", "id": "no", "weights": {"age": 1}},
     "there is no subscription 'no' to give weights to"),
    ({"op": "score", "id": "s0"}, "subscription 's0' is given no score: give a number, or an expression"),
    ({"op": "score", "id": "s0", "score": True}, "score True is not usable: give a number"),
    ({"op": "score", "id": "s0", "score": "NaN"},
     "the score of the row is nan: give a finite number, or an expression over the event"),
    ({"op": "weights", "id": "s0", "weights": 7}, f"weights are int: {WEIGHED}"),
    ({"op": "weights", "id": "s0", "weights": "{"},
     f"weights are not JSON (Input data was truncated): {WEIGHED}"),
    ({"op": "remove", "id": "s0"}, f"op is 'remove': use one of {KNOWN}, or none"),
    ({"op": ["score"], "id": "s0"}, f"op is ['score']: use one of {KNOWN}, or none"),
    ({"op": "unsubscribe"}, "the row has no 'id': give text or a whole number"),
    ({"op": "unsubscribe", "id": 1.5}, "id 1.5 is not usable: give text or a whole number"),
    ({"filter": "age > 5"}, "the row has no 'id': a subscription is an id and a filter"),
    ({"id": "s0"}, "the row has no 'filter': a subscription is an id and a filter"),
    ({"id": "s0", "filter": 7}, "the filter is int and must be text"),
    ({"id": "s0", "filter": "age > 5", "dialect": 7}, "dialect 7 is not usable: give text"),
    ({"id": "s0", "filter": "age > 5", "node": []}, "node [] is not usable: give text or a whole number"),
    ({"id": 7, "filter": "age > 5"}, "id 7 has the wrong type: ids here are text"),
    ({"op": "unsubscribe", "id": 7}, "id 7 has the wrong type: ids here are text"),
    ({"id": "s0", "ID": "s1", "filter": "age"},
     "two fields have names that differ in case only, which are the same"),
    ("[1]", "expected a JSON object, found list"),
    ("{", "not valid JSON: Input data was truncated"),
]  # fmt: skip
"""What is refused whatever there is, with the reason."""
NO_GRAPH: list[tuple[Given, str]] = [
    ({"id": "s0", "filter": "age > 5", "node": "net"},
     "subscription 's0' is attached to node 'net', and there is no graph here: leave `node` out"),
    *(({"op": op, "id": "n", "source": "n", "target": "m"},
       f"there is no graph here for the op {op!r}: compile the subscriptions with nodes and edges")
      for op in ("add_node", "remove_node", "add_edge", "remove_edge", "set_filter")),
]  # fmt: skip
NO_RANKS: list[tuple[Given, str]] = [
    ({"op": "score", "id": "s0", "score": 2}, "nothing is ranked here: build the engine with ranked=True"),
    ({"op": "weights", "id": "s0", "weights": [1, 2]},
     UNRANKED),
    ({"op": "replace", "id": "s0", "filter": "age > 5", "weights": [2]},
     f"subscription 's0' has weights, and {UNRANKED}, or leave them out"),
]  # fmt: skip
RANKS: list[Given] = [
    {"op": "score", "id": "s0", "score": 7.5},
    {"op": "score", "id": "s1", "score": "3"},
    {"op": "weights", "id": "s4", "weights": {"age": 4}},
    {"op": "weights", "id": "s5", "weights": "[1, 9]"},
    {"op": "weights", "id": "s5"},
    {"op": "upsert", "id": "s0", "filter": "age > 5", "score": 9, "weights": [3]},
]
BAD_RANKS: list[tuple[Given, str]] = [
    ({"op": "weights", "id": "s4", "weights": {"topic": 4}},
     "subscription 's4' weighs 'topic', which its filter does not look at: it looks at 'age', 'price'"),
    ({"op": "replace", "id": "s4", "filter": "age > 5", "weights": [1, 2]},
     "subscription 's4' has 2 weights and 1 clauses: give one for each clause"),
]  # fmt: skip
GRAPH: list[Given] = [
    {"op": "add_node", "id": "new", "filter": "age > 14", "cost": "2", "kind": "network"},
    {"op": "add_node", "id": "serving", "subscription": "served", "score": 3},
    {"op": "add_edge", "source": "pub", "target": "new"},
    {"op": "add_edge", "source": "new", "target": "serving", "filter": "price < 8"},
    {"op": "subscribe", "id": "at new", "filter": "price > 2", "node": "new"},
    {"op": "replace", "id": "s0", "filter": "price > 1", "node": "new"},
    {"op": "upsert", "id": "mine", "filter": "age > 49", "node": "pub"},
    {"op": "set_filter", "id": "net", "filter": "topic = 'news'"},
    {"op": "set_filter", "id": "new"},
    {"op": "remove_edge", "source": "pub", "target": "own"},
    {"op": "remove_node", "id": "leaf"},
]
BAD_GRAPH: list[tuple[Given, str]] = [
    ({"op": "add_node", "id": "pub"}, "node 'pub' is in the graph already: remove it first"),
    ({"op": "add_node", "id": "n", "cost": -1}, "node 'n' has cost -1.0: give a number from 0 up"),
    ({"op": "add_node", "filter": "age > 1"}, "the row has no 'id': give text or a whole number"),
    ({"op": "remove_node", "id": "nowhere"}, "there is no node 'nowhere' in the graph"),
    ({"op": "add_edge", "source": "pub"},
     "the row has no 'target': an edge leads from one node to another, and names both"),
    ({"op": "add_edge", "source": "pub", "target": "no"}, "there is no node 'no' in the graph"),
    ({"op": "remove_edge", "source": "own", "target": "pub"}, "there is no edge from 'own' to 'pub'"),
    ({"op": "replace", "id": "s5", "filter": "age > 1"},
     "subscription 's5' is attached to no node: give `node`"),
    ({"op": "replace", "id": "s5", "filter": "age > 1", "node": "no"}, "there is no node 'no' in the graph"),
]  # fmt: skip


@dataclass
class Case:
    """A snapshot, and a file of changes of which some are refused."""

    save: Callable[[Path], None]
    sound: list[Given]
    wrong: list[tuple[Given, str]]
    top: list[Top] = field(default_factory=list)
    shards: Callable[[Path], None] | None = None
    """The same subscriptions in shards."""

    @property
    def rows(self) -> list[Given]:
        """List all rows, first those that are taken."""
        return [*self.sound, *(row for row, _ in self.wrong)]


def hung(row: Given) -> Given:
    """Hang a subscription at a node; rows that are about something else do not mind."""
    return {"node": "net", **row} if isinstance(row, dict) else row


CASES = {
    "plain": Case(
        lambda place: Engine.build(SUBSCRIBED).save(place),
        SOUND,
        [*WRONG, *NO_GRAPH, *NO_RANKS],
        shards=lambda place: save(place, SUBSCRIBED, 3, place.parent),
    ),
    "ranked": Case(
        lambda place: Engine.build(RANKED, ranked=True).save(place),
        [*SOUND, *RANKS],
        [*WRONG, *NO_GRAPH, *BAD_RANKS],
        [Top.of(4), Top.of(4, "relaxed")],
    ),
    "graph": Case(
        lambda place: Engine.build(HUNG, nodes=NODES, edges=EDGES, ranked=True).save(place),
        [*map(hung, SOUND), *map(hung, RANKS), *GRAPH],
        [*((hung(row), reason) for row, reason in WRONG), *BAD_GRAPH],
        [Top.of(4), Top.of(4, "relaxed")],
    ),
    "empty": Case(
        lambda place: Engine.build([]).save(place),
        [{"id": 7, "filter": "age > 5"}, {"id": 8, "filter": "age > 6"}],
        [({"id": "x", "filter": "age > 5"}, "id 'x' has the wrong type: ids here are whole numbers")],
    ),
}


Outcome = tuple[Any, list[tuple[str, str]], int]
"""What is there in the end, what was refused and why, and how many changes were taken."""


def live(world: World) -> Outcome:
    """Let a stream take its changes."""
    log = log_of(world.settings(), State(world.state))
    engines = log.at(**log.pin()).open()
    log.close()
    assert log.count == len(engines)
    return engines, [(row["row"], row["reason"]) for row in world.rejected()], log.accepted


def tried(world: World, file: Path, rows: Sequence[Row], top: Top | None) -> Outcome:
    """Let a what-if try changes; what is there is the whole, as it would be."""
    work = world.root / "work"
    work.mkdir()
    done = try_changes(str(world.snapshot), check_input(str(file)), list(rows), work, top)
    saved, _ = done.save(work)
    refused = [(each.row, each.reason) for each in done.trial.refused]
    return Engine.open(saved), refused, len(done.trial.accepted)


def members(asked: Engine | Runtime, rows: Sequence[Given]) -> set[Id]:
    """List the subscriptions of the snapshot, and those that rows name, that are there."""
    named = {each.id for each in SUBSCRIBED} | {"mine"}
    for row in rows:
        if isinstance(row, dict):
            named |= {
                row[name] for name in ("id", "Id", "subscription") if isinstance(row.get(name), str | int)
            }
    there = Runtime.of(asked.backend) if isinstance(asked, Engine) else asked
    return {each for each in named if each in there}


def answers(asked: Engine | Runtime, tops: Sequence[Top]) -> list[Any]:
    """Ask all events."""
    if isinstance(asked, Engine):
        found: list[Any] = [asked.match(event) for event in EVENTS]
        for top in tops:
            found += [
                [(each.subscription, each.value) for each in asked.top(event, top.k, top.mode)]
                for event in EVENTS
            ]
        return found
    found = [published(asked, event) for event in EVENTS]
    return found + [best(asked, event, top) for top in tops for event in EVENTS]


@pytest.mark.parametrize("name", CASES)
def test_what_was_tried_can_go_live(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    rows = [Row(line.encode()) for line in lines(case.rows).splitlines()]
    refused = [(json.dumps(row) if isinstance(row, dict) else row, reason) for row, reason in case.wrong]
    outcomes: dict[str, Outcome] = {}
    for way, top in zip(("tried", "tried for the best"), [None, *case.top[:1]], strict=False):
        world = World(tmp_path / way)
        case.save(world.snapshot)
        world.change("1.jsonl", case.rows)
        outcomes[way] = tried(world, world.changes / "1.jsonl", rows, top)
        outcomes["live"] = live(world)
    if case.shards is not None:
        world = World(tmp_path / "shards")
        case.shards(world.snapshot)
        world.change("1.jsonl", case.rows)
        outcomes["in shards"] = live(world)
    asked, _, _ = outcomes["live"]
    there, wanted = members(asked, case.rows), answers(asked, case.top)
    assert len(there) == len(asked)
    assert any(wanted)
    for way, (found, told, taken) in outcomes.items():
        assert told == refused, way
        assert taken == len(case.sound), way
        assert members(found, case.rows) == there, way
        assert answers(found, case.top) == wanted, way


@pytest.mark.parametrize("name", CASES)
def test_what_is_refused_changes_nothing(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    world = World(tmp_path)
    case.save(world.snapshot)
    world.change("1.jsonl", case.sound)
    asked, refused, _ = live(world)
    assert not refused
    before = answers(asked, case.top)
    for row, reason in case.wrong:
        with pytest.raises(HeadgateError) as caught:
            asked.apply(read_change(read_line(row if isinstance(row, str) else json.dumps(row)), "sql"))
        assert str(caught.value) == reason
    assert answers(asked, case.top) == before
    assert len(asked) == len(members(asked, case.rows))


TABLE: list[dict[str, Any]] = [
    {"op": "subscribe", "id": 10, "filter": "age > 5", "node": 1},
    {"op": None, "id": 2, "filter": "price = 3", "node": 3, "score": 2.5},
    {"op": "weights", "id": 1, "weights": '{"age": 4}'},
    {"op": "score", "id": 10, "score": 1.5},
    {"op": "unsubscribe", "id": 3},
    {"op": "add_node", "id": 4, "subscription": 11},
    {"op": "add_edge", "source": 1, "target": 4},
]


@pytest.mark.parametrize("form", some(["csv", "parquet", "json", "ndjson"], 0, 1))
def test_every_format_of_a_what_if_can_go_live(tmp_path: Path, form: str) -> None:
    """Ids of CSV get the type that those of the snapshot have."""
    world = World(tmp_path)
    nodes, edges = [Node(1), Node(2), Node(3)], [Edge(1, 2), Edge(2, 3)]
    given = [Subscription(n, f"age > {n}", node=2) for n in range(1, 5)]
    Engine.build(given, nodes=nodes, edges=edges, ranked=True).save(world.snapshot)
    names = ("op", "id", "filter", "node", "score", "weights", "subscription", "source", "target")
    place = world.root / f"changes.{form}"
    rows = [
        Row(json.dumps({name: row[name] for name in row if row[name] is not None}).encode()) for row in TABLE
    ]
    if form == "csv":
        with place.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows(
                [names, *([row.get(name, "") for name in names] for row in TABLE), ["short"], []]
            )
        texts = [{name: str(row[name]) for name in row if row[name] is not None} for row in TABLE]
        rows = [*(Row(json.dumps(row).encode()) for row in texts), Row(None, "short")]
    elif form == "parquet":
        pq.write_table(
            pa.Table.from_pylist([{name: row.get(name) for name in names} for row in TABLE]), place
        )
    else:
        place.write_bytes(b"\n".join(row.value or b"" for row in rows))
    engine, refused, taken = tried(world, place, rows, None)
    place.rename(world.changes / place.name)
    engines, told, done = live(world)
    assert told == refused == ([("short", MISFIT)] if form == "csv" else [])
    assert taken == done == len(TABLE)
    events = [Event(n, {"age": n, "price": n % 4}, source=1) for n in range(12)]
    assert [published(engines, event) for event in events] == [engine.match(event) for event in events]
    assert published(engines, events[7]) == [1, 2, 4, 10, 11]
    for mode in ("exact", "relaxed"):
        found = [engine.top(event, 5, mode) for event in events]
        wanted = [[(each.subscription, each.value) for each in some] for some in found]
        assert [best(engines, event, Top.of(5, mode)) for event in events] == wanted


def test_a_graph_in_shards_keeps_its_nodes_and_edges(tmp_path: Path) -> None:
    """Subscriptions change, and may go to the shard of another node; what leads to them does not."""
    world = World(tmp_path)
    nodes: list[dict[str, Any]] = [{"id": "pub"}, *({"id": f"leaf{n}"} for n in range(4))]
    edges = [{"source": "pub", "target": f"leaf{n}"} for n in range(4)]
    rows = [{"id": f"s{n}", "filter": f"age > {n}", "node": f"leaf{n % 4}"} for n in range(12)]
    compile_graph_lines(world.snapshot, nodes, edges, rows, shards=3)
    graph: list[Given] = [row for row in GRAPH if isinstance(row, dict) and row["op"] in GRAPH_OPERATIONS]
    moved = [
        {"op": "replace", "id": f"s{n}", "filter": f"age < {n}", "node": f"leaf{(n + 1) % 4}"}
        for n in range(8)
    ]
    refused = [{**moved[0], "node": "nowhere"}, {**moved[0], "filter": "age <"}]
    world.change("1.jsonl", [*moved, *refused, *graph])
    engines, told, taken = live(world)
    assert (taken, len(engines)) == (8, 12)
    right = "compile it again with the change, or in one piece to change it live"
    assert [reason for _, reason in told[2:]] == [f"{CUT}: {right}"] * len(graph)
    event = Event(1, {"age": 5}, source="pub")
    # Those that were replaced have another filter, and the others that of before.
    assert published(engines, event) == ["s6", "s7"]
    assert published(engines, Event(1, {"age": 9}, source="pub")) == ["s8"]


def test_every_operation_is_in_the_cases() -> None:
    for case, wanted in (
        ("graph", set(OPERATIONS)),
        ("plain", {"subscribe", "replace", "upsert", "unsubscribe"}),
    ):
        done = {row.get("op") for row in CASES[case].sound if isinstance(row, dict)}
        assert done - {None, ""} == wanted


def test_every_operation_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "files.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)`", page.partition("## Changes")[2].partition("## Events")[0], re.MULTILINE)
    assert tuple(rows) == ("op", *OPERATIONS)
    for _, reason in (WRONG[0], WRONG[2], NO_GRAPH[1]):
        assert reason.partition(" to ")[0].replace("s0", "s1").replace("'no'", "'s9'") in page
