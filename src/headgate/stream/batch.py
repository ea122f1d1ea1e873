"""One batch, from what Spark gives to what readers see; called by Spark, again after a crash.

committed already? ── yes ─► nothing to do
      │ no
pinned already? ──── no ──► take in changes, pin the version, the clock and the watermark
      │ yes
ready already? ───── no ──► one Spark job: read, judge, match, stage ─► note the ids ─► ready
      │ yes
rename what is staged ─► committed

Matches go to a folder, for which workers write the files themselves (`Staging`), or to a `Sink`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from headgate.contents.registry import kind_of
from headgate.errors import TableError
from headgate.runtime.parts import PartFolder, Staged
from headgate.runtime.seen import SeenIds
from headgate.runtime.state import COMMITTED, PINNED, READY, RESTORE, STAGE
from headgate.runtime.statistics import WaitingStatistics
from headgate.stream.reading import SourceReading
from headgate.stream.rows import DEAD, EVENTS, PartReport, Survey
from headgate.stream.settings import KEEP, PARQUET, is_broker
from headgate.stream.worker import PartTask
from headgate.tables.places import leads_out, local
from headgate.tables.requests import check_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa

    from headgate.runtime.log import Subscriptions
    from headgate.runtime.state import Record, State
    from headgate.stream.reporting import StreamReporter
    from headgate.stream.settings import StreamSettings


Note = dict[str, Any]
"""What JSON can say."""


class Sink(Protocol):
    """A place for matches: rows with event_id and subscription_id, perhaps score and rank.

    A batch is prepared, written where nobody looks, and committed; any step may be repeated. Between
    `write` and `commit` the note is kept in the stream's state, so that `commit` is never given up.
    """

    def prepare(self, batch: int) -> None:
        """Drop what an attempt that did not commit has left."""

    def write(self, files: Sequence[Path], schema: pa.Schema, batch: int) -> Note:
        """Have the matches in files of Parquet at hand; may run Spark jobs. Returns what `commit` needs."""

    def commit(self, batch: int, note: Note) -> None:
        """Let others see them. Idempotent."""

    def close(self) -> None:
        """End what was opened."""


class Staging:
    """The folders of a stream, and what is staged there of the batch under way."""

    def __init__(self, settings: StreamSettings, state: State, schema: pa.Schema) -> None:
        self._state = state
        self.dead = PartFolder(settings.dead, settings.format, DEAD)
        self._files = not is_broker(settings.output)
        # For a broker they are read again by its sink, and gone when the batch is committed.
        self.matches = (
            PartFolder(settings.output, settings.format, schema)
            if self._files
            else PartFolder(str(state.staged), PARQUET)
        )
        self.matches_place = self.dead_place = state.staged

    def take_over(self) -> None:
        """Refuse to write where another stream has written, and to lose what is ready to be put in place."""
        record = self._state.under_way
        if record is not None and record[STAGE] == READY:
            for staged in self._staged(record):
                if staged.files and not staged.is_of(self._state.owner):
                    raise TableError(
                        f"batch {record['batch']} of state {self._state.root} is ready, and its files are in "
                        f"{staged.place}, which is gone or of another state: put {staged.folder} back, or "
                        "say with --output and --dead-letters where it is now"
                    )
        for folder in (self.dead, self.matches) if self._files else (self.dead,):
            folder.take_over(self._state.owner, fresh=self._state.fresh)

    def prepare(self, batch: int) -> None:
        """Make places for the tasks of a batch, and remove what other attempts have left."""
        self.matches_place, self.dead_place = self.matches.prepare(batch), self.dead.prepare(batch)

    def is_sound(self, record: Record) -> bool:
        """Tell whether the files of a batch that is ready are as they were written.

        If not, and none of them is in place, the batch can be done again.
        """
        staged = self._staged(record)
        damage = next(filter(None, (each.damage() for each in staged)), None)
        if damage is None:
            return True
        if not self._files or any(len(each.waiting()) < len(each.files) for each in staged):
            # Others may have read what is in place, and done again the batch may be cut in another way.
            raise TableError(f"batch {record['batch']} is ready, and {damage}: {RESTORE}")
        return False

    def commit(self, record: Record) -> list[str]:
        """Put the files of a batch in place; returns the folders, if they are not those of now."""
        here = {str(folder.path) for folder in (self.dead, self.matches)}
        elsewhere = []
        for staged in self._staged(record):
            staged.commit()
            if staged.files and staged.folder not in here:
                elsewhere.append(staged.folder)
        if not self._files:
            self.matches.sweep()
        return elsewhere

    def staged_files(self, names: list[str]) -> list[Path]:
        """Return where files of matches are that tasks have written."""
        return [self.matches_place / name for name in names]

    def _staged(self, record: Record) -> list[Staged]:
        """List what is staged of a batch: where it was staged, or where that folder was moved to."""
        notes = [(self.dead, record["dead"]), *([(self.matches, record["note"])] if self._files else ())]
        places = []
        for folder, note in notes:
            staged = Staged.of(note, record["batch"], folder.path)
            moved = staged._replace(folder=str(folder.path))
            places.append(moved if moved.place.is_dir() else staged)
        return places


_MICROS = 1_000_000
_LOOK = 0.2
"""Seconds between looks at whether the stream ends."""
_TRIES = 3


class StreamEnd(Exception):  # noqa: N818 -- it is no error
    """A batch is not begun, because the stream ends."""


Match = Callable[["PartTask", "Sequence[str]"], "Sequence[PartReport]"]
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
        task = PartTask(
            batch=number,
            at=record["at"],
            reading=self._reading,
            version=self._subscriptions.at(record["snapshot"], record["since"], record["version"]),
            question=self._settings.question,
            schema=self._schema,
            folder=str(staging.matches_place),
            form=staging.matches.form,
            dead_folder=str(staging.dead_place),
            dead_form=staging.dead.form,
            watermark=record["watermark"],
            seen=None if window is None else self._seen.paths(),
            oldest=0 if window is None else int(record["at"] / _MICROS - window),
            counts=self.statistics is not None,
            struck=struck,
        )
        reports = match(task, self._files(number))
        self._spent["job"] = self._spent.get("job", 0.0) + time.monotonic() - before
        return Survey(reports)

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


def _reading(settings: StreamSettings, subscriptions: Subscriptions) -> SourceReading:
    content = subscriptions.content
    kind = kind_of(content)
    named = check_type(settings.content_type, kind) if kind.documents else None
    folder = None if is_broker(settings.events) else str(local(settings.events).absolute())
    return SourceReading(content, named, settings.time, folder, subscriptions.mark)


def check_removed(paths: Iterable[str], settings: StreamSettings) -> None:
    """Refuse files behind a link to a folder elsewhere, if they are to be removed when the batch is done."""
    if settings.finished == KEEP:
        return
    for folder in sorted({Path(path).parent for path in paths}):
        if leads_out(folder, settings.events):
            raise TableError(
                f"{folder} lies behind a link that leads out of {settings.events}, and finished is "
                f"{settings.finished!r}: remove the link, so that nothing is removed there"
            )
