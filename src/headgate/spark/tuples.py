"""What XML patterns return for the events that they match: a table of its own beside the matches."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from headgate.contents import XML
from headgate.core.snapshot import room_of
from headgate.errors import TableError
from headgate.spark.document_matching import opened_patterns, read_events
from headgate.spark.tables import write_table
from headgate.xml.index import XmlIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

LIMIT = 1000
"""Rows for an event and a subscription, at most."""
CUT = "cut"
"""The name of the value that says that there were more rows."""


def check_tuples(snapshot: str) -> None:
    """Refuse a snapshot whose filters return nothing, or not by themselves."""
    room = room_of(Path(snapshot))
    if room != XML:
        raise TableError(
            f"snapshot {snapshot} belongs to the room {room!r}, and tuples are of XML patterns without graph "
            "and ranks: compile the subscriptions alone, or leave out --tuples"
        )


def write_tuples(
    events: DataFrame, snapshot: str, digest: str, id_type: str, numbered: bool, output: str
) -> None:
    """Write what the patterns of a snapshot return: a row for each value of each tuple.

    Columns: event_id, subscription_id, `tuple` (counted from 1 for each pair), `name` and `value`. An `id` is
    written as pre,post,level.
    """
    types: dict[str, pa.DataType] = {
        "event_id": pa.int64() if id_type == "long" else pa.string(),
        "subscription_id": pa.int64() if numbered else pa.string(),
        "tuple": pa.int32(),
        "name": pa.string(),
        "value": pa.string(),
    }
    schema = pa.schema(types)
    work = partial(_tuples, snapshot=snapshot, digest=digest, schema=schema)
    write_table(events.mapInArrow(work, from_arrow_schema(schema)), output)


def _tuples(
    batches: Iterable[pa.RecordBatch], snapshot: str, digest: str, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    index = opened_patterns(snapshot, digest)
    assert isinstance(index, XmlIndex)
    for batch in batches:
        rows = []
        for event in read_events(batch, XML):
            for identity, answer in index.answers(event).items():
                found = answer.tuples(LIMIT)
                for number, row in enumerate(found.rows, 1):
                    for name, value in zip(found.names, row, strict=True):
                        text = value if isinstance(value, str) else ",".join(map(str, value))
                        rows.append((event.id, identity, number, name, text))
                if not found.complete:
                    rows.append((event.id, identity, LIMIT + 1, CUT, f"more than {LIMIT} tuples"))
        columns = zip(*rows, strict=True) if rows else [[]] * len(schema)
        yield pa.RecordBatch.from_arrays(
            [pa.array(list(column), kind) for column, kind in zip(columns, schema.types, strict=True)],
            schema=schema,
        )
