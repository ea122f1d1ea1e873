"""Tables of a graph as workers have read them, to its parts and a table of the rows that were refused.

A filter goes through the graph as the number of its program. So whatever is sorted, refused and cut into
shards, `build` says in the end which program belongs to which vertex, and no text is moved on the way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.ids import Ids, are_whole, fit_ids
from headgate.core.interning import TextPool
from headgate.core.rooms import CLAUSES as CLAUSES_INSIDE
from headgate.core.subscription import SQL
from headgate.graph.base import Base, Names
from headgate.graph.build.build import build
from headgate.graph.build.tables import read_tables
from headgate.graph.model import EDGES, NODES, SUBSCRIPTIONS
from headgate.records.programs.programs import starts
from headgate.runtime.rows import DIALECT, FILTER
from headgate.tables.accepted import Ranks, clause_index, in_order, read_ranks, with_unfiltered
from headgate.tables.filter_rows import (
    CLAUSES,
    NUMBER,
    PART,
    PLACE,
    PROGRAMS,
    RANKED,
    REASON,
    ROW,
    SHAPES,
    number_of,
    text_of,
)
from headgate.tables.lines import ORDER as PLACES
from headgate.tables.places import Format

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.contents.protocol import CompiledFilters, Contents
    from headgate.core.arrays import Bools, Ints
    from headgate.graph.build.tables import GraphTables
    from headgate.graph.model import Parts
    from headgate.ranking.filters.clause_index import ClauseIndex

    Column = pa.Array[Any]

# The overloads of Arrow's functions are about types that are known before; these are not.
_compute: Any = pc
_nulls: Any = pa.nulls

TABLE, IDENTITY = "table", "id"
_TYPES: dict[str, pa.DataType] = {
    TABLE: pa.string(),
    IDENTITY: pa.string(),
    ROW: pa.string(),
    REASON: pa.string(),
    PLACE: pa.int64(),
}
REJECTED = pa.schema(_TYPES)
"""The columns of the rejected table of a graph; `table` is nodes, edges or subscriptions."""
ORDER = (NODES, EDGES, SUBSCRIPTIONS)


class ReadTable(NamedTuple):
    """A table as workers have read it, and the format that it had."""

    rows: pa.Table
    form: Format


@dataclass(frozen=True)
class AssembledGraph:
    """A graph whose filters are numbers of programs; their texts; and what was refused."""

    parts: Parts
    programs: CompiledFilters
    texts: Column
    rejected: pa.Table
    accepted: Mapping[str, int]
    """Rows of each table that are in the graph."""
    ranks: Ranks | None = None
    """The clauses of all subscriptions, in the order of their ids, if they are ranked."""


def assemble(tables: dict[str, ReadTable], contents: Contents) -> AssembledGraph:
    """Put the tables of a graph together. Nothing is lost: a row is in the graph or in `rejected`.

    The tables are taken out of the dictionary, so that they are not in memory twice.
    """
    ordered = {name: _Table(name, tables.pop(name)) for name in ORDER}
    programs, texts = _take_programs([ordered[name] for name in ORDER], contents)
    nodes, edges, subscriptions = (ordered[name] for name in ORDER)
    numbered_nodes = _numbered([(nodes, "id")])
    numbered_subscriptions = _numbered([(subscriptions, "id"), (nodes, "subscription")])
    nodes.fit("id", numbered=numbered_nodes)
    nodes.fit("subscription", numbered=numbered_subscriptions)
    subscriptions.fit("id", numbered=numbered_subscriptions)
    subscriptions.fit("node", numbered=numbered_nodes)
    edges.fit("source", numbered=numbered_nodes)
    edges.fit("target", numbered=numbered_nodes)
    # Rows without a usable id cannot be named; the others are told, so that nobody takes them for missing.
    given = [nodes.given("id"), edges.given("source", "target"), subscriptions.given("id")]
    read = read_tables(*given)
    accepted = dict(zip(ORDER, map(len, (read.node_row, read.edge_row, read.subscription_row)), strict=True))
    dialect = contents.dialect
    rejected = pa.concat_tables([ordered[name].rejected(read, texts, dialect) for name in ORDER])
    ranks = None
    if CLAUSES in subscriptions.columns:
        filtered = _flags(read.parts.subscription_filter.is_valid())
        ranks = subscriptions.ranks(read.subscription_row, contents)
        ranks = with_unfiltered(ranks, filtered, contents.always)
    return AssembledGraph(read.parts, programs, texts, rejected, accepted, ranks)


class _Table:
    """One of the tables, in the order of its rows."""

    def __init__(self, name: str, read: ReadTable) -> None:
        self.name = name
        self.form = read.form
        self.shape = SHAPES[name]
        rows, places = read.rows, in_order(read.rows)
        order = None if bool((np.diff(places) == 1).all()) else places
        names = [each for each in rows.column_names if each not in {FILTER, PROGRAMS, *PLACES}]
        self.columns: dict[str, Column] = {each: _taken(rows[each], order) for each in names}
        # Cast before it is taken, since millions of filters may be more than a column of plain strings holds.
        self.filters: Column = _taken(rows[FILTER].cast(pa.large_string()), order)
        self.payloads = rows.select([PART, PROGRAMS]).filter(rows[PROGRAMS].is_valid())
        self.program: Column = _nulls(rows.num_rows, pa.int64())
        self._told = np.zeros(rows.num_rows, np.bool_)

    def __len__(self) -> int:
        return len(self.program)

    def refuse(self, rows: Bools, reasons: list[str]) -> None:
        """Refuse rows that were sound until now."""
        every = np.full(len(self), None, object)
        every[rows] = reasons
        self.columns[REASON] = _compute.coalesce(self.columns[REASON], pa.array(every, pa.string()))

    def fit(self, name: str, *, numbered: bool) -> None:
        """Give ids the type that they have in the graph; rows with one that cannot have it are refused."""
        numbers, texts = self.columns[number_of(name)], self.columns[text_of(name)]
        pair = [fit_ids(each, numbered=numbered) for each in (numbers, texts)]
        empty = [each.null_count == len(each) for each in pair]
        self.columns[name] = pair[empty.index(False)] if sum(empty) == 1 else _compute.coalesce(*pair)
        misfit = _flags(texts.is_valid()) & _flags(pair[1].is_null()) & _flags(self.columns[REASON].is_null())
        if misfit.any():
            values = texts.filter(pa.array(misfit)).to_pylist()
            self.refuse(
                misfit,
                [f"{name} {value!r} has the wrong type: ids here are whole numbers" for value in values],
            )

    def given(self, *ids: str) -> pa.Table:
        """Return the table for `read_tables`, without the rows that cannot be named."""
        keep = np.ones(len(self), np.bool_)
        for name in ids:
            keep &= _flags(self.columns[name].is_valid())
        if self.name == EDGES:
            keep &= _flags(self.columns[REASON].is_null())
        self._told = keep
        names = (*self.shape.columns.ids, *self.shape.columns.texts, *self.shape.columns.numbers)
        columns = {name: self.columns[name] for name in names}
        columns |= {FILTER: self.program, "refusal": self.columns[REASON]}
        table = pa.table(columns)
        return table if keep.all() else table.filter(pa.array(keep))

    def ranks(self, rows: Ints, contents: Contents) -> Ranks:
        """Return the clauses of rows, which are counted as `given` gave them."""
        names = (PART, *RANKED.names)
        table = pa.table({name: self.columns[name] for name in names})
        return read_ranks(table, PART, np.flatnonzero(self._told)[rows], contents)

    def rejected(self, read: GraphTables, texts: Column, dialect: str) -> pa.Table:
        """Return the rows that were refused: by workers, for their ids, or for the others of the graph."""
        named = np.flatnonzero(self._told)
        late = {int(named[each.row]): each.reason for each in read.refused if each.table == self.name}
        silent = np.flatnonzero(~self._told)
        rows = np.sort(np.concatenate([silent, np.array(list(late), np.int64)]).astype(np.int64))
        early = self.columns[REASON].take(rows).to_pylist()
        reasons = [late.get(row, before) for row, before in zip(rows.tolist(), early, strict=True)]
        columns = [
            [self.name] * len(rows),
            self._names(rows),
            self._rows(rows, texts, dialect),
            reasons,
            self.columns[PLACE].take(rows),
        ]
        return pa.table(columns, schema=REJECTED)

    def _names(self, rows: Ints) -> list[str | None]:
        """Name rows: by their id, or their two ends."""
        names = ("source", "target") if self.name == EDGES else ("id",)
        parts = [
            _compute.coalesce(self.columns[text_of(name)], self.columns[number_of(name)].cast(pa.string()))
            .take(rows)
            .to_pylist()
            for name in names
        ]
        return [None if None in each else " → ".join(each) for each in zip(*parts, strict=True)]

    def _rows(self, rows: Ints, texts: Column, dialect: str) -> list[Any]:
        """Return rows as they came, or written anew where workers have passed them, in the room's dialect."""
        rows_as_read = self.columns[ROW].take(rows).to_pylist()
        fields: dict[str, list[Any]] = {}
        for name in self.shape.columns.ids:
            pair = (self.columns[number_of(name)].take(rows), self.columns[text_of(name)].take(rows))
            number, text = (each.to_pylist() for each in pair)
            fields[name] = [a if b is None else b for a, b in zip(number, text, strict=True)]
        fields[FILTER] = texts.take(self.program.take(rows)).to_pylist()
        if dialect != SQL:
            fields[DIALECT] = [None if text is None else dialect for text in fields[FILTER]]
        for name in (*self.shape.columns.texts, *self.shape.columns.numbers):
            fields[name] = self.columns[name].take(rows).to_pylist()
        for at, row in enumerate(rows_as_read):
            if row is None:
                held = {name: values[at] for name, values in fields.items() if values[at] is not None}
                rows_as_read[at] = json.dumps(held, ensure_ascii=False)
        return rows_as_read


def _take_programs(tables: list[_Table], contents: Contents) -> tuple[CompiledFilters, Column]:
    """Lay the programs of all tables one after another, number them, and list their texts."""
    payloads = [each.as_buffer() for table in tables for each in table.payloads[PROGRAMS]]
    compiled_filters, counts = contents.file(payloads)
    base = starts(counts)
    texts: list[Column] = []
    done = 0
    for table in tables:
        numbers = table.payloads[PART].to_numpy()
        first = pa.array(base[done : done + len(numbers)], pa.int64())
        part = _compute.index_in(table.columns[PART], value_set=pa.array(numbers, pa.int64()))
        table.program = _compute.add(first.take(part), table.columns[NUMBER])
        rows = np.flatnonzero(_flags(table.program.is_valid()))
        rows = rows[np.argsort(table.program.take(rows).to_numpy(), kind="stable")]
        texts.append(table.filters.take(rows))
        done += len(numbers)
    return compiled_filters, pa.concat_arrays(texts)


def _numbered(columns: list[tuple[_Table, str]]) -> bool:
    """Tell whether all ids of sound rows are whole numbers; CSV has text only, so it is read."""
    for table, name in columns:
        sound = table.columns[REASON].is_null()
        texts = table.columns[text_of(name)].filter(sound).drop_null()
        if len(texts) and not (table.form is Format.CSV and _flags(are_whole(texts)).all()):
            return False
    return True


def _taken(column: Any, order: Ints | None) -> Column:
    """Return a column as one array, in another order if there is one."""
    whole: Column = column.combine_chunks()
    return whole if order is None else whole.take(order)


def _flags(column: Any) -> Bools:
    return np.asarray(
        column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column, np.bool_
    )


class GraphWriter:
    """Number and index a graph, or a shard of it, and write it; notes the attributes that filters name."""

    def __init__(self, assembled: AssembledGraph, contents: Contents) -> None:
        self._assembled = assembled
        self._contents = contents
        self.attributes: set[str] = set()

    def save(self, parts: Parts, path: Path, *, source: Mapping[str, object] | None = None) -> None:
        built = build(parts)
        programs = np.asarray(built.filters.cast(pa.int64()), np.int64)
        texts = self._assembled.texts.take(programs)
        compiled_filters = self._assembled.programs.take(programs)
        content = compiled_filters.index(
            Ids.from_arrow(pa.array(built.filtered, pa.int64())),
            TextPool.from_arrow(texts) if len(texts) else TextPool.build(()),
        )
        names = Names(
            parts.node_ids,
            parts.subscription_ids,
            parts.kinds,
            parts.node_kind,
            built.vertex_of_node,
            built.edge_ends,
        )
        inside = {} if self._assembled.ranks is None else {CLAUSES_INSIDE: self._clauses(parts).save}
        Base(built.arrays, names, content).save(path, source=source, inside=inside)
        self.attributes.update(compiled_filters.attributes)

    def _clauses(self, parts: Parts) -> ClauseIndex:
        """Index the clauses of the subscriptions of a graph, or of a shard of it."""
        assert self._assembled.ranks is not None
        every, some = (each.subscription_ids.to_arrow() for each in (self._assembled.parts, parts))
        places = pc.index_in(some, value_set=every).to_numpy().astype(np.int64)
        return clause_index(parts.subscription_ids, self._assembled.ranks, places, self._contents)
