"""Events of the past in this process, as the jobs ask for them that try something over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headgate.core.event import Event
from headgate.errors import EventError
from headgate.local.events import json_lines_of, record_columns
from headgate.local.rows import LocalRows, rows_of
from headgate.tables.event_rows import REASON, ROW, read_event
from headgate.tables.lines import VALUE
from headgate.tables.places import Format, check_input

if TYPE_CHECKING:
    from headgate.backtest.difference import Differ
    from headgate.contents.kind import Feeds
    from headgate.local.events import EventTable


@dataclass(frozen=True)
class LocalRecords:
    """Records of a table, with all that they have."""

    rows: LocalRows
    count: int
    rejected: int

    @classmethod
    def read(cls, path: str, mark: str) -> LocalRecords:
        """Read a table; `mark` says what names mean."""
        form = check_input(path)
        if form is not Format.JSONL:
            table, rejected = record_columns(path, form)
            return cls(rows_of(table), table.num_rows, rejected)
        read = [(line, read_event(line, mark)) for line in json_lines_of(path)]
        good = [line for line, event in read if isinstance(event, Event)]
        rejected = sum(isinstance(event, EventError) for _, event in read)
        return cls(rows_of(pa.table({VALUE: pa.array(good, pa.binary())})), len(good), rejected)

    def forget(self) -> None:
        """Leave them to the end of the job."""


@dataclass(frozen=True)
class LocalPast:
    """Events that were read, and how they are compared."""

    table: EventTable

    @property
    def form(self) -> str:
        """Return in which form of `reading` they come."""
        return self.table.form

    @property
    def count(self) -> int:
        """Count them."""
        return self.table.count

    @property
    def rejected(self) -> int:
        """Count the rows that are none."""
        return len(self.table.refused)

    @property
    def id_type(self) -> str:
        """Return the type of their ids."""
        return self.table.id_type

    @property
    def feeds(self) -> Feeds | None:
        """Return what was read of RSS feeds, if there were any."""
        return self.table.feeds

    @property
    def refused(self) -> LocalRows:
        """List the rows that are none."""
        names = (ROW, REASON)
        rows = [dict(zip(names, each, strict=True)) for each in self.table.refused]
        return rows_of(pa.Table.from_pylist(rows, pa.schema(dict.fromkeys(names, pa.string()))))

    @property
    def rows(self) -> LocalRows:
        """Return documents as they were read."""
        documents = self.table.documents
        return LocalRows(documents[0].schema if documents else pa.schema([]), lambda: [documents])

    def compared(self, differ: Differ) -> LocalRows:
        """Compare them."""
        return LocalRows(differ.schema, lambda: [differ.of_events(self.table.rows)])

    def forget(self) -> None:
        """Leave them to the end of the job."""
