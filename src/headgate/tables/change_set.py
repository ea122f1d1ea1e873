"""Tables that change together: written beside their places first, then moved there, all of them or none.

    with changing([output, rejected], discard) as changes:
        write_table(matches, changes.staged(output))
        write_table(refused, changes.staged(rejected))

To move one table is one step, to move several is not. What is about to be moved is noted in a file beside the
first table. If moving fails, what was moved is moved back. If the process is killed in between, whoever
changes one of these tables next moves the rest, before anything else.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import glob
import json
import os
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from headgate.errors import TableError
from headgate.tables.places import is_remote, local
from headgate.tables.writing import discard_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.tables.writing import Discard

_EXCHANGE, _HERE = 2, -100
"""RENAME_EXCHANGE and AT_FDCWD of Linux."""


class Elsewhere(Protocol):
    """A file system that is not this machine's."""

    def staged(self, path: str) -> str:
        """Name a place beside a table."""

    def swap(self, staged: str, path: str) -> None:
        """Have what was written there take the place of a table, and the other way round; again undoes it."""

    def discard(self, staged: str) -> None:
        """Remove what is there, if anything is."""


class ChangeSet:
    """Tables that are written, and not yet in their places."""

    def __init__(self, discard: Discard, elsewhere: Elsewhere | None) -> None:
        self._discard = discard
        self._elsewhere = elsewhere
        self._local: list[tuple[Path, Path]] = []
        self._remote: list[tuple[Elsewhere, str, str]] = []
        self.held = ExitStack()
        """What is held until all tables are in their places."""

    def staged(self, path: str) -> str:
        """Return where to write a table."""
        if is_remote(path):
            assert self._elsewhere is not None, "tables on other file systems are written by Spark"
            beside = self._elsewhere.staged(path)
            self._remote.append((self._elsewhere, beside, path))
            return beside
        table = _place_of(path)
        table.parent.mkdir(parents=True, exist_ok=True)
        folder = table.with_name(f".{table.name}.{os.getpid()}.staged")
        discard_folder(folder)
        folder.mkdir()
        # Where folders cannot be locked, as on NFS, they are not swept either.
        with suppress(OSError):
            self.held.enter_context(_locked(folder))
        self._local.append((folder / table.name, table))
        return str(folder / table.name)

    def commit(self) -> None:
        """Move all tables to their places: the first one last, so that what it goes with is there already."""
        moves = [_Move(staged, table, staged.stat().st_ino) for staged, table in self._local]
        with _noted(moves):
            swapped: list[tuple[Elsewhere, str, str]] = []
            try:
                for elsewhere, beside, path in reversed(self._remote):
                    elsewhere.swap(beside, path)
                    swapped.append((elsewhere, beside, path))
                for move in reversed(moves):
                    move.do()
            except BaseException:
                for move in moves:
                    move.undo()
                for elsewhere, beside, path in reversed(swapped):
                    elsewhere.swap(beside, path)
                raise
            self.discard()

    def discard(self) -> None:
        """Remove what is not in its place, or was in it before."""
        for staged, _ in self._local:
            self._discard(staged.parent)
        for elsewhere, beside, _ in self._remote:
            elsewhere.discard(beside)


@contextmanager
def changing(
    paths: Iterable[str | None], discard: Discard = discard_folder, elsewhere: Elsewhere | None = None
) -> Iterator[ChangeSet]:
    """Have tables take their places together after the block, if it ends well; else nothing changes.

    First, what a process that was killed has left is brought to its end: what it was about to move is moved,
    and what it had not written whole is removed. `discard` removes folders: tasks of Spark may still write to
    them.
    """
    for path in paths:
        if path is not None and not is_remote(path):
            finish(path)
            _sweep(_place_of(path))
    changes = ChangeSet(discard, elsewhere)
    with changes.held:
        try:
            yield changes
            changes.commit()
        except BaseException:
            changes.discard()
            raise


def finish(path: str) -> None:
    """Move what another process would have moved, which was killed while it changed this table and others."""
    journal = _journal_of(_place_of(path))
    try:
        # For writing, without which NFS does not lock.
        file = journal.open("r+b")
    except FileNotFoundError:
        return
    with file:
        # Whoever is alive and moves tables holds it.
        fcntl.flock(file, fcntl.LOCK_EX)
        if not os.path.lexists(journal):
            return
        try:
            moves = [
                _Move(Path(each["staged"]), Path(each["place"]), each["inode"]) for each in json.load(file)
            ]
        except (ValueError, KeyError, TypeError):
            raise TableError(
                f"{journal} is damaged, and tables beside it may be of two runs: remove it, and run the job "
                "again"
            ) from None
        for move in moves:
            move.do()
        for move in moves:
            discard_folder(move.staged.parent)
        journal.unlink()


def _sweep(table: Path) -> None:
    """Remove what others have staged for a table, if they are not alive."""
    for folder in table.parent.glob(f".{glob.escape(table.name)}.*.staged"):
        with suppress(OSError), _locked(folder):
            discard_folder(folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Have a folder for oneself while alive; BlockingIOError if another has it."""
    opened = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


class _Move(NamedTuple):
    staged: Path
    place: Path
    inode: int
    """Of what is to be moved, to know it at either place."""

    def do(self) -> None:
        """Move a table to its place, unless it is there; what was there is then where the table was."""
        if _inode(self.staged) != self.inode:
            return
        if os.path.lexists(self.place):
            _exchange(self.staged, self.place)
        else:
            self.staged.rename(self.place)

    def undo(self) -> None:
        """Move it back, if it was moved."""
        if _inode(self.place) != self.inode:
            return
        if os.path.lexists(self.staged):
            _exchange(self.staged, self.place)
        else:
            self.place.rename(self.staged)


@contextmanager
def _noted(moves: Sequence[_Move]) -> Iterator[None]:
    """Keep a note of what is being moved, beside the first table, until it is done or undone."""
    if not moves:
        yield
        return
    journal = _journal_of(moves[0].place)
    beside = moves[0].staged.with_name(journal.name)
    with beside.open("w", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        json.dump([each._asdict() for each in moves], file, default=str)
        file.flush()
        beside.replace(journal)
        try:
            yield
        finally:
            journal.unlink()


def _place_of(path: str) -> Path:
    """Return a table's own place: through symbolic links, so that a link stays one."""
    return local(path).resolve()


def _journal_of(table: Path) -> Path:
    return table.with_name(f".{table.name}.changing")


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _exchange(one: Path, other: Path) -> None:
    """Have two files or folders change places: in one step on Linux, elsewhere in three."""
    with suppress(AttributeError):
        names = os.fsencode(one), os.fsencode(other)
        if not ctypes.CDLL(None, use_errno=True).renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE):
            return
        problem = ctypes.get_errno()
        if problem not in {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP}:
            raise OSError(problem, os.strerror(problem), str(other))
    between = one.with_name(f"{one.name}.old")
    other.rename(between)
    one.rename(other)
    between.rename(one)
