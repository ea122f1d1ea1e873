"""Files that batches leave in a folder: staged where readers do not look, then renamed into place.

folder/
  _staged/N/NAME.ATTEMPT.parquet     what tasks of batch N write; names that begin with _ are passed over
  batch-N-PART.parquet               what is committed
  columns.parquet                    no rows: so that the table can be read before the first match
"""

from __future__ import annotations

import json
import shutil
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import TableError
from headgate.runtime.questions import STAGED

if TYPE_CHECKING:
    from collections.abc import Iterable

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
        """End the file, and return its name if there is one."""
        if self._file is None:
            return None
        self._file.close()
        return self._place.name


def _lines(rows: pa.RecordBatch) -> Iterable[str]:
    for row in rows.to_pylist():
        yield json.dumps(row, ensure_ascii=False, default=lambda value: value.isoformat()) + "\n"


class PartFolder:
    """A folder of such files; the driver's side."""

    def __init__(self, path: str, form: str, schema: pa.Schema | None = None) -> None:
        self.path = Path(path).absolute()
        self.form = form
        try:
            (self.path / STAGED).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise TableError(f"{path} cannot be written: {error.strerror}; choose another place") from None
        empty = self.path / "columns.parquet"
        if form == PARQUET and schema is not None and not empty.exists():
            beside = self.path / STAGED / "columns.parquet"
            pq.ParquetWriter(beside, schema).close()
            beside.replace(empty)

    def take_over(self, owner: str, *, fresh: bool) -> None:
        """Note whose files these are; refuses those of another: batches of both have the same numbers."""
        place = self.path / STAGED / "owner"
        found = place.read_text("utf-8") if place.exists() else None
        if found not in {None, owner} or (found is None and fresh and any(self.path.glob("batch-*"))):
            raise TableError(
                f"{self.path} has files of another stream, or of an earlier state of this one, and new ones "
                "would take their place: name another folder, or go on with that state"
            )
        if found is None:
            place.write_text(owner, "utf-8")

    def prepare(self, batch: int) -> Path:
        """Make an empty place for the tasks of a batch."""
        place = self.drop(batch)
        place.mkdir(parents=True)
        return place

    def commit(self, batch: int, files: Iterable[str]) -> None:
        """Put the files of a batch in place, those that are not yet there."""
        staged = self.staged(batch)
        for name in files:
            final = self.path / final_name(name)
            # What is not staged any more is in its place already, or somebody has taken it away from there.
            with suppress(FileNotFoundError):
                (staged / name).replace(final)
        shutil.rmtree(staged, ignore_errors=True)

    def drop(self, batch: int) -> Path:
        """Remove what is staged of a batch, and return where that was."""
        place = self.staged(batch)
        shutil.rmtree(place, ignore_errors=True)
        return place

    def staged(self, batch: int) -> Path:
        """Return where the tasks of a batch write."""
        return self.path / STAGED / str(batch)


def final_name(name: str) -> str:
    """Name a file without the attempt of its task.

    >>> final_name("batch-0000000001-00000.7.parquet")
    'batch-0000000001-00000.parquet'
    """
    stem, _, suffix = name.rpartition(".")
    return f"{stem.rpartition('.')[0]}.{suffix}"
