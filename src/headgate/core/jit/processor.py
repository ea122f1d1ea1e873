"""Which machine code a processor can run."""

from __future__ import annotations

import platform
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

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
