"""What a stream must remember: a directory that outlives the process, whatever ends it.

    state/
      stream.json            what cannot change while the stream lives: layout, Spark's id of it, type of ids
      lock                   held by the process that runs the stream
      spark/                 Spark's own checkpoint: which events belong to which batch
      batches/N.json         batch N: pinned, ready or committed (see below)
      base.json              the snapshot in use, and how much of the log it holds
      snapshots/DIGEST/      snapshots in use, linked or folded
      log/N.jsonl            version N of the subscriptions: changes that were accepted, and where they end
      seen/FIRST-LAST.npy    ids of the events of some batches
      staged/N/              matches of batch N for a broker, until it is committed
      progress.jsonl         a line now and then

A batch goes through three stages, each a record that replaces the one before at once:

    pinned       what it uses: the snapshot, the version of the log, the clock, the watermark
    ready        all its files lie where nobody looks, and nothing can go wrong any more
    committed    its files are in place, and its counts

A process that dies leaves a batch in one of them. Spark gives the same batch again: one that is pinned is
done again with what was pinned, one that is ready is only put in place, one that is committed is passed over.

Spark's notes of which rows are which batch are read and checked: one that is torn or empty is refused.

    offsets/N      batch N: a version, a line about it, and a line for each source: where the batch ends there
    commits/N      batch N is done
    sources/0/K    a version, and a line for each file that was found; K.compact has all until then
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import re
import threading
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from headgate.core.machine import put_file
from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


RESTORE = "restore the state from a copy, or start with a new state and new outputs"
_VERSION = re.compile(r"v[0-9]+\Z")
_NONE = "-"
"""What stands for the end of a source that has none."""


def damaged(path: Path, advice: str = RESTORE) -> TableError:
    """Say that a file of a state is damaged, and how."""
    how = "is empty" if path.exists() and not path.stat().st_size else "is damaged"
    return TableError(f"{path} {how}: {advice}")


def read_note(path: Path, hints: tuple[str, ...] = ()) -> list[Any]:
    """Read the lines of a note, without its version; with `hints`, those that hold one of them."""
    try:
        version, *lines = path.read_text("utf-8").removesuffix("\n").split("\n")
        if hints:
            lines = [line for line in lines if any(hint in line for hint in hints)]
        notes = [None if line == _NONE else json.loads(line) for line in lines]
    except ValueError:
        raise damaged(path) from None
    if not _VERSION.match(version):
        raise damaged(path)
    return notes


def numbered(folder: Path) -> list[Path]:
    """List the notes of a folder, the first first."""
    return sorted(folder.glob("[0-9]*"), key=lambda each: int(each.stem))


def last_number(folder: Path) -> int:
    """Return the number of the last note, -1 if there is none."""
    return max((int(each.stem) for each in folder.glob("[0-9]*")), default=-1)


def offset_of(path: Path) -> int:
    """Return the number of the last note of files that a batch has; -1 if there is no such batch."""
    try:
        lines = read_note(path)
    except FileNotFoundError:
        return -1
    if len(lines) < 2 or not isinstance(lines[-1], dict) or "logOffset" not in lines[-1]:
        raise damaged(path)
    return int(lines[-1]["logOffset"])


def files_noted(folder: Path, after: int, last: int) -> list[str]:
    """List the files of the notes after one, up to another."""
    # Others are not even read: now and then Spark writes all notes into one, with the number of the last.
    hints = tuple(f'"batchId":{each}' for each in range(after + 1, last + 1))
    paths: dict[str, None] = {}
    for note in numbered(folder):
        if hints and int(note.stem) > after:
            paths |= {path: None for path, number in _entries(note, hints) if after < number <= last}
    return list(paths)


def paths_noted(folder: Path) -> set[str]:
    """Name all files that were ever noted."""
    return {path for note in numbered(folder) for path, _ in _entries(note)}


def count_noted(folder: Path, last: int) -> int:
    """Count the files of the notes up to one; all of them are read and checked."""
    entries = {entry for note in numbered(folder) for entry in _entries(note)}
    return sum(number <= last for _, number in entries)


def _entries(note: Path, hints: tuple[str, ...] = ()) -> Iterator[tuple[str, int]]:
    try:
        for each in read_note(note, hints):
            yield unquote(urlsplit(each["path"]).path), int(each["batchId"])
    except (KeyError, TypeError):
        raise damaged(note) from None


def check_notes(root: Path) -> None:
    """Refuse a checkpoint whose last batch cannot be read; nobody else may be writing to it."""
    for folder in (root, *(root / each for each in ("offsets", "commits", "sources/0"))):
        # What was being written when a process died or the disk was full: Spark refuses to begin beside it.
        for left in (*folder.glob(".*.tmp"), *folder.glob(".*.tmp.crc"), *folder.glob(".*.new")):
            left.unlink(missing_ok=True)
    for name, least in (("offsets", 2), ("commits", 1)):
        number = last_number(root / name)
        if number >= 0 and len(read_note(root / name / str(number))) < least:
            raise damaged(root / name / str(number))


LAYOUT = 1
PINNED, READY, COMMITTED = "pinned", "ready", "committed"
STAGE = "stage"
Record = dict[str, Any]


def write_record(path: Path, record: Record) -> None:
    """Put a record in place at once, whole; it is on the disk before anything that rests on it is done."""
    put_file(path, json.dumps(record, ensure_ascii=False).encode())


def read_record(path: Path) -> Record | None:
    """Read a record, if there is one."""
    try:
        record: Record = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except ValueError:
        raise damaged(path) from None
    return record


class State:
    """The directory, and the batches in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spark = root / "spark"
        self.snapshots = root / "snapshots"
        self.log = root / "log"
        self.seen = root / "seen"
        self.staged = root / "staged"
        self._batches = root / "batches"
        for folder in (self.snapshots, self.log, self.seen, self._batches):
            folder.mkdir(parents=True, exist_ok=True)
        self._read()

    def _read(self) -> None:
        root = self.root
        self._about = read_record(root / "stream.json") or {"layout": LAYOUT}
        # A batch may begin in Spark's thread while the driver notes what it began with.
        self._fixing = threading.Lock()
        if self._about["layout"] != LAYOUT:
            raise TableError(
                f"state {root} has layout {self._about['layout']}, and this Headgate knows {LAYOUT}: "
                "use the Headgate that wrote it, or start with a new state"
            )
        numbers = sorted(int(file.stem) for file in self._batches.glob("[0-9]*.json"))
        self._oldest = numbers[0] if numbers else 0
        self.newest: int | None = numbers[-1] if numbers else None
        """The last batch that has a record."""
        committed = (
            record
            for number in reversed(numbers)
            if (record := self.batch(number)) is not None and record[STAGE] == COMMITTED
        )
        self.last: Record | None = next(committed, None)
        """The record of the last batch that was committed."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the state; refuses if another process does. The system lets go if the process dies."""
        with (self.root / "lock").open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise TableError(
                    f"state {self.root} is in use by another stream: end that one, or name another state"
                ) from None
            # What another process has done until it let go.
            self._read()
            yield

    @property
    def owner(self) -> str:
        """Return a name that no other state has."""
        return str(self.fixed("owner", uuid.uuid4().hex))

    @property
    def fresh(self) -> bool:
        """Tell whether nothing was done with this state yet."""
        return "query" not in self._about

    def rows_of(self, number: int) -> str | None:
        """Return what tells the rows of a batch from others: a digest of what Spark noted of it."""
        try:
            return hashlib.sha256((self.spark / "offsets" / str(number)).read_bytes()).hexdigest()
        except FileNotFoundError:
            return None

    def files(self, number: int) -> list[str]:
        """List the files that are a batch by what Spark noted of it; those without a byte are among them."""
        before, last = (offset_of(self.spark / "offsets" / str(each)) for each in (number - 1, number))
        return files_noted(self.spark / "sources" / "0", before, last)

    def known(self, number: int) -> int:
        """Count the files of all batches up to one."""
        if self.last is not None and self.last["batch"] == number - 1 and "known" in self.last:
            return int(self.last["known"]) + len(self.files(number))
        last = offset_of(self.spark / "offsets" / str(number))
        return count_noted(self.spark / "sources" / "0", last)

    def fixed(self, name: str, value: Any) -> Any:
        """Return what was noted under a name when it was first asked for: `value`, if that is now."""
        with self._fixing:
            if name not in self._about:
                self._about[name] = value
                write_record(self.root / "stream.json", self._about)
            return self._about[name]

    def batch(self, number: int) -> Record | None:
        """Read the record of a batch, if it has one."""
        return read_record(self._batches / f"{number:010d}.json")

    @property
    def under_way(self) -> Record | None:
        """Return the record of the batch that was begun and not committed, if there is one."""
        numbers = [int(file.stem) for file in self._batches.glob("[0-9]*.json")]
        record = self.batch(max(numbers)) if numbers else None
        return None if record is None or record[STAGE] == COMMITTED else record

    def put(self, number: int, record: Record) -> Record:
        """Put a record in the place of the batch's last one."""
        record = {"batch": number, **record}
        write_record(self._batches / f"{number:010d}.json", record)
        self.newest = number if self.newest is None else max(number, self.newest)
        if record[STAGE] == COMMITTED:
            self.last = record
        return record

    def committed(self) -> list[Record]:
        """List the records of committed batches that are still here, in order."""
        records = (read_record(file) for file in sorted(self._batches.glob("[0-9]*.json")))
        return [record for record in records if record is not None and record[STAGE] == COMMITTED]

    def forget(self, before: int) -> None:
        """Drop the records of batches before one."""
        for number in range(self._oldest, before):
            (self._batches / f"{number:010d}.json").unlink(missing_ok=True)
        self._oldest = max(self._oldest, before)

    def check_checkpoint(self) -> None:
        """Refuse a Spark checkpoint that these batches do not belong to: its numbers mean other events."""
        known = self._about.get("query")
        if known is not None and known != (read_record(self.spark / "metadata") or {}).get("id"):
            raise TableError(
                f"state {self.root} belongs to another checkpoint than the one in {self.spark}: restore "
                "both from one copy, or start with a new state"
            )
        check_notes(self.spark)
        newest = self.under_way or self.last
        if newest is not None and "known" in newest:
            notes, number = self.spark / "sources" / "0", int(newest["batch"])
            last = offset_of(self.spark / "offsets" / str(number))
            # One that is gone with the notes of its files is told when the batch is done again.
            if last >= 0 and (count := count_noted(notes, last)) < newest["known"]:
                raise TableError(
                    f"{notes} names {count} files of events, and batch {number} and those before it have "
                    f"{newest['known']}: {RESTORE}"
                )
