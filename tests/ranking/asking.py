"""How tests ask an index of ranked filters about many events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headgate.contents.portions import ids_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from headgate import Event
    from headgate.ranking.filters.index import RankedIndex


def top_batch(
    index: RankedIndex, events: pa.RecordBatch | Sequence[Event], k: int, *mode: str, **more: Any
) -> pa.RecordBatch:
    """List the best k of each event, told of by their ids: (event_id, subscription_id, score, rank)."""
    ids = ids_of(events)
    return index.best(events, ids, k, *mode, **more).batch(ids)
