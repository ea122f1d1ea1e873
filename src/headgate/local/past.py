"""Events of the past in this process, as the jobs ask for them that try something over them."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headgate.core.event import Event
from headgate.errors import EventError
from headgate.local.events import json_lines_of, record_columns
from headgate.local.rows import LocalRows, rows_of
from headgate.tables.event_rows import read_event
from headgate.tables.lines import VALUE
from headgate.tables.places import Format, check_input


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
