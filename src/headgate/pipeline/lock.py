"""One run of a directory at a time: a lock that ends with the process that holds it."""

from __future__ import annotations

import fcntl
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import TableError
from headgate.pipeline.state import HOME
from headgate.spark.places import is_remote, local

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

LOCK = "lock"


@contextmanager
def locked(directory: Path) -> Iterator[int | None]:
    """Hold a directory; yields the process that held it and did not come to its end, if there was one.

    The system frees the lock of a process that dies, however it dies, so what it left is taken over at once.
    """
    place = directory / HOME / LOCK
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "another"
            raise TableError(
                f"{directory} is in use by another run (process {holder}): wait for it, or choose another "
                "pipeline.directory"
            ) from None
        file.seek(0)
        before = file.read().strip()
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield int(before) if before.isdigit() else None
        finally:
            # Nothing is left to be taken over; the lock itself goes when the file is closed.
            file.truncate(0)


def remove_leftovers(outputs: Iterable[str], process: int) -> None:
    """Remove what a process that died was writing beside outputs: jobs name such places after themselves."""
    for path in outputs:
        if is_remote(path):
            continue
        place = Path(os.path.abspath(local(path)))  # noqa: PTH100 -- resolve() would follow a link
        for folder in {place.parent, place.resolve().parent}:
            for each in folder.glob(f".{_literal(place.name)}.{process}.*") if folder.is_dir() else ():
                if each.is_dir():
                    shutil.rmtree(each, ignore_errors=True)
                else:
                    each.unlink(missing_ok=True)


def _literal(name: str) -> str:
    """Write a name so that it stands for itself in a pattern."""
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in name)
