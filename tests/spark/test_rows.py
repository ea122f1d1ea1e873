"""Rows are judged alike by all who read them: one by one, by compiling, and in the dry run of a pipeline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headgate.core.subscription import SQL
from headgate.errors import HeadgateError
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.pipeline.dry_run.dry_run import rehearse
from headgate.pipeline.file.read import read_pipeline
from headgate.runtime.rows import read_edge, read_line, read_node, read_site, read_subscription
from tests.spark.files import put
from tests.spark.without_spark import compile_graph_lines, compile_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[[Any, str], object]

BROKEN: list[str] = [
    "[1]",
    '{"id": ',
    '{"id": "a", "ID": "b", "filter": "x > 1"}',
    '{"id": true, "filter": "x > 1"}',
    '{"id": 1.5, "filter": "x > 1"}',
    '{"id": 18446744073709551616, "filter": "x > 1"}',
    '{"id": "a", "filter": 7}',
    '{"id": "a", "filter": "x > 1", "dialect": 7}',
]
SUBSCRIPTION_ROWS = [
    *BROKEN,
    '{"filter": "x > 1"}',
    '{"id": "a"}',
    '{"id": "a", "filter": "x > 1", "dialect": "xslt"}',
    '{"id": "a", "filter": "x > 1", "score": "NaN"}',
    '{"id": "a", "filter": "x > 1", "score": true}',
    '{"id": "a", "filter": "x > 1", "weights": 7}',
    '{"id": "a", "filter": "x > 1", "weights": "{"}',
]
NODE_ROWS = [
    *BROKEN,
    '{"filter": "x > 1"}',
    '{"id": "a", "kind": 7}',
    '{"id": "a", "subscription": []}',
    '{"id": "a", "cost": "much"}',
    '{"id": "a", "score": false}',
]
EDGE_ROWS = [
    '{"source": "a"}',
    '{"target": "a"}',
    '{"source": "a", "target": true}',
    '{"source": "a", "target": "a", "filter": 7}',
    '{"source": "a", "target": "a", "dialect": []}',
    '{"source": "a", "target": "a", "cost": "much"}',
]


def reasons(lines: list[str], read: Read) -> list[str]:
    """Read rows one by one, all of which are refused."""
    found = []
    for line in lines:
        with pytest.raises(HeadgateError) as caught:
            read(read_line(line.encode()), SQL)
        assert "\n" not in str(caught.value)
        found.append(str(caught.value))
    return found


def rehearsed(folder: Path, text: str) -> dict[str, list[str]]:
    """Say why rows of tables would be refused."""
    pipeline = read_pipeline(Path(put(folder / "pipeline.toml", text)))
    tables = rehearse(pipeline, quiet=True).sizes.tables
    return {name: list(judged.reasons) for name, judged in tables.items() if judged is not None}


def test_subscriptions(tmp_path: Path) -> None:
    wanted = reasons(SUBSCRIPTION_ROWS, read_subscription)
    compiled = compile_lines(tmp_path / "snapshot", SUBSCRIPTION_ROWS, ranked=True)
    assert [row["reason"] for row in compiled.refused] == wanted
    put(tmp_path / "rows.jsonl", "\n".join(SUBSCRIPTION_ROWS))
    text = '[subscriptions]\ntable = "rows.jsonl"\nranked = true\n'
    assert rehearsed(tmp_path, text) == {SUBSCRIPTIONS: wanted}
    # What is usual takes another way than what is not, to the same end.
    rows = [{"id": "a", "filter": "x > 1", "score": 2, "weights": [3]}]
    more = [{"ID": "b", "Filter": "x > 1", "note": 7, "Score": "2", "weights": "[3]"}]
    assert not compile_lines(tmp_path / "again", [*rows, *more], ranked=True).refused
    one, other = (read_subscription(read_line(json.dumps(row)), SQL) for row in (*rows, *more))
    assert (one.filter, one.score, one.weights) == (other.filter, other.score, other.weights)


def test_nodes_and_edges(tmp_path: Path) -> None:
    nodes, edges = reasons(NODE_ROWS, read_node), reasons(EDGE_ROWS, read_edge)
    compiled = compile_graph_lines(tmp_path / "graph", [*NODE_ROWS, '{"id": "z"}'], EDGE_ROWS)
    for name, wanted in ((NODES, nodes), (EDGES, edges)):
        assert sorted(row["reason"] for row in compiled.refused if row["table"] == name) == sorted(wanted)
    put(tmp_path / "nodes.jsonl", "\n".join([*NODE_ROWS, '{"id": "z"}']))
    put(tmp_path / "edges.jsonl", "\n".join(EDGE_ROWS))
    text = '[graph]\nnodes = "nodes.jsonl"\nedges = "edges.jsonl"\n'
    assert rehearsed(tmp_path, text) == {NODES: nodes, EDGES: edges}


def test_sites() -> None:
    lines = [
        '{"site": "x"}',
        '{"id": 1, "site": []}',
        '{"id": 1, "cpu": -1}',
        '{"id": 1, "fan_out": true}',
        "[]",
    ]
    assert reasons(lines, lambda row, _: read_site(row)) == [
        "the row has no id: name a subscription in the field 'id'",
        "site is []: give its name, or leave it out",
        "cpu is -1: give a number that is 0 or more, or leave it out",
        "fan_out is True: give a number that is 0 or more, or leave it out",
        "expected a JSON object, found list",
    ]
