"""Steps that would fail after others were done: filters that do not parse, ranks that are not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.contents.registry import content_of, kind_of
from headgate.core.values import fold
from headgate.errors import HeadgateError
from headgate.pipeline.file.problems import Problem
from headgate.pipeline.rehearsal.samples import column_names, content_at_hand, first_rows
from headgate.pipeline.run.generating import workload_of
from headgate.runtime.rows import RANKS, WEIGHTS
from headgate.spark.tables.places import is_remote, local

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from headgate.pipeline.file.model import Pipeline


def impossible(pipeline: Pipeline) -> list[Problem]:
    """List what can be known to fail from the file and the first rows of its tables."""
    try:
        content = _content(pipeline)
    except (HeadgateError, OSError):
        # That is told already, and nothing can be said of filters without it.
        return []
    return [
        *_backtests(pipeline, content),
        *_shards(pipeline, content),
        *_ranks(pipeline),
        *_plan(pipeline),
    ]


def _content(pipeline: Pipeline) -> str | None:
    """Find what filters look at; None if their rows say it, and lie where only Spark can look."""
    tables = (pipeline.subscription_table, pipeline.node_table, pipeline.edge_table)
    if pipeline.said_dialect is None and any(path is not None and is_remote(path) for path in tables):
        return None
    return content_at_hand(pipeline)


def _backtests(pipeline: Pipeline, content: str | None) -> Iterator[Problem]:
    for each in pipeline.backtests:
        label = f"backtest.{each.name}" if len(pipeline.backtests) > 1 else "backtest"
        dialect = each.dialect or pipeline.dialect
        spoken = kind_of(content_of([dialect], "the filter"))
        if content is not None and spoken.name != content:
            events = kind_of(content)
            why = f"{dialect!r} looks at {spoken.title}, and the events are {events.title}"
            yield Problem(f"{label}.dialect", why, f"use {' or '.join(events.dialects)}")
            continue
        try:
            spoken.check_filter(each.filter, dialect)
        except HeadgateError as error:
            yield Problem(f"{label}.filter", str(error))


def _shards(pipeline: Pipeline, content: str | None) -> Iterator[Problem]:
    shards = pipeline.shards
    if shards.by != "access" or content is None:
        return
    kind = kind_of(content)
    if not kind.documents and shards.column is None and shards.count > 1:
        why = f"it is missing, and shards by access of {kind.title} go by an attribute"
        yield Problem("shards.column", why, "name one that many filters ask for")
    if kind.documents and shards.column is not None:
        why = f"it is an attribute of records, and the filters look at {kind.title}"
        yield Problem("shards.column", why, "leave it out")


def _ranks(pipeline: Pipeline) -> Iterator[Problem]:
    """Refuse to ask for the best where subscriptions have nothing to rank by."""
    asking = [
        *(("match", each.name, each.top, each.mode) for each in pipeline.matches),
        *(("what_if", each.name, each.top, None) for each in pipeline.what_ifs),
    ]
    several = {"match": len(pipeline.matches) > 1, "what_if": len(pipeline.what_ifs) > 1}
    wanting = [
        (f"{table}.{name}" if several[table] else table, mode)
        for table, name, top, mode in asking
        if top is not None
    ]
    if pipeline.stream is not None and pipeline.stream.get("top") is not None:
        wanting.append(("stream", pipeline.stream.get("mode")))
    graph = pipeline.node_table is not None
    for label, mode in wanting:
        # Those of a graph have scores in any case, and clauses if there are weights.
        names = (WEIGHTS,) if graph else RANKS
        if graph and mode != "relaxed":
            continue
        ranked = _has(pipeline, names) if pipeline.ranked is None else pipeline.ranked
        if ranked is False:
            missing = " or ".join(map(repr, names))
            why = f"the subscriptions have no column {missing}, and are not ranked"
            yield Problem(f"{label}.top", why, "say subscriptions.ranked = true, or leave it out")


def _plan(pipeline: Pipeline) -> Iterator[Problem]:
    if pipeline.plan is None:
        return
    if pipeline.node_table is not None:
        yield Problem(
            "plan", "it is made of subscriptions alone, and there is a graph", "leave out one of them"
        )
        return
    ranked = _has(pipeline, RANKS) if pipeline.ranked is None else pipeline.ranked
    if ranked:
        why = "it is made of subscriptions that are not ranked, and these are"
        yield Problem("plan", why, "say subscriptions.ranked = false")
    given = pipeline.subscriptions
    for name in ("coerce", "injective"):
        if given is not None and getattr(given, name):
            yield Problem(
                "plan", f"it follows SPARQL, and subscriptions.{name} departs from it", "leave it out"
            )


def _has(pipeline: Pipeline, names: Collection[str]) -> bool | None:
    """Tell whether the table of subscriptions has one of some columns; None if that cannot be known yet."""
    path = pipeline.subscription_table
    if path is None:
        return False
    if pipeline.generate is not None and path == pipeline.generated("subscriptions"):
        return not set(workload_of(pipeline.generate).tables["subscriptions"].schema.names).isdisjoint(names)
    if is_remote(path) or not local(path).exists():
        return None
    try:
        columns = column_names(path)
        if columns is not None:
            return not {*map(fold, columns)}.isdisjoint(names)
        found = first_rows(path)
    except (HeadgateError, OSError):
        # The table itself is told.
        return None
    if any(isinstance(row, dict) and not {*map(fold, row)}.isdisjoint(names) for row in found.rows):
        return True
    return False if found.counted else None
