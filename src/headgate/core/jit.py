"""The one place that touches numba.

Kernels are plain loops over flat arrays: arrays in, arrays out, no Python objects. They release the
GIL and are cached on disk. `NUMBA_DISABLE_JIT=1` runs them as ordinary Python.

Numba's cache does not notice that a callee in another module changed and would answer from stale
machine code. So the cache directory carries a hash of all kernel sources, and of the tuples that they take,
in its name: any edit starts a new cache.
"""

from __future__ import annotations

import hashlib
import os
from functools import wraps
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


def _sources_digest() -> str:
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(numba.__version__.encode())
    # The tuples of arrays too: compiled code knows their fields by place only, and constants by value.
    for source in sorted(package.glob("**/*.py")):
        text = source.read_bytes()
        if b"headgate.core.jit" in text or b"NamedTuple" in text or source.name in _CONSTANTS:
            digest.update(text)
    # Bounds-checked code must not be served to a run that did not ask for it, nor the reverse.
    digest.update(os.environ.get("NUMBA_BOUNDSCHECK", "").encode())
    return digest.hexdigest()[:16]


# Below a directory that somebody chose as well: stale machine code answers wrongly there too.
vars(numba.config)["CACHE_DIR"] = str(
    Path(os.environ.get("NUMBA_CACHE_DIR") or cache_home()) / f"numba-{_sources_digest()}"
)


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
    return cast("Callable[P, R]", numba.njit(cache=True, nogil=True, error_model="numpy", **more)(function))


def _interpreted(function: Callable[P, R]) -> Callable[P, R]:
    """Let unsigned products wrap around without a warning, as they do in compiled code."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return run
