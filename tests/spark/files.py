"""Small tables in files, written and read without Headgate or Spark."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

FORMS = ("jsonl", "csv", "parquet")

Row = dict[str, Any]


def put(path: Path, content: str | bytes) -> str:
    """Write a file as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def put_lines(path: Path, rows: Iterable[Row]) -> str:
    """Write JSON lines."""
    return put(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def put_table(path: Path, rows: Sequence[Row], schema: pa.Schema | None = None) -> str:
    """Write rows in the format that the ending names."""
    if path.suffix == ".jsonl":
        return put_lines(path, rows)
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        return str(path)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), path)
    return str(path)


def get_lines(path: Path | str) -> list[Row]:
    """Read JSON lines."""
    with open(path, encoding="utf-8") as file:  # noqa: PTH123 -- a path or text
        return [json.loads(line) for line in file]


def get_table(path: Path) -> list[Row]:
    """Read a table that a job wrote; whatever is in CSV is text."""
    if path.suffix == ".jsonl":
        return get_lines(path)
    if path.suffix == ".csv":
        with path.open(newline="", encoding="utf-8") as file:
            return [dict(row) for row in csv.DictReader(file)]
    rows: list[Row] = pq.read_table(path).to_pylist()
    return rows


def names(folder: Path) -> list[str]:
    """List what lies in a folder, hidden files included."""
    return sorted(file.name for file in folder.iterdir())
