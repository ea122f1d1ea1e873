"""The columns of what workers write: matches, dead letters, and what they tell the driver of a part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.records.index.index import EVENT_ID, SUBSCRIPTION_ID
from headgate.runtime.questions import RANK, SCORE

if TYPE_CHECKING:
    from headgate.runtime.questions import Top

MALFORMED, LATE, DUPLICATE, UNKNOWN, LEFT_OUT = KINDS = (
    "malformed", "late", "duplicate", "unknown-source", "left-out",
)  # fmt: skip
"""Why an event is a dead letter; the last is matched, but for one filter that is too much for it."""

_DEAD: dict[str, pa.DataType] = {
    "row": pa.string(),
    "reason": pa.string(),
    "kind": pa.string(),
    "origin": pa.string(),
    "batch": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "subscription": pa.string(),
}
DEAD = pa.schema(_DEAD)

PART, FILE, DEAD_FILE, HASHES, ORIGINS = "part", "file", "dead_file", "hashes", "origins"
EVENTS, MATCHES, NEWEST, ARRIVED, READING, MATCHING = (
    "events", "matches", "newest", "arrived", "reading", "matching",
)  # fmt: skip
_ORIGIN: list[tuple[str, pa.DataType]] = [
    ("name", pa.string()),
    ("events", pa.int64()),
    (ARRIVED, pa.float64()),
]
_SUMMARY: dict[str, pa.DataType] = {
    PART: pa.int32(),
    FILE: pa.string(),
    DEAD_FILE: pa.string(),
    EVENTS: pa.int64(),
    MATCHES: pa.int64(),
    "dead": pa.list_(pa.int64()),
    NEWEST: pa.int64(),
    HASHES: pa.binary(),
    ORIGINS: pa.list_(pa.struct(_ORIGIN)),
    READING: pa.float64(),
    MATCHING: pa.float64(),
}
SUMMARY = pa.schema(_SUMMARY)
SUMMARY_DDL = (
    f"{PART} int, {FILE} string, {DEAD_FILE} string, {EVENTS} long, {MATCHES} long, dead array<long>, "
    f"{NEWEST} long, {HASHES} binary, "
    f"{ORIGINS} array<struct<name: string, events: long, {ARRIVED}: double>>, {READING} double, "
    f"{MATCHING} double"
)


def match_schema(*, numbered: bool, top: Top | None) -> pa.Schema:
    """Return the columns of a match; ids of events are text whatever they were."""
    named: pa.DataType = pa.int64() if numbered else pa.string()
    found: dict[str, pa.DataType] = {EVENT_ID: pa.string(), SUBSCRIPTION_ID: named}
    if top is not None:
        found |= {SCORE: pa.float64(), RANK: pa.int32()}
    return pa.schema(found)
