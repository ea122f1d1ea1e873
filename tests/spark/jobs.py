"""The jobs by one name each: on a session of Spark, or in this process where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headgate.local import compile as local_compile
from headgate.local import generate as local_generate
from headgate.local import match as local_match
from headgate.local import plan as local_plan
from headgate.spark.compile import compile as spark_compile
from headgate.spark.compile import graph as spark_graph
from headgate.spark.match import match as spark_match
from headgate.spark.plan import planning as spark_plan
from headgate.spark.tables import generate as spark_generate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.plan.running.planner import PlannedNetwork
    from headgate.tables.planning import PlanResult
    from headgate.tables.results import CompileResult, GraphCompileResult, MatchResult, Tables

on_spark = pytest.mark.parametrize("session", [pytest.param("spark", marks=pytest.mark.spark)], indirect=True)
"""Marks a test of Spark itself, or of what is left to it: it runs there always, and nowhere else."""


def compile_subscriptions(
    session: SparkSession | None, subscriptions: str, output: str, **options: Any
) -> CompileResult:
    """Compile a table of subscriptions to a snapshot."""
    if session is None:
        return local_compile.compile_subscriptions(subscriptions, output, **options)
    return spark_compile.compile_subscriptions(session, subscriptions, output, **options)


def compile_graph(
    session: SparkSession | None, tables: Tables, output: str, **options: Any
) -> GraphCompileResult:
    """Compile the tables of a graph to a snapshot."""
    if session is None:
        return local_compile.compile_graph(tables, output, **options)
    return spark_graph.compile_graph(session, tables, output, **options)


def match_events(
    session: SparkSession | None, snapshot: str, events: str, output: str, **options: Any
) -> MatchResult:
    """Match a table of events against a snapshot."""
    if session is None:
        return local_match.match_events(snapshot, events, output, **options)
    return spark_match.match_events(session, snapshot, events, output, **options)


def plan_subscriptions(
    session: SparkSession | None, *places_and_settings: Any, **options: Any
) -> tuple[PlanResult, PlannedNetwork]:
    """Plan who feeds whom among the subscriptions of a snapshot."""
    if session is None:
        return local_plan.plan_subscriptions(*places_and_settings, **options)
    return spark_plan.plan_subscriptions(session, *places_and_settings, **options)


def generate(session: SparkSession | None, *rows_and_place: Any, **options: Any) -> None:
    """Write rows of a table."""
    if session is None:
        local_generate.generate(*rows_and_place, **options)
    else:
        spark_generate.generate(session, *rows_and_place, **options)
