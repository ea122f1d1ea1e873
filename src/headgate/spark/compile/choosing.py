"""Which kind of content a table of filters is for, by its column `dialect`, and a sample of events."""

from __future__ import annotations

from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from pyspark.sql import functions as sf

from headgate.contents.registry import content_of, kind_of, quoted, strange
from headgate.core.event import Event
from headgate.core.values import fold
from headgate.errors import HeadgateError, TableError
from headgate.records.events.columns import BatchColumns, EventColumns
from headgate.runtime.rows import DIALECT, FILTER, read_line
from headgate.spark.compile.rows import UNUSUAL
from headgate.spark.tables.event_rows import read_event
from headgate.spark.tables.places import Format, check_input, for_reading
from headgate.spark.tables.tables import BROKEN, VALUE, column, column_names, read_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import Column, SparkSession

    from headgate.contents.kind import Wanted
    from headgate.contents.protocol import Contents
    from headgate.records.events.columns import Columns


SAMPLE = 4096
"""Events that are looked at: the first of the table."""


def read_sample(session: SparkSession, path: str) -> Columns:
    """Read the first events of a table; lines that are none are passed over: `match` will refuse them."""
    form = check_input(path)
    if form is Format.JSONL:
        rows = session.read.text(for_reading(path)).limit(SAMPLE).collect()
        found = [read_event(row[VALUE].encode()) for row in rows]
        return EventColumns([event.attributes for event in found if isinstance(event, Event)])
    table = read_columns(session, path, form).drop(BROKEN).limit(SAMPLE).toArrow()
    whole = [table[name].combine_chunks() for name in table.column_names]
    return BatchColumns(pa.RecordBatch.from_arrays(whole, names=table.column_names))


def contents_of(wanted: Wanted, session: SparkSession, tables: Sequence[str]) -> Contents:
    """Choose the room that the filters of tables are for; refuses a mixture, and what does not fit."""
    dialects = {each for path in tables for each in dialects_of(session, path, wanted.dialect)}
    what = f"the filters of {' and '.join(tables)}"
    kind = kind_of(content_of(dialects, what) or content_of([wanted.dialect], what))
    wrong = strange(kind, wanted)
    if wrong is not None:
        owner, settings = wrong
        spoken = quoted(sorted(dialects)) if dialects else "none"
        raise TableError(
            f"{settings} are for filters of {owner.title}, and {what} are {spoken}: leave them out, or say "
            f"--dialect {owner.dialects[0]}"
        )
    return kind.compiler(wanted, partial(read_sample, session))


def dialects_of(session: SparkSession, path: str, default: str) -> set[str]:
    """List the dialects of a table's filters; those that name none have the default."""
    form = check_input(path)
    if form is Format.JSONL:
        return _of_lines(session, path, default)
    names = {fold(name): name for name in column_names(session, path, form)}
    if FILTER not in names:
        return set()
    table = read_columns(session, path, form, typed=False)
    table = table.where(column(names[FILTER]).isNotNull())
    if DIALECT not in names:
        return set() if table.isEmpty() else {default}
    said = sf.coalesce(column(names[DIALECT]).cast("string"), sf.lit(default))
    return {row[0] for row in table.select(said).distinct().collect()}


def _of_lines(session: SparkSession, path: str, default: str) -> set[str]:
    lines = session.read.text(for_reading(path))
    if lines.where(mentions(DIALECT)).isEmpty():
        return set() if lines.where(mentions(FILTER)).isEmpty() else {default}
    found = lines.select(sf.col(VALUE).cast("binary")).mapInArrow(
        partial(_find_dialects, default=default), f"{DIALECT} string"
    )
    return {row[0] for row in found.distinct().collect()}


def mentions(*names: str) -> Column:
    """Tell which lines of JSON may have one of some fields: names may be written with escapes."""
    line = sf.lower(VALUE)
    hints = [line.contains(hint) for hint in ("\\u00", *(f'"{name}"' for name in names))]
    return reduce(or_, hints)


class _Row(msgspec.Struct, gc=False):
    filter: Any = None
    dialect: Any = None


_ROWS = msgspec.json.Decoder(_Row)


def _find_dialects(batches: Iterable[pa.RecordBatch], default: str) -> Iterator[pa.RecordBatch]:
    """List the dialects of the filters of each batch; lines that cannot be read are for the job to refuse."""
    for batch in batches:
        found = {each for line in batch[VALUE].to_pylist() if (each := _dialect(line, default)) is not None}
        yield pa.RecordBatch.from_pydict({DIALECT: pa.array(sorted(found), pa.string())})


def _dialect(line: bytes | None, default: str) -> str | None:
    if not line or not line.strip():
        return None
    try:
        row = _ROWS.decode(line)
        text, dialect = row.filter, row.dialect
        if text is None or dialect is None:
            # Names have no case.
            given = read_line(line)
            text, dialect = given.get(FILTER), given.get(DIALECT)
    except (*UNUSUAL, HeadgateError):
        return None
    return None if text is None else default if dialect is None else str(dialect)
