"""What the decorators of kernels make: a function that is compiled, or found compiled, when it is called."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from functools import update_wrapper, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

_MAKING = threading.RLock()
P = ParamSpec("P")
R = TypeVar("R")

OPTIONS: dict[str, dict[str, Any]] = {
    "kernel": {},
    "inner": {"forceinline": True},
    "bare": {"_nrt": False},
    "bare_inner": {"_nrt": False, "forceinline": True},
}
"""What each decorator asks of numba, beside what all ask: the GIL released, divisions as in NumPy."""


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a hot loop: cached on disk, without the GIL, no fast-math (NaN must stay NaN)."""
    return _compiled(function, OPTIONS["kernel"])


def inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile the inside of a hot loop into its callers.

    A tuple of arrays is passed by value, some hundred words for an index: more than a short check costs.
    """
    return _compiled(function, OPTIONS["inner"])


def bare(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a hot loop that makes no arrays, together with its callees, without counting references.

    Counting takes more time than short loops do: every array that goes into a callee, or comes out of a
    tuple, costs two atomic operations, unless the compiler can prove that they cancel.
    """
    return _compiled(function, OPTIONS["bare"])


def bare_inner(function: Callable[P, R]) -> Callable[P, R]:
    """Compile the inside of a bare loop into its callers."""
    return _compiled(function, OPTIONS["bare_inner"])


class Kernel:
    """A kernel whose compiler is not loaded yet.

    A call makes the compiled function, and puts it in the place of this object in the caller's module, so
    that later calls from there go straight to it. Other kernels that call this one find it through
    `store.type_of_kernel`.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.function = function
        self.options = options
        self._dispatcher: Any = None
        self._callers: set[int] = set()

    @property
    def dispatcher(self) -> Any:
        """Return the compiled function, of numba."""
        if self._dispatcher is None:
            self._make()
            _rebind(self.function.__globals__, self, self._dispatcher)
        return self._dispatcher

    def _make(self) -> None:
        from headgate.core.jit.store import make_dispatcher

        with _MAKING:
            if self._dispatcher is None:
                self._dispatcher = make_dispatcher(self.function, self.options)

    def __call__(self, *args: Any) -> Any:
        compiled = self.dispatcher
        frame = inspect.currentframe()
        if frame is not None and frame.f_back is not None:
            names = frame.f_back.f_globals
            if id(names) not in self._callers:
                self._callers.add(id(names))
                _rebind(names, self, compiled)
        return compiled(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher, name)


def _rebind(names: dict[str, Any], waiting: Kernel, compiled: Any) -> None:
    # As a list: another thread may be importing into this module.
    for name, value in list(names.items()):
        if value is waiting:
            names[name] = compiled


def _compiled(function: Callable[P, R], options: dict[str, Any]) -> Callable[P, R]:
    if _disabled():
        return _interpreted(function)
    return cast("Callable[P, R]", Kernel(function, options))


def _disabled() -> bool:
    loaded = sys.modules.get("numba")
    if loaded is not None and hasattr(loaded, "config"):
        return bool(vars(loaded.config)["DISABLE_JIT"])
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}


def _interpreted(function: Callable[P, R]) -> Callable[P, R]:
    """Let unsigned products wrap around without a warning, as they do in compiled code."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with np.errstate(over="ignore"):
            return function(*args, **kwargs)

    return run
