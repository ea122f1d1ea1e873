"""The accepted rows of a table of subscriptions, or of a shard: numbered by their ids, to an index.

Ranked subscriptions besides:

clauses of each part -> distinct ones of all, numbered -> rows of (clause, weight), in the order of the ids
programs by id       -> in the order of ranks          -> filters
programs of clauses  -> by their numbers               -> clauses
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.scores import ReadsScores
from headgate.core.event import ID
from headgate.core.ids import Ids, are_whole
from headgate.core.interning import TextPool
from headgate.ranking.filters.clause_index import ClauseIndex
from headgate.ranking.filters.clauses import ClauseTable, Named, Weighted
from headgate.ranking.filters.index import RankedIndex
from headgate.ranking.filters.keys import rank
from headgate.ranking.scores.table import EventScores
from headgate.records.programs.programs import starts
from headgate.runtime.rows import FILTER, SCORE, WEIGHTS
from headgate.tables.filter_rows import (
    CLAUSE_PROGRAMS,
    CLAUSES,
    NAMES,
    NUMBER,
    PART,
    PLACE,
    PROGRAMS,
    REASON,
    ROW,
    SCORING,
    TEXTS,
)
from headgate.tables.lines import BLOCK, FILE, POSITION
from headgate.tables.places import Format

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.protocol import CompiledFilters, Contents
    from headgate.core.arrays import Bools, Floats64, Ints
    from headgate.core.event import Id


_TYPES: dict[str, pa.DataType] = {ID: pa.string(), ROW: pa.string(), REASON: pa.string(), PLACE: pa.int64()}
REJECTED = pa.schema(_TYPES)
"""The columns of a rejected table; `place` counts characters of the filter from 1."""


class NumberedRows(NamedTuple):
    """The accepted rows, as places in the table, sorted by their ids; and the table of the refused ones."""

    ids: Ids
    rows: Ints
    refused: pa.Table


def number_rows(compiled: pa.Table, form: Format, *, numbered: bool | None = None) -> NumberedRows:
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
    return NumberedRows(
        Ids.from_arrow(distinct),
        rows[by_id[first]],
        _refused(compiled.take(bad), compiled.select([ROW]).take(rows[again]), repeated),
    )


def in_order(compiled: pa.Table) -> Ints:
    """Return the places of the rows in the order of `ORDER`."""
    files = pc.unique(compiled[FILE]).sort()
    keys = (compiled[POSITION], compiled[BLOCK], pc.index_in(compiled[FILE], value_set=files))
    return np.lexsort([key.to_numpy() for key in keys])


def _one_type(ids: pa.Table, form: Format, numbered: bool | None) -> pa.Array[Any]:
    """Take ids as numbers if all of them are, else as text; CSV has text only, so it is read."""
    numbers, texts = ids["id_number"].combine_chunks(), ids["id_text"].combine_chunks()
    if numbered is None and texts.null_count == len(texts):
        return numbers
    ids_as_text = pc.coalesce(texts, numbers.cast(pa.string()))
    if numbered is None:
        numbered = form is Format.CSV and pc.all(are_whole(ids_as_text)).as_py()
    return ids_as_text.cast(pa.int64() if numbered else pa.large_string())


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
    numbered: NumberedRows,
    contents: Contents,
    path: Path,
    *,
    ranked: bool,
    source: dict[str, object] | None = None,
) -> Filters:
    """Index the accepted rows and write a snapshot of them; returns their filters."""
    filters = take_filters(compiled, numbered, contents)
    if ranked:
        ranks = read_ranks(compiled, PART, numbered.rows, contents)
        ranked_index(filters, ranks, contents).save(path, source=source)
    else:
        filters.programs.index(filters.ids, filters.texts).save(path, source=source)
    return filters


def take_filters(compiled: pa.Table, numbered: NumberedRows, contents: Contents) -> Filters:
    """Put the accepted rows into the order of their ids, each with its program."""
    payloads = compiled.select([PART, PROGRAMS]).filter(pc.is_valid(compiled[PROGRAMS])).sort_by(PART)
    compiled_filters, counts = contents.file([payload.as_buffer() for payload in payloads[PROGRAMS]])
    base = starts(counts)
    rows = compiled.select([PART, NUMBER]).take(numbered.rows)
    part = pc.index_in(rows[PART], value_set=payloads[PART].combine_chunks()).to_numpy()
    programs = compiled_filters.take(base[part] + rows[NUMBER].to_numpy())
    # Cast before it is taken, since millions of filters may be more than a column of plain strings holds.
    texts = compiled[FILTER].cast(pa.large_string()).take(numbered.rows).combine_chunks()
    pool = TextPool.from_arrow(texts) if len(texts) else TextPool.build(())
    return Filters(numbered.ids, pool, programs)


# The overloads of Arrow's functions are about types that are known before; these are not.
_compute: Any = pc


@dataclass(frozen=True)
class Filters:
    """Accepted subscriptions in the order of their ids: texts and programs."""

    ids: Ids
    texts: TextPool
    programs: CompiledFilters


@dataclass(frozen=True)
class Ranks:
    """What the same subscriptions are ranked by; `programs` are those of the distinct clauses."""

    scores: Floats64
    clauses: ClauseTable
    programs: CompiledFilters
    by_event: EventScores | None = None
    """The scores that depend on the event."""


def read_ranks(compiled: pa.Table, part: str, rows: Ints, contents: Contents) -> Ranks:
    """Put together what workers have read of the rows that were accepted, in the order given.

    `part` is the column that tells which batch a row was in.
    """
    clauses = compiled.select([part, TEXTS, NAMES, CLAUSE_PROGRAMS])
    payloads = clauses.filter(_compute.is_valid(clauses[TEXTS])).sort_by(part)
    texts = _flat(payloads[TEXTS])
    coded = texts.dictionary_encode()
    number = np.asarray(coded.indices, np.int64)
    # A dictionary is in the order in which the texts came, and so are the first places of each.
    _, first = np.unique(number, return_index=True)
    base = starts(np.asarray(_compute.list_value_length(payloads[TEXTS]), np.int64))
    taken = compiled.select([part, SCORE, SCORING, CLAUSES, WEIGHTS]).take(rows)
    where = _compute.index_in(taken[part], value_set=payloads[part].combine_chunks()).to_numpy()
    counts = np.asarray(_compute.list_value_length(taken[CLAUSES]), np.int64)
    local = np.asarray(_flat(taken[CLAUSES]), np.int64)
    weighted = Weighted(
        starts(counts),
        number[local + np.repeat(base[where], counts)].astype(np.int32),
        np.asarray(_flat(taken[WEIGHTS]), np.float64),
    )
    programs, _ = contents.file([each.as_buffer() for each in payloads[CLAUSE_PROGRAMS]])
    names = _flat(payloads[NAMES]).take(first)
    table = ClauseTable(weighted, TextPool.from_arrow(coded.dictionary), _named(names))
    scores = np.asarray(taken[SCORE], np.float64)
    return Ranks(scores, table, programs.take(first), _scorings(taken[SCORING], contents))


def _scorings(given: pa.ChunkedArray[Any], contents: Contents) -> EventScores | None:
    """Parse the scores that depend on the event, if there are any."""
    if given.null_count == len(given):
        return None
    room = contents
    assert isinstance(room, ReadsScores), "workers have refused them"
    return EventScores.build([None if text is None else room.scoring(text) for text in given.to_pylist()])


def ranked_index(filters: Filters, ranks: Ranks, contents: Contents) -> RankedIndex:
    """Index ranked subscriptions."""
    keys, order = rank(ranks.scores)
    content = filters.programs.take(order).index(Ids(keys), filters.texts.take(order))
    relaxed = clause_index(filters.ids, ranks, np.arange(len(filters.ids)), contents)
    return RankedIndex.from_contents(
        filters.ids, ranks.scores, content, relaxed, room=contents, by_event=ranks.by_event
    )


def clause_index(ids: Ids, ranks: Ranks, places: Ints, contents: Contents) -> ClauseIndex:
    """Index the clauses of some subscriptions, by their places; those that only others have are left out."""
    rows = ranks.clauses.rows.take(places)
    used, clause = np.unique(rows.clause, return_inverse=True)
    texts, named = ranks.clauses.texts.take(used), _take_named(ranks.clauses.named, used)
    table = ClauseTable(rows._replace(clause=clause.astype(np.int32)), texts, named)
    compiled = ranks.programs.take(used.astype(np.int64))
    return ClauseIndex.from_table(ids, table, room=contents, compiled=compiled)


def with_unfiltered(ranks: Ranks, filtered: Bools, always: str) -> Ranks:
    """Put in subscriptions without a filter: one clause that always holds, and weighs 1.

    `filtered` tells for each subscription whether it has one; `ranks` are those that do, in the same order.
    `always` is the room's filter that every event matches.
    """
    rows, texts, named = ranks.clauses
    programs, distinct = ranks.programs, texts.texts()
    if always not in distinct:
        distinct.append(always)
        named = named._replace(start=np.append(named.start, named.start[-1]))
        programs = programs.with_filter(always)
    counts = np.ones(len(filtered), np.int64)
    counts[filtered] = np.diff(rows.start)
    theirs = np.repeat(filtered, counts)
    clause, weight = np.full(len(theirs), distinct.index(always), np.int32), np.ones(len(theirs))
    clause[theirs], weight[theirs] = rows.clause, rows.weight
    table = ClauseTable(Weighted(starts(counts), clause, weight), TextPool.build(distinct), named)
    scores = np.zeros(len(filtered))
    scores[filtered] = ranks.scores
    return Ranks(scores, table, programs)


def _take_named(named: Named, places: NDArray[np.integer[Any]]) -> Named:
    start, counts = named.start[places], np.diff(named.start)[places]
    ends = starts(counts)
    at = np.arange(ends[-1]) + np.repeat(start - ends[:-1], counts)
    return Named(named.names, ends, named.name[at])


def _named(names: pa.Array[Any]) -> Named:
    """Number the attributes that clauses look at."""
    coded = _compute.list_flatten(names).dictionary_encode()
    counts = np.asarray(_compute.list_value_length(names), np.int64)
    return Named(
        tuple(map(str, coded.dictionary.to_pylist())), starts(counts), np.asarray(coded.indices, np.int32)
    )


def _flat(lists: pa.ChunkedArray[Any]) -> pa.Array[Any]:
    """Return the elements of lists, one after another."""
    elements: pa.Array[Any] = _compute.list_flatten(lists.combine_chunks())
    return elements
