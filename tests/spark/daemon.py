"""Spark's daemon of Python workers, with Headgate and its compiler loaded before it forks them."""

from __future__ import annotations

import importlib

if __name__ == "__main__":
    for name in ("compiling", "matching", "document_matching", "graph_matching", "streaming.worker"):
        importlib.import_module(f"headgate.spark.{name}")
    # A first kernel loads the compiler.
    interning = importlib.import_module("headgate.core.interning")
    interning.TextPool.build(["a"]).place(["a"], 0, 1)
    # By name: it has no types.
    importlib.import_module("pyspark.daemon").manager()
