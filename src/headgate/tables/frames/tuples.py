"""What XML patterns return for the events that they match, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.contents.registry import room_at
from headgate.runtime.targets import opened_as
from headgate.tables.event_rows import read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Event, Id
    from headgate.runtime.targets import Shard
    from headgate.xml.index.index import XmlIndex

LIMIT = 1000
"""Rows for an event and a subscription, at most."""
CUT = "cut"
"""The name of the value that says that there were more rows."""
REFUSED = "refused"
"""The name of the value that says that there was too much to return."""
ENOUGH = 64 << 20
"""Characters that are sent together, about."""


def tuples_schema(id_type: str, *, numbered: bool) -> pa.Schema:
    """Return the columns: event_id, subscription_id, `tuple` (from 1 for each pair), `name` and `value`."""
    types: dict[str, pa.DataType] = {
        "event_id": pa.int64() if id_type == "long" else pa.string(),
        "subscription_id": pa.int64() if numbered else pa.string(),
        "tuple": pa.int32(),
        "name": pa.string(),
        "value": pa.string(),
    }
    return pa.schema(types)


def tuples_of(batches: Iterable[pa.RecordBatch], shard: Shard, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
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
        for number, row in enumerate(found.written(), 1):
            for name, value in zip(found.names, row, strict=True):
                yield event.id, identity, number, name, value
        if not found.complete:
            yield event.id, identity, LIMIT + 1, CUT, f"more than {LIMIT} tuples"
    for identity, reason in refused.items():
        yield event.id, identity, 0, REFUSED, reason


def _batch(rows: list[tuple[Any, ...]], schema: pa.Schema) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(list(column), kind) for column, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
