"""Compile every kernel that the product uses, for every signature, ahead of time and in several processes."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import deque
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.jit import signatures
from headgate.core.jit.notation import parse
from headgate.core.jit.sources import PREBUILT, digest_of
from headgate.core.jit.store import Target, file_name, host, own_place, runnable
from headgate.core.machine import cores
from headgate.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path


OLD = 30.0
"""Days after which machine code of other sources is removed."""


class Unit(NamedTuple):
    """A kernel for one signature, and the file of its machine code, below any place."""

    kernel: str
    args: str
    file: Path


@dataclass(frozen=True)
class WarmResult:
    """What was done."""

    target: Target
    ready: int
    """Kernels that were compiled already."""
    compiled: int
    seconds: float
    """CPU seconds that compiling took."""
    removed: int
    """Directories of old sources that were removed."""


def units(target: Target, chosen: Sequence[str] = ()) -> list[Unit]:
    """List every kernel that the product calls, for every signature, of rooms or modules chosen or of all."""
    beginnings = tuple(f"headgate.{each}" for each in chosen or [""])
    return [
        Unit(kernel, args, file_name(kernel, args, target))
        for kernel, listed in sorted(signatures.known().items())
        if kernel.startswith(beginnings)
        for args in sorted(listed)
    ]


def warm(
    chosen: Sequence[str] = (),
    *,
    native: bool = False,
    processes: int | None = None,
    tell: Callable[[int, int], None] | None = None,
) -> WarmResult:
    """Compile what is not compiled yet; `tell` hears how many of how many are done.

    The code is for the baseline if this processor runs it, so that it serves all processors alike; `native`
    makes code for this very processor.
    """
    target = (None if native else runnable()) or host()
    listed = units(target, chosen)
    places = (own_place(), PREBUILT)
    waiting = deque(unit for unit in listed if not any((cache / unit.file).exists() for cache in places))
    lacking, seconds = len(waiting), 0.0
    if waiting:
        try:
            own_place().mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise MachineError(
                f"kernels cannot be kept in {own_place()} ({error.strerror}): set NUMBA_CACHE_DIR to a "
                "directory that can be written"
            ) from error
        crew = _WorkerPool(waiting, target, tell)
        seconds = crew.work(processes or min(cores(), lacking))
    return WarmResult(target, len(listed) - lacking, lacking, seconds, remove_old(own_place()))


def remove_old(cache: Path, days: float = OLD) -> int:
    """Remove the machine code of sources that are not these, and that nothing was compiled of for long."""
    modules = {kernel.partition(":")[0] for kernel in signatures.known()}
    current = {f"{module}-{digest_of(module)}" for module in modules}
    before = time.time() - days * 86_400
    removed = 0
    for folder in cache.iterdir() if cache.is_dir() else ():
        if folder.name not in current and folder.is_dir() and folder.stat().st_mtime < before:
            shutil.rmtree(folder, ignore_errors=True)
            removed += 1
    return removed


def copy_code(target: Target, folder: Path) -> int:
    """Copy the machine code of all kernels into a directory, as a wheel carries it; return the bytes."""
    size = 0
    for unit in units(target):
        source = next(cache / unit.file for cache in (own_place(), PREBUILT) if (cache / unit.file).exists())
        (folder / unit.file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / unit.file)
        size += source.stat().st_size
    return size


class _WorkerPool:
    """Processes that share a list of kernels.

    Kernels of one module call the same others, so neighbours in the list would wait for each other: every
    second process takes from the end.
    """

    def __init__(self, waiting: deque[Unit], target: Target, tell: Callable[[int, int], None] | None) -> None:
        self._waiting = waiting
        self._total = len(waiting)
        self._done = 0
        self._seconds = 0.0
        self._problems: list[str] = []
        self._lock = threading.Lock()
        self._tell = tell
        # No mode for signatures: nothing is called here.
        named = {"NUMBA_CPU_NAME": target.cpu, "NUMBA_CPU_FEATURES": target.features}
        self._environment = {**os.environ, **named, signatures.MODE: ""}

    def work(self, processes: int) -> float:
        """Compile all; return the CPU seconds that it took."""
        threads = [threading.Thread(target=self._drive, args=(number,)) for number in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self._problems:
            raise MachineError(f"kernels could not be compiled: {self._problems[0]}")
        return self._seconds

    def _take(self, number: int) -> Unit | None:
        with self._lock:
            if not self._waiting or self._problems:
                return None
            return self._waiting.pop() if number % 2 else self._waiting.popleft()

    def _drive(self, number: int) -> None:
        command = [sys.executable, "-m", "headgate.core.jit.warming"]
        with subprocess.Popen(
            command, env=self._environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            while (unit := self._take(number)) is not None:
                try:
                    process.stdin.write(f"{unit.kernel}\t{unit.args}\n")
                    process.stdin.flush()
                    answer = json.loads(process.stdout.readline() or "null")
                except (OSError, ValueError):
                    answer = None
                if answer is None:
                    answer = {"seconds": 0.0, "problem": f"the process for {unit.kernel} ended, see above"}
                self._hear(answer["seconds"], answer["problem"])
            process.stdin.close()

    def _hear(self, seconds: float, problem: str) -> None:
        with self._lock:
            self._done += 1
            self._seconds += seconds
            if problem:
                self._problems.append(problem)
            if self._tell is not None:
                self._tell(self._done, self._total)


def main() -> None:
    """Compile what lines of standard input name, `kernel<TAB>signature`, and answer each with a JSON line."""
    # Whoever started this process tells how far it is.
    logging.getLogger("headgate.kernels").setLevel(logging.ERROR)
    for line in sys.stdin:
        kernel, _, args = line.rstrip("\n").partition("\t")
        began = time.process_time()
        problem = compile_kernel(kernel, args)
        answer = {"seconds": round(time.process_time() - began, 3), "problem": problem}
        print(json.dumps(answer), flush=True)


def compile_kernel(kernel: str, args: str) -> str:
    """Compile a kernel for a signature, or find it compiled; say in one line why it cannot be."""
    module, _, name = kernel.partition(":")
    try:
        dispatcher: Any = getattr(import_module(module), name)
        dispatcher.compile(parse(args))
    except (ImportError, AttributeError, ValueError) as error:
        return f"{kernel} is not as signatures.json says: {error}"
    return ""


if __name__ == "__main__":
    main()
