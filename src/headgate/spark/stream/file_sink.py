"""Matches in a folder of files: what the tasks of a batch wrote is renamed into place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.runtime.parts import PartFolder

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.spark.stream.sinks import Note


class FileSink:
    """A sink that workers write to themselves: it takes files by their names instead of a table."""

    def __init__(self, path: str, form: str, schema: pa.Schema) -> None:
        self.folder = PartFolder(path, form, schema)

    def prepare(self, batch: int) -> None:
        """Make an empty place for a batch."""
        self.folder.prepare(batch)

    def take(self, files: list[str]) -> Note:
        """Note the files of a batch that tasks have staged."""
        return {"files": files}

    def commit(self, batch: int, note: Note) -> None:
        """Rename them into place."""
        self.folder.commit(batch, note["files"])

    def close(self) -> None:
        """Have nothing open."""
