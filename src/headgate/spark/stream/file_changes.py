"""Changes of subscriptions from a folder to which files are moved, .jsonl or .parquet, whole."""

from __future__ import annotations

import codecs
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.spark.stream.changes import Change
from headgate.spark.stream.reading import of_the_file
from headgate.spark.stream.request import check_changes

if TYPE_CHECKING:
    from collections.abc import Iterator

ENDINGS = (".jsonl", ".ndjson", ".parquet")


class FileChanges:
    """Files in the order of their names; a position lists those that were read and are still there."""

    def __init__(self, path: str) -> None:
        check_changes(path)
        self._folder = Path(path)

    def since(self, position: str | None) -> tuple[list[Change], str | None]:
        """Read the files that were not there at a position."""
        done: set[str] = set() if position is None else set(json.loads(position))
        names = {
            file.name
            for file in self._folder.iterdir()
            if file.suffix.lower() in ENDINGS and not file.name.startswith((".", "_")) and file.is_file()
        }
        fresh = sorted(names - done)
        if not fresh:
            return [], position
        found = [change for name in fresh for change in self._read(self._folder / name)]
        return found, json.dumps(sorted(names))

    def _read(self, file: Path) -> Iterator[Change]:
        """Read the rows of a file; of one that cannot be read, what is refused is its name and the reason."""
        try:
            if file.suffix.lower() == ".parquet":
                for batch in pq.ParquetFile(file).iter_batches():
                    for row in batch.to_pylist():
                        yield Change(json.dumps(_given(row), default=str).encode(), file.name)
            else:
                for line in file.read_bytes().removeprefix(codecs.BOM_UTF8).splitlines():
                    if line.strip():
                        yield Change(line, file.name)
        except (OSError, pa.ArrowException) as error:
            if isinstance(error, OSError) and not of_the_file(error):
                raise
            yield Change(
                f"{file.name} cannot be read: {' '.join(str(error).split())[:300]}".encode(), file.name
            )

    def close(self) -> None:
        """Have nothing open."""


def _given(row: dict[str, object]) -> dict[str, object]:
    """Leave out what is null; maps come from Parquet as lists of pairs."""
    found = {name: value for name, value in row.items() if value is not None}
    weights = found.get("weights")
    if isinstance(weights, list) and all(isinstance(each, tuple) for each in weights) and weights:
        found["weights"] = dict(weights)
    return found
