"""Events that a service keeps, as Arrow batches: lines for streams, or columns for tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from headgate.client.rows import line_of, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.client.model import KeptEvent

LINES = "value binary, content_type string, origin string, arrived timestamp"
"""The columns of every source of a stream."""
TABLE = (
    "cursor bigint, committed timestamp, id string, source string, type string, time string, "
    "datacontenttype string, data string, matches array<string>, event string"
)
"""The columns of a table of events."""
_MICROS = 1_000_000
_TIME = pa.timestamp("us", "UTC")


def as_lines(events: Sequence[KeptEvent]) -> pa.RecordBatch:
    """Make rows of a stream's source."""
    arrays: list[pa.Array[Any]] = [
        pa.array([line_of(bytes(each.event)) for each in events], pa.binary()),
        pa.nulls(len(events), pa.string()),
        pa.array([f"/v1/events/{each.cursor}" for each in events], pa.string()),
        _times(events),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=_names(LINES))


def as_table(events: Sequence[KeptEvent]) -> pa.RecordBatch:
    """Make rows of a DataFrame."""
    texts = [bytes(each.event) for each in events]
    rows = [row_of(text) for text in texts]
    told: list[pa.Array[Any]] = [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
    arrays: list[pa.Array[Any]] = [
        pa.array([each.cursor for each in events], pa.int64()),
        _times(events),
        *told,
        pa.array([each.matches for each in events], pa.list_(pa.string())),
        pa.array([text.decode() for text in texts], pa.string()),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=_names(TABLE))


def _names(ddl: str) -> list[str]:
    return [column.split()[0] for column in ddl.split(", ")]


def _times(events: Sequence[KeptEvent]) -> pa.Array[Any]:
    return pa.array([round(each.time * _MICROS) for each in events], pa.int64()).cast(_TIME)
