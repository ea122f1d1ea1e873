"""The columns of every source of events: whatever it is, rows of four columns.

    value         binary      one JSON line or one document; null for a file, which workers open themselves
    content_type  string      what `value` is: a media type, or null for a JSON line
    origin        string      the file or the subject, for messages; the id of a document that has no other
    arrived       timestamp   when the source got it

This module loads nothing of ours: every process that Spark starts for a source does.
"""

from __future__ import annotations

import pyarrow as pa

VALUE, CONTENT_TYPE, ORIGIN, ARRIVED = COLUMNS = ("value", "content_type", "origin", "arrived")
DDL = f"{VALUE} binary, {CONTENT_TYPE} string, {ORIGIN} string, {ARRIVED} timestamp"
_TYPES: tuple[pa.DataType, ...] = (pa.binary(), pa.string(), pa.string(), pa.timestamp("us", "UTC"))
SCHEMA = pa.schema(dict(zip(COLUMNS, _TYPES, strict=True)))
"""The same, as Spark hands them to workers."""
