"""What workers do to explain one subscription for a DataFrame of events: batches in, a row an event out."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from headgate.contents.protocol import EVENT_ID
from headgate.core.event import SOURCE, Event
from headgate.engine.answers import visible
from headgate.errors import HeadgateError
from headgate.runtime.explaining import Explainer
from headgate.runtime.targets import in_memory, opened_as
from headgate.tables.frames.reading import read_frame
from headgate.tables.frames.rows import kept_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.core.event import Id
    from headgate.tables.frames.reading import Given
    from headgate.tables.frames.task import FrameTask

MATCHED, EXPLANATION = "matched", "explanation"


class Asked(NamedTuple):
    """The subscription that is asked about, and the snapshot that has it."""

    place: str
    digest: str
    subscription: Id


def explain_frame(
    batches: Iterable[pa.RecordBatch], task: FrameTask, asked: Asked
) -> Iterator[pa.RecordBatch]:
    """Explain a subscription for each event; rows that are none are passed over."""
    explainer = _opened(asked)
    for given in read_frame(batches, task):
        told = [_told(explainer, event) for event in events_of(given)]
        yield pa.RecordBatch.from_pydict(
            {
                EVENT_ID: given.ids,
                MATCHED: pa.array([matched for matched, _ in told], pa.bool_()),
                EXPLANATION: pa.array([text for _, text in told], pa.string()),
                **kept_columns(given, pa.array(given.rows), task),
            }
        )


@lru_cache(maxsize=1)
def _opened(asked: Asked) -> Explainer:
    with in_memory(asked.place):
        return opened_as(
            asked.place,
            asked.digest,
            lambda place: Explainer.open(place, asked.subscription, verify=False),
        )


def _told(explainer: Explainer, event: Event) -> tuple[bool | None, str]:
    """Say why, or why that cannot be said of this event: a filter may be too expensive for it."""
    try:
        verdict = explainer.explain(event).verdict
    except HeadgateError as error:
        return None, str(error)
    return verdict.matches, "\n".join(verdict.lines())


def events_of(given: Given) -> Sequence[Event]:
    """Return events as Python values."""
    if not isinstance(given.events, pa.RecordBatch):
        return given.events
    ids: list[Any] = given.ids.to_pylist()
    rows: list[dict[str, Any]] = [
        {name: visible(value) for name, value in row.items()} for row in given.events.to_pylist()
    ]
    # The id is told apart: a filter may look at an attribute of this name.
    return [Event(each, row, source=row.get(SOURCE)) for each, row in zip(ids, rows, strict=True)]
