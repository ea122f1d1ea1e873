"""Input that nobody should send, and the one thing that happens then.

Malformed lines, ids and values of events are in test_match, those of subscriptions in test_compile.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from headgate.records.index.index import RecordIndex
from tests.spark.files import get_lines, put, put_lines
from tests.spark.jobs import compile_subscriptions, match_events

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

FILTERS: dict[str, tuple[str, str | None]] = {
    "ten megabytes": ("a = '" + "x" * 10_000_000 + "'", "characters and at most 262,144 are taken"),
    "parentheses": ("(" * 10_000 + "a = 1" + ")" * 10_000, "the filter nests deeper than 64"),
    "not": ("NOT " * 10_000 + "a = 1", "the filter nests deeper than 64"),
    "in list": (f"a IN ({','.join(map(str, range(100_000)))})", "characters and at most 262,144 are taken"),
    "short in list": (f"a IN ({','.join(['1'] * 100_000)})", "the list is longer than 10,000"),
    "clauses": (" OR ".join(["a"] * 20_000), "the filter has more than 10,000 clauses"),
    "name": (".".join(["a"] * 100) + " = 1", "the name has more than 32 parts"),
    "null byte": ("a = 'x\x00y'", None),
    "large number": (f"a < {2**64}", "this number lies beyond 64 bits"),
    "long in list": (f"a IN ({','.join(map(str, range(10_000)))})", None),
    "huge number": ("a < 1e999", "the number does not fit into a double"),
}


@pytest.fixture(scope="module")
def compiled(session: SparkSession | None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile them all at once."""
    folder = tmp_path_factory.mktemp("bad")
    rows = [{"id": name, "filter": text} for name, (text, _) in FILTERS.items()]
    table = put_lines(folder / "subs.jsonl", rows)
    done = compile_subscriptions(
        session, table, str(folder / "snapshot"), rejected=str(folder / "rejected.jsonl"), quiet=True
    )
    assert done.subscriptions + done.rejected == len(rows)
    return folder


@pytest.mark.parametrize("name", FILTERS)
def test_filters_beyond_the_limits_are_refused_with_the_reason(compiled: Path, name: str) -> None:
    reason = FILTERS[name][1]
    refused = {row["id"]: row for row in get_lines(compiled / "rejected.jsonl")}
    if reason is None:
        assert name not in refused
        assert name in RecordIndex.open(compiled / "snapshot").ids
    else:
        assert reason in refused[name]["reason"]
        assert len(refused[name]["reason"]) < 200
        assert json.loads(refused[name]["row"])["filter"] == FILTERS[name][0]


def match_all(session: SparkSession | None, folder: Path, content: str) -> tuple[list[Any], list[str]]:
    done = match_events(
        session,
        str(folder / "snapshot"),
        put(folder / "events.jsonl", content),
        str(folder / "matches.jsonl"),
        rejected=str(folder / "refused.jsonl"),
        quiet=True,
    )
    matches = get_lines(folder / "matches.jsonl")
    assert done.matches == len(matches)
    return [(row["event_id"], row["subscription_id"]) for row in matches], [
        row["reason"] for row in get_lines(folder / "refused.jsonl")
    ]


def test_events_of_unusual_size(session: SparkSession | None, compiled: Path) -> None:
    wide = {"id": 1, **{f"column {number}": number for number in range(20_000)}, "a": 9999}
    long = {"id": 2, "a": "x" * 5_000_000}
    array = {"id": 3, "a": list(range(200_000))}
    found, refused = match_all(session, compiled, "\n".join(map(json.dumps, (wide, long, array))))
    assert [event for event, name in found if name == "long in list"] == [1]
    assert refused == []


def test_lone_surrogates_and_numbers_without_end(session: SparkSession | None, compiled: Path) -> None:
    lines = [
        '{"id": 1, "a": "\\ud800"}',
        '{"id": 2, "a": 1e400}',
        '{"id": 3, "a": NaN}',
        '{"id": 4, "a": -Infinity}',
    ]
    lines += [f'{{"id": 5, "a": {2**64}}}', '{"id": 6, "a": 5}', '{"id": 7, "\\udc00": 5}']
    found, refused = match_all(session, compiled, "\n".join(lines))
    assert {event for event, _ in found} == {6}
    assert len(refused) == 6
    assert refused[0] == "not valid JSON: the escape \\ud800 is a lone surrogate"
    assert refused[4] == f"attribute a: {2**64} does not fit into 64 bits; send it as a string"
