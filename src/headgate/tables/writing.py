"""Tables written whole: beside their place first, so that nothing is seen there before all is written.

JSON lines and CSV are one file, Parquet is a folder; as Spark writes them.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from io import TextIOWrapper
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.tables import packed
from headgate.tables.places import Format, check_output, local

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Discard = Callable[[Path], None]


def discard_folder(folder: Path) -> None:
    """Remove a folder, if it is there."""
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def replacing(path: str, discard: Discard = discard_folder) -> Iterator[Path]:
    """Yield a folder to be filled, which then takes the place of a local Parquet table."""
    with beside(path, discard) as (target, folder):
        yield folder
        if target.is_dir():
            shutil.rmtree(target)
        folder.rename(target)


@contextmanager
def beside(path: str, discard: Discard = discard_folder) -> Iterator[tuple[Path, Path]]:
    """Yield a local table's own place and that of a folder beside it, which is removed if the body fails.

    `discard` removes it: tasks of Spark may still write to it.
    """
    # Through symbolic links, so that a link stays one.
    target = local(path).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    parts = target.with_name(f".{target.name}.{os.getpid()}.parts")
    try:
        yield target, parts
    except BaseException:
        discard(parts)
        raise


@contextmanager
def writing_file(path: str) -> Iterator[IO[bytes]]:
    """Yield a file to be filled, packed if its name says so, which then takes the place of a local table."""
    with beside(path) as (target, folder):
        folder.mkdir(parents=True)
        file = folder / target.name
        with packed.writing(file) as out:
            yield out
        file.replace(target)
        folder.rmdir()


def quoted(name: str) -> str:
    """Write a value of CSV, in quotes if it must."""
    special = any(sign in name for sign in ',"\n')
    return '"' + name.replace('"', '""') + '"' if special else name


@contextmanager
def writing(path: str, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """Yield what writes rows to a table on this machine, which takes its place after the block."""
    form = check_output(path)
    if form is Format.PARQUET:
        with replacing(path) as folder:
            folder.mkdir(parents=True)
            with pq.ParquetWriter(folder / "part-00000.snappy.parquet", schema) as writer:
                yield writer.write_batch
            (folder / "_SUCCESS").touch()
        return
    with writing_file(path) as out, TextIOWrapper(out, encoding="utf-8", newline="") as text:
        if form is Format.CSV:
            text.write(",".join(map(quoted, schema.names)) + "\n")
        line = _csv if form is Format.CSV else _json
        yield lambda rows: text.writelines(map(line, rows.to_pylist(maps_as_pydicts="strict")))


def write_table(table: pa.Table, path: str) -> None:
    """Write a table that is in memory."""
    with writing(path, table.schema) as write:
        for batch in table.to_batches():
            write(batch)


def _json(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=_moment) + "\n"


def _moment(value: object) -> str:
    """Write times as Spark does: in JSON with milliseconds."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return str(value)


def _csv(row: dict[str, Any]) -> str:
    return ",".join(_cell(value) for value in row.values()) + "\n"


def _cell(value: object) -> str:
    """Write a value: nothing for NULL, and quotes for a text without signs."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, float):
        return java_double(value)
    if isinstance(value, bool):
        return str(value).lower()
    return quoted(str(value)) if value != "" else '""'


def java_double(value: float) -> str:
    """Write a number as Java does.

    >>> [java_double(each) for each in (1.5, 1e7, -1.25e-5, 1234567.0, float("inf"))]
    ['1.5', '1.0E7', '-1.25E-5', '1234567.0', 'Infinity']
    """
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, numbers, power = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, numbers)).rstrip("0") or "0"
    exponent = int(power) + len(numbers) - 1
    return f"{'-' if sign else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"
