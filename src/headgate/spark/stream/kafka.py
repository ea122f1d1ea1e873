"""Kafka through Spark's own connector: `kafka://host:9092/topic?option=value`.

The connector is not part of the pyspark package; Spark fetches it when it starts with `spark.jars.packages`.
Options after the `?`, and those of the settings, go to it as they are. Events come with Spark's guarantees.
Matches go out at least once: a batch whose commit was cut short is published again, and every record carries
an id by which those who read can drop what they have.
"""

from __future__ import annotations

import shutil
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from headgate.core.machine import force, force_all
from headgate.errors import MachineError, TableError
from headgate.spark.session.session import spark_errors
from headgate.stream.columns import ARRIVED, CONTENT_TYPE, ORIGIN, VALUE
from headgate.stream.settings import Topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

    from headgate.stream.settings import StreamSettings

FORMAT = "kafka"
PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13"
SERVERS = "kafka.bootstrap.servers"
ID = "headgate-id"
"""The header by which a record that comes twice is known."""

_TYPES = ("content-type", "ce_datacontenttype", "ce-datacontenttype")


def read_kafka(session: SparkSession, settings: StreamSettings) -> DataFrame:
    """Read the topic that `settings.events` names."""
    with connector(session):
        table = session.readStream.format(FORMAT).options(**source_options(settings)).load()
    return as_events(table)


def source_options(settings: StreamSettings) -> dict[str, str]:
    """Return what Spark's connector is told about the source."""
    topic = Topic.of(settings.events, settings.options)
    ours = {SERVERS: topic.servers, "subscribe": topic.name, "startingOffsets": "earliest"}
    if settings.max_rows is not None:
        ours["maxOffsetsPerTrigger"] = str(settings.max_rows)
    # Headers say what a document is.
    return {**ours, **topic.options, "includeHeaders": "true"}


def sink_options(settings: StreamSettings) -> dict[str, str]:
    """Return what Spark's connector is told about the sink."""
    topic = Topic.of(settings.output, settings.options)
    return {SERVERS: topic.servers, "topic": topic.name, **topic.options}


def as_events(table: DataFrame) -> DataFrame:
    """Make the connector's columns ours."""
    named = ", ".join(f"'{name}'" for name in _TYPES)
    header = sf.expr(f"try_element_at(filter(headers, h -> lower(h.key) IN ({named})), 1).value")
    origin = sf.concat_ws("/", "topic", sf.col("partition").cast("string"), sf.col("offset").cast("string"))
    return table.select(
        sf.col("value").alias(VALUE),
        header.cast("string").alias(CONTENT_TYPE),
        origin.alias(ORIGIN),
        sf.col("timestamp").alias(ARRIVED),
    )


def as_records(found: DataFrame, key: str, batch: int) -> DataFrame:
    """Make the connector's columns of matches: all of an event have one key, so they stay in order."""
    number = sf.concat(sf.lit(f"{key}:{batch}:"), sf.monotonically_increasing_id().cast("string"))
    headers = sf.array(_header(ID, number), _header("content-type", sf.lit("application/json")))
    row = sf.to_json(sf.struct(*found.columns), {"ignoreNullFields": "false"})
    return found.select(
        sf.col("event_id").cast("string").alias("key"), row.alias("value"), headers.alias("headers")
    )


def _header(name: str, value: Column) -> Column:
    return sf.struct(sf.lit(name).alias("key"), sf.encode(value, "utf-8").alias("value"))


class KafkaSink:
    """A sink after the protocol of `sinks`: files are staged, so that a repeated commit sends the same."""

    def __init__(self, session: SparkSession, settings: StreamSettings) -> None:
        self._session = session
        self._options = sink_options(settings)
        self._folder = Path(settings.state).absolute() / "kafka-out"

    def close(self) -> None:
        """Do nothing: the connector holds what it opened."""

    def prepare(self, batch: int) -> None:  # noqa: ARG002
        """Drop what was staged and never promised."""
        for place in self._folder.glob("[0-9]*"):
            shutil.rmtree(place, ignore_errors=True)

    def write(self, found: DataFrame, batch: int) -> dict[str, Any]:
        """Stage the records of a batch, with their ids."""
        # A place that no other attempt has: a job of a driver that was killed may go on for a while.
        key = uuid.uuid4().hex
        folder = self._folder / f"{batch}-{key}"
        with spark_errors():
            as_records(found, key, batch).write.mode("overwrite").parquet(str(folder))
        force_all(folder)
        force(self._folder)
        return {"folder": folder.name}

    def commit(self, batch: int, note: dict[str, Any]) -> None:
        """Send what is staged; all of it again if it was cut short."""
        folder = self._folder / note.get("folder", str(batch))
        sent = folder.with_name(f"{folder.name}-sent")
        if folder.exists():
            with connector(self._session), spark_errors():
                self._session.read.parquet(str(folder)).write.format(FORMAT).options(**self._options).save()
            shutil.rmtree(sent, ignore_errors=True)
            folder.rename(sent)
        shutil.rmtree(sent, ignore_errors=True)


@contextmanager
def connector(session: SparkSession) -> Iterator[None]:
    """Say how to get the connector where Spark says that there is none."""
    try:
        yield
    except (AnalysisException, TableError) as error:
        text = str(error)
        if FORMAT not in text or "find" not in text.lower():
            raise
        raise MachineError(
            "Spark's Kafka connector is not there: add "
            f"--conf spark.jars.packages={PACKAGE}:{session.version}, which fetches it when Spark starts"
        ) from error
