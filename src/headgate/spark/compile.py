"""The compile job: a table of subscriptions to a snapshot, and a table of the rows that were refused.

read_lines -> compile (in parallel) -> collect -> number by id -> arrays -> snapshot
                                    `-> rejected
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.event import ID
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.snapshot import check_place
from headgate.errors import EventError, TableError
from headgate.records.build import build_arrays
from headgate.records.index import RecordIndex
from headgate.records.leaves import decode_leaf
from headgate.spark.compiling import COMPILED_DDL, FILTER, PLACE, REASON, ROW, compile_batches, read_schema
from headgate.spark.progress import step, watch
from headgate.spark.session import spark_errors
from headgate.spark.tables import (
    ORDER,
    WHOLE,
    Format,
    check_apart,
    check_input,
    check_output,
    read_lines,
    write_table,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from headgate.core.event import Id

_WHOLE = re.compile(WHOLE)

_TYPES: dict[str, pa.DataType] = {ID: pa.string(), ROW: pa.string(), REASON: pa.string(), PLACE: pa.int64()}
REJECTED = pa.schema(_TYPES)
"""The columns of a rejected table; `place` counts characters of the filter from 1."""


@dataclass(frozen=True)
class Compiled:
    """What the job did."""

    subscriptions: int
    rejected: int
    leaves: int
    attributes: tuple[str, ...]
    parse_seconds: float
    build_seconds: float


def compile_subscriptions(
    session: SparkSession,
    subscriptions: str,
    output: str,
    *,
    rejected: str,
    schema: str | None = None,
    quiet: bool = False,
) -> Compiled:
    """Compile a table of subscriptions to a snapshot at `output`; refused rows go to the table `rejected`.

    With `schema` (JSON text), filters that name unknown attributes or mix types are refused too.
    """
    form = check_request(subscriptions, output, rejected=rejected, schema=schema)
    with spark_errors():
        with watch(session, "parsing filters", quiet=quiet) as parsing:
            # Parsing is the long part, so it is spread evenly; every row keeps its place.
            parts = 4 * session.sparkContext.defaultParallelism
            lines = read_lines(session, subscriptions, ID, FILTER).repartition(parts)
            compiled = lines.mapInArrow(partial(_compile, schema=schema), COMPILED_DDL).toArrow()
        with step("building the index", quiet=quiet) as building:
            ids, accepted, refused = _number(compiled.sort_by([(name, "ascending") for name in ORDER]), form)
            index = _build(ids, accepted)
            index.save(Path(output), source={"subscriptions": Path(subscriptions).name})
            write_table(session.createDataFrame(refused), rejected)
    return Compiled(
        subscriptions=len(index),
        rejected=refused.num_rows,
        leaves=index.built.arrays.leaves,
        attributes=tuple(index.attributes),
        parse_seconds=parsing.seconds,
        build_seconds=building.seconds,
    )


def check_request(subscriptions: str, output: str, *, rejected: str, schema: str | None) -> Format:
    """Refuse what cannot be done before any work: used before Spark starts, too."""
    form = check_input(subscriptions)
    check_output(rejected)
    check_apart(subscriptions, output, rejected)
    check_place(Path(output))
    if schema is not None:
        try:
            read_schema(schema)
        except EventError as error:
            raise TableError(f"schema: {error}") from None
    return form


def _compile(batches: Iterator[pa.RecordBatch], schema: str | None) -> Iterator[pa.RecordBatch]:
    return compile_batches(batches, schema)


def _number(compiled: pa.Table, form: Format) -> tuple[list[Id], pa.Table, pa.Table]:
    """Split into the accepted rows, sorted by their ids, which have one type, and the refused ones."""
    good = compiled.filter(pc.is_null(compiled[REASON]))
    bad = compiled.filter(pc.is_valid(compiled[REASON]))
    ids = _one_type(good, form)
    first: dict[Id, int] = {}
    again: list[int] = []
    for place, identity in enumerate(ids):
        if first.setdefault(identity, place) != place:
            again.append(place)
    ordered = sorted(first)
    accepted = good.take(np.array([first[identity] for identity in ordered], np.int64))
    repeated = good.take(np.array(again, np.int64))
    return ordered, accepted, _refused(bad, repeated, [ids[place] for place in again])


def _one_type(good: pa.Table, form: Format) -> list[Id]:
    """Take ids as numbers if all of them are, else as text; CSV has text only, so it is read."""
    numbers: list[int | None] = good["id_number"].to_pylist()
    texts: list[str | None] = good["id_text"].to_pylist()
    if all(text is None for text in texts):
        return [number for number in numbers if number is not None]
    ids = [str(number) if text is None else text for number, text in zip(numbers, texts, strict=True)]
    if form is Format.CSV and all(_WHOLE.fullmatch(text) for text in ids):
        return [int(text) for text in ids]
    return [*ids]


def _refused(bad: pa.Table, again: pa.Table, identities: list[Id]) -> pa.Table:
    """Make the rejected table: the row as it came, its id if it had one, why, and where in the filter."""
    rows: list[dict[str, Any]] = []
    for row in bad.to_pylist():
        identity = row["id_text"] if row["id_number"] is None else str(row["id_number"])
        rows.append({ID: identity, ROW: row[ROW], REASON: row[REASON], PLACE: row[PLACE]})
    for identity, whole in zip(identities, again[ROW].to_pylist(), strict=True):
        reason = f"id {identity!r} was given by an earlier row already"
        rows.append({ID: str(identity), ROW: whole, REASON: reason, PLACE: None})
    return pa.Table.from_pylist(rows, schema=REJECTED)


def _build(ids: list[Id], accepted: pa.Table) -> RecordIndex:
    """Build the index; equal leaves are found as equal bytes, so each is decoded once."""
    tokens: list[bytes] = [*_column(accepted, "tokens")]
    leaves: list[list[bytes]] = [*_column(accepted, "leaves")]
    shared: dict[bytes, int] = {}
    codes = [shared.setdefault(leaf, len(shared)) for found in leaves for leaf in found]
    lengths = np.array([len(program) // 4 for program in tokens], np.int64)
    program = np.frombuffer(b"".join(tokens), np.int32)
    # A program's tokens count its own leaves; `codes` says which distinct leaf each of them is.
    base = np.cumsum([0, *(len(found) for found in leaves)], dtype=np.int64)[:-1]
    at = np.repeat(base, lengths) + np.maximum(program, 0)
    distinct = np.array([*codes, 0], np.int32)[np.minimum(at, len(codes))]
    built = build_arrays(
        lengths, np.where(program >= 0, distinct, program), [decode_leaf(leaf) for leaf in shared]
    )
    return RecordIndex(Ids.of(ids), TextPool.build(_column(accepted, FILTER)), built)


def _column(table: pa.Table, name: str) -> list[Any]:
    return table[name].to_pylist()
