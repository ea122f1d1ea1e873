"""Hear from Structured Streaming how each micro-batch went, and put it into metrics."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.listener import (
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
        StreamingQueryProgress,
    )

    from headgate.spark.session.metrics import Metrics


class StreamMeter(StreamingQueryListener):
    """Set gauges from the progress of queries: rates, phases, and what the query itself observes.

    Events and matches are not counted here: a batch may be told twice, and is committed once.
    """

    def __init__(self, metrics: Metrics) -> None:
        self.metrics = metrics
        self.batches = 0
        self.troubles: list[str] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 -- Spark's name
        """Nothing is known yet."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802, ARG002 -- Spark's
        """Nothing comes in any more."""
        self.metrics.gauge("headgate_input_rows_per_second", 0)
        self.metrics.gauge("headgate_processed_rows_per_second", 0)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 -- Spark's name
        """Take in what a micro-batch did."""
        try:
            self.take(event.progress)
        except Exception as error:  # noqa: BLE001 -- told at the end: raised, it would go to Spark's log only
            self.troubles.append(f"progress could not be read: {type(error).__name__}: {error}")

    def take(self, progress: StreamingQueryProgress) -> None:
        """Take in the progress of one micro-batch."""
        self.batches += 1
        self.metrics.gauge("headgate_input_rows_per_second", _rate(progress.inputRowsPerSecond))
        self.metrics.gauge("headgate_processed_rows_per_second", _rate(progress.processedRowsPerSecond))
        for phase, milliseconds in progress.durationMs.items():
            self.metrics.gauge("headgate_phase_seconds", milliseconds / 1000, phase=phase)
        for query, row in progress.observedMetrics.items():
            for name, value in row.asDict().items():
                if isinstance(value, int | float):
                    self.metrics.gauge("headgate_observed", value, name=f"{query}.{name}")


@contextmanager
def metering(session: SparkSession, metrics: Metrics) -> Iterator[StreamMeter]:
    """Feed metrics from all queries of a session while the body runs."""
    meter = StreamMeter(metrics)
    session.streams.addListener(meter)
    try:
        yield meter
    finally:
        session.streams.removeListener(meter)
        if meter.troubles:
            print(f"listening to Spark: {meter.troubles[0]}", file=sys.stderr, flush=True)


def _rate(rate: Any) -> float:
    """Return a rate; the first one of a query has no time to be divided by."""
    return float(rate) if isinstance(rate, int | float) and isfinite(rate) else 0.0
