"""What a batch stages: files of matches and of dead letters, found again by whoever goes on after a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.runtime.notes import RESTORE
from headgate.runtime.parts import PartFolder, Staged
from headgate.runtime.state import READY, STAGE
from headgate.stream.rows import DEAD
from headgate.stream.settings import PARQUET, is_broker

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from headgate.runtime.state import Record, State
    from headgate.stream.settings import StreamSettings


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
        found = []
        for folder, note in notes:
            staged = Staged.of(note, record["batch"], folder.path)
            moved = staged._replace(folder=str(folder.path))
            found.append(moved if moved.place.is_dir() else staged)
        return found
