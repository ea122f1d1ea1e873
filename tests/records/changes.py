"""What tests of a running index share: a model of it, and the same answers from a fresh one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from headgate import Event, Subscription
from headgate.records.index.index import RecordIndex
from tests.records.crowd import walk
from tests.records.random_filters import SCHEMA

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headgate.core.event import Id

PATIENCE = 60.0
"""Seconds after which a thread that should have ended has failed."""


def pairs(found: pa.RecordBatch) -> list[tuple[object, object]]:
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def batch_of(rows: Sequence[dict[str, object]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(list(rows), schema=SCHEMA)


def after(identity: Id) -> Id:
    return identity + 1 if isinstance(identity, int) else identity + "\0"


def rebuilt(model: dict[Id, str]) -> RecordIndex:
    return RecordIndex.build(Subscription(identity, text) for identity, text in model.items())


def assert_same(index: RecordIndex, model: dict[Id, str], rows: Sequence[dict[str, object]]) -> None:
    """Compare with an index built at once of what is there."""
    fresh = rebuilt(model)
    assert len(index) == len(fresh) == len(model)
    assert list(index.ids) == sorted(model)
    batch = batch_of(rows)
    # With a tail, the ids of an event come in no order.
    assert sorted(map(repr, pairs(index.match_batch(batch)))) == sorted(
        map(repr, pairs(fresh.match_batch(batch)))
    )
    first: Id = -(2**63) if all(isinstance(identity, int) for identity in model) else ""
    for row in rows:
        event = Event.from_row(row)
        found = index.match(event)
        assert found == fresh.match(event)
        assert walk(index, event, first, after) == found
