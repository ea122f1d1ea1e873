"""Where matches of a stream on Spark go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.stream.settings import KAFKA, NATS
from headgate.stream.sinks import FileSink

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from headgate.stream.settings import StreamSettings
    from headgate.stream.sinks import Sink


def open_sink(session: SparkSession, settings: StreamSettings, schema: pa.Schema) -> Sink | FileSink:
    """Open the sink that the settings name; `schema` is that of matches."""
    if settings.output.startswith(NATS):
        from headgate.spark.nats.sink import NatsSink

        return NatsSink(session, settings)
    if settings.output.startswith(KAFKA):
        from headgate.spark.stream.kafka import KafkaSink

        return KafkaSink(session, settings)
    return FileSink(settings.output, settings.format, schema)
