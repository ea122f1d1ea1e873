"""One SQLite file: one connection that writes, connections that read, and what its errors mean.

A commit is on disk when it returns (`synchronous=FULL`), unless the file is not forced: then a kill
loses nothing, and a loss of power may lose the last commits, and never a part of one. The write-ahead log is
used again from its start after each checkpoint and never cut: growing a file costs more than writing to it.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw

from headgate.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from headgate.service.storage.log import Write


class Layout(NamedTuple):
    """The tables of a file."""

    format: int
    """The version. A file of an earlier one is brought up to it when it is opened."""
    schema: str
    migrations: Mapping[int, str]
    """What brings the tables of a version to the next one, by the former."""


_FILES = files("headgate.service.storage")
_AGAIN = "ALTER TABLE dead_letters ADD COLUMN again INTEGER NOT NULL DEFAULT 0"
TENANT = Layout(2, _FILES.joinpath("tenant.sql").read_text("utf-8"), {1: _AGAIN})
"""The file of a tenant."""
SERVER = Layout(1, _FILES.joinpath("server.sql").read_text("utf-8"), {})
"""The file of the server: tenants, keys, and who did what."""

_PAGES = 4_096
"""Pages of the write-ahead log between checkpoints: 32 MiB."""
_PATIENCE = 10_000
"""Milliseconds that a reader waits for a checkpoint."""
_CACHE = 256
"""KiB of pages that a connection keeps where writes are not forced: a log is read and written once."""


class Database:
    """A file that one process has open. Its writer belongs to one thread; readers are one for each thread."""

    def __init__(
        self,
        path: Path,
        layout: Layout = TENANT,
        *,
        vfs: str | None = None,
        forced: bool = True,
    ) -> None:
        self.path = path
        self._layout = layout
        self._vfs = vfs
        self.forced = forced
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._guard = threading.Lock()
        with telling(path):
            self.writer = self._open(apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE)
            self.writer.pragma("page_size", 8_192)
            self.writer.pragma("journal_mode", "wal")
            self.writer.pragma("synchronous", "full" if forced else "normal")
            self.writer.pragma("wal_autocheckpoint", _PAGES)
            self.writer.pragma("journal_size_limit", -1)
            self._check_format()

    def _open(self, flags: int) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), flags=flags, vfs=self._vfs)
        connection.set_busy_timeout(_PATIENCE)
        if not self.forced:
            connection.pragma("cache_size", -_CACHE)
        return connection

    def _check_format(self) -> None:
        """Make the tables of a new file, or bring those of an earlier version to this one."""
        layout, version = self._layout, int(self.writer.pragma("user_version"))
        if version == layout.format:
            return
        if version > layout.format:
            raise StorageError(
                f"{self.path} has format {version}, and this version of Headgate reads up to "
                f"{layout.format}: use the version that wrote it, or a later one"
            )
        with self.writer:
            if not version:
                self.writer.execute(layout.schema)
            for step in range(version, layout.format) if version else ():
                self.writer.execute(layout.migrations[step])
            self.writer.pragma("user_version", layout.format)

    @property
    def reader(self) -> apsw.Connection:
        """Return this thread's connection for reading."""
        connection: apsw.Connection | None = getattr(self._local, "reader", None)
        if connection is None:
            with telling(self.path):
                connection = self._open(apsw.SQLITE_OPEN_READWRITE)
                connection.pragma("query_only", True)
            self._local.reader = connection
            with self._guard:
                self._readers.append(connection)
        return connection

    def rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """Read rows."""
        with telling(self.path):
            return list(self.reader.execute(query, values))

    def row(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        """Read the first row, if there is one."""
        with telling(self.path):
            return next(iter(self.reader.execute(query, values)), None)

    def value(self, query: str, *values: Any) -> Any:
        """Read the first value of the first row; None if there is no row."""
        row = self.row(query, *values)
        return None if row is None else row[0]

    def setting(self, name: str) -> Any:
        """Return something that is kept by its name."""
        return self.value("SELECT value FROM meta WHERE name = ?", name)

    def backup(self, target: Path) -> None:
        """Write what is committed now to another file, while this one is used."""
        with telling(target):
            copy = apsw.Connection(str(target))
            source = self._open(apsw.SQLITE_OPEN_READONLY)
            try:
                with copy.backup("main", source, "main") as work:
                    while not work.done:
                        work.step(1_000)
            finally:
                source.close()
                copy.close()

    def damage(self) -> list[str]:
        """List what SQLite finds wrong with the file."""
        with telling(self.path):
            lines = [str(line) for (line,) in self.reader.execute("PRAGMA integrity_check")]
        return [] if lines == ["ok"] else lines

    def close(self) -> None:
        """Close all connections."""
        with self._guard:
            for each in (*self._readers, self.writer):
                each.close()
            self._readers.clear()


class Table:
    """Something that is kept in a file."""

    def __init__(self, database: Database) -> None:
        self._database = database


def keep(name: str, value: object) -> Write:
    """Keep something by its name."""
    return one("INSERT OR REPLACE INTO meta VALUES (?, ?)", name, value)


def searching(text: str, search: str | None) -> tuple[str, list[str]]:
    """Return the test for what is searched for in a text, if anything is, and its values."""
    return (f"AND instr(lower({text}), ?)", [search.casefold()]) if search else ("", [])


def one(query: str, *values: Any) -> Write:
    """Make a change of one statement."""
    return lambda writer: writer.execute(query, values)


def many(query: str, rows: Sequence[Sequence[Any]]) -> Write:
    """Make a change of one statement for each of some rows."""
    return lambda writer: writer.executemany(query, rows)


def together(*writes: Write) -> Write:
    """Make a change of several."""
    return lambda writer: [write(writer) for write in writes]


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Say in one line what SQLite could not do."""
    try:
        yield
    except apsw.FullError:
        raise StorageError(
            f"the disk of {path} is full: free some space, or keep events for a shorter time", full=True
        ) from None
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StorageError(
            f"{path} is damaged ({error}): `headgate service check` lists what is; restore a backup"
        ) from None
    except apsw.CantOpenError as error:
        raise StorageError(f"{path} cannot be opened: {error}") from None
    except apsw.Error as error:
        raise StorageError(f"{path} cannot be used: {type(error).__name__}: {error}") from error
