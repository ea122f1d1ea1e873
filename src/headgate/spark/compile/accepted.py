"""The accepted rows of a table of subscriptions, or of a shard: numbered by their ids, with programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.event import ID
from headgate.core.id_types import are_whole
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.records.programs.programs import starts
from headgate.runtime.rows import FILTER
from headgate.spark.compile.ranked import Filters, ranked_index, read_ranks
from headgate.spark.compile.rows import NUMBER, PART, PLACE, PROGRAMS, REASON, ROW
from headgate.spark.tables.places import Format
from headgate.spark.tables.tables import BLOCK, FILE, POSITION

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.compiling import Contents
    from headgate.core.event import Id

_TYPES: dict[str, pa.DataType] = {ID: pa.string(), ROW: pa.string(), REASON: pa.string(), PLACE: pa.int64()}
REJECTED = pa.schema(_TYPES)
"""The columns of a rejected table; `place` counts characters of the filter from 1."""


class Numbered(NamedTuple):
    """The accepted rows, as places in the table, sorted by their ids; and the table of the refused ones."""

    ids: Ids
    rows: NDArray[np.int64]
    refused: pa.Table


def number_rows(compiled: pa.Table, form: Format, *, numbered: bool | None = None) -> Numbered:
    """Give the accepted rows numbers by their ids, which have one type; the first of equal ids wins.

    Whether ids are whole numbers is seen in the rows, unless it is said in `numbered`.
    """
    ordered = in_order(compiled)
    good = compiled[REASON].is_null().to_numpy()[ordered]
    rows, bad = ordered[good], ordered[~good]
    ids = _one_type(compiled.select(["id_number", "id_text"]).take(rows), form, numbered)
    # Both sorts are stable, so that the first of equal ids is the first of the table.
    if pa.types.is_integer(ids.type):
        by_id = np.argsort(ids.to_numpy(), kind="stable")
    else:
        by_id = pc.sort_indices(ids).to_numpy().astype(np.int64)
    ids = ids.take(by_id)
    first = np.ones(len(ids), bool)
    if len(ids) > 1:
        first[1:] = pc.not_equal(ids[1:], ids[:-1]).to_numpy(zero_copy_only=False)
    again = np.sort(by_id[~first])
    distinct = ids.filter(pa.array(first)) if len(again) else ids
    places = np.empty(len(ids), np.int64)
    places[by_id] = np.arange(len(ids))
    repeated: list[Any] = ids.take(places[again]).to_pylist()
    return Numbered(
        Ids.from_arrow(distinct),
        rows[by_id[first]],
        _refused(compiled.take(bad), compiled.select([ROW]).take(rows[again]), repeated),
    )


def in_order(compiled: pa.Table) -> NDArray[np.int64]:
    """Return the places of the rows in the order of `ORDER`."""
    files = pc.unique(compiled[FILE]).sort()
    keys = (compiled[POSITION], compiled[BLOCK], pc.index_in(compiled[FILE], value_set=files))
    return np.lexsort([key.to_numpy() for key in keys])


def _one_type(ids: pa.Table, form: Format, numbered: bool | None) -> pa.Array[Any]:
    """Take ids as numbers if all of them are, else as text; CSV has text only, so it is read."""
    numbers, texts = ids["id_number"].combine_chunks(), ids["id_text"].combine_chunks()
    if numbered is None and texts.null_count == len(texts):
        return numbers
    found = pc.coalesce(texts, numbers.cast(pa.string()))
    if numbered is None:
        numbered = form is Format.CSV and pc.all(are_whole(found)).as_py()
    return found.cast(pa.int64() if numbered else pa.large_string())


def _refused(bad: pa.Table, again: pa.Table, identities: list[Id]) -> pa.Table:
    """Make the rejected table: the row as it came, its id if it had one, why, and where in the filter."""
    identity = pc.coalesce(bad["id_text"], bad["id_number"].cast(pa.string()))
    first = pa.table([identity, bad[ROW], bad[REASON], bad[PLACE]], schema=REJECTED)
    reasons = [repeated_reason(identity) for identity in identities]
    columns = [[str(identity) for identity in identities], again[ROW], reasons, [None] * len(reasons)]
    return pa.concat_tables([first, pa.table(columns, schema=REJECTED)])


def repeated_reason(identity: Id) -> str:
    """Say why a row with an id that was given before is refused."""
    return f"id {identity!r} was given by an earlier row already"


def save_index(
    compiled: pa.Table,
    numbered: Numbered,
    contents: Contents,
    place: Path,
    *,
    ranked: bool,
    source: dict[str, object] | None = None,
) -> Filters:
    """Index the accepted rows and write a snapshot of them; returns their filters."""
    filters = _filters(compiled, numbered, contents)
    if ranked:
        ranks = read_ranks(compiled, PART, numbered.rows, contents)
        ranked_index(filters, ranks, contents).save(place, source=source)
    else:
        filters.programs.index(filters.ids, filters.texts).save(place, source=source)
    return filters


def _filters(compiled: pa.Table, numbered: Numbered, contents: Contents) -> Filters:
    """Put the accepted rows into the order of their ids, each with its program."""
    payloads = compiled.select([PART, PROGRAMS]).filter(pc.is_valid(compiled[PROGRAMS])).sort_by(PART)
    filed, counts = contents.file([payload.as_buffer() for payload in payloads[PROGRAMS]])
    base = starts(counts)
    rows = compiled.select([PART, NUMBER]).take(numbered.rows)
    part = pc.index_in(rows[PART], value_set=payloads[PART].combine_chunks()).to_numpy()
    programs = filed.take(base[part] + rows[NUMBER].to_numpy())
    # Cast before it is taken, since millions of filters may be more than a column of plain strings holds.
    texts = compiled[FILTER].cast(pa.large_string()).take(numbered.rows).combine_chunks()
    pool = TextPool.from_arrow(texts) if len(texts) else TextPool.build(())
    return Filters(numbered.ids, pool, programs)
