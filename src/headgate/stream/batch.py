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
from collections.abc import Callable
from typing import TYPE_CHECKING

from headgate.contents.registry import kind_of
from headgate.errors import TableError
from headgate.runtime.seen import SeenIds
from headgate.runtime.state import COMMITTED, PINNED, READY, STAGE
from headgate.runtime.statistics import WaitingStatistics
from headgate.stream.reading import ReadSettings
from headgate.stream.rows import EVENTS, PartReport, Survey
from headgate.stream.settings import is_broker
from headgate.stream.sources.files import check_removed
from headgate.stream.staging import Staging
from headgate.stream.worker import Task
from headgate.tables.places import local
from headgate.tables.requests import check_type

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from headgate.runtime.log import Subscriptions
    from headgate.runtime.state import Record, State
    from headgate.stream.reporting import StreamReporter
    from headgate.stream.settings import StreamSettings
    from headgate.stream.sinks import Note, Sink

_MICROS = 1_000_000
_LOOK = 0.2
"""Seconds between looks at whether the stream ends."""
_TRIES = 3


class StreamEnd(Exception):  # noqa: N818 -- it is no error
    """A batch is not begun, because the stream ends."""


Match = Callable[["Task", "Sequence[str]"], "Sequence[PartReport]"]
"""Matches the rows of a batch, wherever they are, part by part; returns what each part tells. It is given the
names of all files that the batch has, too."""


class Batches:
    """What is needed to do batches, one after the other."""

    def __init__(
        self,
        settings: StreamSettings,
        state: State,
        subscriptions: Subscriptions,
        sink: Sink | None,
        schema: pa.Schema,
        telling: StreamReporter,
    ) -> None:
        """Take what is open; `schema` is that of matches."""
        self._settings = settings
        self._state = state
        self._subscriptions = subscriptions
        self._sink = sink
        self._staging = Staging(settings, state, schema)
        self._schema = schema
        self._seen = SeenIds(state.seen, -1 if state.last is None else int(state.last["batch"]))
        self._reading = _reading(settings, subscriptions)
        self._telling = telling
        self.statistics: WaitingStatistics | None = None
        if settings.stats is not None:
            self.statistics = WaitingStatistics(local(settings.stats), lambda: subscriptions.ids)
        self.under_way = threading.Lock()
        """Held while a batch is done: whoever ends the stream waits for it."""
        self.ending = False
        """Set by whoever ends the stream: no batch is begun any more."""
        self.failure: BaseException | None = None
        """What ended a batch that Spark gave."""
        self._arrivals: list[tuple[float, int]] = []
        self._spent: dict[str, float] = {}
        self._counted: list[bytes] = []

    def take_over(self) -> None:
        """Refuse to write where another stream has written, and to lose what is ready."""
        self._staging.take_over()

    def __call__(self, match: Match, number: int) -> None:
        """Do a batch that Spark gives."""
        try:
            self._call(match, number)
        except BaseException as error:
            # Spark hands on its text alone.
            self.failure = error
            raise

    def _call(self, match: Match, number: int) -> None:
        # Not `with`: whoever ends the stream holds it and waits for us, and Spark cannot be told to give up.
        while not self.under_way.acquire(timeout=_LOOK):
            if self.ending:
                raise StreamEnd
        try:
            if self.ending:
                # Not passed over, which Spark would take for done.
                raise StreamEnd
            self.do(match, number)
        finally:
            self.under_way.release()

    def do(self, match: Match, number: int) -> None:
        """Do a batch, or what is left to do of it."""
        begun = time.monotonic()
        record, offsets = self._state.batch(number), self._state.rows_of(number)
        if record is not None and record.get("rows", offsets) != offsets:
            raise TableError(
                f"batch {number} of state {self._state.root} was done with other rows than Spark's "
                "checkpoint has now: restore both from one copy, or start with a new state and new outputs"
            )
        if record is not None and record[STAGE] == COMMITTED:
            return
        self._arrivals, self._spent, self._counted = [], {}, []
        if record is None:
            record = self._state.put(number, {**self._pinned(), **self._taken(number), "rows": offsets})
            self._spent["pin"] = time.monotonic() - begun
        if record[STAGE] == READY and not self._staging.is_sound(record):
            record = {**record, STAGE: PINNED}
        if record[STAGE] == PINNED:
            record = self._worked(match, number, record)
        before = time.monotonic()
        self._commit(number, record)
        record = self._state.put(number, {**record, STAGE: COMMITTED})
        if self.statistics is not None and self._counted:
            self.statistics.add(self._counted, record["counts"][EVENTS])
        self._after(number, record)
        self._spent |= {"commit": time.monotonic() - before, "batch": time.monotonic() - begun}
        self._telling.batch(record, self._arrivals, self._spent)
        self._telling.now_and_then(number, self._subscriptions)

    def _taken(self, number: int) -> Record:
        """Note how many files of events are taken with this batch, to be compared with Spark's notes."""
        return {} if is_broker(self._settings.events) else {"known": self._state.known(number)}

    def _commit(self, number: int, record: Record) -> None:
        """Put the files of a batch in place, or publish them."""
        if self._sink is not None:
            self._sink.commit(number, record["note"])
        for folder in self._staging.commit(record):
            self._telling.say(
                f"batch {number} was ready for {folder} and is put there; what comes now goes to "
                f"{self._settings.output}"
            )

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

    def _worked(self, match: Match, number: int, record: Record) -> Record:
        """Read, judge and match; what comes of it is staged."""
        check_removed(self._files(number), self._settings)
        survey = self._surveyed(match, number, record)
        before = time.monotonic()
        note = self._written(number, survey)
        dead = self._staging.dead.ready(self._staging.dead_place, survey.dead_files)
        if self._settings.window is not None:
            self._seen.note(number, survey.hashes, record["at"] // _MICROS)
        times = [time for time in (record["newest"], survey.newest) if time is not None]
        self._arrivals, self._counted = survey.arrivals, survey.statistics
        self._spent["write"] = time.monotonic() - before
        self._spent |= survey.seconds
        return self._state.put(
            number,
            {
                **record,
                STAGE: READY,
                "newest": max(times, default=None),
                "note": note,
                "dead": dead.note,
                "counts": survey.counts,
                "origins": survey.origins,
            },
        )

    def _surveyed(self, match: Match, number: int, record: Record) -> Survey:
        """Match each event once, also those of which two parts have one: only the driver can see that."""
        by_name = not is_broker(self._settings.events)
        for _ in range(_TRIES):
            survey = self._match(match, number, record, None)
            struck = {} if self._settings.window is None else survey.repeated(by_name=by_name)
            if not struck:
                return survey
            survey = self._match(match, number, record, struck)
            # The source is read again for it, and may have lost something meanwhile.
            if survey.has_once(mark for marks in struck.values() for mark in marks):
                return survey
        raise TableError(
            f"batch {number}: the source gave other rows each of {_TRIES} times that it was read; run the "
            "stream again when nothing is removed from it"
        )

    def _match(
        self, match: Match, number: int, record: Record, struck: Mapping[int, frozenset[int]] | None
    ) -> Survey:
        before = time.monotonic()
        window = self._settings.window
        if self._sink is not None:
            self._sink.prepare(number)
        staging = self._staging
        staging.prepare(number)
        task = Task(
            batch=number,
            at=record["at"],
            reading=self._reading,
            version=self._subscriptions.at(record["snapshot"], record["since"], record["version"]),
            top=self._settings.best,
            schema=self._schema,
            folder=str(staging.matches_place),
            form=staging.matches.form,
            dead_folder=str(staging.dead_place),
            dead_form=staging.dead.form,
            watermark=record["watermark"],
            seen=None if window is None else self._seen.paths(),
            oldest=0 if window is None else int(record["at"] / _MICROS - window),
            counts=self.statistics is not None,
            results=self._settings.limit,
            struck=struck,
        )
        found = match(task, self._files(number))
        self._spent["job"] = self._spent.get("job", 0.0) + time.monotonic() - before
        return Survey(found)

    def _files(self, number: int) -> list[str]:
        return [] if is_broker(self._settings.events) else self._state.files(number)

    def _written(self, number: int, survey: Survey) -> Note:
        files = survey.files
        if self._sink is None:
            return self._staging.matches.ready(self._staging.matches_place, files).note
        return self._sink.write(self._staging.staged_files(files), self._schema, number)

    def _after(self, number: int, record: Record) -> None:
        """Forget what no batch needs any more."""
        window = self._settings.window
        if window is not None:
            at = record["at"] // _MICROS
            self._seen.add(number, at, int(record["at"] / _MICROS - window))
        if number % 16 == 0:
            self._state.forget(number - self._settings.keep + 1)
            self._subscriptions.forget()


def _reading(settings: StreamSettings, subscriptions: Subscriptions) -> ReadSettings:
    content = subscriptions.content
    kind = kind_of(content)
    named = check_type(settings.content_type, kind) if kind.documents else None
    folder = None if is_broker(settings.events) else str(local(settings.events).absolute())
    return ReadSettings(content, named, settings.time, folder, subscriptions.mark)
