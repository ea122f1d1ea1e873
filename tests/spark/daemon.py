"""Spark's daemon of Python workers, with Headgate and its kernels loaded before it forks them.

Spark ends a worker whenever a job needs only the first of its rows, and the next one would load it all again.
"""

from __future__ import annotations

import importlib

from headgate.core.jit.signatures import known
from headgate.core.jit.warming import compile_kernel

if __name__ == "__main__":
    for name in (
        "tables.filter_rows",
        "spark.matching",
        "stream.worker",
    ):
        importlib.import_module(f"headgate.{name}")
    for kernel, signatures in known().items():
        for args in signatures:
            compile_kernel(kernel, args)
    # By name: it has no types.
    importlib.import_module("pyspark.daemon").manager()
