"""One filter over events of the past: what is told of it, and which documents it keeps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.contents.registry import kind_of, room_of_content
from headgate.core.event import CONTENT_TYPE, DATA, EVENT_TIME, ID, SOURCE, TIME
from headgate.core.rooms import RECORDS
from headgate.core.schema import Schema, Type
from headgate.core.subscription import Subscription
from headgate.core.values import Kind, below, dotted
from headgate.engine.backend import PlainFilters
from headgate.errors import TableError
from headgate.records.names import NameSettings
from headgate.runtime.engines import Runtime
from headgate.tables.event_rows import COLUMNS, LINES
from headgate.tables.frames.reading import Reading, events_of, read_frame
from headgate.tables.lines import VALUE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.contents.kind import Feeds, FilterSettings
    from headgate.contents.protocol import Content
    from headgate.core.values import Path
    from headgate.records.language.model import Predicate

_compute: Any = pc
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


def named_in(predicates: Iterable[Predicate]) -> set[Path]:
    """List the attributes that a filter needs; `:event_time` is NULL where there is no `time`."""
    paths: set[Path] = set()
    for each in predicates:
        computed = each.attribute.expression
        timed = computed is not None and EVENT_TIME in computed.attributes
        paths |= {*each.attribute.sources} - ({(TIME,)} if timed else set())
    return paths


def check_attributes(known: Iterable[Path], named: Iterable[Path], events: str) -> None:
    """Refuse a filter over attributes that no event has: most often a name is misspelt."""
    schema = Schema(dict.fromkeys(known, Type(Kind.OBJECT)))
    for path in sorted(set(named) - set(schema.types)):
        near = schema.nearest(path)
        hint = f"; did you mean {near}?" if near else ""
        raise TableError(f"no event of {events} has the attribute {dotted(path)}{hint}")


class Pattern(NamedTuple):
    """A filter as it is sent to workers, with the settings that are about it."""

    text: str
    content: str
    wanted: FilterSettings

    def indexed(self) -> Content:
        """Index it; refuses a bad filter."""
        room = room_of_content(self.content, self.wanted)
        return room.build([Subscription(0, self.text, self.wanted.dialect)])

    @property
    def mark(self) -> str:
        """Return what stands before names in the paths of its attributes, see `core/values.py`."""
        return NameSettings.of(vars(self.wanted)).mark


NAME = "the filter"
"""What one filter is called where it would have an id."""


# Compared by identity: a taxonomy cannot be compared otherwise, and a task is sent one filter.
@dataclass(frozen=True, eq=False)
class FilterEngine:
    """An engine of one filter."""

    pattern: Pattern
    place: str = NAME

    def open(self) -> Runtime:
        """Index the filter."""
        text, content, wanted = self.pattern
        room = room_of_content(content, wanted)
        return Runtime.of(PlainFilters(room.build([Subscription(NAME, text, wanted.dialect)]), room))


def check_paths(known: Iterable[Path], pattern: Pattern, index: Content, events: str) -> None:
    """Refuse a filter over records if no event has one of its attributes, by what its names mean."""
    named, _ = kind_of(pattern.content).looked_at([index])
    check_attributes([*known, below((), ID, pattern.mark)], named, events)


def keep(batches: Iterable[pa.RecordBatch], pattern: Pattern, form: str) -> Iterator[pa.RecordBatch]:
    """Keep the rows that are events and match: lines of JSON, columns as they are, or documents."""
    index = pattern.indexed()
    if form == COLUMNS:
        for batch in batches:
            yield batch.take(index.match_batch(batch, pa.array(np.arange(batch.num_rows))).column(0))
        return
    for given in read_frame(batches, Reading(form, pattern.content, mark=pattern.mark)):
        yield given.batch.take(index.match_batch(given.events, pa.array(given.rows)).column(0))


def list_paths(batches: Iterable[pa.RecordBatch], mark: str) -> Iterator[pa.RecordBatch]:
    """List the attributes that events in lines of JSON have, as JSON, in the column of lines."""
    for given in read_frame(batches, Reading(LINES, RECORDS, mark=mark)):
        paths = {path for event in events_of(given) for path in event.attributes_as(mark)}
        yield pa.RecordBatch.from_pydict(
            {VALUE: pa.array(sorted(map(msgspec.json.encode, paths)), pa.binary())}
        )


def read_paths(lines: Iterable[bytes]) -> set[Path]:
    """Read what `list_paths` wrote."""
    return {tuple(msgspec.json.decode(line)) for line in lines}


def documents_schema(id_type: str) -> pa.Schema:
    """Return the columns of documents as they came; ids are `long` or `string`."""
    kind = pa.int64() if id_type == "long" else pa.string()
    return pa.schema({ID: kind, **dict.fromkeys((SOURCE, CONTENT_TYPE, DATA), pa.string())})


def as_they_came(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return documents as they came."""
    for batch in batches:
        number, text = (batch.column(f"{SOURCE}_{kind}") for kind in ("number", "text"))
        data: list[Any] = batch.column(DATA).to_pylist()
        shown = [each.decode(errors="replace") if isinstance(each, bytes) else each for each in data]
        columns: list[Any] = [
            batch.column(ID),
            _compute.coalesce(number.cast(pa.string()), text),
            batch.column(CONTENT_TYPE),
            pa.array(shown, pa.string()),
        ]
        yield pa.RecordBatch.from_arrays(columns, names=[ID, SOURCE, CONTENT_TYPE, DATA])
