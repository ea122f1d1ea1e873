"""Where matches of a stream on Spark go: to files that tasks write themselves, or to a broker.

For a broker the records of a batch are staged once more, as they are sent: `write` decides all about them, so
that a `commit` that is repeated sends the same.
"""

from __future__ import annotations

import shutil
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from pyspark.sql.pandas.types import from_arrow_schema

from headgate.core.machine import force, force_all
from headgate.spark.session.session import spark_errors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from headgate.stream.batch import Note, Sink
    from headgate.stream.settings import StreamSettings


def open_sink(session: SparkSession, settings: StreamSettings) -> Sink | None:
    """Open the sink that the settings name, if it is no folder."""
    from headgate.spark.stream.kafka import KafkaSink
    from headgate.spark.stream.nats import NatsSink

    for scheme, sink in (("nats://", NatsSink), ("kafka://", KafkaSink)):
        if settings.output.startswith(scheme):
            return sink(session, settings)
    return None


class BrokerSink(ABC):
    """A sink after the protocol of `stream/batch.py`, with a folder for what is staged."""

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self._folder = folder.absolute()

    @abstractmethod
    def records(self, matches: DataFrame, key: str, batch: int) -> DataFrame:
        """Return what is sent of matches."""

    @abstractmethod
    def send(self, folder: Path, batch: int, note: Note) -> None:
        """Send what is staged in a folder."""

    def about(self, folder: Path, key: str) -> Note:  # noqa: ARG002
        """Return what `send` must know of a folder that was staged."""
        return {}

    def close(self) -> None:  # noqa: B027 -- most have nothing open
        """End what was opened."""

    def prepare(self, batch: int) -> None:  # noqa: ARG002
        """Drop what was staged and never promised."""
        for staged in self._folder.glob("[0-9]*"):
            shutil.rmtree(staged, ignore_errors=True)

    def write(self, files: Sequence[Path], schema: pa.Schema, batch: int) -> Note:
        """Stage the matches in files of tasks."""
        session = self._session
        if files:
            return self.stage(session.read.parquet(*(f"file://{file}" for file in files)), batch)
        return self.stage(session.createDataFrame([], from_arrow_schema(schema)), batch)

    def stage(self, matches: DataFrame, batch: int) -> Note:
        """Stage matches."""
        # A place that no other attempt has: a job of a driver that was killed may go on for a while.
        key = uuid.uuid4().hex
        folder = self._folder / f"{batch}-{key}"
        with spark_errors():
            self.records(matches, key, batch).write.mode("overwrite").parquet(str(folder))
        force_all(folder)
        force(self._folder)
        return {"folder": folder.name, **self.about(folder, key)}

    def commit(self, batch: int, note: Note) -> None:
        """Send what is staged, unless that was done."""
        folder = self._folder / note.get("folder", str(batch))
        sent = folder.with_name(f"{folder.name}-sent")
        if folder.exists():
            self.send(folder, batch, note)
            # First under another name: a folder that is there has all its files.
            shutil.rmtree(sent, ignore_errors=True)
            folder.rename(sent)
        shutil.rmtree(sent, ignore_errors=True)
