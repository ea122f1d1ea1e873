"""Files that batches leave in a folder: staged where readers do not look, then renamed into place.

folder/
  _staged/N-TOKEN/NAME.ATTEMPT.parquet   what tasks of batch N write; names that begin with _ are passed over
  _staged/owner                          the state that the folder belongs to
  batch-N-PART.parquet                   what is committed
  columns.parquet                        no rows: so that the table can be read before the first match

Each attempt at a batch has a place of its own. Tasks of a driver that was killed may go on for a while: they
write to a place that the next driver does not look at, and removes.
"""

from __future__ import annotations

import json
import shutil
import uuid
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.core.machine import force, naming, put_file
from headgate.errors import TableError
from headgate.runtime.questions import STAGED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PARQUET = "parquet"


class PartWriter:
    """One file of a task, begun with the first row."""

    def __init__(self, folder: str, name: str, form: str, schema: pa.Schema) -> None:
        self._place = Path(folder) / f"{name}.{form}"
        self._form = form
        self._schema = schema
        self._file: Any = None
        self.rows = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Append rows."""
        if not rows.num_rows:
            return
        with naming(self._place):
            if self._file is None:
                if self._form == PARQUET:
                    self._file = pq.ParquetWriter(self._place, self._schema, compression="snappy")
                else:
                    self._file = self._place.open("w", encoding="utf-8")
            self.rows += rows.num_rows
            if self._form == PARQUET:
                self._file.write_batch(rows)
            else:
                self._file.writelines(_lines(rows))

    def close(self) -> str | None:
        """End the file, have it on the disk, and return its name if there is one."""
        if self._file is None:
            return None
        with naming(self._place):
            self._file.close()
            force(self._place)
        return self._place.name

    def abandon(self) -> None:
        """Drop the file: what was to be in it is not there."""
        if self._file is not None:
            # On a full disk it cannot be ended properly, and need not be.
            with suppress(OSError, pa.ArrowException):
                self._file.close()
            with suppress(OSError):
                self._place.unlink()


def _lines(rows: pa.RecordBatch) -> Iterable[str]:
    for row in rows.to_pylist(maps_as_pydicts="strict"):
        yield json.dumps(row, ensure_ascii=False, default=lambda value: value.isoformat()) + "\n"


class Staged(NamedTuple):
    """The files of a batch that are ready to be put in place."""

    folder: str
    name: str
    """The place below `_staged`."""
    files: Mapping[str, int | None]
    """The bytes of each, to be compared before it is put in place; None in states of earlier versions."""

    @classmethod
    def of(cls, note: Any, batch: int, folder: Path) -> Staged:
        """Read what a batch's record says; earlier versions noted the names alone."""
        if isinstance(note, list):
            note = {"files": note}
        files = note["files"]
        named = files if isinstance(files, dict) else dict.fromkeys(files)
        return cls(note.get("folder", str(folder)), note.get("staged", str(batch)), named)

    @property
    def note(self) -> dict[str, Any]:
        """Return what the record says."""
        return {"folder": self.folder, "staged": self.name, "files": dict(self.files)}

    @property
    def place(self) -> Path:
        """Return where the files are, until they are put in place."""
        return Path(self.folder) / STAGED / self.name

    def is_of(self, owner: str) -> bool:
        """Tell whether the folder is there, and belongs to a state."""
        return _owner(Path(self.folder), owner) == owner

    def waiting(self) -> list[str]:
        """List the files that are not yet in place."""
        return [name for name in self.files if (self.place / name).exists()]

    def damage(self) -> str | None:
        """Say which file that is not yet in place is not as it was written, if one is."""
        for name in self.waiting():
            size, wanted = (self.place / name).stat().st_size, self.files[name]
            if wanted is not None and size != wanted:
                return f"{self.place / name} has {size:,} bytes instead of {wanted:,}"
        return None

    def commit(self) -> None:
        """Put the files in place, those that are not yet there."""
        folder = Path(self.folder)
        with naming(folder):
            for name in self.files:
                # What is not staged any more is in its place, or somebody has taken it away from there.
                with suppress(FileNotFoundError):
                    (self.place / name).replace(folder / final_name(name))
            if self.files:
                force(folder)
        _sweep(folder)


class PartFolder:
    """A folder of such files; the driver's side."""

    def __init__(self, path: str, form: str, schema: pa.Schema | None = None) -> None:
        self.path = Path(path).absolute()
        self.form = form
        try:
            with naming(self.path):
                (self.path / STAGED).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TableError(f"{path} cannot be written: {error.strerror}; choose another place") from None
        empty = self.path / "columns.parquet"
        if form == PARQUET and schema is not None and not _has_columns(empty):
            sink = pa.BufferOutputStream()
            pq.ParquetWriter(sink, schema).close()
            put_file(empty, sink.getvalue().to_pybytes())

    def take_over(self, owner: str, *, fresh: bool) -> None:
        """Note whose files these are; refuses those of another: batches of both have the same numbers."""
        known = _owner(self.path, owner)
        if known not in {None, owner} or (known is None and fresh and any(self.path.glob("batch-*"))):
            raise TableError(
                f"{self.path} has files of another stream, or of an earlier state of this one, and new ones "
                "would take their place: name another folder, or go on with that state"
            )
        if known is None:
            put_file(self.path / STAGED / _OWNER, owner.encode())

    def prepare(self, batch: int) -> Path:
        """Make an empty place for the tasks of a batch, which no other attempt at it has had."""
        _sweep(self.path)
        path = self.path / STAGED / f"{batch}-{uuid.uuid4().hex}"
        with naming(path):
            path.mkdir(parents=True)
        return path

    def ready(self, path: Path, files: Iterable[str]) -> Staged:
        """Note the files that tasks have written to a place; all is on the disk from here on."""
        try:
            sizes = {name: (path / name).stat().st_size for name in files}
        except FileNotFoundError as error:
            raise TableError(
                f"{error.filename} was written by a worker and is not there: let all machines see {self.path}"
            ) from None
        for each in (path, path.parent) if sizes else ():
            force(each)
        return Staged(str(self.path), path.name, sizes)

    def sweep(self) -> None:
        """Remove all that is staged."""
        _sweep(self.path)


_OWNER = "owner"


def _owner(folder: Path, expected: str) -> str | None:
    """Return the state that a folder belongs to; refuses a torn note of it."""
    path = folder / STAGED / _OWNER
    try:
        text = path.read_text("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None
    if len(text) < len(expected):
        raise TableError(
            f"{path} is damaged, and so nobody knows whose files are in {folder}: write {expected} into it "
            "if they are of this state, or name another folder"
        )
    return text


def _sweep(folder: Path) -> None:
    """Remove what is staged of any batch: one is under way at a time, and what others left is no use."""
    for path in (folder / STAGED).glob("[0-9]*"):
        shutil.rmtree(path, ignore_errors=True)


def _has_columns(path: Path) -> bool:
    try:
        pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return False
    return True


def final_name(name: str) -> str:
    """Name a file without the attempt of its task.

    >>> final_name("batch-0000000001-00000.7.parquet")
    'batch-0000000001-00000.parquet'
    """
    stem, _, suffix = name.rpartition(".")
    return f"{stem.rpartition('.')[0]}.{suffix}"
