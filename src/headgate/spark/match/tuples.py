"""What XML patterns return for the events that they match: a table of its own beside the matches."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents.registry import room_at
from headgate.runtime.targets import opened_as
from headgate.spark.tables.event_rows import read_events
from headgate.spark.tables.tables import write_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Event, Id
    from headgate.runtime.targets import Shard, Target
    from headgate.xml.index.index import XmlIndex
    from headgate.xml.language.model import StructuralId

LIMIT = 1000
"""Rows for an event and a subscription, at most."""
CUT = "cut"
"""The name of the value that says that there were more rows."""
REFUSED = "refused"
"""The name of the value that says that there was too much to return."""
ENOUGH = 64 << 20
"""Characters that are sent together, about."""


def write_tuples(events: DataFrame, target: Target, id_type: str, output: str) -> None:
    """Write what patterns return: a row for each value of each tuple.

    Columns: event_id, subscription_id, `tuple` (counted from 1 for each pair), `name` and `value`. An `id` is
    written as pre,post,level.
    """
    types: dict[str, pa.DataType] = {
        "event_id": pa.int64() if id_type == "long" else pa.string(),
        "subscription_id": pa.int64() if target.numbered else pa.string(),
        "tuple": pa.int32(),
        "name": pa.string(),
        "value": pa.string(),
    }
    schema = pa.schema(types)
    works = [partial(_tuples, shard=shard, schema=schema) for shard in target.shards]
    found = [events.mapInArrow(work, from_arrow_schema(schema)) for work in works]
    write_table(reduce(DataFrame.union, found), output)


def _tuples(batches: Iterable[pa.RecordBatch], shard: Shard, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    index: Any = opened_as(*shard, lambda place: room_at(place).open(place, verify=False))
    rows: list[tuple[Any, ...]] = []
    size = 0
    for batch in batches:
        for event in read_events(batch, index.room_name):
            for row in _of_event(index, event):
                rows.append(row)
                size += len(row[-1])
                if size > ENOUGH:
                    yield _batch(rows, schema)
                    rows, size = [], 0
    yield _batch(rows, schema)


def _of_event(index: XmlIndex, event: Event) -> Iterator[tuple[Any, ...]]:
    """List what patterns return for an event; a pattern that returns too much is told, and stops no other."""
    refused: dict[Id, str] = {}
    for identity, answer in index.answers(event, refused).items():
        found = answer.tuples(LIMIT)
        for number, row in enumerate(found.rows, 1):
            for name, value in zip(found.names, row, strict=True):
                yield event.id, identity, number, name, _written(value)
        if not found.complete:
            yield event.id, identity, LIMIT + 1, CUT, f"more than {LIMIT} tuples"
    for identity, reason in refused.items():
        yield event.id, identity, 0, REFUSED, reason


def _written(value: str | StructuralId) -> str:
    return value if isinstance(value, str) else ",".join(map(str, value))


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
