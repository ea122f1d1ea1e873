"""Events as columns and as Python values, in one piece and in shards: the answer is the library's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import Engine, Event
from headgate.engine.question import Question, Top
from headgate.records.events import columns
from headgate.runtime.engines import Runtime
from headgate.runtime.targets import Group, open_target, opened
from tests.spark.without_spark import compile_graph_lines, compile_lines, compile_shards

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS: list[dict[str, Any]] = [
    {
        "id": f"e{number}",
        "source": "pub" if number % 3 else "net",
        "a": number % 5,
        "t": "xyz"[number % 3],
        "k": (None, 0, 1, 2, 99, -1)[number % 6],
    }
    for number in range(40)
]
SUBSCRIPTIONS: list[dict[str, Any]] = [
    {"id": "s0", "filter": "a = 1 AND t = 'x'", "score": 1.0},
    {"id": "s1", "filter": "a > 2 OR t = 'x'", "score": 2.0, "weights": [2.5]},
    {"id": "s2", "filter": "t LIKE '%y%' AND id <> 'e1'", "score": 0.5},
    {"id": "s3", "filter": "TRUE", "score": 0.0},
    {"id": "s4", "filter": "a IN (1, 2, 3)", "score": 1.0},
    {"id": "s5", "filter": "a = 0", "score": 3.0},
    {"id": "s6", "filter": "t = 'z' AND a < 4", "score": 1.5},
]
NODES: list[dict[str, Any]] = [
    {"id": "pub"},
    {"id": "net", "filter": "a < 4"},
    {"id": "far", "filter": "t <> 'z'"},
]
EDGES: list[dict[str, Any]] = [{"source": "pub", "target": "net"}, {"source": "net", "target": "far"}]


def snapshot(folder: Path, kind: str, shards: int) -> Path:
    """Compile what the tests ask, in one piece or in shards."""
    place = folder / f"{kind}-{shards}"
    plain = [{name: row[name] for name in ("id", "filter")} for row in SUBSCRIPTIONS]
    if kind == "graph":
        hung = [{**row, "node": ("net", "far")[number % 2]} for number, row in enumerate(SUBSCRIPTIONS)]
        compile_graph_lines(place, NODES, EDGES, hung, shards=shards, ranked=True)
    elif shards > 1:
        compile_shards(place, plain if kind == "plain" else SUBSCRIPTIONS, shards, ranked=kind == "ranked")
    else:
        compile_lines(place, plain if kind == "plain" else SUBSCRIPTIONS, ranked=kind == "ranked")
    return place


def expected(engine: Engine, top: Top | None) -> Iterator[tuple[Any, ...]]:
    """Ask the library about one event after the other."""
    for number, row in enumerate(ROWS):
        event = Event.from_row(row)
        if top is None:
            yield from ((number, each) for each in engine.match(event))
        else:
            wanted = row.get(top.column) if top.column else None
            k = min(max(wanted, 0), top.k) if type(wanted) is int else top.k
            best: Any = engine.top(event, k, top.mode, factors=top.weighing)
            yield from ((number, each.subscription, each.value, rank) for rank, each in enumerate(best, 1))


def found(engines: Runtime, events: Any, top: Top | None) -> list[tuple[Any, ...]]:
    """Put the portions of an answer together; only the best of an event have an order."""
    parts = engines.ask(events, pa.array(range(len(ROWS)), pa.int64()), Question(top))
    rows = [tuple(row.values()) for part in parts for row in part.to_pylist()]
    return sorted(rows) if top is None else rows


@pytest.mark.parametrize("pairs", [1 << 24, 5])
@pytest.mark.parametrize("shards", [1, 3])
@pytest.mark.parametrize("kind", ["plain", "ranked", "graph"])
def test_both_forms_of_events_get_the_answer_of_the_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, shards: int, pairs: int
) -> None:
    monkeypatch.setattr("headgate.runtime.engines.PAIRS", pairs)
    engine = Engine.open(snapshot(tmp_path, kind, 1))
    engines = Runtime.open(snapshot(tmp_path, kind, shards))
    batch = pa.RecordBatch.from_pylist(ROWS)
    events = [Event.from_row(row) for row in ROWS]
    tops = (
        ()
        if kind == "plain"
        else (
            Top.of(2),
            Top.of(3, "relaxed", {"a": 0.5}),
            Top.of(2, column="k"),
            Top.of(3, "relaxed", column="k"),
        )
    )
    for top in (None, *tops):
        answer = list(expected(engine, top))
        assert answer
        assert found(engines, batch, top) == (sorted(answer) if top is None else answer)
        assert found(engines, events, top) == found(engines, batch, top)


@pytest.mark.parametrize("kind", ["plain", "ranked", "graph"])
def test_shards_read_the_columns_of_a_batch_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    engines = Runtime.open(snapshot(tmp_path, kind, 3))
    batch = pa.RecordBatch.from_pylist(ROWS)
    found(engines, batch, None)
    made = []

    class Counted(columns.BatchColumns):
        def __init__(self, given: pa.RecordBatch) -> None:
            made.append(given.num_rows)
            super().__init__(given)

    monkeypatch.setattr(columns, "BatchColumns", Counted)
    before = engines.met
    found(engines, batch, None)
    assert (engines.met - before, made) == (3 * len(ROWS), [len(ROWS)])


def test_shards_that_fit_into_a_memory_lie_in_one_group(tmp_path: Path) -> None:
    target = open_target(str(snapshot(tmp_path, "plain", 3)))
    assert [group.shards for group in target.groups(1 << 30)] == [(0, 1, 2)]
    assert [group.shards for group in target.groups(1)] == [(0,), (1,), (2,)]
    answers = [
        row
        for group in target.groups(1)
        for row in found(opened(group), pa.RecordBatch.from_pylist(ROWS), None)
    ]
    whole = opened(Group(target.place, target.digest, (0, 1, 2)))
    assert sorted(answers) == found(whole, pa.RecordBatch.from_pylist(ROWS), None)


def test_sources_get_the_type_of_nodes(tmp_path: Path) -> None:
    """Numbers as text meet nodes that are numbers, and the reverse; what is none is told as it was given."""
    nodes: list[dict[str, Any]] = [{"id": 1}, {"id": 2, "filter": "a = 1"}]
    hung = [{"id": "s", "filter": "TRUE", "node": 2}]
    compile_graph_lines(tmp_path / "numbers", nodes, [{"source": 1, "target": 2}], hung)
    engines = Runtime.open(tmp_path / "numbers")
    for given in (pa.array(["1", "01", None, "9"]), pa.array([1, 8, None, 9])):
        reasons = engines.refusals(given)
        assert [reason is None for reason in reasons] == [True, False, False, False]
        assert repr(given[1].as_py()) in str(reasons[1])
    event = Event("e", {"a": 1}, source="1")
    assert [
        row["subscription_id"] for part in engines.ask([event], pa.array([0])) for row in part.to_pylist()
    ] == ["s"]


@pytest.mark.parametrize("shards", [1, 2])
def test_ids_of_a_snapshot_without_subscriptions_are_text(tmp_path: Path, shards: int) -> None:
    """As the library says it of an engine without any: until there is one, nobody knows."""
    empty = tmp_path / "empty"
    if shards == 1:
        compile_lines(empty, [])
    else:
        compile_shards(empty, [], shards)
    target = open_target(str(empty))
    assert (target.numbered, Runtime.open(empty).numbered, Runtime.open(empty).whole_ids) == (
        False,
        False,
        None,
    )
