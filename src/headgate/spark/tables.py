"""Tables in files: JSON lines, CSV and Parquet, in and out.

JSON lines are read as text and parsed by us, so that every malformed line is kept with its reason and every
event keeps the types that it was sent with. CSV gets the types that Spark infers over the whole file. Parquet
has its own.
"""

from __future__ import annotations

import os
import shutil
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from headgate.errors import TableError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

POSITION = "position"
VALUE = "value"
BROKEN = "_broken"
"""Where Spark puts a CSV line that does not fit the header."""


class Format(Enum):
    """What a table's file holds, by its ending."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


_ENDINGS = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".parquet": Format.PARQUET,
}


def is_remote(path: str) -> bool:
    """Tell a URI of a file system that Spark knows from a path on this machine."""
    return "://" in path and not path.startswith("file://")


def format_of(path: str) -> Format:
    """Find a table's format by its ending; a directory is known by the files in it."""
    suffix = Path(path.rstrip("/")).suffix.lower()
    if suffix in _ENDINGS:
        return _ENDINGS[suffix]
    inside = Path(path)
    if not is_remote(path) and inside.is_dir():
        for file in sorted(inside.iterdir()):
            if file.suffix.lower() in _ENDINGS and not file.name.startswith((".", "_")):
                return _ENDINGS[file.suffix.lower()]
    known = ", ".join(_ENDINGS)
    raise TableError(f"the format of {path} is not clear: name it with one of {known}")


def check_input(path: str) -> Format:
    """Refuse an input that is not there, before Spark starts."""
    if not is_remote(path) and not Path(path).exists():
        raise TableError(f"{path} does not exist")
    return format_of(path)


def check_output(path: str) -> Format:
    """Refuse an output that cannot be written or that would bury something else, before any work."""
    form = format_of(path)
    if is_remote(path):
        if form is not Format.PARQUET:
            raise TableError(
                f"{path}: a single file is written to a local path only; use a .parquet directory"
            )
        return form
    place = Path(path)
    if place.is_dir() and (form is not Format.PARQUET or not _is_spark_output(place)):
        raise TableError(f"{path} is a directory that Headgate did not write: choose another place")
    if form is Format.PARQUET and place.is_file():
        raise TableError(f"{path} is a file and a Parquet table is a directory: choose another place")
    return form


def read_lines(session: SparkSession, path: str) -> DataFrame:
    """Read a table as one JSON object a row, whatever its format. No shuffle.

    Columns: `position` (in the order of the file), `value` (bytes; NULL for a broken CSV line) and `_broken`.
    """
    form = check_input(path)
    if form is Format.JSONL:
        rows = session.read.text(path).select(
            sf.col(VALUE).cast("binary"), sf.lit(None).cast("string").alias(BROKEN)
        )
    else:
        table = read_csv(session, path, typed=False) if form is Format.CSV else session.read.parquet(path)
        names = [name for name in table.columns if name != BROKEN]
        broken = sf.col(BROKEN) if BROKEN in table.columns else sf.lit(None).cast("string")
        line = sf.to_json(sf.struct(*[sf.col(f"`{name}`") for name in names])) if names else sf.lit("{}")
        rows = table.select(sf.when(broken.isNull(), line).cast("binary").alias(VALUE), broken.alias(BROKEN))
    return rows.withColumn(POSITION, sf.monotonically_increasing_id())


def read_csv(session: SparkSession, path: str, *, typed: bool) -> DataFrame:
    """Read CSV with a header, quotes doubled inside quotes; lines that do not fit go to `_broken`.

    With `typed`, Spark infers the types (one more pass) and no value may span lines; without, all are text.
    """
    # With pruning, whether a line counts as broken would depend on the columns that a query asks for.
    options = {
        "columnPruning": "false",
        "header": "true",
        "quote": '"',
        "escape": '"',
        "multiLine": str(not typed).lower(),
    }
    plain = session.read.options(**options).csv(path, inferSchema=typed)
    if not plain.columns:
        return plain
    schema = plain.schema.add(BROKEN, "string")
    return session.read.options(**options, columnNameOfCorruptRecord=BROKEN).schema(schema).csv(path)


def write_table(table: DataFrame, path: str) -> None:
    """Write a table: one file for JSON lines and CSV, a directory for Parquet. Replaces what was there.

    Rows come in the order of their partitions; nothing is seen at `path` before all is written.
    """
    form = check_output(path)
    if is_remote(path):
        table.write.mode("overwrite").parquet(path)
        return
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    parts = place.with_name(f".{place.name}.{os.getpid()}.parts")
    try:
        if form is Format.PARQUET:
            table.write.mode("overwrite").parquet(str(parts))
            if place.is_dir():
                shutil.rmtree(place)
            parts.rename(place)
        else:
            _write_parts(table, form, parts)
            _join_parts(table.columns, form, parts, place)
    finally:
        shutil.rmtree(parts, ignore_errors=True)


def _write_parts(table: DataFrame, form: Format, parts: Path) -> None:
    writer = table.write.mode("overwrite")
    if form is Format.JSONL:
        writer.json(str(parts), ignoreNullFields=False)
    else:
        writer.csv(
            str(parts), header=False, quote='"', escape='"', timestampFormat="yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"
        )


def _join_parts(columns: list[str], form: Format, parts: Path, place: Path) -> None:
    whole = place.with_name(f".{place.name}.{os.getpid()}.new")
    try:
        with whole.open("wb") as out:
            if form is Format.CSV:
                out.write((",".join(_quoted(name) for name in columns) + "\n").encode())
            for part in sorted(parts.glob("part-*")):
                with part.open("rb") as file:
                    shutil.copyfileobj(file, out, 1 << 20)
        whole.replace(place)
    finally:
        whole.unlink(missing_ok=True)


def _quoted(name: str) -> str:
    special = any(sign in name for sign in ',"\n')
    return '"' + name.replace('"', '""') + '"' if special else name


def _is_spark_output(place: Path) -> bool:
    names = [file.name for file in place.iterdir()]
    return not names or "_SUCCESS" in names
