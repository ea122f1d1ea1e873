"""Headgate on Spark: functions from DataFrame to DataFrame, and the jobs of the command line.

    snapshot = hg.compile(subscriptions, "snapshot")
    matched = hg.match(events, snapshot, id="event_uuid", keep=["price"])

They are imported by `headgate.spark`, which is `hg` here and in the docs.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headgate.spark.frames.backtest import Backtest as Backtest
    from headgate.spark.frames.backtest import backtest as backtest
    from headgate.spark.frames.batches import EachBatch as EachBatch
    from headgate.spark.frames.batches import each_batch as each_batch
    from headgate.spark.frames.compile import Compiled as Compiled
    from headgate.spark.frames.compile import compile as compile  # noqa: A004 -- used as hg.compile
    from headgate.spark.frames.disseminate import disseminate as disseminate
    from headgate.spark.frames.explain import explain as explain
    from headgate.spark.frames.match import match as match
    from headgate.spark.frames.match import refused as refused
    from headgate.spark.frames.match import top as top
    from headgate.spark.frames.match import write_parquet as write_parquet
    from headgate.spark.frames.what_if import WhatIf as WhatIf
    from headgate.spark.frames.what_if import what_if as what_if
    from headgate.spark.stream.service import register_source as register_source

_HOMES = {
    "Backtest": "frames.backtest",
    "Compiled": "frames.compile",
    "EachBatch": "frames.batches",
    "WhatIf": "frames.what_if",
    "backtest": "frames.backtest",
    "compile": "frames.compile",
    "disseminate": "frames.disseminate",
    "each_batch": "frames.batches",
    "explain": "frames.explain",
    "match": "frames.match",
    "refused": "frames.match",
    "register_source": "stream.service",
    "top": "frames.match",
    "what_if": "frames.what_if",
    "write_parquet": "frames.match",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Load what is public when it is first used: the rooms below are loaded without pyspark, too."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"headgate.spark.{_HOMES[name]}"), name)
    return globals().setdefault(name, value)
