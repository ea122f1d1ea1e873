"""One batch, from what Spark gives to what readers see; called by Spark, again after a crash.

committed already? ── yes ─► nothing to do
      │ no
pinned already? ──── no ──► take in changes, pin the version, the clock and the watermark
      │ yes
ready already? ───── no ──► one Spark job: read, judge, match, stage ─► note the ids ─► ready
      │ yes
rename what is staged ─► committed
"""

from __future__ import annotations

import threading
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.spark.streaming import rows as told
from headgate.spark.streaming.file_sink import FileSink
from headgate.spark.streaming.parts import PartFolder
from headgate.spark.streaming.rows import DEAD, SUMMARY_DDL
from headgate.spark.streaming.settings import PARQUET
from headgate.spark.streaming.state import COMMITTED, PINNED, READY, STAGE
from headgate.spark.streaming.survey import Survey
from headgate.spark.streaming.worker import Task, match_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from headgate.spark.streaming.log import Subscriptions
    from headgate.spark.streaming.reading import Reading
    from headgate.spark.streaming.seen import Seen
    from headgate.spark.streaming.settings import StreamSettings
    from headgate.spark.streaming.sinks import Note, Sink
    from headgate.spark.streaming.state import Record, State
    from headgate.spark.streaming.telling import Telling

_MICROS = 1_000_000


class Batches:
    """What is needed to do batches, one after the other."""

    def __init__(
        self,
        settings: StreamSettings,
        state: State,
        subscriptions: Subscriptions,
        sink: Sink | FileSink,
        seen: Seen,
        reading: Reading,
        telling: Telling,
        *,
        numbered: bool,
    ) -> None:
        self._settings = settings
        self._state = state
        self._subscriptions = subscriptions
        self._sink = sink
        self._dead = PartFolder(settings.dead, settings.format, DEAD)
        self._seen = seen
        self._reading = reading
        self._telling = telling
        self._numbered = numbered
        self.under_way = threading.Lock()
        """Held while a batch is done: whoever ends the stream waits for it."""
        self._arrivals: list[tuple[float, int]] = []
        self._spent: dict[str, float] = {}

    def __call__(self, rows: DataFrame, number: int) -> None:
        """Do a batch, or what is left to do of it."""
        with self.under_way:
            self._do(rows, number)

    def _do(self, rows: DataFrame, number: int) -> None:
        begun = time.monotonic()
        record = self._state.batch(number)
        if record is not None and record[STAGE] == COMMITTED:
            return
        self._arrivals, self._spent = [], {}
        if record is None:
            record = self._state.put(number, self._pinned())
            self._spent["pin"] = time.monotonic() - begun
        if record[STAGE] == PINNED:
            record = self._worked(rows, number, record)
        before = time.monotonic()
        self._sink.commit(number, record["note"])
        self._dead.commit(number, record["dead"])
        record = self._state.put(number, {**record, STAGE: COMMITTED})
        self._after(number, record)
        self._spent |= {"commit": time.monotonic() - before, "batch": time.monotonic() - begun}
        self._telling.batch(record, self._arrivals, self._spent)
        self._telling.now_and_then(number, self._subscriptions)

    def _pinned(self) -> Record:
        """Decide what a batch uses, once and for all."""
        newest = None if self._state.last is None else self._state.last["newest"]
        late = self._settings.lateness
        return {
            STAGE: PINNED,
            **self._subscriptions.pin(),
            "at": int(time.time() * _MICROS),
            "watermark": None if late is None or newest is None else int(newest - late * _MICROS),
            "newest": newest,
        }

    def _worked(self, rows: DataFrame, number: int, record: Record) -> Record:
        """Read, judge and match; what comes of it is staged."""
        survey = self._match(rows, number, record, None)
        if self._settings.window is not None and (struck := survey.repeated()):
            # Two parts have the same id, which only the driver can see. Once more, without the second ones.
            survey = self._match(rows, number, record, struck)
        before = time.monotonic()
        note = self._written(rows, number, survey)
        if self._settings.window is not None:
            self._seen.note(number, survey.hashes, record["at"] // _MICROS)
        times = [time for time in (record["newest"], survey.newest) if time is not None]
        self._arrivals = survey.arrivals
        self._spent["write"] = time.monotonic() - before
        for step in (told.READING, told.MATCHING):
            self._spent[step] = survey.seconds(step)
        return self._state.put(
            number,
            {
                **record,
                STAGE: READY,
                "newest": max(times, default=None),
                "note": note,
                "dead": survey.files(told.DEAD_FILE),
                "counts": survey.counts,
                "origins": survey.origins,
            },
        )

    def _match(
        self, rows: DataFrame, number: int, record: Record, struck: Mapping[int, frozenset[int]] | None
    ) -> Survey:
        before = time.monotonic()
        window = self._settings.window
        if isinstance(self._sink, FileSink):
            folder, form = self._sink.folder.prepare(number), self._sink.folder.form
        else:
            self._sink.prepare(number)
            folder, form = self._broker_parts.prepare(number), PARQUET
        task = Task(
            batch=number,
            at=record["at"],
            reading=self._reading,
            version=self._subscriptions.at(record["snapshot"], record["since"], record["version"]),
            top=self._settings.best,
            numbered=self._numbered,
            folder=str(folder),
            form=form,
            dead_folder=str(self._dead.prepare(number)),
            dead_form=self._dead.form,
            watermark=record["watermark"],
            seen=None if window is None else self._seen.paths(),
            oldest=0 if window is None else int(record["at"] / _MICROS - window),
            struck=struck,
        )
        found = rows.mapInArrow(partial(match_part, task=task), SUMMARY_DDL).collect()
        self._spent["job"] = self._spent.get("job", 0.0) + time.monotonic() - before
        return Survey(found)

    @property
    def _broker_parts(self) -> PartFolder:
        return PartFolder(str(self._state.staged), PARQUET)

    def _written(self, rows: DataFrame, number: int, survey: Survey) -> Note:
        files = survey.files(told.FILE)
        if isinstance(self._sink, FileSink):
            return self._sink.take(files)
        folder = self._broker_parts.staged(number)
        session = rows.sparkSession
        if files:
            found = session.read.parquet(*(f"file://{Path(folder) / name}" for name in files))
        else:
            found = session.createDataFrame([], self._ddl)
        return self._sink.write(found, number)

    @property
    def _ddl(self) -> str:
        ranked = ", score double, rank int" if self._settings.best is not None else ""
        return f"event_id string, subscription_id {'long' if self._numbered else 'string'}{ranked}"

    def _after(self, number: int, record: Record) -> None:
        """Forget what no batch needs any more."""
        if not isinstance(self._sink, FileSink):
            self._broker_parts.drop(number)
        window = self._settings.window
        if window is not None:
            at = record["at"] // _MICROS
            self._seen.add(number, at, int(record["at"] / _MICROS - window))
        if number % 16 == 0:
            self._state.forget(number - self._settings.keep + 1)
            self._subscriptions.forget()
