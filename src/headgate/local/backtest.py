"""The backtest job in this process: one filter over historic events.

A filter of records means what Spark SQL says. An index says the same where each column has one type and what
is compared is of one kind, or can be cast value by value. All else is left to Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.backtest.one_filter import (
    SAMPLE,
    BacktestResult,
    Pattern,
    check_attributes,
    check_paths,
    keep_documents,
    named_in,
)
from headgate.contents.kind import FilterSettings
from headgate.contents.registry import DEFAULT, content_of
from headgate.core.casts import to_bool, to_date, to_double, to_int, to_timestamp
from headgate.core.event import CONTENT_TYPE, DATA, ID, Event
from headgate.core.subscription import SQL, Subscription
from headgate.core.values import dotted, fold
from headgate.errors import EventError
from headgate.local.events import all_columns, json_lines_of, read_documents
from headgate.local.json_columns import columns_of
from headgate.records.index.index import CHUNK, RecordIndex
from headgate.records.language.dialects import to_sql
from headgate.records.language.model import (
    MOMENTS,
    NUMBERS,
    HasWord,
    IsNull,
    Like,
    LiteralType,
    Truth,
    predicates,
)
from headgate.records.language.parse import parse_filter
from headgate.records.names import NameSettings, plain_text
from headgate.runtime.progress import step
from headgate.tables.comparing import attribute_paths
from headgate.tables.event_rows import read_event
from headgate.tables.places import Format, UnsureError, check_output
from headgate.tables.requests import check_backtest, check_backtest_documents
from headgate.tables.writing import write_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headgate.contents.protocol import Content
    from headgate.core.values import Path
    from headgate.rdf.language.model import Options
    from headgate.rdf.taxonomy.taxonomy import Taxonomy
    from headgate.records.language.model import Expression, Predicate

    Column = pa.ChunkedArray[Any] | pa.Array[Any]

_CASTS: dict[LiteralType, Callable[[str], object]] = {
    LiteralType.BOOL: to_bool,
    LiteralType.INT: to_int,
    LiteralType.DECIMAL: to_double,
    LiteralType.DOUBLE: to_double,
    LiteralType.DATE: to_date,
    LiteralType.TIMESTAMP: to_timestamp,
}
"""How Spark casts texts that are compared with such literals."""


def backtest(
    filter_text: str,
    events: str,
    *,
    dialect: str = SQL,
    nulls: str | None = None,
    names: str | None = None,
    dots: str | None = None,
    output: str | None = None,
    quiet: bool = False,
) -> BacktestResult:
    """Count the records that a filter would have matched, as `spark.backtest.backtest` does."""
    wanted = FilterSettings(dialect, nulls=nulls, names=names, dots=dots)
    if not NameSettings.of(vars(wanted)).usual:
        return _by_index(Pattern(filter_text, DEFAULT, wanted), events, output, quiet=quiet)
    sql = to_sql(filter_text, dialect)
    tree = parse_filter(sql)
    form = check_backtest(events, output)
    with step("backtesting", quiet=quiet) as timing:
        table, rejected = all_columns(events, form)
        if table.num_rows:
            _check(table, tree, events)
        matching = table.take(_find(table, RecordIndex.build([Subscription(0, sql)])))
        if output is not None:
            _check_writable(table.schema, output)
            write_table(matching, output)
    return BacktestResult(
        events=table.num_rows,
        matches=matching.num_rows,
        rejected=rejected,
        sample=tuple(_ids(matching)[:SAMPLE]),
        seconds=timing.seconds,
    )


def _ids(matching: pa.Table) -> list[str]:
    place = [fold(name) for name in matching.column_names].index(ID)
    return [str(each) for each in matching.column(place).to_pylist()]


def _find(table: pa.Table, index: Content) -> pa.Array[Any]:
    """Return the rows for which a filter holds."""
    found: list[Any] = []
    begun = 0
    for batch in table.combine_chunks().to_batches(CHUNK):
        numbers = pa.array(np.arange(begun, begun + batch.num_rows, dtype=np.int64))
        found += index.match_batch(batch, numbers).column(0).to_pylist()
        begun += batch.num_rows
    return pa.array(found, pa.int64())


class _Matching(NamedTuple):
    """How many events there are, how many rows are none, the ids of those that match, and their columns."""

    events: int
    rejected: int
    ids: list[str]
    table: pa.Table | None


def _by_index(pattern: Pattern, events: str, output: str | None, *, quiet: bool) -> BacktestResult:
    """Count the records that match, where names mean something else than in Spark: an index decides."""
    form = check_backtest(events, output)
    with step("backtesting", quiet=quiet) as timing:
        if form is Format.JSONL:
            found = _matching_lines(pattern, events, keep=output is not None)
        else:
            found = _matching_columns(pattern, events, form)
        if output is not None and found.table is not None:
            _check_writable(found.table.schema, output)
            write_table(found.table, output)
    return BacktestResult(
        events=found.events,
        matches=len(found.ids),
        rejected=found.rejected,
        sample=tuple(found.ids[:SAMPLE]),
        seconds=timing.seconds,
    )


def _matching_lines(pattern: Pattern, events: str, *, keep: bool) -> _Matching:
    """Ask about lines of JSON, which tell null from missing; `keep` makes columns of those that match."""
    index = pattern.indexed()
    read = [read_event(line, pattern.mark) for line in json_lines_of(events)]
    given = [event for event in read if isinstance(event, Event)]
    if given:
        check_paths(
            {path for event in given for path in event.attributes_as(pattern.mark)}, pattern, index, events
        )
    places: list[Any] = (
        index.match_events(given, pa.array(range(len(given)), pa.int64())).column(0).to_pylist()
    )
    matching = [given[place] for place in places]
    table = None
    if keep:
        # Without any there is nothing to infer from.
        none = pa.table({ID: pa.array([], pa.string())})
        table = columns_of([event.data for event in matching], events) if matching else none
    rejected = sum(isinstance(each, EventError) for each in read)
    return _Matching(len(given), rejected, [str(event.id) for event in matching], table)


def _matching_columns(pattern: Pattern, events: str, form: Format) -> _Matching:
    """Ask about columns, all of which every row has."""
    index = pattern.indexed()
    table, rejected = all_columns(events, form)
    if table.num_rows:
        check_paths(attribute_paths(table.schema, pattern.mark), pattern, index, events)
    matching = table.take(_find(table, index))
    return _Matching(table.num_rows, rejected, _ids(matching), matching)


def _check(table: pa.Table, tree: Expression, events: str) -> None:
    """Refuse attributes that no event has, and leave to Spark what it may see otherwise."""
    columns = dict(_columns(table))
    named = predicates(tree)
    check_attributes(columns, named_in(named), events)
    folded = [fold(name) for name in table.column_names]
    if len(set(folded)) < len(folded):
        raise UnsureError(f"{events}: two columns have one name")
    for each in named:
        if each.attribute.expression is not None:
            what = f"{events}: {plain_text(each.attribute.expression.text)} is computed"
            raise UnsureError(f"{what}, and Spark has the types of columns for it")
        if not _is_clear(each, columns[each.attribute.path]):
            what = f"{events}: {dotted(each.attribute.path)} is {columns[each.attribute.path].type}"
            raise UnsureError(f"{what}, and Spark casts what it is compared with")


def _columns(table: pa.Table) -> Iterator[tuple[Path, Column]]:
    """List the attributes of a table by folded path, nested ones included."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        yield from _nested(column.combine_chunks(), (fold(name),))


def _nested(column: Column, path: Path) -> Iterator[tuple[Path, Column]]:
    yield path, column
    if isinstance(column, pa.StructArray):
        for field, inner in zip(column.type, column.flatten(), strict=True):
            yield from _nested(inner, (*path, fold(field.name)))


def _is_clear(predicate: Predicate, column: Column) -> bool:
    """Tell whether Spark compares values as we do: all are of the literals' kind, or can be cast to it."""
    kind: pa.DataType = column.type
    if isinstance(predicate, IsNull) or column.null_count == len(column):
        return not isinstance(predicate, Truth) or pa.types.is_boolean(kind)
    if isinstance(predicate, Truth):
        return pa.types.is_boolean(kind)
    if isinstance(predicate, HasWord) and pa.types.is_string(kind):
        # Beyond ASCII, what is a word to Spark depends on its Java.
        return all(text.isascii() for text in column.unique().to_pylist() if text is not None)
    if isinstance(predicate, Like | HasWord) or predicate.attribute.function:
        return pa.types.is_string(kind)
    types = {literal.type for literal in _literals(predicate)} - {LiteralType.NULL}
    if isinstance(kind, pa.ListType):
        return _alike(types, kind.value_type)
    if _alike(types, kind):
        return True
    if not pa.types.is_string(kind) or len(types) != 1:
        return False
    cast = _CASTS[types.pop()]
    return all(cast(text) is not None for text in column.unique().to_pylist() if text is not None)


def _literals(predicate: Any) -> tuple[Any, ...]:
    if hasattr(predicate, "literals"):
        return tuple(predicate.literals)
    return (predicate.low, predicate.high) if hasattr(predicate, "low") else (predicate.literal,)


def _alike(types: set[LiteralType], kind: pa.DataType) -> bool:
    if pa.types.is_boolean(kind):
        return types <= {LiteralType.BOOL}
    if pa.types.is_string(kind):
        return types <= {LiteralType.STRING}
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return types <= NUMBERS
    # Decimals are not among them: Spark rounds where no type of 38 digits holds column and literals.
    return (pa.types.is_date(kind) or pa.types.is_timestamp(kind)) and types <= MOMENTS


def _check_writable(schema: pa.Schema, output: str) -> None:
    """Leave columns to Spark that are written in several ways; CSV has no nested ones at all."""
    form = check_output(output)
    for field in schema:
        kind = field.type
        nested = isinstance(kind, pa.StructType | pa.ListType | pa.MapType)
        if (nested and form is Format.CSV) or pa.types.is_timestamp(kind) or isinstance(kind, pa.MapType):
            raise UnsureError(f"{output}: column {field.name} is {kind}")


def backtest_documents(
    filter_text: str,
    events: str,
    *,
    dialect: str,
    content_type: str | None = None,
    taxonomy: Taxonomy | None = None,
    options: Options | None = None,
    namespaces: Mapping[str, str] | None = None,
    unindexed: str | None = None,
    output: str | None = None,
    quiet: bool = False,
) -> BacktestResult:
    """Count the documents that a filter would have matched, as `spark.backtest.backtest_documents` does."""
    content = content_of([dialect], "the filter") or DEFAULT
    wanted = FilterSettings(
        dialect, taxonomy=taxonomy, options=options, namespaces=namespaces, unindexed=unindexed
    )
    pattern = Pattern(filter_text, content, wanted)
    pattern.indexed()
    check_backtest_documents(events, output, content, content_type)
    with step("backtesting", quiet=quiet) as timing:
        given = read_documents(events, content, content_type, None, keep=output is not None)
        found = list(keep_documents(given.documents, pattern))
        if output is not None:
            write_table(_documents(found, given.id_type), output)
    ids = [str(each) for batch in found for each in batch[ID].to_pylist()]
    return BacktestResult(
        events=given.count,
        matches=len(ids),
        rejected=len(given.refused),
        sample=tuple(ids[:SAMPLE]),
        seconds=timing.seconds,
        feeds=given.feeds,
    )


def _documents(found: list[pa.RecordBatch], id_type: str) -> pa.Table:
    """Return documents that matched, as they came."""
    kind = pa.int64() if id_type == "long" else pa.string()
    schema = pa.schema({ID: kind, **dict.fromkeys(("source", CONTENT_TYPE, DATA), pa.string())})
    rows = []
    for row in (row for batch in found for row in batch.to_pylist()):
        number, text = row["source_number"], row["source_text"]
        source = text if number is None else str(number)
        data = row[DATA]
        written = data.decode(errors="replace") if isinstance(data, bytes) else data
        rows.append({ID: row[ID], "source": source, CONTENT_TYPE: row[CONTENT_TYPE], DATA: written})
    return pa.Table.from_pylist(rows, schema=schema)
