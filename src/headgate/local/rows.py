"""Rows in this process, as jobs ask for them: one batch after the other.

Objects of JSON become columns with the types that Spark infers where those are clear. A column that holds
values of several kinds is `UnsureError`: Spark would make text of them, or drop some.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.core.event import ID, read_object
from headgate.core.values import fold
from headgate.tables.comparing import attribute_paths
from headgate.tables.frames.reading import keep_lines
from headgate.tables.lines import TOGETHER, VALUE
from headgate.tables.places import Format, UnsureError, check_output
from headgate.tables.writing import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headgate.core.values import Path
    from headgate.jobs.runner import Batches, Work
    from headgate.records.language.model import Expression


_PLAIN: dict[frozenset[type], pa.DataType] = {
    frozenset({bool}): pa.bool_(),
    frozenset({int}): pa.int64(),
    frozenset({float}): pa.float64(),
    frozenset({int, float}): pa.float64(),
    frozenset({str}): pa.string(),
    # Nothing to infer from.
    frozenset(): pa.string(),
}


def columns_of(rows: Sequence[Mapping[str, Any]], path: str) -> pa.Table:
    """Make columns of objects, in the order of their names.

    >>> columns_of([{"id": 7, "b": 1}, {"id": "x", "b": 1.5, "a": {"c": None}}], "events.jsonl").to_pylist()
    [{'a': None, 'b': 1.0, 'id': '7'}, {'a': {'c': None}, 'b': 1.5, 'id': 'x'}]
    """
    names = sorted({name for row in rows for name in row})
    columns = []
    for name in names:
        values = [row.get(name) for row in rows]
        if fold(name) == ID and {type(value) for value in values} == {int, str}:
            values = [str(value) for value in values]
        kind = _kind(values, name, path)
        columns.append(pa.array(values, kind))
    return pa.table(columns, names=names)


def _kind(values: Sequence[Any], name: str, path: str) -> pa.DataType:
    kinds = frozenset(type(value) for value in values if value is not None)
    plain = _PLAIN.get(kinds)
    if plain is not None:
        return plain
    if kinds == {list}:
        inner = [each for value in values if value is not None for each in value]
        return pa.list_(pa.field("element", _kind(inner, name, path)))
    fields = sorted({field for value in values if isinstance(value, dict) for field in value})
    if kinds == {dict} and fields:
        objects = [value for value in values if value is not None]
        return pa.struct(
            [
                (field, _kind([value.get(field) for value in objects], f"{name}.{field}", path))
                for field in fields
            ]
        )
    what = "is an empty object" if kinds == {dict} else "has values of several types"
    raise UnsureError(f"{path}: {name} {what}")


# The overloads of Arrow's functions are about types that are known before; these are not.
_compute: Any = pc


@dataclass(frozen=True)
class LocalRows:
    """Rows in this process."""

    schema: pa.Schema
    parts: Callable[[], Iterable[Batches]]
    given: bool = False
    """Whether the columns are those of somebody's records, and may be of any type."""

    def map(self, work: Work, schema: pa.Schema, *, numbered: bool = False) -> LocalRows:
        """Go through each part."""

        def parts() -> Iterator[Batches]:
            for number, part in enumerate(self.parts()):
                yield work(iter(part), part=number) if numbered else work(iter(part))

        return LocalRows(schema, parts)

    def _each(self, change: Callable[[pa.RecordBatch], pa.RecordBatch], schema: pa.Schema) -> LocalRows:
        return self.map(lambda batches: map(change, batches), schema)

    def filtered(self, work: Work) -> LocalRows:
        """Leave out some rows of each part."""
        return replace(self, parts=self.map(work, self.schema).parts)

    def parsed(self, title: str) -> LocalRows:
        """Return the lines of JSON that are events as columns, with the types that Spark infers."""
        lines: list[Any] = self.filtered(keep_lines).collect()[VALUE].to_pylist()
        table = columns_of([read_object(line) for line in lines], title)
        # Without any there is nothing to infer from.
        return rows_of(table if table.column_names else pa.table({ID: pa.array([], pa.string())}), given=True)

    def where(self, sql: str, tree: Expression, title: str) -> LocalRows:
        """Return the rows for which a filter holds; what Spark may see otherwise is left to it."""
        from headgate.local.records import where

        return rows_of(where(self.collect(), sql, tree, title), given=self.given)

    @property
    def names(self) -> list[str]:
        """List the columns."""
        return self.schema.names

    def attributes(self, mark: str = "") -> list[Path]:
        """List the columns by path, nested ones included."""
        return list(attribute_paths(self.schema, mark))

    def select(self, *columns: str) -> LocalRows:
        """Return some columns."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        return self._each(lambda batch: batch.select(list(columns)), schema)

    def having(self, column: str) -> LocalRows:
        """Return the rows whose column is not NULL."""
        return self._each(lambda batch: batch.filter(batch[column].is_valid()), self.schema)

    def lacking(self, column: str) -> LocalRows:
        """Return the rows whose column is NULL."""
        return self._each(lambda batch: batch.filter(batch[column].is_null()), self.schema)

    def then(self, others: LocalRows) -> LocalRows:
        """Return these rows, and others after them."""
        return LocalRows(self.schema, lambda: [*self.parts(), *others.parts()])

    def sorted(self, *columns: str) -> LocalRows:
        """Sort all rows."""
        return LocalRows(self.schema, lambda: [_batches(_sorted(self.collect(), columns))])

    def parted(self, column: str, count: int, *order: str) -> LocalRows:
        """Have the rows of number n in part n, in an order."""

        def parts() -> Iterator[Batches]:
            table = _sorted(self.collect(), order)
            for number in range(count):
                yield _batches(table.filter(_compute.equal(table[column], number)))

        return LocalRows(self.schema, parts)

    def gathered(self, *columns: str) -> LocalRows:
        """Have all rows in one part."""
        del columns
        return LocalRows(self.schema, lambda: [chain.from_iterable(self.parts())])

    def firsts(self, column: str, *order: str) -> tuple[LocalRows, LocalRows]:
        """Tell the first of the rows with one value from the others."""
        table = self.collect()
        by_value = _compute.sort_indices(table, [(name, "ascending") for name in (column, *order)])
        values = table[column].take(by_value).combine_chunks()
        first = np.ones(len(values), np.bool_)
        first[1:] = _compute.not_equal(values[1:], values[:-1]).to_numpy(zero_copy_only=False)
        places = by_value.to_numpy()
        one, other = (table.take(np.sort(places[each])) for each in (first, ~first))
        return rows_of(one), rows_of(other)

    def counted(self, column: str) -> LocalRows:
        """Count the rows of each value."""
        schema = pa.schema([self.schema.field(column), pa.field("count", pa.int64())])

        def parts() -> Iterator[Batches]:
            counts = Counter(
                each for part in self.parts() for batch in part for each in batch[column].to_pylist()
            )
            columns = [list(counts), list(counts.values())]
            yield _batches(pa.table(columns, schema=schema))

        return LocalRows(schema, parts)

    def summed(self, column: str, *sums: str) -> LocalRows:
        """Sum up columns of the rows of each value."""
        totals = self.collect().group_by(column).aggregate([(name, "sum") for name in sums])
        return rows_of(
            totals.select([column, *(f"{name}_sum" for name in sums)]).rename_columns([column, *sums])
        )

    def coalesced(self, name: str, kind: pa.DataType, *columns: str) -> LocalRows:
        """Add a column: of each row the first of some others that is not NULL, of a type."""

        def add(batch: pa.RecordBatch) -> pa.RecordBatch:
            column = _compute.coalesce(*(batch[each].cast(kind) for each in columns))
            return pa.RecordBatch.from_arrays([*batch.columns, column], schema=schema)

        schema = self.schema.append(pa.field(name, kind))
        return self._each(add, schema)

    def count(self) -> int:
        """Count all rows."""
        return sum(batch.num_rows for part in self.parts() for batch in part)

    def head(self, count: int) -> pa.Table:
        """Return the first rows."""
        batches: list[pa.RecordBatch] = []
        for part in self.parts():
            for batch in part:
                batches.append(batch.slice(0, count))
                count -= batches[-1].num_rows
                if not count:
                    return pa.Table.from_batches(batches, self.schema)
        return pa.Table.from_batches(batches, self.schema)

    def collect(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches([batch for part in self.parts() for batch in part], self.schema)

    @contextmanager
    def kept(self) -> Iterator[LocalRows]:
        """Compute them once."""
        parts = [list(part) for part in self.parts()]
        yield replace(self, parts=lambda: parts)

    def write(self, path: str) -> None:
        """Write a table."""
        if self.given:
            _check_writable(self.schema, path)
        with writing(path, self.schema) as write:
            for part in self.parts():
                for batch in part:
                    write(batch)


def _check_writable(schema: pa.Schema, path: str) -> None:
    """Leave columns to Spark that are written in several ways; CSV has no nested ones at all."""
    form = check_output(path)
    for field in schema:
        kind = field.type
        nested = isinstance(kind, pa.StructType | pa.ListType | pa.MapType)
        if (nested and form is Format.CSV) or pa.types.is_timestamp(kind) or isinstance(kind, pa.MapType):
            raise UnsureError(f"{path}: column {field.name} is {kind}")


def rows_of(table: pa.Table, *, given: bool = False) -> LocalRows:
    return LocalRows(table.schema, lambda: [_batches(table)], given)


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    return table.combine_chunks().to_batches(TOGETHER)


def _sorted(table: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    down = {name: name.startswith("-") for name in columns}
    return table.sort_by(
        [(name[1:], "descending") if down[name] else (name, "ascending") for name in columns]
    )
