"""Tables of filters: texts to programs on workers, and programs to an index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headgate.core.rooms import RECORDS
from headgate.core.schema import read_schema
from headgate.core.subscription import SQL
from headgate.core.values import dotted
from headgate.records.index.index import RecordIndex
from headgate.records.keys import record_keys
from headgate.records.language.dialects import to_sql
from headgate.records.language.typecheck import check_types
from headgate.records.programs.binding import Binder, compile_filters, parse_text
from headgate.records.programs.programs import concatenate, take
from headgate.records.programs.transport import from_bytes, to_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.compiling import Keys
    from headgate.contents.protocol import Clause
    from headgate.core.ids import Ids
    from headgate.core.interning import TextPool
    from headgate.core.values import Path as Attribute
    from headgate.records.events.columns import Columns
    from headgate.records.programs.programs import Programs


class RecordWriter:
    """Lays the programs of filters one behind another, checked against a schema if there is one."""

    def __init__(self, schema: str | None) -> None:
        self._schema = schema
        self._binder = Binder()

    def add(self, text: str, dialect: str) -> str:
        """Compile the next filter and return it as SQL."""
        sql = to_sql(text, dialect)
        if self._schema is not None:
            # Places are those in the text as written: its names stand there as well.
            check_types(parse_text(sql), read_schema(self._schema), text)
        self._binder.add(sql)
        return sql

    def to_bytes(self) -> bytes:
        """Return all that was added."""
        return to_bytes(self._binder.finish())


@dataclass(frozen=True)
class RecordWriters:
    """What workers need for filters of records: the schema, as JSON."""

    schema: str | None = None
    dialect: str = SQL

    def writer(self, *, checked: bool = True) -> RecordWriter:
        """Begin."""
        return RecordWriter(self.schema if checked else None)

    def clauses(self, text: str) -> tuple[Clause, ...]:
        """Take a filter apart."""
        return RecordIndex.clauses(text)


@dataclass(frozen=True)
class RecordsFiled:
    """Programs by number, and a sample of events."""

    programs: Programs
    sample: Columns | None = None

    @property
    def attributes(self) -> tuple[str, ...]:
        """List the attributes that filters name."""
        return tuple(sorted(map(dotted, self.programs.attributes)))

    def take(self, order: NDArray[np.int64]) -> RecordsFiled:
        """Pick filters."""
        return replace(self, programs=take(self.programs, order))

    def with_filter(self, text: str) -> RecordsFiled:
        """Append a filter."""
        return replace(self, programs=concatenate([self.programs, compile_filters([text]).programs]))

    def index(self, ids: Ids, texts: TextPool) -> RecordIndex:
        """Index them, in the order of their ids."""
        return RecordIndex.from_programs(ids, texts, self.programs, sample=self.sample)


@dataclass(frozen=True)
class RecordFinder:
    """Finds the keys of filters: values of one attribute."""

    path: Attribute | None
    demands: bool = False

    def of_bytes(self, payload: bytes) -> list[Keys]:
        """Find the keys of filters as a writer has written them."""
        return [] if self.path is None else record_keys(from_bytes(payload), self.path)

    def of_filed(self, filed: RecordsFiled) -> list[Keys]:
        """Find the keys of filters that were filed."""
        return [] if self.path is None else record_keys(filed.programs, self.path)


@dataclass(frozen=True)
class RecordContents:
    """The room of records, with a schema and a sample of events if they are given."""

    schema: str | None = None
    sample: Columns | None = None
    name: str = RECORDS
    room: type[RecordIndex] = RecordIndex

    @property
    def writers(self) -> RecordWriters:
        """Return what workers need."""
        return RecordWriters(self.schema)

    def file(self, parts: Sequence[memoryview]) -> tuple[RecordsFiled, NDArray[np.int64]]:
        """Lay programs one behind another."""
        programs = [from_bytes(part) for part in parts]
        counts = np.array([each.filters for each in programs], np.int64)
        return RecordsFiled(concatenate(programs), self.sample), counts

    def finder(self, path: Attribute | None) -> RecordFinder:
        """Return what finds the keys of filters."""
        return RecordFinder(path)

    def counts(self, snapshot: Path) -> None:
        """Count nothing: the attributes say it."""
        del snapshot
