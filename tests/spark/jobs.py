"""The jobs by one name each: on a session of Spark, or in this process where there is none."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from headgate.contents.kind import FilterSettings
from headgate.core.subscription import SQL
from headgate.jobs import backtest as jobs_backtest
from headgate.jobs import compile as jobs_compile
from headgate.jobs import generate as jobs_generate
from headgate.jobs import graph as jobs_graph
from headgate.jobs import match as jobs_match
from headgate.jobs import plan as jobs_plan
from headgate.jobs import what_if as jobs_what_if
from headgate.local.runner import LocalRunner
from headgate.runtime.sharding import Sharding
from headgate.spark.runner import SparkRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from headgate.backtest.effects import WhatIf
    from headgate.backtest.one_filter import BacktestResult
    from headgate.jobs.plan import PlanResult
    from headgate.jobs.runner import Runner
    from headgate.plan.running.planner import MadePlan
    from headgate.tables.requests import WhatIfRequest
    from headgate.tables.results import CompileResult, GraphCompileResult, MatchResult, Tables

on_spark = pytest.mark.parametrize("session", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True)
"""Marks a test of Spark itself, or of what is left to it: it runs there always, and nowhere else."""


def on_both(names: str = "", cases: Sequence[Any] = ((),), *by_day: int) -> pytest.MarkDecorator:
    """Run all cases in this process, and on Spark: those at some places by day, the others nightly."""
    found = []
    for place, case in enumerate(cases):
        values = case if isinstance(case, tuple) else (case,)
        late = [] if place in (by_day or (0,)) else [pytest.mark.nightly]
        found.append(pytest.param("local", *values))
        found.append(pytest.param("spark", *values, marks=[pytest.mark.spark, *late]))
    columns = ["session", *filter(None, names.split(","))]
    return pytest.mark.parametrize(columns, found, indirect=["session"])


def runner_of(session: SparkSession | None, *, quiet: bool = True) -> Runner:
    """Return what a job runs on."""
    return LocalRunner(quiet) if session is None else SparkRunner(session, quiet)


def compile_subscriptions(
    session: SparkSession | None, subscriptions: str, output: str, **options: Any
) -> CompileResult:
    """Compile a table of subscriptions to a snapshot; settings of filters are named one by one."""
    return jobs_compile.compile_subscriptions(*_said(session, options), subscriptions, output, **options)


def compile_graph(
    session: SparkSession | None, tables: Tables, output: str, **options: Any
) -> GraphCompileResult:
    """Compile the tables of a graph to a snapshot."""
    return jobs_graph.compile_graph(*_said(session, options), tables, output, **options)


def _said(session: SparkSession | None, options: dict[str, Any]) -> tuple[Runner]:
    """Put settings together as jobs take them; return the runner."""
    names = {each.name for each in fields(FilterSettings)} & options.keys()
    options["wanted"] = FilterSettings(**{name: options.pop(name) for name in names})
    if "shards" in options:
        options["sharding"] = Sharding.of(options.pop("shards"))
    return (runner_of(session, quiet=options.pop("quiet", True)),)


def match_events(
    session: SparkSession | None, snapshot: str, events: str, output: str, **options: Any
) -> MatchResult:
    """Match a table of events against a snapshot."""
    runner = runner_of(session, quiet=options.pop("quiet", True))
    return jobs_match.match_events(runner, snapshot, events, output, **options)


def plan_subscriptions(
    session: SparkSession | None, *places_and_settings: Any, **options: Any
) -> tuple[PlanResult, MadePlan]:
    """Plan who feeds whom among the subscriptions of a snapshot."""
    runner = runner_of(session, quiet=options.pop("quiet", True))
    return jobs_plan.plan_subscriptions(runner, *places_and_settings, **options)


def generate(session: SparkSession | None, *rows_and_place: Any, **options: Any) -> None:
    """Write rows of a table."""
    runner = runner_of(session, quiet=options.pop("quiet", False))
    jobs_generate.generate(runner, *rows_and_place, **options)


def backtest(
    session: SparkSession | None,
    text: str,
    events: str,
    *,
    dialect: str = SQL,
    content_type: str | None = None,
    output: str | None = None,
    quiet: bool = True,
    **settings: Any,
) -> BacktestResult:
    """Try a filter."""
    runner, wanted = runner_of(session, quiet=quiet), FilterSettings(dialect, **settings)
    return jobs_backtest.backtest(runner, text, events, wanted, content_type=content_type, output=output)


def what_if(session: SparkSession | None, question: WhatIfRequest, **options: Any) -> WhatIf:
    """Say what a set of changes would do."""
    runner = runner_of(session, quiet=options.pop("quiet", True))
    return jobs_what_if.what_if(runner, question, **options)
