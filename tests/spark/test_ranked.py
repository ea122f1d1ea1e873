"""Ranked subscriptions through the pipeline: the library's best, in any number of shards and any format."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Edge, Engine, Event, Node, Subscription
from headgate.core.snapshot import room_of
from headgate.core.versions.current import resolved
from headgate.engine.question import Question, Top
from headgate.errors import SnapshotError, SubscriptionError
from headgate.jobs.choosing import has_any
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import RecordIndex
from headgate.runtime.rows import RANKS, WEIGHTS
from headgate.spark.tables.tables import read_lines
from headgate.tables.lines import VALUE
from headgate.tables.places import Format
from headgate.tables.results import Tables
from tests.lanes import some
from tests.spark.files import Row, get_lines, get_table, names, put, put_lines, put_table
from tests.spark.jobs import compile_graph, compile_subscriptions, match_events, on_spark, runner_of
from tests.spark.without_spark import compile_graph_lines, compile_lines, match_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from headgate.tables.results import CompileResult, MatchResult

    Best = list[tuple[Any, ...]]

# In the order of code points; UTF-16 would have the last before the one before it.
HARD_IDS = ["", "Z", "a", "a,b", "é", "\uffee", "😀"]
CLAUSES = ["age > 30", "age <= 40", "topic = 'news'", "topic LIKE 'n%'", "price < 2.5", "member", "id >= 5"]
KINDS: dict[str, pa.DataType] = {
    "id": pa.int64(),
    "age": pa.int32(),
    "price": pa.float64(),
    "topic": pa.string(),
    "member": pa.bool_(),
}


def draw_subscriptions(rng: random.Random) -> list[Subscription]:
    """Draw subscriptions with many equal scores, weights of every form, and ids that are hard to sort."""
    drawn = []
    for identity in [*HARD_IDS, *(f"s{number:02}" for number in range(40))]:
        clauses = rng.sample(CLAUSES, rng.randint(1, 4))
        weights: Any = None
        match rng.randrange(3):
            case 1:
                weights = {clause.split()[0]: rng.choice([0, 0.5, 2]) for clause in clauses}
            case 2:
                weights = [rng.choice([0.25, 1, 3]) for _ in clauses]
        score = rng.choice([-1.5, 0.0, 0.0, 1.0, 2.0])
        drawn.append(Subscription(identity, " AND ".join(clauses), score=score, weights=weights))
    rng.shuffle(drawn)
    return drawn


def draw_events(rng: random.Random) -> list[Row]:
    """Draw events; some share their ids."""
    return [
        {
            "id": number % 25,
            "age": rng.choice([None, 20, 35, 50]),
            "price": rng.choice([None, 1.0, 2.5]),
            "topic": rng.choice([None, "news", "art"]),
            "member": rng.choice([None, True, False]),
        }
        for number in range(30)
    ]


SUBSCRIPTIONS = draw_subscriptions(random.Random(5))
EVENTS = draw_events(random.Random(6))
INDEX = RankedIndex.build(SUBSCRIPTIONS, room=RecordIndex)
FACTORS = {"age": 0.0, "topic": 2.5}


def best_of(row: Row, top: Top) -> Best:
    """Return what the library says of one event."""
    found = INDEX.top(Event.from_row(row), top.k, top.mode, factors=top.weighing)
    return [(row["id"], each.subscription, each.value, rank) for rank, each in enumerate(found, 1)]


def expected(top: Top) -> list[Best]:
    """List the answers for all events, those without one left out."""
    return sorted(filter(None, (best_of(row, top) for row in EVENTS)))


def answers(place: Path) -> list[Best]:
    """Read what was written, event by event."""
    return by_event(get_table(place))


def by_event(rows: Iterable[Row]) -> list[Best]:
    """Part rows by events: one begins with rank 1."""
    found: list[Best] = []
    for row in rows:
        values = (int(row["event_id"]), row["subscription_id"], float(row["score"]), int(row["rank"]))
        if values[3] == 1:
            found.append([])
        found[-1].append(values)
    return sorted(found)


class Job:
    """Compile and match in a folder of its own."""

    def __init__(self, session: SparkSession | None, folder: Path) -> None:
        self.spark: Any = session
        self.folder = folder
        self.refused = folder / "refused.jsonl"

    def compile(self, table: str, name: str = "snapshot", **options: Any) -> CompileResult:
        place, refused = str(self.folder / name), str(self.refused)
        return compile_subscriptions(self.spark, table, place, rejected=refused, quiet=True, **options)

    def match(self, events: str, output: str, snapshot: str = "snapshot", **options: Any) -> MatchResult:
        places = [str(self.folder / name) for name in (snapshot, events, output)]
        refused = str(self.folder / "refused-events.jsonl")
        return match_events(self.spark, *places, rejected=refused, quiet=True, **options)

    def reasons(self) -> dict[Any, str]:
        return {row["id"]: row["reason"] for row in get_lines(self.refused)}


@pytest.fixture
def job(session: SparkSession | None, tmp_path: Path) -> Job:
    return Job(session, tmp_path)


@pytest.fixture(scope="module")
def ready(session: SparkSession | None, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Events in all formats, and subscriptions in one piece and in three shards."""
    job = Job(session, tmp_path_factory.mktemp("ranked"))
    for form in ("jsonl", "csv", "parquet"):
        put_table(job.folder / f"events.{form}", EVENTS, pa.schema(KINDS))
    rows = [
        {"id": each.id, "filter": each.filter, "score": each.score, "weights": each.weights}
        for each in SUBSCRIPTIONS
    ]
    attributes = ("age", "id", "member", "price", "topic")
    one = compile_lines(job.folder / "one", rows, ranked=True)
    assert (one.subscriptions, one.refused, one.attributes) == (len(rows), [], attributes)
    three = job.compile(put_lines(job.folder / "subs.jsonl", rows), "three", shards=3)
    assert (three.subscriptions, three.rejected, three.shards) == (len(rows), 0, 3)
    assert three.ranked
    assert three.attributes == attributes
    return job


def test_shards_are_snapshots_inside_one(ready: Job) -> None:
    assert room_of(ready.folder / "one") == "ranking"
    three = resolved(ready.folder / "three")
    inside = names(three)
    assert inside == ["manifest.json", "shard-000", "shard-001", "shard-002"]
    parts = [RankedIndex.open(three / name, room=RecordIndex) for name in inside[1:]]
    assert all(map(len, parts))
    for each in SUBSCRIPTIONS:
        assert [part.score(each.id) for part in parts if each.id in part] == [each.score]


ASKED = [
    ("jsonl", "parquet", Top.of(3)),
    ("parquet", "jsonl", Top.of(1)),
    ("csv", "csv", Top.of(1_000_000)),
    ("jsonl", "jsonl", Top.of(4, "relaxed")),
    ("parquet", "parquet", Top.of(5, "relaxed", FACTORS)),
    ("jsonl", "csv", Top.of(2**40, "relaxed", {"member": 0})),
]
CUT = [(*case, snapshot) for case in ASKED for snapshot in ("one", "three")]


@pytest.mark.parametrize(
    ("form", "out", "top", "snapshot"),
    CUT,
)
def test_the_answers_are_the_librarys_in_any_number_of_shards(
    ready: Job, form: str, out: str, top: Top, snapshot: str
) -> None:
    check_answers(ready, form, out, top, snapshot)


def check_answers(ready: Job, form: str, out: str, top: Top, snapshot: str) -> None:
    answer = expected(top)
    assert max(map(len, answer)) == min(top.k, 46 if top.mode == "relaxed" else 47)
    done = ready.match(f"events.{form}", f"best.{out}", snapshot, question=Question(top))
    assert (done.events, done.rejected, done.matches) == (30, 0, sum(map(len, answer)))
    assert answers(ready.folder / f"best.{out}") == answer
    assert (sum(batch.events for batch in done.batches), done.met) == (30, 30 if snapshot == "one" else 90)


@on_spark
def test_the_answers_of_spark_are_the_librarys(ready: Job) -> None:
    check_answers(ready, "parquet", "csv", ASKED[3][2], "three")


@pytest.mark.parametrize("top", [top for _, _, top in ASKED])
def test_workers_answer_as_the_library(ready: Job, top: Top) -> None:
    done = match_lines(ready.folder / "one", EVENTS, top=top)
    assert (done.events, done.refused) == (30, [])
    assert by_event(done.rows) == expected(top)


@pytest.mark.parametrize("top", [Top.of(3), Top.of(3, "relaxed")], ids=["exact", "relaxed"])
def test_what_only_scores_and_clauses_look_at_is_read(
    session: SparkSession | None, tmp_path: Path, top: Top
) -> None:
    """Scores by the event, and clauses of filters that can never match, see all of their columns."""
    engine = Engine.build(
        [
            Subscription("by event", "x > 0", score="price * user.factor"),
            Subscription("never", "x > 0 AND NULL AND y = 1 AND (NOT b OR z LIKE 'a%')", score=1),
        ],
        ranked=True,
    )
    engine.save(tmp_path / "snapshot")
    row = {"id": 1, "x": 1, "y": 1, "b": False, "z": "b", "price": 3.0, "user": {"factor": 2}, "other": 1}
    events = put_table(tmp_path / "events.parquet", [row], pa.Table.from_pylist([row]).schema)
    output, rejected = str(tmp_path / "best.jsonl"), str(tmp_path / "rejected.jsonl")
    match_events(
        session, str(tmp_path / "snapshot"), events, output, rejected=rejected, question=Question(top)
    )
    assert [(each["subscription_id"], each["score"]) for each in get_lines(tmp_path / "best.jsonl")] == [
        (each.subscription, each.value) for each in engine.top(row, top.k, top.mode)
    ]


NONE = [(snapshot, out) for snapshot in ("one", "three") for out in ("csv", "parquet")]


@pytest.mark.parametrize(("snapshot", "out"), NONE)
def test_the_best_none_is_an_empty_table_with_its_columns(ready: Job, snapshot: str, out: str) -> None:
    assert ready.match("events.jsonl", f"none.{out}", snapshot, question=Question(Top.of(0))).matches == 0
    if out == "csv":
        assert (ready.folder / "none.csv").read_text() == "event_id,subscription_id,score,rank\n"
        return
    kinds = pq.read_schema(next((ready.folder / "none.parquet").glob("*.parquet")))
    assert [(field.name, str(field.type)) for field in kinds] == [
        ("event_id", "int64"),
        ("subscription_id", "string"),
        ("score", "double"),
        ("rank", "int32"),
    ]


ALL = [(form, snapshot) for form in ("jsonl", "parquet") for snapshot in ("one", "three")]


@pytest.mark.parametrize(("form", "snapshot"), ALL)
def test_without_top_all_matches_come_as_ever(ready: Job, form: str, snapshot: str) -> None:
    answer = sorted((row["id"], each) for row in EVENTS for each in INDEX.match(Event.from_row(row)))
    for place in ("one", "three"):
        assert sorted(match_lines(ready.folder / place, EVENTS).pairs) == answer
    ready.match(f"events.{form}", "all.jsonl", snapshot)
    rows = get_lines(ready.folder / "all.jsonl")
    assert sorted((row["event_id"], row["subscription_id"]) for row in rows) == answer
    assert list(rows[0]) == ["event_id", "subscription_id"]


def test_subscriptions_come_in_every_format(job: Job) -> None:
    rows: list[Row] = [
        {"id": "1", "filter": "a = 1 AND b = 2", "score": 2.5, "weights": '{"B": 3}'},
        {"id": "2", "filter": "a = 1 AND b = 2", "score": None, "weights": "[0.5, 0.25]"},
        {"id": "3", "filter": "a = 1 AND user.b = 2", "score": -1, "weights": '{"user.b": 7}'},
        {"id": "4", "filter": "b = 2", "score": 1e300, "weights": None},
    ]
    native = [
        {
            "id": row["id"],
            "Filter": row["filter"],
            "score": row["score"],
            "WEIGHTS": json.loads(row["weights"] or "null"),
        }
        for row in rows
    ]
    text = pa.string()
    kinds: dict[str, pa.DataType] = {"id": text, "filter": text, "score": pa.float64(), "weights": text}
    put_table(job.folder / "text.csv", rows)
    put_table(job.folder / "text.parquet", rows, pa.schema(kinds))
    for table in ("text.csv", "text.parquet"):
        done = job.compile(str(job.folder / table), f"of {table}")
        assert (done.subscriptions, done.rejected, done.ranked) == (4, 0, True)
    for name, lines in (("text", rows), ("native", native)):
        compiled = compile_lines(job.folder / name, lines, ranked=True)
        assert (compiled.subscriptions, compiled.refused) == (4, [])
    for name in ("of text.csv", "of text.parquet", "text", "native"):
        index = RankedIndex.open(job.folder / name, room=RecordIndex)
        # CSV has text only, and ids there are whole numbers if all look so.
        event = Event("e", {"a": 1, "b": 2, "user": {"b": 2}})
        best = [(str(each.subscription), each.value) for each in index.top(event, 9, "relaxed")]
        assert best == [("3", 8.0), ("1", 4.0), ("4", 1.0), ("2", 0.75)]
        best = [(str(each.subscription), each.value) for each in index.top(event, 9)]
        assert best == [("4", 1e300), ("1", 2.5), ("2", 0.0), ("3", -1.0)]


@pytest.mark.parametrize(
    ("kind", "weights", "values"),
    some(
        [
            (pa.map_(pa.string(), pa.float64()), [[("a", 2.0)], [], None], [3.0, 2.0, 2.0]),
            (
                pa.struct([("a", pa.float32()), ("b", pa.int64())]),
                [{"a": 2.0}, {"b": 4}, None],
                [3.0, 5.0, 2.0],
            ),
            (pa.list_(pa.int32()), [[5, 6], [1, 0], None], [11.0, 1.0, 2.0]),
        ],
        0,
    ),
)
@pytest.mark.nightly
def test_weights_of_parquet_have_types_of_their_own(
    spark: SparkSession, tmp_path: Path, kind: pa.DataType, weights: list[Any], values: list[float]
) -> None:
    columns = {"id": [1, 2, 3], "filter": ["a = 1 AND b = 2"] * 3, "weights": pa.array(weights, kind)}
    pq.write_table(pa.table(columns), tmp_path / "subs.parquet")
    read = read_lines(spark, str(tmp_path / "subs.parquet"), "id", "filter").select(VALUE).collect()
    lines = [bytes(row[VALUE]) for row in read]
    assert compile_lines(tmp_path / "snapshot", lines, form=Format.PARQUET, ranked=True).refused == []
    index = RankedIndex.open(tmp_path / "snapshot", room=RecordIndex)
    found = index.top(Event("e", {"a": 1, "b": 2}), 3, "relaxed")
    assert {each.subscription: each.value for each in found} == dict(enumerate(values, 1))


BAD: dict[str, tuple[Any, Any, str]] = {
    "text": ("high +", None, "the score of subscription 'text': a value or a condition is missing"),
    "truth": (True, None, "score True is not usable: give a number"),
    "nan": (
        "NaN",
        None,
        "the score of the row is nan: give a finite number, or an expression over the event",
    ),
    "infinite": (
        "-Infinity",
        None,
        "the score of the row is -inf: give a finite number, or an expression over the event",
    ),
    "huge": (10**400, None, "score is a number that no double can hold: give a smaller one"),
    "negative": (
        1,
        {"a": -1},
        "the weight of 'a' of subscription 'negative' is -1: give",
    ),
    "wordy": (
        1,
        [1, "x"],
        "the weight of clause 2 of subscription 'wordy' is 'x': give",
    ),
    "long": (
        1,
        [1, 2, 3],
        "subscription 'long' has 3 weights and 2 clauses: give one",
    ),
    "short": (1, "[]", "subscription 'short' has 0 weights and 2 clauses: give one"),
    "stranger": (
        1,
        '{"c": 1}',
        "subscription 'stranger' weighs 'c', which its filter does not look at",
    ),
    "twice": (
        1,
        {"a": 1, "A": 2},
        "subscription 'twice' weighs two names that differ in case only",
    ),
    "broken": (
        1,
        "[1, 2",
        "weights are not JSON (Input data was truncated): give an",
    ),
    "number": (1, 3, "weights are int: give an object of attributes and numbers, or a list of numbers, one"),
}


def test_bad_scores_and_weights_refuse_their_row_alone(tmp_path: Path) -> None:
    good = {"id": "good", "filter": "a = 1 AND b = 2", "score": 1}
    rows = [
        {"id": name, "filter": "a = 1 AND b = 2", "score": score, "weights": weights}
        for name, (score, weights, _) in BAD.items()
    ]
    lines = [*rows, good, {"id": "worse", "filter": "a +", "score": 1}]
    done = compile_lines(tmp_path / "snapshot", lines, ranked=True)
    assert (done.subscriptions, len(done.refused)) == (1, len(BAD) + 1)
    reasons = {row["id"]: row["reason"] for row in done.refused}
    for name, (_, _, reason) in BAD.items():
        assert reasons[name].startswith(reason), name
    assert "at character 3" in reasons["worse"]
    assert json.loads(done.refused[0]["row"]) == rows[0]
    # Unless there are ranks, these are columns like any other.
    done = compile_lines(tmp_path / "snapshot", lines, ranked=False)
    assert (done.subscriptions, len(done.refused)) == (len(BAD) + 1, 1)
    assert room_of(tmp_path / "snapshot") == "records"


def test_numbers_of_parquet_that_are_none_are_refused(job: Job) -> None:
    columns = {
        "id": [1, 2, 3],
        "filter": ["a"] * 3,
        "score": [float("nan"), float("inf"), 1.0],
        "weights": [[1.0], [1.0], [float("nan")]],
    }
    pq.write_table(pa.table(columns), job.folder / "subs.parquet")
    assert job.compile(str(job.folder / "subs.parquet")).subscriptions == 0
    assert job.reasons() == {
        "1": "the score of the row is nan: give a finite number, or an expression over the event",
        "2": "the score of the row is inf: give a finite number, or an expression over the event",
        "3": "the weight of clause 1 of subscription 3 is 'NaN': give a finite number, 0 or more",
    }


def test_a_table_has_ranks_if_it_has_a_column_for_them(session: SparkSession | None, tmp_path: Path) -> None:
    lines: dict[str, bool] = {
        '{"id": 1, "filter": "a"}': False,
        '{"id": 1, "filter": "a", "score": null}': True,
        '{"id": 1, "filter": "a", "Weights": [1]}': True,
        r'{"id": 1, "filter": "a", "\u0073core": 1}': True,
        '{"id": 1, "filter": "\\"score\\" = 1", "more": {"score": 1}}': False,
        '{"id": 1, "score": 1': False,
        "": False,
    }
    others = [line for line, ranked in lines.items() if not ranked]
    for line in ("", *(line for line, ranked in lines.items() if ranked)):
        table = put(tmp_path / "subs.jsonl", "\n".join(["", *others, line, ""]))
        assert has_any(runner_of(session).table(table), RANKS) is lines[line], line
    for header, ranked in (("id,filter", False), ("id,filter,SCORE", True), ("weights,id,filter", True)):
        table = put(tmp_path / "subs.csv", header + "\n")
        assert has_any(runner_of(session).table(table), RANKS) is ranked


@pytest.mark.parametrize("shards", some([1, 2], 0))
def test_ranks_may_be_insisted_on(job: Job, shards: int) -> None:
    rows = [{"id": each, "filter": "a > 1 AND b"} for each in ("x", "😀", "\uffee", "b")]
    table = put_lines(job.folder / "subs.jsonl", rows)
    compile_lines(job.folder / "snapshot", rows)
    with pytest.raises(SnapshotError, match="was compiled without ranks: compile its subscriptions with"):
        job.match("subs.jsonl", "best.jsonl", question=Question(Top.of(1)))
    assert job.compile(table, ranked=True, shards=shards).ranked
    put_lines(job.folder / "events.jsonl", [{"id": 1, "a": 2, "b": True}, {"id": 2, "a": 2}, {"no": "id"}])
    done = job.match("events.jsonl", "best.jsonl", question=Question(Top.of(3)))
    assert (done.events, done.rejected, done.matches) == (2, 1, 3)
    # All scores are 0, so the ids decide: by code points.
    found = [tuple(row.values()) for row in get_lines(job.folder / "best.jsonl")]
    assert found == [(1, "b", 0.0, 1), (1, "x", 0.0, 2), (1, "\uffee", 0.0, 3)]


NODES = [
    Node("pub"),
    Node("net", "topic = 'news'", cost=0.5),
    Node("shop", subscription="shop", score=4.0, cost=0.25),
    Node("idle", subscription="idle", score=2.0),
]
EDGES = [
    Edge("pub", "net"),
    Edge("net", "shop", cost=2.0),
    Edge("pub", "idle", cost=0.25),
    Edge("pub", "shop", "age > 40"),
]
HUNG = [
    Subscription("young", "age < 30 AND member", node="net", score=3.25, weights={"age": 3.0}),
    Subscription("old", "age > 30", node="net", score=3.25),
    Subscription("all", "TRUE", node="net", score=3.25, weights=[0.5]),
]
COMING: list[Row] = [
    {"id": 0, "source": "pub", "topic": "news", "age": 20, "member": True},
    {"id": 1, "source": "pub", "topic": "news", "age": 50, "member": None},
    {"id": 2, "source": "pub", "topic": "art", "age": 50, "member": True},
    {"id": 3, "source": "idle", "topic": "news", "age": 50, "member": True},
    {"id": 4, "source": "net", "topic": None, "age": 35, "member": True},
]
FIELDS = {
    "nodes": ("id", "filter", "subscription", "score", "cost"),
    "edges": ("source", "target", "filter", "cost"),
    "subs": ("id", "filter", "node", "score", "weights"),
}


def part_rows(name: str, parts: Sequence[object], *without: str) -> list[Row]:
    """List the parts of a graph as rows, but for some fields."""
    fields = [field for field in FIELDS[name] if field not in without]
    return [{field: getattr(each, field) for field in fields} for each in parts]


def best_through(engine: Engine, top: Top) -> list[Best]:
    """List what the library says of the events that come through the graph."""
    found: list[list[Any]] = [
        [*engine.top(Event.from_row(row), top.k, top.mode, factors=top.weighing)] for row in COMING
    ]
    answer = [
        [(row["id"], each.subscription, each.value, rank) for rank, each in enumerate(best, 1)]
        for row, best in zip(COMING, found, strict=True)
        if best
    ]
    assert max(map(len, answer)) == min(top.k, 4)
    return answer


NOT_WEIGHED = {"bad": "subscription 'bad' has 1 weights and 2 clauses: give one for each clause"}
PARTS: dict[str, Sequence[object]] = {
    "nodes": NODES,
    "edges": EDGES,
    "subs": [*HUNG, Subscription("bad", "age > 1 AND member", node="net", weights=[1.0])],
}
LOST: Row = {"id": 9, "source": "nowhere"}
QUESTIONS = [
    (1, "jsonl", Top.of(2)),
    (1, "parquet", Top.of(100, "relaxed")),
    (3, "parquet", Top.of(100)),
    (3, "jsonl", Top.of(2, "relaxed", {"age": 0.5})),
]


def test_workers_rank_whom_an_event_comes_to(tmp_path: Path) -> None:
    done = compile_graph_lines(
        tmp_path / "graph", *(part_rows(name, each) for name, each in PARTS.items()), ranked=True
    )
    assert {row["id"]: row["reason"] for row in done.refused} == NOT_WEIGHED
    engine = Engine.build(HUNG, nodes=NODES, edges=EDGES)
    for _, _, top in QUESTIONS:
        matched = match_lines(tmp_path / "graph", [*COMING, LOST], top=top)
        assert len(matched.refused) == 1
        assert by_event(matched.rows) == best_through(engine, top)


@on_spark
@pytest.mark.nightly
def test_a_graph_without_weights_ranks_by_score_alone(job: Job) -> None:
    far = Subscription("far", "a", node="nowhere")
    rows = part_rows("nodes", NODES), part_rows("edges", EDGES), part_rows("subs", [*HUNG, far], "weights")
    places = (put_lines(job.folder / f"{name}.jsonl", each) for name, each in zip(PARTS, rows, strict=True))
    tables = Tables(*places)
    graph, refused = str(job.folder / "graph"), str(job.refused)
    assert not has_any(runner_of(job.spark).table(str(tables.subscriptions)), [WEIGHTS])
    compile_graph_lines(job.folder / "graph", *rows)
    put_lines(job.folder / "events.jsonl", COMING)
    with pytest.raises(SnapshotError, match="ranks by score and path only: compile the graph with --ranked"):
        job.match("events.jsonl", "best.jsonl", "graph", question=Question(Top.of(1, "relaxed")))
    done = compile_graph(job.spark, tables, graph, rejected=refused, ranked=True, shards=2, quiet=True)
    assert (done.ranked, done.rejected) == (True, 1)
    assert (
        job.match("events.jsonl", "best.jsonl", "graph", question=Question(Top.of(1, "relaxed"))).matches == 4
    )
    assert get_lines(job.folder / "best.jsonl")[0] == {
        "event_id": 0,
        "subscription_id": "young",
        "score": 2.0,
        "rank": 1,
    }


def test_filters_of_a_graph_see_the_ids_of_events(job: Job) -> None:
    ids = [Subscription(f"of {number}", f"id = {number}", node="pub", score=1.0) for number in (0, 1, 7)]
    subs = part_rows("subs", ids)
    compile_graph_lines(job.folder / "graph", part_rows("nodes", [Node("pub")]), [], subs, ranked=True)
    rows: list[Row] = [{"id": number, "source": "pub"} for number in (7, 5, 1)]
    wanted = [(1, "of 1"), (7, "of 7")]
    assert sorted(match_lines(job.folder / "graph", rows, top=Top.of(2)).pairs) == wanted
    put(job.folder / "events.csv", "id,source\n7,pub\n5,pub\n1,pub\n")
    pq.write_table(pa.Table.from_pylist(rows), job.folder / "events.parquet")
    for form in ("csv", "parquet"):
        job.match(f"events.{form}", "best.jsonl", "graph", question=Question(Top.of(2)))
        found = get_lines(job.folder / "best.jsonl")
        assert sorted((row["event_id"], row["subscription_id"]) for row in found) == wanted, form


def test_what_cannot_be_asked_for() -> None:
    with pytest.raises(SubscriptionError, match="there is no mode 'best': use 'exact' or 'relaxed'"):
        Top.of(1, "best")
    with pytest.raises(SubscriptionError, match="factors re-weigh clauses"):
        Top.of(1, "exact", {"a": 1.0})
