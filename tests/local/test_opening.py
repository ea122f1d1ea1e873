"""A command opens a snapshot once: nothing of it is read or verified twice."""

from __future__ import annotations

import os
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from headgate.cli import cli
from headgate.core import snapshot as snapshots
from headgate.tables.results import Tables
from tests.spark.files import get_table, put_lines
from tests.spark.jobs import compile_graph, compile_subscriptions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.spark.files import Row

SUBSCRIPTIONS: list[Row] = [
    {"id": "old", "filter": "age > 30", "node": "net"},
    {"id": "art", "filter": "topic = 'art' AND age < 20", "node": "net"},
]


def counted(monkeypatch: pytest.MonkeyPatch, name: str) -> Counter[Path]:
    """Count by path how often something is done with a file of a snapshot."""
    counts: Counter[Path] = Counter()
    done: Any = getattr(snapshots, name)

    def do(path: Path) -> Any:
        counts[path.absolute()] += 1
        return done(path)

    monkeypatch.setattr(snapshots, name, do)
    return counts


@pytest.mark.parametrize("what", ["plain", "ranked", "graph", "relative"])
def test_match_opens_a_snapshot_once(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, refused = put_lines(tmp_path / "subs.jsonl", SUBSCRIPTIONS), str(tmp_path / "refused.jsonl")
    place = tmp_path / "snapshot"
    if what == "graph":
        nodes = put_lines(tmp_path / "nodes.jsonl", [{"id": "pub"}, {"id": "net"}])
        edges = put_lines(tmp_path / "edges.jsonl", [{"source": "pub", "target": "net"}])
        compile_graph(None, Tables(nodes, edges, table), str(place), rejected=refused)
    else:
        compile_subscriptions(None, table, str(place), rejected=refused, ranked=what == "ranked")
    # What was written just now might be written again at the same time: it is not kept.
    long_ago = time.time() - 60
    for manifest in place.rglob(snapshots.MANIFEST):
        os.utime(manifest, (long_ago, long_ago))
    events = [
        {"id": f"e{number}", "age": number, "topic": "art", "source": "pub"} for number in range(10, 40)
    ]
    put_lines(tmp_path / "events.jsonl", events)
    verified, read, mapped = (
        counted(monkeypatch, name) for name in ("_sha256", "_parse_manifest", "_map_array")
    )
    output = tmp_path / "matches.jsonl"
    monkeypatch.chdir(tmp_path)
    words = [
        "match",
        "--snapshot",
        place.name if what == "relative" else place,
        "--events",
        tmp_path / "events.jsonl",
        "--output",
        output,
    ]
    words += ["--rejected", refused, "--engine", "local", "--quiet"]
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert len(get_table(output)) == 9 + 10
    assert set(verified.values()) == set(read.values()) == {1}
    if what == "plain":
        assert set(mapped.values()) == {1}
        assert mapped.keys() == verified.keys()
