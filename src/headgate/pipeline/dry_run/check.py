"""What can be known to be wrong before any work, and steps that would fail after others were done.

Tables that are not there, places that are taken; filters that do not parse, ranks that are not there.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.contents.registry import content_of, kind_of
from headgate.core.machine import need
from headgate.core.schema import read_schema
from headgate.core.settings import Problem
from headgate.core.snapshot import check_place
from headgate.core.values import fold
from headgate.core.versions.stores import is_stored
from headgate.errors import HeadgateError
from headgate.jobs.choosing import has_any
from headgate.pipeline.dry_run.samples import column_names, content_at_hand, first_rows
from headgate.pipeline.file.model import PipelineError
from headgate.pipeline.file.together import places, requests
from headgate.runtime.rows import RANKS, WEIGHTS
from headgate.tables.lines import check_columns
from headgate.tables.places import (
    check_input,
    check_output,
    check_snapshot_place,
    is_remote,
    is_table,
    local,
    table_files,
)
from headgate.tables.requests import check_events, check_log, read_taxonomy
from headgate.tables.settings import Best
from headgate.workloads.catalogue import workload_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

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
    tables = (pipeline.compile.subscriptions, pipeline.compile.nodes, pipeline.compile.edges)
    if pipeline.compile.dialect is None and any(path is not None and is_remote(path) for path in tables):
        return None
    return content_at_hand(pipeline)


def _backtests(pipeline: Pipeline, content: str | None) -> Iterator[Problem]:
    for each in pipeline.backtests:
        label = f"backtest.{each.name}" if len(pipeline.backtests) > 1 else "backtest"
        dialect = each.dialect or pipeline.dialect
        spoken = kind_of(content_of([dialect], "the filter"))
        if content is not None and spoken not in (events := kind_of(content)).kinds:
            why = f"{dialect!r} looks at {spoken.title}, and the events are {events.title}"
            yield Problem(f"{label}.dialect", why, f"use {' or '.join(events.dialects)}")
            continue
        try:
            spoken.check_filter(each.filter, dialect, each.filter_settings(dialect))
        except HeadgateError as error:
            yield Problem(f"{label}.filter", str(error))


def _shards(pipeline: Pipeline, content: str | None) -> Iterator[Problem]:
    compiled = pipeline.compile
    if compiled.shard_by != "access" or content is None:
        return
    kind = kind_of(content)
    if not kind.documents and compiled.shard_column is None and (compiled.shards or 1) != 1:
        why = f"it is missing, and shards by access of {kind.title} go by an attribute"
        yield Problem("shards.column", why, "name one that many filters ask for")
    if kind.documents and compiled.shard_column is not None:
        why = f"it is an attribute of records, and the filters look at {kind.title}"
        yield Problem("shards.column", why, "leave it out")


def _ranks(pipeline: Pipeline) -> Iterator[Problem]:
    """Refuse to ask for the best where subscriptions have nothing to rank by."""
    graph, ranked_said = pipeline.compile.nodes is not None, pipeline.compile.ranked
    for label, request in requests(pipeline):
        if not isinstance(request, Best) or request.top is None:
            continue
        # Those of a graph have scores in any case, and clauses if there are weights.
        names = (WEIGHTS,) if graph else RANKS
        if graph and request.mode != "relaxed":
            continue
        ranked = _has(pipeline, names) if ranked_said is None else ranked_said
        if ranked is False:
            missing = " or ".join(map(repr, names))
            why = f"the subscriptions have no column {missing}, and are not ranked"
            yield Problem(f"{label}.top", why, "say subscriptions.ranked = true, or leave it out")


def _plan(pipeline: Pipeline) -> Iterator[Problem]:
    if pipeline.plan is None:
        return
    compiled = pipeline.compile
    if compiled.nodes is not None:
        # Who is fed by others gets what these get. Through a graph that is not all that their filters match.
        why = "it is made of subscriptions alone, and there is a graph, which keeps events from some of them"
        yield Problem("plan", why, "leave out one of them")
        return
    for name in ("coerce", "injective"):
        if getattr(compiled, name):
            yield Problem(
                "plan", f"it follows SPARQL, and subscriptions.{name} departs from it", "leave it out"
            )


def _has(pipeline: Pipeline, names: Collection[str]) -> bool | None:
    """Tell whether the table of subscriptions has one of some columns; None if that cannot be known yet."""
    path = pipeline.compile.subscriptions
    if path is None:
        return False
    if pipeline.generate is not None and path == pipeline.generated("subscriptions"):
        return not set(workload_of(pipeline.generate).tables["subscriptions"].schema.names).isdisjoint(names)
    if is_remote(path) or not table_files(path):
        return None
    try:
        columns = column_names(path)
        if columns is not None:
            return not {*map(fold, columns)}.isdisjoint(names)
        rows = first_rows(path)
    except (HeadgateError, OSError):
        # The table itself is told.
        return None
    return True if has_any(rows, tuple(names)) else False if rows.counted else None


_DIRECTORIES = {"compile.snapshot", "plan.output"}
_FOLDERS = {"stream.output", "stream.state", "stream.dead_letters", "stream.rejected_changes"}
_PAGES = {"page", "json", "file", "metrics", "report"}


def check(pipeline: Pipeline, *, ours: Collection[str] = ()) -> None:
    """Refuse a pipeline with all that is wrong; `ours` are outputs that a run which was stopped has begun."""
    problems = [*_inputs(pipeline), *_outputs(pipeline, ours), *_streamed(pipeline), *impossible(pipeline)]
    if problems:
        raise PipelineError(str(pipeline.file), problems)


def _inputs(pipeline: Pipeline) -> list[Problem]:
    problems: list[Problem] = []
    compiled, plan = pipeline.compile, pipeline.plan
    problems += _refused("subscriptions.dialect", partial(content_at_hand, pipeline))
    problems += _refused("compile.changes", partial(check_log, compiled.changes))
    tables: list[tuple[str, str | None, tuple[str, ...]]] = [
        ("subscriptions.table", compiled.subscriptions, ("id", "filter")),
        ("subscriptions.sample", compiled.sample, ("id",)),
        ("graph.nodes", compiled.nodes, ("id",)),
        ("graph.edges", compiled.edges, ("source", "target")),
        ("plan.sites", plan.sites if plan else None, ("id",)),
        ("plan.links", plan.links if plan else None, ("from", "to")),
        *((f"what_if.{each.name}.changes", each.changes, ()) for each in pipeline.what_ifs),
    ]
    made = {pipeline.generated(name) for name in ("subscriptions", "nodes", "edges", "events")}
    for where, path, columns in tables:
        if path is not None and path not in made:
            problems += _refused(where, partial(_table, path, columns))
    sample = plan.sample if plan and plan.sample != pipeline.events else None
    for where, path in (("events.table", pipeline.events), ("plan.sample", sample)):
        if path is not None and path not in made:
            problems += _refused(where, partial(_events, pipeline, path))
    if compiled.schema:
        problems += _refused("subscriptions.schema", lambda: read_schema(compiled.types or ""))
    for file in compiled.taxonomy:
        if file != pipeline.generated("taxonomy"):
            problems += _refused("subscriptions.taxonomy", partial(read_taxonomy, [file]))
    return problems


def _table(path: str, columns: tuple[str, ...]) -> None:
    check_input(path)
    if is_remote(path):
        return
    check_columns(column_names(path) or (), path, *columns)


def _events(pipeline: Pipeline, path: str) -> None:
    kind = kind_of(content_at_hand(pipeline))
    if not kind.documents:
        _table(path, ("id",))
        return
    check_events(path, kind, pipeline.format)
    if not is_remote(path) and is_table(path):
        _table(path, ("id", "data"))


def _outputs(pipeline: Pipeline, ours: Collection[str]) -> list[Problem]:
    problems: list[Problem] = []
    if pipeline.directory.exists() and not pipeline.directory.is_dir():
        problems.append(Problem("pipeline.directory", f"{pipeline.directory} is a file", "name a folder"))
        return problems
    for each in places(pipeline):
        if each.output and each.path not in ours:
            problems += _refused(each.where, partial(_output, each.where, each.path))
    return problems


def _streamed(pipeline: Pipeline) -> list[Problem]:
    """Check what can be known of a stream before there is a snapshot."""
    if pipeline.stream is None:
        return []
    return _refused("stream", pipeline.stream.check)


def _output(where: str, path: str) -> None:
    if where == "compile.snapshot" and is_stored(path):
        check_snapshot_place(path)
    elif where in _DIRECTORIES:
        if is_remote(path):
            raise HeadgateError(f"{path} is not on this machine: workers map it, so give a path that all see")
        check_place(local(path))
        _check_above(path)
    elif where in _FOLDERS:
        if is_remote(path):
            raise HeadgateError(f"{path} is not on this machine: name a folder that all machines see")
        if local(path).is_file():
            raise HeadgateError(f"{path} is a file: name a folder")
        _check_above(path)
    elif where.rpartition(".")[2] in _PAGES or where == "generate (taxonomy)":
        if is_remote(path) or local(path).is_dir():
            kind = "a directory" if local(path).is_dir() else "not on this machine"
            raise HeadgateError(f"{path} is {kind}: give the path of a file")
        _check_above(path)
        if where.endswith("page"):
            need("report")
        if where == "plan.page":
            from headgate.report.pages import check_output as check_page

            check_page(Path(path))
    else:
        check_output(path)


def _check_above(path: str) -> None:
    """Refuse a place below a file; folders that are missing are made."""
    above = next(parent for parent in local(path).absolute().parents if parent.exists())
    if not above.is_dir():
        raise HeadgateError(f"{path} cannot be written: {above} is not a directory")


def _refused(where: str, check_one: Callable[[], object]) -> list[Problem]:
    try:
        check_one()
    except HeadgateError as error:
        return [Problem(where, str(error))]
    except OSError as error:
        return [Problem(where, f"{error.filename}: {error.strerror}")]
    return []
