"""Where matches go, unless it is a folder, for which workers write the files themselves (`staging.py`).

A batch is prepared, written where nobody looks, and committed; any step may be repeated.

    prepare   drop what an attempt that did not commit has left
    write     have the matches at hand, so that nothing can go wrong any more; returns what `commit` needs
    commit    let others see them; called again after a crash, with the same note, it does what is left to do

Between `write` and `commit` the note is kept in the stream's state, so that `commit` is never given up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa


Note = dict[str, Any]
"""What JSON can say."""


class Sink(Protocol):
    """A place for matches: rows with event_id and subscription_id, perhaps score and rank."""

    def prepare(self, batch: int) -> None:
        """Drop what an attempt that did not commit has left."""

    def write(self, files: Sequence[Path], schema: pa.Schema, batch: int) -> Note:
        """Have the matches in files of Parquet at hand; may run Spark jobs. Returns what `commit` needs."""

    def commit(self, batch: int, note: Note) -> None:
        """Let others see them. Idempotent."""

    def close(self) -> None:
        """End what was opened."""
