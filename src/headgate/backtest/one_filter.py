"""One filter over events of the past: what is told of it, and which documents it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from headgate.contents.registry import room_of_content
from headgate.core.schema import Schema, Type
from headgate.core.subscription import Subscription
from headgate.core.values import Kind, dotted
from headgate.errors import TableError
from headgate.tables.event_rows import read_events

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.contents.kind import Feeds, FilterSettings
    from headgate.contents.protocol import Content
    from headgate.core.values import Path

SAMPLE = 5
"""Ids that are shown."""


@dataclass(frozen=True)
class BacktestResult:
    """What the filter would have done."""

    events: int
    matches: int
    rejected: int
    """Lines that could not be read as events."""
    sample: tuple[str, ...]
    """Ids of some events that match."""
    seconds: float
    feeds: Feeds | None = None
    """What was read of RSS feeds, if there were any."""


def check_attributes(known: Iterable[Path], named: Iterable[Path], events: str) -> None:
    """Refuse a filter over attributes that no event has: most often a name is misspelt."""
    schema = Schema(dict.fromkeys(known, Type(Kind.OBJECT)))
    for path in sorted(set(named) - set(schema.types)):
        near = schema.nearest(path)
        hint = f"; did you mean {near}?" if near else ""
        raise TableError(f"no event of {events} has the attribute {dotted(path)}{hint}")


class Pattern(NamedTuple):
    """A filter over documents, as it is sent to workers, with the settings that are about it."""

    text: str
    content: str
    wanted: FilterSettings

    def indexed(self) -> Content:
        """Index it; refuses a bad filter."""
        room = room_of_content(self.content, self.wanted)
        return room.build([Subscription(0, self.text, self.wanted.dialect)])


def keep_documents(batches: Iterable[pa.RecordBatch], pattern: Pattern) -> Iterator[pa.RecordBatch]:
    """Keep the events that match."""
    index = pattern.indexed()
    for batch in batches:
        found = index.match_events(read_events(batch, pattern.content), pa.array(np.arange(batch.num_rows)))
        yield batch.take(found.column(0))
