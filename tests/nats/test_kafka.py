"""Kafka by configuration: what the connector is told, the shape of rows, the line where it is missing."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

import pytest

from headgate.errors import MachineError, TableError
from headgate.spark.stream import kafka
from headgate.stream.settings import StreamSettings
from headgate.stream.sources.kafka import Kafka
from headgate.stream.sources.logs import DDL

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


def settings(
    events: str = "in", output: str = "out", state: str = "state", max_rows: int | None = None
) -> StreamSettings:
    options = {"kafka.security.protocol": "SASL_SSL", "nats.user": "ann"}
    return StreamSettings("", events, output, state, max_rows=max_rows, options=options)


def test_the_connector_is_told_what_the_address_says() -> None:
    told = settings("kafka://a:9092,b:9092/events?failOnDataLoss=false&kafka.client.id=a%26b", max_rows=500)
    assert kafka.source_options(told) == {
        "kafka.bootstrap.servers": "a:9092,b:9092",
        "subscribe": "events",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "500",
        "includeHeaders": "true",
        "failOnDataLoss": "false",
        "kafka.client.id": "a&b",
        "kafka.security.protocol": "SASL_SSL",
    }
    latest = settings("kafka://a:9092/events?startingOffsets=latest&kafka.security.protocol=SSL")
    options = kafka.source_options(latest)
    assert (options["startingOffsets"], options["kafka.security.protocol"]) == ("latest", "SSL")
    assert "maxOffsetsPerTrigger" not in options
    assert kafka.sink_options(settings(output="kafka://a:9092/matches?kafka.acks=all")) == {
        "kafka.bootstrap.servers": "a:9092",
        "topic": "matches",
        "kafka.acks": "all",
        "kafka.security.protocol": "SASL_SSL",
    }


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("kafka://a:9092", "a Kafka address is kafka://host:9092/topic"),
        ("kafka:///topic", "a Kafka address is kafka://host:9092/topic"),
        ("kafka://ann:pa55@a:9092/t", "a Kafka address has no user"),
        ("kafka://a:9092/t?x", "'x' has no value"),
    ],
)
def test_a_wrong_address_is_told(address: str, words: str) -> None:
    with pytest.raises(TableError) as caught:
        Kafka().check(settings(address))
    assert words in str(caught.value)
    assert "pa55" not in str(caught.value)
    with pytest.raises(TableError, match=r"changes of subscriptions come from a folder or from nats://"):
        Kafka().check(StreamSettings("", "in", "out", "state", changes="kafka://a:9092/t"))


def test_rows_of_the_connector_become_events(spark: SparkSession) -> None:
    schema = (
        "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, "
        "timestampType int, headers array<struct<key: string, value: binary>>"
    )
    at = datetime(2026, 5, 1, 12, 0)
    rows = [
        (None, b"{}", "t", 0, 7, at, 0, None),
        (b"k", b"<a/>", "t", 3, 8, at, 0, [("x", b"y"), ("Content-Type", b"application/xml")]),
        (b"k", b"<a/>", "t", 3, 9, at, 0, [("x", b"y")]),
    ]
    events = kafka.as_events(spark.createDataFrame(rows, schema))
    assert events.schema.simpleString() == spark.createDataFrame([], DDL).schema.simpleString()
    found = [(bytes(row[0]), row[1], row[2], row[3]) for row in events.collect()]
    assert found == [
        (b"{}", None, "t/0/7", at),
        (b"<a/>", "application/xml", "t/3/8", at),
        (b"<a/>", None, "t/3/9", at),
    ]


def test_matches_become_records_with_ids(spark: SparkSession) -> None:
    found = spark.createDataFrame(
        [("e", 1, None), ("e", 2, 0.5)], "event_id string, subscription_id long, score double"
    )
    rows = kafka.as_records(found, "KEY", 4).collect()
    assert [row["key"] for row in rows] == ["e", "e"]
    assert json.loads(rows[0]["value"]) == {"event_id": "e", "subscription_id": 1, "score": None}
    ids = [
        {one["key"]: bytes(one["value"]).decode() for one in row["headers"]}["headgate-id"] for row in rows
    ]
    assert len(set(ids)) == 2
    assert all(one.startswith("KEY:4:") for one in ids)


def test_a_missing_connector_is_one_line(spark: SparkSession, tmp_path: Path) -> None:
    line = f"--conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}, which"
    with pytest.raises(MachineError) as caught:
        kafka.read_kafka(spark, settings("kafka://a:9092/events"))
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)
    sink = kafka.KafkaSink(spark, settings(output="kafka://a:9092/matches", state=str(tmp_path)))
    found = spark.createDataFrame([("e", 1)], "event_id string, subscription_id long")
    sink.prepare(0)
    note = sink.stage(found, 0)
    with pytest.raises(MachineError) as caught:
        sink.commit(0, note)
    assert line in str(caught.value)
    # What was not sent is still there for the next try.
    assert (tmp_path / "kafka-out" / note["folder"] / "_SUCCESS").exists()
    assert note["folder"].startswith("0-")
