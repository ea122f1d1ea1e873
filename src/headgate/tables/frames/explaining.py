"""What workers do to explain one subscription for a DataFrame of events: batches in, a row an event out."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headgate.contents.protocol import EVENT_ID
from headgate.errors import HeadgateError
from headgate.runtime.targets import opened
from headgate.tables.frames.reading import events_of, read_frame
from headgate.tables.frames.rows import kept_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.core.event import Event, Id
    from headgate.runtime.engines import Runtime
    from headgate.runtime.targets import Group
    from headgate.tables.frames.task import FrameTask

MATCHED, EXPLANATION = "matched", "explanation"


class Asked(NamedTuple):
    """The subscription that is asked about, and the snapshot that has it."""

    whole: Group
    subscription: Id


def explain_frame(
    batches: Iterable[pa.RecordBatch], task: FrameTask, asked: Asked
) -> Iterator[pa.RecordBatch]:
    """Explain a subscription for each event; rows that are none are passed over."""
    engines = opened(asked.whole)
    for given in read_frame(batches, task):
        verdicts = [_told(engines, event, asked.subscription) for event in events_of(given)]
        yield pa.RecordBatch.from_pydict(
            {
                EVENT_ID: given.ids,
                MATCHED: pa.array([matched for matched, _ in verdicts], pa.bool_()),
                EXPLANATION: pa.array([text for _, text in verdicts], pa.string()),
                **kept_columns(given, pa.array(given.rows), task),
            }
        )


def _told(engines: Runtime, event: Event, subscription: Id) -> tuple[bool | None, str]:
    """Say why, or why that cannot be said of this event: a filter may be too expensive for it."""
    try:
        verdict = engines.explain(event, subscription)
    except HeadgateError as error:
        return None, str(error)
    return verdict.matches, "\n".join(verdict.lines())
