"""Spark's daemon of Python workers, with Headgate imported before it forks them."""

from __future__ import annotations

import importlib

if __name__ == "__main__":
    for name in ("compiling", "matching", "document_matching", "graph_matching", "streaming.worker"):
        importlib.import_module(f"headgate.spark.{name}")
    # By name: it has no types.
    importlib.import_module("pyspark.daemon").manager()
