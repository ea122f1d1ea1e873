"""The walk compiled as Numba compiles by default, counting references of arrays: why kernels are bare."""

from __future__ import annotations

import sys
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numba
import numpy as np

from benchmarks.graph_series import AUTO, Evaluation, interleaved
from benchmarks.results import Result
from headgate.core import bits, jit, planes
from headgate.graph.walk import walking

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType


def measure_counted(evaluations: dict[str, Evaluation], rounds: int) -> list[Result]:
    """Time all results of `auto`, as it is and counting references, by setting."""
    counted = _load_counted()
    rows = []
    for setting, evaluation in evaluations.items():
        counts = np.zeros(evaluation.events, np.int64)
        works: dict[str, Callable[[], object]] = {
            "bare": partial(evaluation.total, AUTO, counts),
            "counting": partial(evaluation.total, AUTO, counts, counted.walk_events),
        }
        bare, slow = (value / evaluation.events * 1e6 for value in interleaved(works, rounds).values())
        rows.append(
            Result(
                f"{setting}: auto, all results",
                bare,
                "µs",
                slow,
                "the same code, counting references",
                section="Kernels that do not count references",
            )
        )
    return rows


def _load_counted() -> ModuleType:
    """Load the modules of the walk once more, beside those in use, and without their cache."""

    def compiled(**more: Any) -> Callable[[Any], Any]:
        found: Callable[[Any], Any] = numba.njit(nogil=True, error_model="numpy", **more)
        return found

    with (
        patch.object(jit, "bare", compiled()),
        patch.object(jit, "bare_inner", compiled(forceinline=True)),
        patch.dict(sys.modules),
    ):
        for module in (bits, planes, walking):
            spec = spec_from_file_location(module.__name__, module.__file__)
            assert spec is not None
            assert spec.loader is not None
            again = module_from_spec(spec)
            sys.modules[module.__name__] = again
            spec.loader.exec_module(again)
        return sys.modules[walking.__name__]
