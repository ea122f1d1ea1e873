"""What a kernel is made of: the text of its module and of all that this imports, as one digest.

Numba itself looks at the kernel's own file only. It would answer from stale machine code when a callee, a
constant or the order of a tuple's fields changed in another file.
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2]
# A folder or zip file on the path may be named from where a process began: `__file__` is, then.
PREBUILT = PACKAGE / "core" / "jit" / "prebuilt"
"""The machine code that came with the package; a source tree has none."""
ARCHIVE = next((place for place in PACKAGE.parents if place.is_file()), None)
"""The zip file on Python's path that the package is in, if it is in one."""
_OURS = "headgate"
_APART = f"{_OURS}.core.jit"
"""How kernels are compiled is part of a file's name by itself: see `store.py`."""
_CALLED = f"{_APART}.memory"
"""What kernels call there is part of them all the same."""
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)|import[ \t]+([^\n]*))", re.MULTILINE
)
_COMMENT = re.compile(rb"#[^\n]*")


@cache
def digest_of(module: str) -> str:
    """Return a digest of a module and of every module of ours that it imports, however far.

    What is imported for type checkers alone counts too: the tuples that kernels take are.
    """
    digest = hashlib.sha256()
    for name in sorted(closure(module)):
        source = find_source(name)
        if source is not None:
            digest.update(name.encode() + b"\0" + _text(source) + b"\0")
    return digest.hexdigest()[:20]


def closure(module: str) -> set[str]:
    """Name a module and every module of ours, or of its own package, that it imports, however far."""
    home = module.partition(".")[0]
    modules: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules.add(name)
            waiting += [each for each in imports_of(name) if each.partition(".")[0] in {_OURS, home}]
    return modules


@cache
def imports_of(module: str) -> tuple[str, ...]:
    """Name the modules with sources that a module imports anywhere in its text."""
    source = find_source(module)
    if source is None:
        return ()
    named: set[str] = set()
    for home, names, whole in _IMPORT.findall(_text(source)):
        if home:
            named.add(home.decode())
            named.update(f"{home.decode()}.{name}" for name in _names(names))
        else:
            named.update(_names(whole))
    return tuple(sorted(name for name in named if find_source(name) is not None))


def _names(listed: bytes) -> list[str]:
    parts = _COMMENT.sub(b"", listed).strip(b"() \t\r\n\\").split(b",")
    return [part.split()[0].decode() for part in parts if part.strip()]


@cache
def find_source(module: str) -> Path | None:
    """Find the file of a module of this package, or of one that is loaded."""
    top, *rest = module.split(".")
    if top == _OURS:
        if (module == _APART or module.startswith(f"{_APART}.")) and module != _CALLED:
            return None
        path = PACKAGE.joinpath(*rest)
        return next(
            (file for file in (path / "__init__.py", path.with_suffix(".py")) if is_there(file)), None
        )
    file = Path(getattr(sys.modules.get(module), "__file__", None) or "")
    return file if file.suffix == ".py" and file.is_file() else None


@cache
def _text(source: Path) -> bytes:
    return read(source)


def read(file: Path) -> bytes:
    """Read a file of the package; raises an OSError if it is not there."""
    if ARCHIVE is None or ARCHIVE not in file.parents:
        return file.read_bytes()
    from zipimport import zipimporter

    # Opened anew each time: workers are forked, and must not share a place in an open file.
    return zipimporter(str(ARCHIVE)).get_data(str(file))


def is_there(file: Path) -> bool:
    """Tell whether a file of the package is there."""
    if ARCHIVE is None:
        return file.is_file()
    return file.relative_to(ARCHIVE).as_posix() in _archived()


def has_prebuilt() -> bool:
    """Tell whether machine code came with the package."""
    if ARCHIVE is None:
        return PREBUILT.is_dir()
    folder = PREBUILT.relative_to(ARCHIVE).as_posix()
    return any(name.startswith(f"{folder}/") for name in _archived())


@cache
def _archived() -> frozenset[str]:
    """Name the files of the archive."""
    from zipfile import ZipFile

    assert ARCHIVE is not None
    with ZipFile(ARCHIVE) as archive:
        return frozenset(archive.namelist())
