"""Tables of filters: texts to programs on workers, carried as bytes, and programs to an index."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from headgate.core.interning import TextPool
from headgate.core.rooms import RECORDS
from headgate.core.schema import read_schema
from headgate.core.subscription import SQL
from headgate.core.values import dotted
from headgate.records.index.index import RecordIndex
from headgate.records.keys import record_keys
from headgate.records.language.dialects import to_sql
from headgate.records.language.typecheck import check_types
from headgate.records.programs.binding import Binder, compile_filters, parse_text
from headgate.records.programs.programs import Programs, concatenate, take

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.compiling import Keys
    from headgate.contents.protocol import Clause
    from headgate.core.ids import Ids
    from headgate.core.values import Path as Attribute
    from headgate.records.events.columns import Columns


_MAGIC = int.from_bytes(b"headgate", "little")
_KINDS: dict[str, type[np.generic]] = {
    "token_start": np.int64,
    "tokens": np.int32,
    "leaf_kind": np.uint8,
    "leaf_attribute": np.int32,
    "leaf_on_null": np.uint8,
    "range_start": np.int64,
    "range_facet": np.uint8,
    "range_low": np.int64,
    "range_high": np.int64,
    "glob_start": np.int64,
    "glob_tokens": np.int16,
}
_PATHS = msgspec.json.Decoder(tuple[tuple[str, ...], ...])


def to_bytes(programs: Programs) -> bytes:
    """Write programs."""
    parts = [np.asarray(getattr(programs, name), kind).tobytes() for name, kind in _KINDS.items()]
    parts += [np.asarray(programs.texts.offsets, np.int64).tobytes(), programs.texts.data.tobytes()]
    parts.append(msgspec.json.encode(programs.attributes))
    head = np.array([_MAGIC, len(parts), *map(len, parts)], np.int64).tobytes()
    return b"".join([head, *(part + bytes(-len(part) % 8) for part in parts)])


def from_bytes(data: bytes | memoryview) -> Programs:
    """Read programs; their arrays are views of the bytes.

    >>> from headgate.records.programs.binding import compile_filters
    >>> from_bytes(to_bytes(compile_filters(["a = 'x' OR b.c"]).programs)).attributes
    (('a',), ('b', 'c'))
    """
    count = len(_KINDS) + 3
    head = np.frombuffer(data, np.int64, count + 2) if len(data) >= 8 * (count + 2) else np.zeros(2, np.int64)
    padded = head[2:] + -head[2:] % 8
    if head[0] != _MAGIC or head[1] != count or head.nbytes + padded.sum() != len(data):
        raise ValueError("these bytes are no programs")
    begins = (head.nbytes + np.cumsum(padded) - padded).tolist()
    view = memoryview(data)
    parts = [view[start : start + size] for start, size in zip(begins, head[2:].tolist(), strict=True)]
    arrays = {
        name: np.frombuffer(part, kind)
        for (name, kind), part in zip(_KINDS.items(), parts[: len(_KINDS)], strict=True)
    }
    offsets, texts, paths = parts[len(_KINDS) :]
    pool = TextPool(np.frombuffer(offsets, np.int64), np.frombuffer(texts, np.uint8))
    return Programs(**arrays, texts=pool, attributes=_PATHS.decode(paths))


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
