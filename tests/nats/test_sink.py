"""The sink: each match once in the stream, also after kill -9 at any point and after the server's window."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from typing import TYPE_CHECKING, cast

import pytest

from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import NatsSettings
from headgate.brokers.nats.stream import MESSAGE_ID, Outgoing, Stream
from headgate.errors import TableError
from headgate.spark.stream import nats as module
from headgate.spark.stream.nats import NatsSink
from headgate.stream.settings import StreamSettings
from tests.seeds import NIGHTLY

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.nats.server import Server

SCRIPT = """
import json, sys
from headgate.spark.stream.nats import NatsSink
from headgate.stream.settings import StreamSettings

url, state, batch, note = sys.argv[1:]
NatsSink(None, StreamSettings("", "", url, state)).commit(int(batch), json.loads(note))
"""


def opened(spark: SparkSession | None, url: str, state: Path) -> NatsSink:
    return NatsSink(cast("SparkSession", spark), StreamSettings("", "", url, str(state)))


def found(spark: SparkSession, count: int, first: int = 0) -> DataFrame:
    """Make matches; some rows are equal, and each of them counts."""
    return spark.range(first, first + count, numPartitions=3).selectExpr(
        "concat('e', id % 1000) AS event_id", "id % 7 AS subscription_id", "id / 2.0D AS score"
    )


def wanted(table: DataFrame) -> Counter[str]:
    rows = (dict(row.asDict()) for row in table.collect())
    return Counter(json.dumps(row, separators=(",", ":")) for row in rows)


def holds(server: Server, stream: str) -> Counter[str]:
    with Stream(NatsSettings.of(server.url(stream))) as opened_stream:
        parts = opened_stream.messages(Range(1, opened_stream.state().end))
        return Counter(one.data.decode() for part in parts for one in part)


def test_matches_are_published_as_json(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    server.add("AS_JSON", "to.>")
    sink = opened(spark, server.url("AS_JSON", "subject=to.{subscription_id}.{event_id}"), tmp_path)
    table = spark.createDataFrame(
        [("a b.c", "x*", 0.5, 1), ("ü", "", None, 2)],
        "event_id string, subscription_id string, score double, rank int",
    )
    sink.prepare(3)
    note = sink.stage(table, 3)
    assert json.loads(json.dumps(note)) == note
    assert server.held("AS_JSON") == []
    sink.commit(3, note)
    sink.commit(3, note)
    messages = {one.subject: one for one in server.held("AS_JSON")}
    assert {subject: json.loads(one.data) for subject, one in messages.items()} == {
        "to.x%2A.a%20b%2Ec": {"event_id": "a b.c", "subscription_id": "x*", "score": 0.5, "rank": 1},
        "to.%.%C3%BC": {"event_id": "ü", "subscription_id": "", "score": None, "rank": 2},
    }
    headers = messages["to.%.%C3%BC"].headers
    assert (headers["Headgate-Batch"], headers["Content-Type"]) == ("3", "application/json")
    assert list((tmp_path / "nats-out").iterdir()) == []
    sink.close()


@pytest.mark.parametrize("few", [0, 10**9], ids=["by tasks", "by the driver"])
def test_a_batch_is_published_once(
    spark: SparkSession, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    monkeypatch.setattr(module, "FEW", few)
    name = f"ONCE{min(few, 1)}"
    server.add(name, name)
    sink = opened(spark, server.url(name, f"subject={name}&partitions=2"), tmp_path)
    table = found(spark, 2_000)
    for batch in (0, 1):
        sink.prepare(batch)
        # An attempt that staged and was never promised leaves nothing.
        sink.stage(found(spark, 5), batch)
        sink.prepare(batch)
        note = sink.stage(table, batch)
        sink.commit(batch, note)
        sink.commit(batch, note)
    once = wanted(table)
    assert holds(server, name) == once + once
    empty = sink.stage(table.where("false"), 2)
    sink.commit(2, empty)
    assert holds(server, name).total() == 4_000
    sink.close()


def _window_is_over(stream: Stream, subject: str, name: str) -> None:
    """Wait until the server has forgotten a message id."""
    while True:
        if not stream.publish([Outgoing(subject, b"probe", {MESSAGE_ID: name})]).duplicates:
            return


@pytest.mark.nightly
def test_killed_while_publishing_and_again_after_the_window(
    spark: SparkSession, server: Server, tmp_path: Path
) -> None:
    server.add("KILLED", "killed", "probes", duplicate_window=0.2)
    url = server.url("KILLED", "subject=killed&window=0.2&patience=0")
    table = found(spark, 12_000)
    sink = opened(spark, url, tmp_path)
    sink.prepare(7)
    note = sink.stage(table, 7)
    arguments = [sys.executable, "-c", SCRIPT, url, str(tmp_path), "7", json.dumps(note)]
    with Stream(NatsSettings.of(url)) as stream:
        for least in (500, 4_500) if NIGHTLY else (4_500,):
            before = stream.state().end
            process = subprocess.Popen(arguments)
            while stream.state().end < before + least and process.poll() is None:
                pass
            process.send_signal(signal.SIGKILL)
            assert process.wait(60) == -signal.SIGKILL
            assert stream.state().end < 12_000
            stream.publish([Outgoing("probes", b"probe", {MESSAGE_ID: f"p{least}"})])
            _window_is_over(stream, "probes", f"p{least}")
    sink.commit(7, note)
    held = holds(server, "KILLED")
    del held["probe"]
    assert held == wanted(table)
    sink.close()


def test_what_is_staged_and_damaged_is_told(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    server.add("TORN", "torn")
    sink = opened(spark, server.url("TORN", "subject=torn"), tmp_path)
    note = sink.stage(found(spark, 10), 0)
    place = tmp_path / "nats-out" / note["folder"] / note["files"][0]
    data = place.read_bytes()
    for left in (b"", data[: len(data) // 2]):
        place.write_bytes(left)
        with pytest.raises(
            TableError, match=rf"{place.name} is (empty|damaged): restore the state from a copy"
        ):
            sink.commit(0, note)
    place.write_bytes(data)
    sink.commit(0, note)
    assert holds(server, "TORN").total() == 10
    sink.close()


def test_what_was_published_and_is_gone_is_told(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    server.add("GONE", "gone")
    url = server.url("GONE", "subject=gone")
    sink = opened(spark, url, tmp_path)
    note = sink.stage(found(spark, 10), 0)
    folder = tmp_path / "nats-out" / note["folder"]
    (folder / "_begun").touch()
    ids = [f"{note['key']}:0:{number}:0" for number in range(2)]
    with Stream(NatsSettings.of(url)) as stream:
        stream.publish([Outgoing("gone", b"", {MESSAGE_ID: one}) for one in ids])
    server.delete("GONE", 1)
    with pytest.raises(TableError, match="1 messages are gone since batch 0 was begun"):
        sink.commit(0, note)
    lenient = opened(spark, f"{url}&on_loss=go-on", tmp_path)
    lenient.commit(0, note)
    # Of the two that were published before, the server knows the ids, of the one that is gone too.
    assert holds(server, "GONE").total() == 9
    for one in (sink, lenient):
        one.close()


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("subject=other", "the stream takes fits.*, and matches go to other: set subject"),
        ("subject=fits.a.{event_id}", "the stream takes fits.*, and matches go to fits.a.{event_id}"),
        ("subject=fits.*", "matches go to one subject, without * and >"),
        ("subject=fits..a", "matches go to one subject"),
        ("subject=fits.{", "braces in a subject hold the name of a field"),
        ("subject=fits.a&window=300", "knows message ids for 120 s, and 300 are wanted: lengthen"),
        ("subject=fits.a&patience=91", "published again 121 s later, and window is 120 s: lengthen window"),
    ],
)
def test_a_stream_that_does_not_fit_is_told(server: Server, tmp_path: Path, query: str, words: str) -> None:
    server.add("FITS", "fits.*")
    with pytest.raises(TableError) as caught:
        opened(None, server.url("FITS", query), tmp_path)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_stream_is_made_if_so_asked(server: Server, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="has no stream MADE: create it"):
        opened(None, server.url("MADE", "subject=made.{event_id}"), tmp_path)
    opened(None, server.url("MADE", "subject=made.{event_id}&create=yes&window=60"), tmp_path).close()
    with Stream(NatsSettings.of(server.url("MADE"))) as stream:
        assert (stream.state().subjects, stream.state().window) == (("made.*",), 60.0)


def test_fields_that_matches_lack_are_told(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    server.add("LACK", "lack.*")
    sink = opened(spark, server.url("LACK", "subject=lack.{rank}"), tmp_path)
    with pytest.raises(TableError, match=r"lack\.\{rank\} names 'rank', and matches have event_id"):
        sink.stage(found(spark, 1), 0)
    sink.close()
