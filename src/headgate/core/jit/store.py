"""Machine code in files: those that came with the package, and those of this user.

    <place>/<module>-<digest of its sources>/<kernel>-<digest of all else>.nbc

A file is never changed, and what it depends on is in its name: the sources (see `sources.py`), the types of
the arguments with the fields of tuples, the processor, how the compiler is set, the versions of Python and
numba. Rejected: numba's own cache. It keeps a list of signatures for each function, which two processes may
overwrite, must be able to write where it reads, and takes its directory from a setting of the whole process.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pickle
import platform
import sys
import time
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numba
from numba.core import event as numba_events
from numba.core.caching import CompileResultCacheImpl, _Cache
from numba.extending import typeof_impl

from headgate.core.jit import kernels, memory, signatures
from headgate.core.jit.kernels import Kernel
from headgate.core.jit.notation import describe
from headgate.core.jit.sources import PREBUILT, digest_of, find_source, has_prebuilt, read
from headgate.core.machine import cache_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO


BASELINES = {"x86_64": "x86-64-v3", "aarch64": "generic"}
"""What prebuilt kernels are compiled for: x86 processors with AVX2 (since 2013), and all of AArch64."""
_LEAST = {
    "x86_64": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2"),
    "aarch64": (),
}
"""The features, by LLVM's names, that code for the baseline uses."""


class Target(NamedTuple):
    """What machine code is compiled for, in the words of LLVM."""

    triple: str
    cpu: str
    features: str


@cache
def baseline() -> Target | None:
    """Return the baseline of this kind of processor; none if there is none."""
    cpu = BASELINES.get(platform.machine())
    if cpu is None:
        return None
    return Target(_llvm().get_process_triple(), cpu, "")


@cache
def lacking() -> tuple[str, ...]:
    """Name what this processor lacks to run code for the baseline."""
    has = _llvm().get_host_cpu_features()
    return tuple(name for name in _LEAST.get(platform.machine(), ()) if not has.get(name))


def runnable() -> Target | None:
    """Return the baseline if this processor runs it."""
    return None if lacking() else baseline()


def host() -> Target:
    """Return this very processor, as numba would name it."""
    features: Any = import_module("numba.core.codegen").get_host_cpu_features()
    return Target(_llvm().get_process_triple(), _llvm().get_host_cpu_name(), features)


def _llvm() -> Any:
    # By name because llvmlite has no types.
    return import_module("llvmlite.binding")


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_SETTINGS = (
    "BOUNDSCHECK",
    "OPT",
    "DEBUGINFO_DEFAULT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "DISABLE_INTEL_SVML",
)
"""Settings of numba that change the code it makes."""
_PATIENCE = 300.0
"""Seconds to wait for another process that compiles the same kernel."""
# By name because few of numba's functions have types.
_sigutils: Any = import_module("numba.core.sigutils")
_serialize: Any = import_module("numba.core.serialize")
_runtime: Any = import_module("numba.core.runtime")
_LOG = logging.getLogger("headgate.kernels")


def own_place() -> Path:
    """Return where this user's machine code is kept."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    return (Path(chosen) if chosen else cache_home()) / "kernels"


def file_name(kernel: str, args: str, target: Target) -> Path:
    """Name the file of a kernel (`module:name`) for a signature, below any place."""
    module, _, name = kernel.partition(":")
    digest = hashlib.sha256("\0".join((*_compiler(), *target, args)).encode()).hexdigest()[:20]
    return Path(f"{module}-{digest_of(module)}", f"{name}-{digest}.nbc")


@cache
def _compiler() -> tuple[str, ...]:
    """Say what compiles: the versions, the settings, and what our decorators ask for."""
    settings = repr([vars(numba.config).get(name) for name in _SETTINGS])
    asked = repr([_OPTIONS, kernels.OPTIONS])
    return sys.implementation.cache_tag, sys.abiflags, numba.__version__, settings, asked


def make_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Make numba's form of a kernel, which looks for machine code here before it compiles."""
    _listen()
    memory.teach()
    dispatcher = numba.njit(**_OPTIONS, **options)(function)
    vars(dispatcher)["_cache"] = Store(function)
    return dispatcher


@typeof_impl.register(Kernel)
def type_of_kernel(waiting: Kernel, context: Any) -> Any:
    """Let kernels call kernels that are not loaded yet."""
    return typeof_impl(waiting.dispatcher, context)


class _Plain(CompileResultCacheImpl):
    """How numba turns compiled functions into bytes and back, without its choice of a place."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._locator = self
        self._py_file = function.__code__.co_filename
        self._lineno = function.__code__.co_firstlineno


class Store(_Cache):
    """The files of one kernel."""

    def __init__(self, function: Callable[..., Any]) -> None:
        assert function.__closure__ is None, "a kernel that closes over values has no name of its own"
        # Of a module that was typed in nothing can be said of what it became.
        self._kept = find_source(function.__module__) is not None
        self.kernel = f"{function.__module__}:{function.__qualname__}"
        self._plain: Any = _Plain(function)
        self._lock: IO[bytes] | None = None
        self._held = 0

    @property
    def cache_path(self) -> str:
        """Return the directory of this kernel's files, of this user."""
        module = self.kernel.partition(":")[0]
        return str(own_place() / f"{module}-{digest_of(module)}")

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Find machine code for a signature; if there is none, keep other processes from compiling it too."""
        # Not `refresh()`, which numba calls here: it loads all that compiling needs, a third of the time to a
        # first match. The compiler calls it for itself.
        _runtime.rtsys.initialize(target_context)
        args = describe(_sigutils.normalize_signature(sig)[0])
        if not _compiling.depth:
            signatures.meet(self.kernel, args)
        if not self._kept:
            return None
        own = Target(*target_context.codegen().magic_tuple())
        code = self._load(args, own, target_context)
        if code is None:
            self._acquire(own_place() / file_name(self.kernel, args, own))
            code = self._load(args, own, target_context)
            if code is not None:
                self.release()
        return code

    def _load(self, args: str, own: Target, target_context: Any) -> Any:
        for file in self._files(args, own):
            payload = read_code(file)
            if payload is not None:
                return self._plain.rebuild(target_context, pickle.loads(payload))
        return None

    def _files(self, args: str, own: Target) -> Iterator[Path]:
        """Name the files that may hold the code, the best first."""
        exact = file_name(self.kernel, args, own)
        yield own_place() / exact
        # Somebody who named a processor wants code for that one.
        base = runnable() if vars(numba.config)["CPU_NAME"] is None else own
        if base is not None:
            name = exact if base == own else file_name(self.kernel, args, base)
            if base != own:
                yield own_place() / name
            yield PREBUILT / name

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled machine code; where nothing can be written, it is compiled again next time."""
        try:
            if self._kept and self._plain.check_cachable(data):
                args = describe(_sigutils.normalize_signature(sig)[0])
                own = Target(*data.codegen.magic_tuple())
                payload = _serialize.dumps(self._plain.reduce(data))
                with suppress(OSError):
                    write_code(own_place() / file_name(self.kernel, args, own), payload)
        finally:
            self.release()

    def _acquire(self, file: Path) -> None:
        """Wait until no other process compiles this kernel. Callers wait for callees, never the reverse."""
        self._held += 1
        if self._lock is not None:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            lock = file.with_name(f"{self.kernel.partition(':')[2]}.lock").open("ab")
        except OSError:
            return
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.02)
            except OSError:
                # Some network file systems have no locks.
                break
            else:
                self._lock = lock
                return
        lock.close()

    def release(self) -> None:
        """Let other processes compile this kernel, or find it compiled."""
        self._held = max(0, self._held - 1)
        if not self._held and self._lock is not None:
            self._lock.close()
            self._lock = None

    def enable(self) -> None:
        """Do nothing: files are always looked for."""

    def disable(self) -> None:
        """Do nothing: files are always looked for."""

    def flush(self) -> None:
        """Do nothing: a file is never stale."""


def read_code(file: Path) -> bytes | None:
    """Read a file of machine code; none if it is missing or damaged."""
    try:
        content = read(file)
    except OSError:
        return None
    digest, payload = content[:32], content[32:]
    return payload if hashlib.sha256(payload).digest() == digest else None


def write_code(file: Path, payload: bytes) -> None:
    """Write a file of machine code in one step."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        fresh.write_bytes(hashlib.sha256(payload).digest() + payload)
        fresh.replace(file)
    finally:
        fresh.unlink(missing_ok=True)


class _Compiling(numba_events.Listener):
    """Hears what is compiled, and says so when it takes long: once as a warning, then as news."""

    SAID_AFTER = 2.0

    def __init__(self) -> None:
        self.depth = 0
        self.kernels = 0
        self._began = 0.0
        self._spent = 0.0
        self._next = self.SAID_AFTER

    def on_start(self, event: Any) -> None:
        if _store_of(event) is None:
            return
        if not self.depth:
            self._began = time.monotonic()
        self.depth += 1
        self._say()

    def on_end(self, event: Any) -> None:
        store = _store_of(event)
        if store is None:
            return
        self.kernels += 1
        self._say()
        self.depth -= 1
        if not self.depth:
            self._spent += time.monotonic() - self._began
        # Not `event.is_failed`, which numba 0.68 has the wrong way round.
        if sys.exc_info()[0] is not None:
            store.release()

    def _say(self) -> None:
        spent = self._spent + time.monotonic() - self._began
        if spent < self._next:
            return
        if self._next == self.SAID_AFTER:
            _LOG.warning(
                "compiling kernels for this processor, once: this may take a minute (headgate warm does it "
                "ahead of time)"
            )
        else:
            _LOG.warning("compiling kernels: %d so far", self.kernels)
        self._next = spent + self.SAID_AFTER


def _store_of(event: Any) -> Store | None:
    store = vars(event.data["dispatcher"]).get("_cache")
    return store if isinstance(store, Store) else None


_compiling = _Compiling()


@cache
def _listen() -> None:
    events: Any = numba_events
    events.register("numba:compile", _compiling)
    if has_prebuilt() and lacking():
        _LOG.warning(
            "this processor lacks %s, which the prebuilt kernels use: they are compiled for it, once",
            ", ".join(lacking()),
        )
