"""Graphs through the pipeline: the answers of the library, in any number of shards, and no row lost."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Edge, Event, Node, Subscription
from headgate.core.snapshot import open_snapshot
from headgate.core.versions.current import resolved
from headgate.errors import GraphError, SnapshotError, TableError
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex
from headgate.runtime.targets import open_target
from headgate.tables.results import Tables
from tests.graph.random_graphs import draw_event, draw_graph
from tests.lanes import some
from tests.spark.files import FORMS, Row, get_lines, get_table, put, put_lines, put_table
from tests.spark.jobs import compile_graph, match_events, on_both, on_spark
from tests.spark.without_spark import compile_graph_lines, match_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.tables.results import GraphCompileResult, MatchResult
    from tests.spark import without_spark

DIALECTS = (
    "'sql', 'labels', 'sparql', 'tuples', 'xpath', 'tree', 'eventbridge', 'cloudevents', 'cesql', "
    "'elasticsearch' or 'vespa'"
)
TEXT, WHOLE, DOUBLE = pa.string(), pa.int64(), pa.float64()
KINDS: dict[str, dict[str, pa.DataType]] = {
    "nodes": {
        "id": TEXT,
        "kind": TEXT,
        "filter": TEXT,
        "dialect": TEXT,
        "subscription": TEXT,
        "score": DOUBLE,
        "cost": DOUBLE,
    },
    "edges": {"source": TEXT, "target": TEXT, "filter": TEXT, "dialect": TEXT, "cost": DOUBLE},
    "subs": {"id": TEXT, "filter": TEXT, "dialect": TEXT, "node": TEXT, "score": DOUBLE},
    "events": {"id": TEXT, "source": TEXT, "age": WHOLE, "topic": TEXT, "tags": pa.list_(TEXT)},
}


class Job:
    """Compile a graph and match events in a folder of its own."""

    def __init__(self, session: SparkSession | None, folder: Path) -> None:
        self.spark: Any = session
        self.folder = folder
        self.snapshot = folder / "graph"

    def put(self, name: str, rows: Iterable[Row], form: str = "jsonl") -> str:
        names = KINDS[name]
        given = [{field: value for field, value in row.items() if value is not None} for row in rows]
        if form == "csv":
            given = [{field: row.get(field) for field in names if field != "tags"} for row in given]
        return put_table(self.folder / f"{name}.{form}", given, pa.schema(names))

    def compile(
        self,
        nodes: Sequence[Node | Row],
        edges: Sequence[Edge | Row],
        subscriptions: Sequence[Subscription | Row] | None = None,
        form: str = "jsonl",
        **options: Any,
    ) -> GraphCompileResult:
        subs = None if subscriptions is None else self.put("subs", map(row_of, subscriptions), form)
        tables = Tables(
            self.put("nodes", map(row_of, nodes), form), self.put("edges", map(row_of, edges), form), subs
        )
        return self.run(tables, **options)

    def run(self, tables: Tables, **options: Any) -> GraphCompileResult:
        rejected = str(self.folder / "refused.jsonl")
        return compile_graph(self.spark, tables, str(self.snapshot), rejected=rejected, quiet=True, **options)

    def match(self, events: str, output: str = "matches.jsonl", **options: Any) -> MatchResult:
        rejected = str(self.folder / "refused-events.jsonl")
        place = str(self.folder / output)
        return match_events(
            self.spark, str(self.snapshot), events, place, rejected=rejected, quiet=True, **options
        )

    def pairs(self, output: str = "matches.jsonl") -> list[tuple[Any, Any]]:
        return [(row["event_id"], row["subscription_id"]) for row in get_table(self.folder / output)]

    def refused(self) -> list[tuple[Any, ...]]:
        return reasons_of(get_lines(self.folder / "refused.jsonl"))

    def refused_events(self) -> list[tuple[Any, ...]]:
        rows = get_lines(self.folder / "refused-events.jsonl")
        return [(json.loads(row["row"]).get("id"), row["reason"]) for row in rows]


class Here:
    """Compile a graph and match events in this process, as workers and driver do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.snapshot = folder / "graph"

    def compile(
        self,
        nodes: Sequence[Node | Row | str],
        edges: Sequence[Edge | Row | str],
        subscriptions: Sequence[Subscription | Row | str] = (),
        shards: int = 1,
    ) -> without_spark.CompiledGraph:
        tables = [[given_line(part) for part in table] for table in (nodes, edges, subscriptions)]
        return compile_graph_lines(self.snapshot, *tables, shards=shards)

    def match(self, *rows: Row) -> list[tuple[Any, Any]]:
        return match_lines(self.snapshot, rows).pairs

    def refused_events(self, *rows: Row) -> list[tuple[Any, ...]]:
        refused = match_lines(self.snapshot, rows).refused
        return [(json.loads(row["row"]).get("id"), row["reason"]) for row in refused]


def row_of(part: Node | Edge | Subscription | Row) -> Row:
    return part if isinstance(part, dict) else asdict(part)


def given_line(part: Node | Edge | Subscription | Row | str) -> Row | str:
    if isinstance(part, dict | str):
        return part
    return {field: value for field, value in asdict(part).items() if value is not None}


def reasons_of(refused: Iterable[Row]) -> list[tuple[Any, ...]]:
    return [(row["table"], row["id"], row["reason"]) for row in refused]


def event_row(event: Event) -> Row:
    return {"id": event.id, "source": event.source, **event.data}


@pytest.fixture
def job(session: SparkSession | None, tmp_path: Path) -> Job:
    return Job(session, tmp_path)


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_the_snapshot_is_that_of_the_library(here: Here) -> None:
    drawn = draw_graph(random.Random(3), "cycles", 60)
    here.compile(drawn.nodes, drawn.edges, drawn.subscriptions)
    graph = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    graph.save(here.folder / "expected")
    for place, room in (("", "graph"), ("filters", "records")):
        ours = open_snapshot(resolved(here.snapshot) / place, room).arrays
        theirs = open_snapshot(here.folder / "expected" / place, room).arrays
        assert {name: array.tolist() for name, array in ours.items()} == {
            name: array.tolist() for name, array in theirs.items()
        }


EVERYWHERE = (
    [
        Node("pub"),
        Node("net", "subset(tags, 'red')", dialect="labels", kind="network"),
        Node("adv", "age > 3", subscription="shoes", score=2.5, cost=0.5),
        Node("other", subscription="hung"),
    ],
    [
        Edge("pub", "net"),
        Edge("net", "adv", "topic = 'a,\"b\"'"),
        Edge("pub", "other", "intersects(tags, 'blue')", dialect="labels", cost=0),
    ],
    [Subscription("hung", "age < 9", score=1), Subscription("pub-1", "age = 5", node="pub")],
)
"""Nodes, edges and subscriptions that all have filters, some in another dialect."""


def test_filters_everywhere(here: Here) -> None:
    done = here.compile(*EVERYWHERE, shards=2)
    assert (done.rows, done.subscriptions) == ({"nodes": 4, "edges": 3, "subscriptions": 2}, 3)
    check_everywhere(here.snapshot)


@on_spark
@pytest.mark.parametrize("form", some(FORMS, 2))
def test_filters_everywhere_in_every_format(job: Job, form: str) -> None:
    done = job.compile(*EVERYWHERE, form, shards=2)
    assert (done.nodes, done.edges, done.subscriptions, done.rejected) == (4, 3, 3, 0)
    assert done.attributes == ("age", "tags", "topic")
    check_everywhere(job.snapshot)


def check_everywhere(snapshot: Path) -> None:
    red: Row = {"source": "pub", "tags": ["red"], "topic": 'a,"b"'}
    rows: list[Row] = [
        {"id": 1, "age": 5, **red},
        {"id": 2, "age": 5, **red, "topic": "c"},
        {"id": 3, "age": 2, **red, "tags": ["red", "blue"]},
        {"id": 4, "age": 4, **red, "source": "net"},
    ]
    assert sorted(match_lines(snapshot, rows).pairs) == [
        (1, "pub-1"),
        (1, "shoes"),
        (2, "pub-1"),
        (3, "hung"),
        (4, "shoes"),
    ]


def test_refused_rows_of_all_tables_say_why(here: Here) -> None:
    nodes: list[Row] = [
        {"id": "a"},
        {"id": "b", "subscription": "s"},
        {"id": "bad", "filter": "age +"},
        {"id": "a", "filter": "age > 1"},
        {"id": "neg", "cost": -1},
        {"id": "word", "cost": "much"},
        {"id": "high", "score": "NaN"},
        {"id": "tongue", "filter": "TRUE", "dialect": "latin"},
        {"filter": "TRUE"},
        {"id": 1.5},
        {"id": "kind", "kind": 7},
    ]
    edges: list[Row] = [
        {"source": "a", "target": "b"},
        {"source": "a", "target": "bad"},
        {"source": "nobody", "target": "b"},
        {"source": "a", "target": "b", "cost": -2},
        {"source": "a", "target": "b", "filter": "age >"},
        {"source": "a"},
        {"source": "a", "target": True},
    ]
    subs: list[Row] = [
        {"id": "h", "filter": "TRUE", "node": "b"},
        {"id": "h", "filter": "age > 1", "node": "a"},
        {"id": "nowhere", "filter": "TRUE"},
        {"id": "lost", "filter": "TRUE", "node": "neg"},
        {"id": "mute", "node": "a"},
        {"id": "odd", "filter": "age >< 1", "node": "a"},
    ]
    broken = ['{"id": "cut', "[]", ""]
    done = here.compile([*nodes, *broken], [*edges, *broken], [*subs, *broken])
    unread = ["not valid JSON: Input data was truncated", "expected a JSON object, found list"]
    assert reasons_of(done.refused) == [
        ("nodes", "bad", "a value or a condition is missing after this, at character 5: age ⟪+"),
        ("nodes", "a", "node 'a' is given again: an id can be used once"),
        ("nodes", "neg", "node 'neg' has cost -1.0: give a number from 0 up"),
        ("nodes", "word", "cost 'much' is not usable: give a number"),
        ("nodes", "high", "node 'high' has score nan: give a finite number"),
        ("nodes", "tongue", f"dialect 'latin' is not known: use {DIALECTS}"),
        ("nodes", None, "the row has no 'id': give text or a whole number"),
        ("nodes", None, "id 1.5 is not usable: give text or a whole number"),
        ("nodes", "kind", "kind 7 is not usable: give text"),
        *(("nodes", None, reason) for reason in unread),
        ("edges", "a → bad", "edge from 'a' to 'bad': node 'bad' was refused"),
        ("edges", "nobody → b", "edge from 'nobody' to 'b': there is no node 'nobody'"),
        ("edges", "a → b", "edge from 'a' to 'b' has cost -2.0: give a number from 0 up"),
        ("edges", "a → b", "a value or a condition is missing after this, at character 5: age ⟪>"),
        ("edges", None, "the row has no 'target': an edge leads from one node to another, and names both"),
        ("edges", None, "target True is not usable: give text or a whole number"),
        *(("edges", None, reason) for reason in unread),
        ("subscriptions", "h", "subscription 'h' is given again: an id can be used once"),
        (
            "subscriptions",
            "nowhere",
            "subscription 'nowhere': it is attached to no node: name one as its 'node'",
        ),
        ("subscriptions", "lost", "subscription 'lost': node 'neg' was refused"),
        ("subscriptions", "mute", "the row has no 'filter': a subscription is an id and a filter"),
        (
            "subscriptions",
            "odd",
            "a value or a condition is missing before this, at character 6: age >⟪< 1",
        ),
        *(("subscriptions", None, reason) for reason in unread),
    ]
    assert done.rows == {"nodes": 2, "edges": 1, "subscriptions": 1}
    assert Counter(row["table"] for row in done.refused) == {"nodes": 11, "edges": 8, "subscriptions": 7}
    rows = done.refused
    assert json.loads(rows[0]["row"]) == nodes[2]
    assert json.loads(rows[1]["row"]) == nodes[3]
    assert rows[9]["row"] == '{"id": "cut'
    assert rows[0]["place"] == 5
    assert here.match({"id": 1, "source": "a"}) == [(1, "h"), (1, "s")]


def test_a_refused_subscription_is_not_served_without_its_filter(here: Here) -> None:
    """The node that names it would else serve it as its own, and it would get everything."""
    nodes = [Node("a"), Node("b", subscription="s"), Node("c", subscription="t"), Node("d", subscription="u")]
    edges = [Edge("a", "b"), Edge("a", "c"), Edge("a", "d")]
    subs: list[Row] = [
        {"id": "s", "filter": "age +"},
        {"id": "t", "filter": "TRUE", "node": "nobody"},
        {"id": "u", "filter": "TRUE"},
    ]
    done = here.compile(nodes, edges, subs)
    assert (done.subscriptions, [row["table"] for row in done.refused]) == (1, ["subscriptions"] * 2)
    assert here.match({"id": 1, "source": "a"}) == [(1, "u")]


@pytest.mark.parametrize("form", FORMS)
def test_events_from_nowhere_are_refused(job: Job, form: str) -> None:
    # The idle node is on one shard only, and its events are sound all the same.
    nodes = [Node("007"), *(Node(f"s{n}", subscription=f"s{n}") for n in range(6)), Node("idle")]
    Here(job.folder).compile(nodes, [Edge("007", f"s{n}") for n in range(6)], shards=3)
    rows: list[Row] = [
        {"id": "1", "source": "007"},
        {"id": "2", "source": None},
        {"id": "3", "source": "7"},
        {"id": "4", "source": "idle"},
        {"id": "5", "source": "s1"},
        {"id": "6", "source": "nobody"},
    ]
    done = job.match(job.put("events", rows, form))
    assert (done.events, done.rejected) == (3, 3)
    one: Any = 1 if form == "csv" else "1"
    assert sorted(job.pairs()) == [(one, f"s{n}") for n in range(6)]
    reasons = {str(identity): reason for identity, reason in job.refused_events()}
    assert reasons == {
        "2": "it has no source: name the node where it enters the graph",
        "3": "source '7' is not a node of the graph: give the id of one",
        "6": "source 'nobody' is not a node of the graph: give the id of one",
    }


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_table_without_sources_is_refused_as_a_whole(job: Job, form: str) -> None:
    GraphIndex.build([Node("a")], [], room=RecordIndex).save(job.snapshot)
    events = put_table(job.folder / f"events.{form}", [{"id": "1", "age": 5}])
    with pytest.raises(TableError, match=r"events\.\w+ has no column 'source'; its columns are id, age"):
        job.match(events)


def test_sources_of_a_type_that_no_id_has(job: Job) -> None:
    GraphIndex.build([Node("a")], [], room=RecordIndex).save(job.snapshot)
    events = put_table(job.folder / "events.parquet", [{"id": "1", "source": 1.5}])
    with pytest.raises(TableError, match="column source is double: cast it to string or bigint"):
        job.match(events)


@pytest.mark.parametrize(("form", "shards"), [("jsonl", 1), ("csv", 1), ("parquet", 1)])
def test_whole_numbers_as_ids(job: Job, form: str, shards: int) -> None:
    nodes: list[Row] = [
        {"id": 1, "subscription": None},
        {"id": 20, "subscription": 300},
        {"id": 3, "subscription": 5},
    ]
    edges: list[Row] = [{"source": 1, "target": 20}, {"source": 1, "target": 3}, {"source": 20, "target": 3}]
    subs: list[Row] = [{"id": 40, "filter": "age = 1", "node": 20}]
    tables = Tables(
        *(
            put_table(job.folder / f"{name}.{form}", rows)
            for name, rows in (("nodes", nodes), ("edges", edges), ("subs", subs))
        )
    )
    done = job.run(tables, shards=shards)
    assert (done.nodes, done.edges, done.subscriptions, done.rejected) == (3, 3, 3, 0)
    events: list[Row] = [{"id": 9, "source": 1, "age": 1}, {"id": 8, "source": 20, "age": 2}]
    job.match(put_table(job.folder / f"events.{form}", events))
    assert sorted(job.pairs()) == [(8, 5), (9, 5), (9, 40), (9, 300)]
    # What is text in one table may be a number in the next.
    here = Here(job.folder)
    texts: list[Row] = [{"id": "x", "source": "1"}, {"id": "y", "source": "01"}]
    assert sorted(here.match(*texts)) == [("x", 5), ("x", 300)]
    reason = "source '01' is not a node of the graph: give the id of one"
    assert here.refused_events(*texts) == [("y", reason)]


def test_one_text_among_the_ids_makes_all_of_them_text(here: Here) -> None:
    nodes: list[Row] = [{"id": 1}, {"id": "x", "subscription": 7}, {"id": 2, "subscription": "s"}]
    edges: list[Row] = [{"source": 1, "target": "x"}, {"source": "1", "target": 2}]
    here.compile(nodes, edges)
    assert here.match({"id": 1, "source": 1}, {"id": 2, "source": "1"}) == [
        (1, "7"),
        (1, "s"),
        (2, "7"),
        (2, "s"),
    ]


def test_ends_of_edges_that_no_number_is(here: Here) -> None:
    nodes: list[Row] = [{"id": 1}, {"id": 2, "subscription": 2}]
    edges: list[Row] = [{"source": 1, "target": "2"}, {"source": "one", "target": 2}]
    subs: list[Row] = [{"id": 3, "filter": "TRUE", "node": "two"}]
    done = here.compile(nodes, edges, subs)
    assert done.rows == {"nodes": 2, "edges": 1, "subscriptions": 0}
    assert reasons_of(done.refused) == [
        ("edges", "one → 2", "source 'one' has the wrong type: ids here are whole numbers"),
        ("subscriptions", "3", "node 'two' has the wrong type: ids here are whole numbers"),
    ]


@pytest.mark.parametrize("shards", [1, pytest.param(2, marks=pytest.mark.nightly)])
def test_the_empty_graph(job: Job, shards: int) -> None:
    tables = Tables(put(job.folder / "nodes.jsonl", ""), put(job.folder / "edges.jsonl", ""))
    done = job.run(tables, shards=shards)
    assert (done.nodes, done.edges, done.subscriptions, done.rejected) == (0, 0, 0, 0)
    here, lost = Here(job.folder), {"id": 1, "source": "a"}
    assert here.match(lost) == []
    assert here.refused_events(lost) == [(1, "source 'a' is not a node of the graph: give the id of one")]
    job.match(put(job.folder / "events.jsonl", ""))
    assert (job.pairs(), job.refused_events()) == ([], [])


def test_json_events_keep_their_own_types(here: Here) -> None:
    nodes = [Node("a"), Node("b", "x = 1", subscription="one"), Node("c", "x = 'z'", subscription="z")]
    here.compile(nodes, [Edge("a", "b"), Edge("a", "c")])
    rows = [{"id": n, "source": "a", "x": x} for n, x in enumerate([1, "1", "z", None, 1.0, [1], {"y": 1}])]
    assert here.match(*rows) == [(0, "one"), (1, "one"), (2, "z"), (4, "one")]


@on_both()
def test_the_schema_and_the_sample_apply(job: Job) -> None:
    nodes = [Node("a"), Node("b", "aeg > 1", subscription="b"), Node("c", "age > 1", subscription="c")]
    sample = put_lines(job.folder / "sample.jsonl", [{"id": 1, "age": 5}])
    schema = '{"age": "int64"}'
    job.compile(nodes, [Edge("a", "b"), Edge("a", "c")], schema=schema, sample=sample)
    assert [row[:2] for row in job.refused()] == [("nodes", "b"), ("edges", "a → b")]
    assert "attribute aeg is not in the schema; age is" in job.refused()[0][2]
    assert Here(job.folder).match({"id": 1, "source": "a", "age": 2}) == [(1, "c")]


def test_a_graph_is_applied_without_being_asked_for(job: Job) -> None:
    nodes = [Node("a"), Node("b", subscription="s"), Node("far", subscription="far")]
    GraphIndex.build(nodes, [Edge("a", "b")], room=RecordIndex).save(job.snapshot)
    row = {"id": 1, "source": "a"}
    events = put_lines(job.folder / "events.jsonl", [row])
    for graph in (None, True):
        assert match_lines(job.snapshot, [row], graph=graph).pairs == [(1, "s")]
    assert open_target(str(job.snapshot)) == open_target(str(job.snapshot), graph=True)
    job.match(events)
    assert job.pairs() == [(1, "s")]
    with pytest.raises(SnapshotError, match="compiled with a graph, and without it events would reach"):
        job.match(events, graph=False)
    RecordIndex.build([Subscription("s", "TRUE")]).save(job.snapshot)
    assert match_lines(job.snapshot, [row], graph=False).pairs == [(1, "s")]
    with pytest.raises(SnapshotError, match="was compiled without a graph: leave out --graph"):
        job.match(events, graph=True)


@pytest.mark.parametrize("shards", [1, 2])
def test_a_snapshot_that_was_replaced_is_opened_anew(here: Here, shards: int) -> None:
    """The graph is the same, so that only the filters tell the snapshots apart."""
    for age in (3, 4):
        nodes = [Node("a"), Node("b", f"age = {age}", subscription="s")]
        here.compile(nodes, [Edge("a", "b")], shards=shards)
        rows = [{"id": age, "source": "a", "age": age} for age in (3, 4)]
        assert here.match(*rows) == [(age, "s")]


def test_a_damaged_shard_is_refused(job: Job) -> None:
    Here(job.folder).compile([Node("a"), Node("b", "x = 1", subscription="s")], [Edge("a", "b")], shards=2)
    events = put_lines(job.folder / "events.jsonl", [{"id": 1, "source": "a"}])
    file = resolved(job.snapshot) / "shard-001" / "graph_child.npy"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(SnapshotError, match=r"shard-001 is damaged: graph_child\.npy has"):
        job.match(events)
    file.unlink()
    with pytest.raises(SnapshotError, match=r"shard-001 is damaged: graph_child\.npy is missing"):
        job.match(events)


def test_what_is_refused_before_any_work(job: Job) -> None:
    nodes = put_lines(job.folder / "nodes.jsonl", [{"id": 1}])
    edges = put_lines(job.folder / "edges.jsonl", [])
    with pytest.raises(GraphError, match="0 shards: give a number from 1 to 1,000"):
        job.run(Tables(nodes, edges), shards=0)
    with pytest.raises(TableError, match=r"missing\.jsonl does not exist"):
        job.run(Tables(nodes, str(job.folder / "missing.jsonl")))
    with pytest.raises(TableError, match="is named twice"):
        job.run(Tables(nodes, nodes))
    csv = put(job.folder / "edges.csv", "from,to\n1,2\n")
    with pytest.raises(TableError, match=r"edges\.csv has no column 'source'; its columns are from, to"):
        job.run(Tables(nodes, csv))


@on_spark
@pytest.mark.nightly
@pytest.mark.parametrize("size", ["2k", "4m"])
def test_any_number_of_partitions(job: Job, size: str) -> None:
    rng = random.Random(11)
    drawn = draw_graph(rng, "dag", 30)
    graph = GraphIndex.build(drawn.nodes, drawn.edges, drawn.subscriptions, room=RecordIndex)
    events = [draw_event(rng, str(rng.choice(drawn.nodes).id), number) for number in range(60)]
    job.spark.conf.set("spark.sql.files.maxPartitionBytes", size)
    try:
        job.compile(drawn.nodes, drawn.edges, drawn.subscriptions, shards=2)
        job.match(job.put("events", map(event_row, events)), "matches.parquet")
    finally:
        job.spark.conf.set("spark.sql.files.maxPartitionBytes", "4m")
    assert sorted(job.pairs("matches.parquet")) == sorted(
        (event.id, found) for event in events for found in graph.match(event)
    )
