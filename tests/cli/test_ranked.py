"""Commands over ranked subscriptions: compile, match --top and explain --rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Engine, Node, Subscription
from headgate.core.versions.current import resolved
from headgate.graph.index import GraphIndex
from headgate.ranking.filters.index import RankedIndex
from headgate.records.index.index import RecordIndex
from tests.spark.files import get_lines, names, put_lines

if TYPE_CHECKING:
    from tests.cli.running import Command

SUBSCRIPTIONS = [
    Subscription("adults", "age >= 18", score=1.0),
    Subscription("news", "topic = 'news' AND age > 30", score=5.0, weights={"topic": 2.0}),
    Subscription("sport", "topic = 'sport' AND age > 30", score=3.0, weights=[0.5, 0.25]),
]
EVENT = '{"topic": "news", "age": 35}'
MATCH = ("match", "--snapshot", "ranked", "--events", "events.jsonl", "--output", "best.jsonl")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with tables and snapshots."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": each.id, "filter": each.filter, "score": each.score, "weights": each.weights}
        for each in SUBSCRIPTIONS
    ]
    put_lines(tmp_path / "subs.jsonl", [*rows, {"id": "bad", "filter": "a = 1", "score": "high +"}])
    put_lines(tmp_path / "events.jsonl", [{"id": 1, **json.loads(EVENT)}, {"id": 2, "age": 20}])
    RankedIndex.build(SUBSCRIPTIONS, room=RecordIndex).save(tmp_path / "ranked")
    RecordIndex.build(SUBSCRIPTIONS).save(tmp_path / "plain")
    GraphIndex.build([Node("pub", subscription="s")], [], room=RecordIndex).save(tmp_path / "graph")
    return tmp_path


@pytest.mark.usefixtures("spark")
def test_from_a_table_to_the_best(headgate: Command, folder: Path) -> None:
    ran = headgate("compile", "--subscriptions", "subs.jsonl", "--output", "cut", "--shards", "2", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "compiled 3 ranked subscriptions in 2 shards over 2 attributes to cut",
        "refused 1 rows, with the reasons in cut-rejected.jsonl",
    ]
    assert names(resolved(folder / "cut")) == ["manifest.json", "shard-000", "shard-001"]
    ran = headgate("match", "--snapshot", "cut", *MATCH[3:], "--top", "2", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "matched 2 events: 3 matches, the best 2 of each, in best.jsonl",
        "refused none",
        "events met shards 2 times, of 4 that there could be",
    ]
    found = sorted(tuple(row.values()) for row in get_lines(folder / "best.jsonl"))
    assert found == [(1, "adults", 1.0, 2), (1, "news", 5.0, 1), (2, "adults", 1.0, 1)]
    explain = ("explain", "--snapshot", "cut", "--event", EVENT, "--subscription")
    assert headgate(*explain, "sport").out.startswith("no match\n  failed  topic = 'sport'")
    ran = headgate(*explain, "sport", "--rank", "1")
    assert ran.complaint.startswith("snapshot cut is in shards, where ranks are not explained: match with")
    relaxed = ("--top", "3", "--mode", "relaxed", "--factor", "Topic=0.5", "--factor", "id=7")
    assert headgate(*MATCH, *relaxed, "--json").json["matches"] == 4
    found = sorted(tuple(row.values()) for row in get_lines(folder / "best.jsonl"))
    assert found == [(1, "adults", 1.0, 2), (1, "news", 2.0, 1), (1, "sport", 0.25, 3), (2, "adults", 1.0, 1)]
    done = headgate(
        "compile", "--subscriptions", "subs.jsonl", "--output", "all", "--no-ranked", "--json"
    ).json
    assert (done["ranked"], done["shards"], done["subscriptions"], done["rejected"]) == (False, 1, 4, 0)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ("--mode relaxed", "--mode goes with --top"),
        ("--factor age=0", "--factor goes with --mode relaxed"),
        ("--top 1 --factor age=0", "--factor goes with --mode relaxed"),
        ("--top 1 --mode relaxed --factor age", "--factor age: write NAME=NUMBER"),
        ("--top 1 --mode relaxed --factor age=old", "--factor age=old: write NAME=NUMBER"),
        ("--top 1 --mode relaxed --factor =1", "--factor =1: write NAME=NUMBER"),
        ("--top 1 --mode relaxed --factor a=1 --factor a=2", "--factor a=2: is given twice"),
        ("--top -1", "-1 is not in the range x>=0"),
        ("--top many", "'many' is not a valid integer"),
        ("--top 1 --mode best", "'best' is not one of 'exact', 'relaxed'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_usage_of_match(headgate: Command, arguments: str, part: str) -> None:
    ran = headgate(*MATCH, *arguments.split())
    assert part in ran.complaint
    assert ran.code == 2


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (
            "match --snapshot plain --top 1",
            "plain was compiled without ranks: compile its subscri",
        ),
        (
            "match --snapshot graph --top 1 --mode relaxed",
            "graph ranks by score and path only: compile",
        ),
        ("match --snapshot ranked --graph", "snapshot ranked was compiled without a graph"),
        (
            "match --snapshot ranked --top 1 --mode relaxed --factor a=nan",
            "the factor of 'a' is nan: give",
        ),
        (
            "match --snapshot ranked --top 1 --mode relaxed --factor a=-1",
            "the factor of 'a' is -1.0: give",
        ),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_match_refuses(headgate: Command, arguments: str, part: str) -> None:
    ran = headgate(*arguments.split(), "--events", "events.jsonl", "--output", "best.jsonl")
    assert part in ran.complaint
    assert ran.code == 1


@pytest.mark.usefixtures("folder")
def test_a_rank_is_explained(headgate: Command) -> None:
    explain = ("explain", "--snapshot", "ranked", "--event", EVENT, "--subscription")
    ran = headgate(*explain, "news", "--rank", "2")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[0] == "rank 1 of the best 2, score 5"
    ran = headgate(*explain, "sport", "--rank", "1", "--mode", "relaxed", "--factor", "age=2")
    assert ran.out.splitlines() == [
        "not among the best 1: rank 3, sum 0.5",
        "  place 1 is 'news' with 4",
        "  failed  topic = 'sport'   weight 0.5",
        "  held    age > 30          weight 0.25 * 2",
        "3.5 short of place 1",
        "not even all clauses would have been enough",
    ]
    found = headgate(*explain, "sport", "--rank", "1", "--mode", "relaxed", "--json").json
    assert (found["subscription"], found["rank"], found["entered"], found["value"]) == (
        "sport",
        3,
        False,
        0.25,
    )
    assert found["clauses"][1] == {"filter": "age > 30", "weight": 0.25, "factor": 1.0, "held": True}
    # In a graph, clauses count where the event comes to.
    nodes = [Node("pub"), Node("net", "topic = 'news'"), Node("far")]
    hung = [Subscription("a", "age > 30 AND member", node="net"), Subscription("b", "age > 30", node="far")]
    engine = Engine.build(hung, nodes=nodes, edges=[Edge("pub", "net"), Edge("net", "far")], ranked=True)
    engine.save(Path("reached"))
    event = json.dumps({**json.loads(EVENT), "source": "pub"})
    ran = headgate(
        "explain",
        "--snapshot",
        "reached",
        "--event",
        event,
        "--subscription",
        "b",
        "--rank",
        "1",
        "--mode",
        "relaxed",
    )
    assert ran.out.splitlines()[:2] == ["not among the best 1: rank 2, sum 1", "  place 1 is 'a' with 1"]
    exactly = ("explain", "--snapshot", "reached", "--event", event, "--rank", "1", "--subscription")
    assert headgate(*exactly, "b").out.splitlines()[0] == "rank 1 of the best 1, score -2"
    assert headgate(*exactly, "a").out.splitlines()[0] == "not among the best 1: no match"
    # Without --rank it is the filter that is explained, as ever.
    assert headgate(*explain, "news").out.startswith("match\n")


@pytest.mark.parametrize(
    ("arguments", "code", "part"),
    [
        ("--snapshot ranked --subscription news --rank 0", 2, "0 is not in the range x>=1"),
        ("--snapshot ranked --subscription news --mode relaxed", 2, "--mode goes with --rank"),
        ("--snapshot ranked --why-not --rank 1", 2, "--rank goes with --snapshot and --subscription"),
        ("--filter TRUE --rank 1", 2, "--rank goes with --snapshot and --subscription"),
        ("--snapshot ranked --why-not", 1, "snapshot ranked has ranks, and --why-not looks at filters alone"),
        ("--snapshot ranked --subscription x --rank 1", 1, "there is no subscription 'x' here"),
        ("--snapshot plain --subscription news --rank 1", 1, "plain was compiled without ranks: compile its"),
        ("--snapshot graph --subscription s --rank 1", 1, "has no source"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_explain_refuses(headgate: Command, arguments: str, code: int, part: str) -> None:
    ran = headgate("explain", "--event", EVENT, *arguments.split())
    assert part in ran.complaint
    assert ran.code == code
