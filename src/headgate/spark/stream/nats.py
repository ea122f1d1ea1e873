"""Matches to a NATS stream, each once, whatever dies meanwhile.

`write` stages the messages of a batch as files in the stream's state, and notes a random key of the batch and
where the NATS stream ended before any of them was published. `commit` publishes what is staged. The id of a
message is the key, the batch, the file and the row, so a second `commit` publishes under the same ids. Within
its window the server drops by itself what it has. Since a second `commit` may come after any time, it reads
first which ids the stream holds since the noted end, and publishes only the others.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import functions as sf

from headgate.brokers.nats.reading import Range
from headgate.brokers.nats.settings import FAIL, Template
from headgate.brokers.nats.stream import MESSAGE_ID, Outgoing, Stream
from headgate.core.machine import cores, force, naming
from headgate.errors import TableError
from headgate.runtime.state import damaged
from headgate.spark.session.session import spark_errors
from headgate.spark.stream.sinks import BrokerSink
from headgate.stream.sources.nats import DEFAULT, Nats, check_patience, check_stream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from headgate.brokers.nats.settings import NatsSettings
    from headgate.stream.batch import Note
    from headgate.stream.settings import StreamSettings

BATCH = "Headgate-Batch"
TYPE, JSON = "Content-Type", "application/json"

FEW = 20_000
"""Messages that the driver publishes by itself: a job would take longer to start."""

_VALUE = "value"
_ROWS = 5_000


class NatsSink(BrokerSink):
    """Matches to a NATS stream."""

    def __init__(self, session: SparkSession, settings: StreamSettings) -> None:
        super().__init__(session, Path(settings.state) / "nats-out")
        self._settings = Nats().read(settings, settings.output)
        self._template = Template(self._settings.subject or DEFAULT, self._settings.place)
        check_patience(self._settings)
        self._stream = Stream(self._settings)
        check_stream(self._stream, self._template)

    def close(self) -> None:
        """Hang up."""
        self._stream.close()

    def records(self, matches: DataFrame, key: str, batch: int) -> DataFrame:  # noqa: ARG002
        """Return messages, with the columns that their subjects are made of."""
        self._template.check(matches.columns, self._settings.place)
        texts = [sf.col(name).cast("string").alias(name) for name in self._template.fields]
        row = sf.to_json(sf.struct(*matches.columns), {"ignoreNullFields": "false"}).alias(_VALUE)
        return matches.select(row, *texts)

    def about(self, folder: Path, key: str) -> Note:
        """Note what is staged, and where the stream ends before it."""
        files = sorted(path.name for path in folder.glob("*.parquet"))
        rows = sum(pq.read_metadata(folder / name).num_rows for name in files)
        state = self._stream.state()
        sizes = [(folder / name).stat().st_size for name in files]
        staged = {"key": key, "files": files, "rows": rows, "bytes": sizes}
        return staged | {"end": state.end, "created": state.created}

    def send(self, folder: Path, batch: int, note: Note) -> None:
        """Publish what is staged and not yet in the stream."""
        for name, size in zip(note["files"], note.get("bytes", ()), strict=False):
            file = folder / name
            if not file.exists() or file.stat().st_size != size:
                raise damaged(file)
        begun = folder / "_begun"
        outbox = Outbox(self._settings, self._template.text, str(folder), batch, note, again=begun.exists())
        _mark(begun)
        if note["rows"] <= FEW:
            outbox.send(self._stream, note["files"])
        else:
            self._spread(outbox, note["files"])

    def _spread(self, outbox: Outbox, files: list[str]) -> None:
        parts = min(len(files), self._settings.partitions or max(cores(), 1))
        names = self._session.createDataFrame([(name,) for name in files], "name string")
        with spark_errors():
            names.repartition(parts).mapInArrow(outbox, "sent long").collect()


class Outbox:
    """Staged messages of one batch, ready to be published on the driver or by tasks."""

    def __init__(
        self,
        settings: NatsSettings,
        template: str,
        folder: str,
        batch: int,
        note: dict[str, Any],
        *,
        again: bool,
    ) -> None:
        self._settings = settings
        self._template = Template(template, settings.place)
        self._folder = Path(folder)
        self._note = note
        self._batch = str(batch)
        self._prefix = f"{note['key']}:{batch}:"
        self._again = again

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Publish the files that a task is given."""
        files = [str(name) for batch in batches for name in batch.column(0).to_pylist()]
        with Stream(self._settings) as stream:
            sent = self.send(stream, files)
        yield pa.RecordBatch.from_pydict({"sent": pa.array([sent], pa.int64())})

    def send(self, stream: Stream, files: list[str]) -> int:
        """Publish what the stream does not hold of some files; returns how many messages that were."""
        held = self._held(stream)
        sent = 0
        for name in files:
            for messages in self._messages(name):
                left = [one for one in messages if one.headers[MESSAGE_ID] not in held]
                if left:
                    stream.publish(left)
                    sent += len(left)
        return sent

    def _messages(self, name: str) -> Iterator[list[Outgoing]]:
        number, row = self._note["files"].index(name), 0
        with pq.ParquetFile(self._folder / name) as table:
            for batch in table.iter_batches(_ROWS):
                names = batch.schema.names
                messages = []
                for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    fields = dict(zip(names, values, strict=True))
                    headers = {MESSAGE_ID: f"{self._prefix}{number}:{row}", BATCH: self._batch, TYPE: JSON}
                    messages.append(Outgoing(self._template.fill(fields), fields[_VALUE].encode(), headers))
                    row += 1
                yield messages

    def _held(self, stream: Stream) -> set[str]:
        """Read which messages of this batch the stream holds, unless nothing was published before."""
        context = TaskContext.get()
        if not self._again and (context is None or context.attemptNumber() == 0):
            return set()
        state, end = stream.state(), int(self._note["end"])
        if state.created != self._note["created"] or state.end == end:
            return set()
        self._lost(state.end - end - stream.count(end))
        wanted = Range(end, state.end, self._template.pattern, bare=True)
        parts = stream.watched(wanted, state.created, lambda loss: self._lost(loss.most))
        headers = (one.headers or {} for part in parts for one in part)
        return {one[MESSAGE_ID] for one in headers if one.get(MESSAGE_ID, "").startswith(self._prefix)}

    def _lost(self, gone: int) -> None:
        if gone > 0 and self._settings.on_loss == FAIL:
            raise TableError(
                f"{self._settings.place}: {gone:,} messages are gone since batch {self._batch} was begun, "
                "so what of it was published cannot be told; on_loss=go-on publishes whatever is not there"
            )


def _mark(file: Path) -> None:
    """Leave a mark that is on the disk before anything else happens."""
    with naming(file):
        file.touch()
        force(file)
        force(file.parent)
