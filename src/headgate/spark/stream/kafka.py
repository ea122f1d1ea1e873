"""Kafka through Spark's own connector: `kafka://host:9092/topic?option=value`.

The connector is not part of the pyspark package; Spark fetches it when it starts with `spark.jars.packages`.
Options after the `?`, and those of the settings, go to it as they are. Events come with Spark's guarantees.
Matches go out at least once: a batch whose commit was cut short is published again, and every record carries
an id by which those who read can drop what they have.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as sf

from headgate.errors import MachineError, TableError
from headgate.spark.session.session import spark_errors
from headgate.spark.stream.sinks import BrokerSink
from headgate.stream.sources.kafka import Topic
from headgate.stream.sources.logs import ARRIVED, CONTENT_TYPE, ORIGIN, VALUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame, SparkSession

    from headgate.stream.batch import Note
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


def as_records(matches: DataFrame, key: str, batch: int) -> DataFrame:
    """Make the connector's columns of matches: all of an event have one key, so they stay in order."""
    number = sf.concat(sf.lit(f"{key}:{batch}:"), sf.monotonically_increasing_id().cast("string"))
    headers = sf.array(_header(ID, number), _header("content-type", sf.lit("application/json")))
    row = sf.to_json(sf.struct(*matches.columns), {"ignoreNullFields": "false"})
    return matches.select(
        sf.col("event_id").cast("string").alias("key"), row.alias("value"), headers.alias("headers")
    )


def _header(name: str, value: Column) -> Column:
    return sf.struct(sf.lit(name).alias("key"), sf.encode(value, "utf-8").alias("value"))


class KafkaSink(BrokerSink):
    """Matches to a topic, at least once: all of a batch is sent again if its commit was cut short."""

    def __init__(self, session: SparkSession, settings: StreamSettings) -> None:
        super().__init__(session, Path(settings.state) / "kafka-out")
        self._options = sink_options(settings)

    def records(self, matches: DataFrame, key: str, batch: int) -> DataFrame:
        """Return the connector's columns, with ids."""
        return as_records(matches, key, batch)

    def send(self, folder: Path, batch: int, note: Note) -> None:  # noqa: ARG002
        """Send all of it."""
        with connector(self._session), spark_errors():
            self._session.read.parquet(str(folder)).write.format(FORMAT).options(**self._options).save()


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
