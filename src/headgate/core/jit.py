"""The one place that touches numba.

Kernels are plain loops over flat arrays: arrays in, arrays out, no Python objects. They release the
GIL and are cached on disk. `NUMBA_DISABLE_JIT=1` runs them as ordinary Python.

Numba's cache does not notice that a callee in another module changed and would answer from stale
machine code. So the cache directory of a room carries a hash of its kernel sources, of those of core, and of
the tuples that they take, in its name: any edit starts a new cache.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numba
import numpy as np

from headgate.core.machine import cache_home

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
R = TypeVar("R")


_CONSTANTS = {"arrays.py", "facets.py", "interning.py", "lines.py", "parts.py", "program.py", "programs.py"}


@lru_cache
def cache_place(room: str) -> str:
    """Return where the machine code of a room's kernels is kept: the name says what they are made of.

    Rooms use kernels of their own and of core, never each other's. Others may use any room's.
    """
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(numba.__version__.encode())
    folders = ["core", room] if room in _rooms() else ["."]
    # The tuples of arrays too: compiled code knows their fields by place only, and constants by value.
    for source in sorted(source for folder in folders for source in (package / folder).glob("**/*.py")):
        text = source.read_bytes()
        if b"headgate.core.jit" in text or b"NamedTuple" in text or source.name in _CONSTANTS:
            digest.update(text)
    # Bounds-checked code must not be served to a run that did not ask for it, nor the reverse.
    digest.update(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    # Below a directory that somebody chose as well: stale machine code answers wrongly there too.
    home = Path(os.environ.get("NUMBA_CACHE_DIR") or cache_home())
    return str(home / f"numba-{room}-{digest.hexdigest()[:16]}")


def _rooms() -> set[str]:
    return {place.name for place in Path(__file__).parent.parent.iterdir() if place.is_dir()}


def _room_of(module: str) -> str:
    """Name the room of a module of ours; of others, the whole."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    return room if package == "headgate" and room in _rooms() else "all"


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a hot loop: cached on disk, without the GIL, no fast-math (NaN must stay NaN)."""
    return _compiled(function)


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile the inside of a hot loop into its callers.

    A tuple of arrays is passed by value, some hundred words for an index: more than a short check costs.
    """
    return _compiled(function, forceinline=True)


def bare(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a hot loop that makes no arrays, together with its callees, without counting references.

    Counting takes more time than short loops do: every array that goes into a callee, or comes out of a
    tuple, costs two atomic operations, unless the compiler can prove that they cancel.
    """
    return _compiled(function, _nrt=False)


def bare_inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile the inside of a bare loop into its callers."""
    return _compiled(function, _nrt=False, forceinline=True)


def _compiled(function: Callable[P, R], **more: Any) -> Callable[P, R]:
    if vars(numba.config)["DISABLE_JIT"]:
        return _interpreted(function)
    # Looked at when a function is decorated.
    vars(numba.config)["CACHE_DIR"] = cache_place(_room_of(function.__module__))
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, error_model="numpy", **more)(function))


def _interpreted(function: Callable[P, R]) -> Callable[P, R]:
    """Let unsigned products wrap around without a warning, as they do in compiled code."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return run
