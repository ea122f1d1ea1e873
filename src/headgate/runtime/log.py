"""The subscriptions of a stream: a snapshot, and a log of changes since, in versions.

    poll       take what has come from the source of changes; what is sound becomes the next version
    pin        say which version a batch uses
    fold       make a new snapshot of the old one and the log so far, aside, when the log has grown long
    replace    go over to what `compile` has put in the snapshot's place, and take the changes that it lacks

A snapshot says up to which position of the source it contains changes; if it says nothing, it contains none.
The subscriptions are those of the snapshot with all later changes, whoever has put it there and when.

A version is written with the position of the source after it, at once: no change is lost or taken twice.
Changes that are refused go to a table, with the reason, named by the version in which they came.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from headgate.contents.registry import content_at, kind_at
from headgate.core.machine import put_file
from headgate.core.snapshot import digest_of, manifest_of
from headgate.core.versions.stores import is_stored, located, title_of
from headgate.errors import HeadgateError, SnapshotError, SubscriptionError, TableError
from headgate.runtime.engines import Runtime
from headgate.runtime.operations import read_change, typed
from headgate.runtime.parts import PartFolder, PartWriter
from headgate.runtime.questions import check_snapshot
from headgate.runtime.rows import read_line
from headgate.runtime.snapshots import (
    Snapshots,
    Version,
    catch_up,
    default_dialect,
    read_head,
    segment,
    stamp_of,
)
from headgate.runtime.state import RESTORE, read_record, write_record

if TYPE_CHECKING:
    from headgate.core.ids import Ids
    from headgate.engine.question import Question
    from headgate.runtime.changes import Change, Changes
    from headgate.runtime.state import State

_REFUSED: dict[str, pa.DataType] = {
    "row": pa.string(),
    "reason": pa.string(),
    "origin": pa.string(),
    "version": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
}
REFUSED = pa.schema(_REFUSED)
_WARNING = "headgate: warning:"
_LOOK = 5.0
"""Seconds between looks at a snapshot in an object store."""
_BEGIN = "changes_begin"
"""Under what the state has the position where the stream began to take changes."""


class _Base(NamedTuple):
    """The snapshot in use."""

    snapshot: str
    """Its digest."""
    since: int
    """The version of the log that it holds."""
    given: str
    """The digest of the snapshot that it came from."""
    adopted: float
    """When that was taken, in seconds."""


class LogSettings(Protocol):
    """What a log must be told."""

    @property
    def snapshot(self) -> str:
        """Name the snapshot to begin with."""

    @property
    def question(self) -> Question:
        """Return what is asked of events, which snapshots must be able to answer."""

    @property
    def fold(self) -> int:
        """Return after how many changes a new snapshot is made."""

    @property
    def rejected(self) -> str:
        """Name the folder of changes that were refused."""

    @property
    def format(self) -> str:
        """Return the format of its files."""


class Subscriptions:
    """The driver's side: one thread at a time may ask for the next version."""

    def __init__(self, settings: LogSettings, state: State, changes: Changes | None) -> None:
        self._settings = settings
        self._state = state
        self._snapshots = Snapshots(state.snapshots)
        snapshot = settings.snapshot
        self._given = snapshot if is_stored(snapshot) else str(Path(snapshot).absolute())
        self._stamp = stamp_of(self._given)
        self._looked = time.monotonic()
        self._warned = ""
        self._lock = threading.RLock()
        self._folding: threading.Thread | None = None
        self._folded: _Base | None = None
        self._failure: BaseException | None = None
        self.changes = changes
        self._refused = None
        if self.changes is not None:
            self._check_source(self.changes.source)
            self._refused = PartFolder(settings.rejected, settings.format, REFUSED)
        self.version, self._position = self._last()
        self._base = self._first()
        self._pieces = self._opened()
        self._logged = self._count_logged()
        self.accepted = self.refused = 0
        """Changes of this run."""
        self.operations: Counter[str] = Counter()
        """Those that were accepted, by what they do."""

    def _check_source(self, source: str) -> None:
        """Refuse another kind of source than before: its positions mean something else."""
        known = self._state.fixed("changes", source)
        if known != source:
            raise TableError(
                f"state {self._state.root} is of a stream that took changes from {known}, and not from "
                f"{source}: name a place of that kind, or start with a new state"
            )

    def take_over(self) -> None:
        """Refuse to write where another stream has written."""
        if self._refused is not None:
            self._refused.take_over(self._state.owner, fresh=self._state.fresh)

    def _last(self) -> tuple[int, str | None]:
        """Find the last version, and the position of the source after it."""
        files = sorted(self._state.log.glob("[0-9]*.jsonl"))
        base = read_record(self._state.root / "base.json") or {}
        since = int(base.get("since", 0))
        if not files or int(files[-1].stem) <= since:
            # The snapshot in use may contain less than the last version, which was of another one.
            return since, base.get("position")
        version = int(files[-1].stem)
        return version, read_head(self._state.log, version)["position"]

    def _first(self) -> _Base:
        record = read_record(self._state.root / "base.json")
        if record is not None:
            self._stamp = None
            return _Base(*(record[name] for name in _Base._fields))
        digest = self._snapshots.adopt(self._given)
        self._position = self._contained(digest)
        return self._put(self._adopted(digest))

    def _contained(self, digest: str) -> str | None:
        """Return the position up to which a snapshot contains changes; None for the beginning."""
        noted = manifest_of(self._snapshots.place(digest)).get("changes")
        if noted is None:
            begin: str | None = self._state.fixed(_BEGIN, None) if self._position is not None else None
            return begin
        if self.changes is not None and noted["source"] != self.changes.source:
            raise SnapshotError(
                f"snapshot {title_of(self._given)} contains changes of {noted['source']}, and this stream "
                f"takes them from {self.changes.source}: compile it with --changes and the place that the "
                "stream has"
            )
        return str(noted["position"])

    def _adopted(self, digest: str) -> _Base:
        return _Base(digest, self.version, digest, time.time())

    def _put(self, base: _Base) -> _Base:
        # The position too, for when the log is folded and gone.
        write_record(self._state.root / "base.json", {**base._asdict(), "position": self._position})
        return base

    def _opened(self) -> Runtime:
        path = self._snapshots.place(self._base.snapshot)
        try:
            engines = Runtime.open(path)
        except SnapshotError as error:
            engines = self._mended(error)
        catch_up(engines, path, self._state.log, self._base.since, self.version)
        return engines

    def _mended(self, error: SnapshotError) -> Runtime:
        """Take the snapshot in use from where it came, if that is the same and sound."""
        wanted = self._base.snapshot
        if digest_of(located(self._given)) == wanted:
            self._snapshots.drop(wanted)
            self._snapshots.adopt(self._given)
            return Runtime.open(self._snapshots.place(wanted))
        reason = str(error).removesuffix("; compile it again")
        raise SnapshotError(f"the state has a damaged snapshot ({reason}): {RESTORE}") from None

    @property
    def content(self) -> str:
        """Return the content room of the filters."""
        return content_at(self._snapshots.place(self._base.snapshot))

    @property
    def mark(self) -> str:
        """Return what stands before names to the filters, see `core/values.py`."""
        path = self._snapshots.place(self._base.snapshot)
        return kind_at(path).mark_at(path)

    @property
    def numbered(self) -> bool:
        """Tell whether ids of subscriptions are whole numbers in the snapshot in use."""
        return self._pieces.numbered

    @property
    def count(self) -> int:
        """Count the subscriptions."""
        return len(self._pieces)

    @property
    def ids(self) -> list[Ids]:
        """List the ids of the subscriptions, by shard."""
        with self._lock:
            return self._pieces.ids

    @property
    def age(self) -> float:
        """Return the seconds since the snapshot was taken from where `compile` put it."""
        return time.time() - self._base.adopted

    def at(self, snapshot: str, since: int, version: int) -> Version:
        """Describe a version to workers."""
        path = str(self._snapshots.place(snapshot))
        return Version(path, since, version, str(self._state.log), self._state.owner)

    def pin(self) -> dict[str, Any]:
        """Take in what is new, and say what a batch that starts now uses."""
        with self._lock:
            self._raise_failure()
            self._replace()
            self.poll()
            if self._folded is not None and self._folded.adopted == self._base.adopted:
                self._base, self._folded = self._put(self._folded), None
                self._logged = self._count_logged()
            return {"snapshot": self._base.snapshot, "since": self._base.since, "version": self.version}

    def _replace(self) -> None:
        """Go over to a snapshot that was put in the place of the given one, if it can be used here."""
        if is_stored(self._given) and self._stamp is not None and time.monotonic() < self._looked + _LOOK:
            return
        self._looked = time.monotonic()
        stamp = self._stamp
        try:
            stamp = stamp_of(self._given)
            if stamp is None or stamp == self._stamp:
                return
            check_snapshot(self._given, self._settings.question.top)
            digest = self._snapshots.adopt(self._given)
            self._check_like(digest)
            position = self._contained(digest)
        except HeadgateError as error:
            self._warn(str(error))
            self._stamp = stamp
            return
        self._stamp = stamp
        if digest == self._base.given:
            return
        self._position = position
        self._base = self._put(self._adopted(digest))
        self._folded, self._logged = None, 0
        self._pieces = self._opened()
        # All of them, before any event is matched: those that were taken before must not go and come back.
        while self.poll():
            pass

    def _warn(self, reason: str) -> None:
        """Say once why a replacement is not used; a store that cannot be reached is asked again."""
        if reason != self._warned:
            print(f"{_WARNING} continuing with the snapshot in use: {reason}", file=sys.stderr, flush=True)
        self._warned = reason

    def _check_like(self, digest: str) -> None:
        """Refuse a snapshot whose matches would be of another kind."""
        path = self._snapshots.place(digest)
        if content_at(path) != self.content:
            raise SnapshotError(f"snapshot {title_of(self._given)} has filters of another kind of events")
        if self._state.fixed("numbered", self.numbered) and not Runtime.open(path).numbered:
            raise SnapshotError(
                f"snapshot {title_of(self._given)} has text for ids, and matches so far have numbers"
            )

    def poll(self) -> bool:
        """Take what has come from the source of changes, and make the next version of it.

        Returns False if nothing has come.
        """
        with self._lock:
            if self.changes is None:
                return False
            rows, position = self.changes.since(self._position)
            if not rows and position == self._position:
                return False
            if self._position is None:
                # A source that begins with what is new begins there for snapshots that come later, too.
                self._state.fixed(_BEGIN, None if rows else position)
            version = self.version + 1
            dialect = default_dialect(self._snapshots.place(self._base.snapshot))
            accepted, operations, refused = [], [], []
            for row in rows:
                try:
                    fields, done = self._do(row, dialect)
                    accepted.append(fields)
                    operations.append(done)
                except HeadgateError as error:
                    refused.append((row, str(error)))
            self._tell(version, refused)
            head = {"version": version, "position": position, "changes": len(accepted), "at": time.time()}
            lines = [json.dumps(each, ensure_ascii=False) for each in (head, *accepted)]
            put_file(segment(self._state.log, version), ("\n".join(lines) + "\n").encode())
            self.version, self._position = version, position
            self.accepted += len(accepted)
            self.operations.update(operations)
            self._logged += max(1, len(accepted))
            self.refused += len(refused)
            self._fold_aside()
            return True

    def _do(self, row: Change, dialect: str) -> tuple[dict[str, Any], str]:
        """Do a change; returns its fields, to be logged, and the operation."""
        if row.refusal is not None:
            raise SubscriptionError(row.refusal)
        fields = read_line(row.row)
        engines = self._pieces
        if row.text:
            nodes = engines.graph and engines.numbered_nodes
            fields = typed(fields, numbered=engines.whole_ids, numbered_nodes=nodes)
        return fields, engines.apply(read_change(fields, dialect))

    def _tell(self, version: int, refused: list[tuple[Any, str]]) -> None:
        """Put refused changes into their table; again, if the process dies before the version is written."""
        if not refused or self._refused is None:
            return
        folder = self._refused.prepare(version)
        now = int(time.time() * 1_000_000)
        columns: list[Any] = [
            [row.row.decode(errors="backslashreplace") for row, _ in refused],
            [reason for _, reason in refused],
            [row.origin for row, _ in refused],
            [version] * len(refused),
            [now] * len(refused),
        ]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, REFUSED, strict=True)]
        writer = PartWriter(str(folder), f"batch-{version:010d}.0", self._refused.form, REFUSED)
        writer.write(pa.RecordBatch.from_arrays(arrays, schema=REFUSED))
        name = writer.close()
        assert name is not None
        self._refused.ready(folder, [name]).commit()

    def _fold_aside(self) -> None:
        """Begin to fold the log into a snapshot, if it is long and nobody is at it."""
        if self._folding is not None and self._folding.is_alive():
            return
        if self._logged < self._settings.fold or self._folded is not None:
            # What is folded already counts with the next batch.
            return
        work = threading.Thread(target=self._fold, args=(self._base, self.version), daemon=True)
        self._folding = work
        work.start()

    def _count_logged(self) -> int:
        """Count the changes that are in the log and not in the base."""
        return sum(_count(self._state.log, each) for each in range(self._base.since + 1, self.version + 1))

    def _fold(self, base: _Base, version: int) -> None:
        try:
            path = self._snapshots.place(base.snapshot)
            # Pieces of its own: the others go on meanwhile.
            engines = Runtime.open(path, verify=False)
            catch_up(engines, path, self._state.log, base.since, version)
            digest = self._snapshots.save(engines)
            with self._lock:
                self._folded = base._replace(snapshot=digest, since=version)
        except BaseException as error:  # noqa: BLE001 -- raised by the next pin, where somebody sees it
            self._failure = error

    def _raise_failure(self) -> None:
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def forget(self) -> None:
        """Remove snapshots and versions that nothing uses any more; called when no batch is under way."""
        with self._lock:
            if self._folding is not None and self._folding.is_alive():
                return
            folded = {self._folded.snapshot} if self._folded is not None else set()
            self._snapshots.forget({self._base.snapshot} | folded)
            # The last version stays: it says where the source of changes goes on.
            for file in sorted(self._state.log.glob("[0-9]*.jsonl"))[:-1]:
                if int(file.stem) <= self._base.since:
                    file.unlink()

    def close(self) -> None:
        """Wait for what is going on aside, and end the source of changes."""
        if self._folding is not None:
            self._folding.join()
        if self.changes is not None:
            self.changes.close()


def _count(log: Path, version: int) -> int:
    # A version without any is a file to be read, too.
    return max(1, int(read_head(log, version)["changes"])) if segment(log, version).exists() else 0
