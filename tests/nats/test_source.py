"""The source: every message once, the same again after a restart, and clear words about losses."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable

from headgate.brokers.nats import reading
from headgate.brokers.nats.settings import NatsSettings
from headgate.errors import HeadgateError, TableError
from headgate.spark.session.session import spark_errors
from headgate.spark.stream.logs import LogStream, read_log
from headgate.stream.sources import nats_log
from headgate.stream.sources.logs import COLUMNS, DDL, LEAST, SCHEMA, Span
from headgate.stream.sources.nats_log import NatsLog

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from tests.nats.server import Server

Batches = dict[int, list[Any]]
Offset = dict[str, Any]


class Query:
    """What Spark does with a reader: offsets, parts, rows."""

    def __init__(self, url: str) -> None:
        self.reader = LogStream(partial(NatsLog, NatsSettings.of(url)))

    def batches(self, at: Offset | None = None) -> Iterator[tuple[Offset, list[bytes]]]:
        """Read until nothing is new."""
        at = at or self.reader.initialOffset()
        while (end := self.reader.latestOffset(at, self.reader.getDefaultReadLimit())) != at:
            yield end, self.between(at, end)
            at = end

    def between(self, start: Offset, end: Offset) -> list[bytes]:
        """Read one batch."""
        found = [batch for part in self.reader.partitions(start, end) for batch in self.reader.read(part)]
        return [value for batch in found for value in batch.column(0).to_pylist() if value is not None]


def rows(*numbers: int) -> list[bytes]:
    return [b"%d" % number for number in numbers]


def counted(ends: list[Offset]) -> list[tuple[int, int]]:
    return [(end["sequence"], end["missing"]) for end in ends]


def drain(spark: SparkSession, url: str, state: Path) -> tuple[Batches, list[Offset]]:
    """Read what is there now, with Spark; returns the batches, and the offsets that they ended at."""
    kept: Batches = {}

    def keep(found: DataFrame, number: int) -> None:
        kept[number] = found.collect()

    with spark_errors():
        query = (
            read_log(spark, partial(NatsLog, NatsSettings.of(url)))
            .writeStream.option("checkpointLocation", str(state))
            .trigger(availableNow=True)
            .foreachBatch(keep)
            .start()
        )
        query.awaitTermination(120)
        assert not query.isActive
    return kept, [json.loads(one.sources[0].endOffset) for one in query.recentProgress]


@pytest.mark.nightly
def test_spark_gets_every_message_once(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    server.add("EVERY", "every.>")
    server.put("every.json", (b"%d" % n for n in range(2_500)))
    server.put("every.other.skip", [b"not ours"] * 3)
    server.put("every.ttl", [b"<a> <b> <c> ."], {"content-type": "text/turtle"})
    url, state = server.url("EVERY", "subject=every.*&max_rows=1200&partitions=2"), tmp_path / "state"
    batches, offsets = drain(spark, url, state)
    assert [offset["sequence"] for offset in offsets] == [1_201, 2_401, 2_505]
    values = [bytes(row["value"]) for found in batches.values() for row in found]
    turtle = b'{"id": "every.ttl/2504", "datacontenttype": "text/turtle", "data": "<a> <b> <c> ."}'
    assert sorted(values) == sorted([*rows(*range(2_500)), turtle])
    last = {row["origin"]: row for row in batches[2]}
    assert set(last) == {"every.json", "every.ttl"}
    arrived = last["every.ttl"]["arrived"].replace(tzinfo=UTC)
    assert timedelta(0) <= datetime.now(UTC) - arrived < timedelta(minutes=5)
    # A batch without a commit is read again, the same; then what is new.
    for left in ("2", ".2.crc"):
        (state / "commits" / left).unlink()
    server.put("every.json", [b"new"])
    more, _ = drain(spark, url, state)
    assert sorted(more) == [2, 3]
    assert sorted(more[2]) == sorted(batches[2])
    assert [bytes(row["value"]) for row in more[3]] == [b"new"]


@pytest.mark.nightly
def test_no_plan_nor_error_shows_a_password(spark: SparkSession, server: Server, tmp_path: Path) -> None:
    url = server.url("NOWHERE", "patience=0", "ann:pa55word@")
    table = read_log(spark, partial(NatsLog, NatsSettings.of(url)))
    assert "pa55word" not in table._jdf.queryExecution().toString()  # noqa: SLF001
    with pytest.raises(HeadgateError, match="has no stream NOWHERE") as caught:
        drain(spark, url, tmp_path / "state")
    assert "pa55word" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_subject_and_a_start_pick_messages(server: Server) -> None:
    server.add("PICK", "pick.>")
    for number in range(6):
        server.put(f"pick.{number % 2}", rows(number))
    ((end, found),) = Query(server.url("PICK", "subject=pick.1&start=3")).batches()
    assert (end["sequence"], found) == (7, rows(3, 5))
    newer = Query(server.url("PICK", "start=new"))
    start = newer.reader.initialOffset()
    assert list(newer.batches(start)) == []
    server.put("pick.0", [b"new"])
    assert [found for _, found in newer.batches(start)] == [[b"new"]]
    assert newer.reader.reportLatestOffset() == start | {"sequence": 8}


def test_limits_bound_batches_and_the_end_of_now_holds(server: Server) -> None:
    server.add("BOUND", "bound")
    server.put("bound", rows(*range(25)))
    query = Query(server.url("BOUND", "max_rows=10"))
    assert [found for _, found in query.batches()] == [rows(*range(k, min(k + 10, 25))) for k in (0, 10, 20)]
    start = query.reader.initialOffset()
    assert query.reader.latestOffset(start, ReadAllAvailable())["sequence"] == 26
    query.reader.prepareForTriggerAvailableNow()
    server.put("bound", [b"too late"])
    assert [end["sequence"] for end, _ in query.batches()] == [11, 21, 26]
    query.reader.stop()


def test_gaps_and_losses_are_counted(server: Server) -> None:
    server.add("LOSSES", "losses")
    server.put("losses", rows(*range(1, 31)))
    server.delete("LOSSES", 5, 6, 28)
    url = server.url("LOSSES", "max_rows=10")
    ends = [end for end, _ in Query(url).batches()]
    assert counted(ends) == [(11, 2), (21, 2), (31, 3)]
    server.put("losses", rows(*range(31, 41)))
    server.purge("LOSSES", 35)
    words = r"begins at 35, and 31 is the next to be read: 4 were purged or expired unread; on_loss=go-on"
    with pytest.raises(TableError, match=words):
        list(Query(url).batches(ends[-1]))
    with pytest.raises(TableError, match="begins at 35, and 21 is the next"):
        Query(url).between(ends[1], ends[2])
    lenient = Query(f"{url}&on_loss=go-on")
    ((end, found),) = lenient.batches(ends[-1])
    assert (counted([end]), found) == ([(41, 7)], rows(*range(35, 41)))
    server.purge("LOSSES", 41)
    assert lenient.between(ends[-1], end) == []


def test_many_gaps_are_counted_without_a_list(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nats_log, "LISTED", 1)
    server.add("HOLES", "holes")
    server.put("holes", rows(*range(1, 21)))
    server.delete("HOLES", 5, 6, 18)
    ends = [end for end, _ in Query(server.url("HOLES", "max_rows=10")).batches()]
    assert counted(ends) == [(11, 2), (21, 3)]


def test_a_stream_made_anew_is_told(server: Server) -> None:
    server.add("ANEW", "anew")
    server.put("anew", [b"1", b"2"])
    query = Query(server.url("ANEW"))
    ((end, _),) = query.batches()
    old = {name: value for name, value in end.items() if name != "created"}
    assert list(query.batches(old)) == []
    server.put("anew", [b"3"])
    (((_, missing), found),) = [(counted([end])[0], found) for end, found in query.batches(old)]
    assert (missing, found) == (0, [b"3"])
    parts = query.reader.partitions(query.reader.initialOffset(), end)
    server.run(lambda client: client.jetstream().delete_stream("ANEW"))
    server.add("ANEW", "anew")
    words = "it was deleted and created again, so start again with another state"
    with pytest.raises(TableError, match=words):
        list(query.batches(old))
    # Now it is longer than it was.
    server.put("anew", rows(*range(9)))
    with pytest.raises(TableError, match=words):
        list(query.batches(end))
    for start in (old, end):
        with pytest.raises(TableError, match=words):
            query.between(start | {"sequence": 1}, end)
    with pytest.raises(TableError, match="was deleted and created again while it was read"):
        list(query.reader.read(parts[0]))


def test_losses_between_planning_and_reading_are_told(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    server.add("TRIMMED", "trimmed.>")
    server.put("trimmed.a", rows(*range(1, 101)))
    server.put("trimmed.b", rows(*range(101, 121)))
    server.delete("TRIMMED", 5, 6, 120)

    def planned(query: str) -> tuple[LogStream, list[Any]]:
        reader = LogStream(partial(NatsLog, NatsSettings.of(server.url("TRIMMED", query))))
        start = reader.initialOffset()
        parts = list(reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit())))
        reader.stop()
        return reader, parts

    def read(planned: tuple[LogStream, list[Any]]) -> int:
        return sum(batch.num_rows for part in planned[1] for batch in planned[0].read(part))

    strict, lenient = planned(""), planned("on_loss=go-on")
    # Other subjects, and what was deleted, are no losses.
    assert [read(planned(f"subject=trimmed.{name}")) for name in "ab"] == [98, 19]
    assert read(strict) == 117
    server.purge("TRIMMED", 61)
    words = r"begins at 61, and 1 is the next to be read: 60 were purged or expired unread; on_loss=go-on"
    with pytest.raises(TableError, match=words):
        read(strict)
    assert (read(lenient), caplog.records) == (59, caplog.records[:1])
    assert "60 were purged or expired unread" in caplog.text
    server.purge("TRIMMED", 121)
    with pytest.raises(TableError, match="begins at 121, and 1 is the next to be read: 120 were purged"):
        read(strict)


def test_losses_at_the_end_of_a_range_are_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_CHUNK", 100)
    server.add("TAIL", "tail")
    server.put("tail", rows(*range(300)))
    query = Query(server.url("TAIL", "partitions=1"))
    start = query.reader.initialOffset()
    (part,) = query.reader.partitions(start, start | {"sequence": 301})
    batches = query.reader.read(part)
    assert next(batches).num_rows == 100
    # The second part is on its way, the third is not.
    server.purge("TAIL", 301)
    with pytest.raises(TableError, match=r"begins at 301, and \d+ is the next to be read"):
        list(batches)


def test_columns_are_those_of_every_source() -> None:
    assert tuple(SCHEMA.names) == tuple(column.split()[0] for column in DDL.split(", ")) == COLUMNS


def test_ranges_are_cut_into_parts() -> None:
    def edges(start: int, stop: int, parts: int) -> list[tuple[int, int]]:
        return [(span.start, span.stop) for span in Span(start, stop, "").cut(parts)]

    assert edges(1, 1, 4) == []
    assert edges(1, 500, 4) == [(1, 500)]
    assert edges(0, 3 * LEAST, 2) == [(0, 1_500), (1_500, 3_000)]
    assert edges(0, 3 * LEAST, 8) == [(0, 1_000), (1_000, 2_000), (2_000, 3_000)]
