"""What this process may use of the machine: cores, memory, disks; imports nothing heavy.

A file is put in place whole, and is on the disk before anything rests on it; a disk that is full is named.
"""

from __future__ import annotations

import errno
import os
import threading
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.errors import HeadgateError, MachineError, TableError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

EXTRAS = {
    "client": ("aiohttp", "urllib3"),
    "graph": ("scipy",),
    "nats": ("nats",),
    "plan": ("highspy", "scipy"),
    "rdf": ("pyoxigraph",),
    "report": ("jinja2", "matplotlib"),
    # pyspark hands Arrow batches over through pandas.
    "spark": ("pyspark", "pandas"),
    "service": ("apsw", "httptools", "jinja2", "prometheus_client", "starlette", "uvicorn", "uvloop"),
    "xml": ("lxml",),
}
"""The modules that each extra of the package brings, beside those of others."""
FULL = (errno.ENOSPC, errno.EDQUOT)
_SAID = ("No space left on device", "Disk quota exceeded")
_LITTLE = 1 << 20
"""Bytes that a disk has left, at most, that is full."""


def lacking(*extras: str) -> list[str]:
    """List the modules of extras that are not installed."""
    names = dict.fromkeys(name for extra in extras for name in EXTRAS[extra])
    return [name for name in names if not _is_there(name)]


def need(*extras: str) -> None:
    """Refuse where modules of extras are not installed, and say which to install; loads nothing."""
    if names := lacking(*extras):
        raise MachineError(f"this needs {', '.join(names)}: pip install 'headgate[{','.join(extras)}]'")


def need_module(name: str | None) -> None:
    """Refuse a module that an extra brings, as `need` does."""
    for extra, names in EXTRAS.items():
        if name and name.partition(".")[0] in names:
            need(extra)


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Return the bytes of memory that this process may hope for."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        # A container's limit; the word "max" stands for none.
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text("ascii")))
    except (OSError, ValueError):
        return total


def cache_home() -> Path:
    """Return Headgate's own directory under the user's cache."""
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "headgate"


def put_file(path: Path, data: bytes) -> None:
    """Put a file in place at once, whole; it is on the disk before this returns."""
    # Another thread may be writing the same file.
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.new")
    with naming(path):
        try:
            with beside.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(path)
        except OSError:
            # What is half written takes room that there is none of.
            with suppress(OSError):
                beside.unlink()
            raise
        force(path.parent)


def force(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk before this returns."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def force_all(folder: Path) -> None:
    """Have a folder with all that is in it on the disk before this returns."""
    for each, _, names in os.walk(folder):
        for name in names:
            force(folder / each / name)
        force(folder / each)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Say of an error of the disk where it was, which a write leaves out; a full disk is `MachineError`."""
    try:
        yield
    except OSError as error:
        if is_full(error, path):
            raise full_at(path) from error
        if error.filename is None:
            error.filename = str(path)
        raise


def is_full(error: OSError, path: Path | None = None) -> bool:
    """Tell whether a disk is full; whoever copies or writes arrays keeps the number of the error back."""
    if error.errno is not None:
        return error.errno in FULL
    text = str(error)
    if says_full(text):
        return True
    return "requested and" in text and path is not None and _free(path) < _LITTLE


def says_full(text: str) -> bool:
    """Tell whether a text of others says that a disk is full."""
    return any(each in text for each in _SAID)


def full_at(path: Path | str) -> MachineError:
    """Return the error that names what is full."""
    return MachineError(
        f"the disk of {path} is full: make room there, then run the same command again; nothing is lost"
    )


def fullest(places: Iterable[Path]) -> Path:
    """Return the place with the least room, of those that are there."""
    return min((path for path in places if path.exists()), key=_free)


def disk_error(error: OSError) -> HeadgateError:
    """Turn an error of the disk into one line."""
    where = error.filename
    if is_full(error):
        return full_at(where or "what was written")
    reason = error.strerror or " ".join(str(error).split())
    return TableError(f"{where}: {reason}" if where else reason)


def _free(path: Path) -> int:
    """Count the bytes that are left for whom we are."""
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    about = os.statvfs(there)
    return about.f_bavail * about.f_frsize
