"""What can be known to be wrong before any work: tables that are not there, places that are taken."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.contents.registry import kind_of
from headgate.core.schema import read_schema
from headgate.core.snapshot import check_place
from headgate.core.values import fold
from headgate.errors import HeadgateError
from headgate.pipeline.file.setting import PipelineError, Problem
from headgate.pipeline.file.together import places
from headgate.pipeline.rehearsal.possible import impossible
from headgate.pipeline.rehearsal.samples import column_names, content_at_hand, is_table
from headgate.spark.tables.document_names import check_events
from headgate.spark.tables.places import check_input, check_output, is_remote, local
from headgate.spark.tables.taxonomy_files import read_taxonomy

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from headgate.pipeline.file.model import Pipeline

_DIRECTORIES = {"compile.snapshot", "plan.output"}
_FOLDERS = {"stream.output", "stream.state", "stream.dead_letters", "stream.rejected_changes"}
_PAGES = {"page", "json", "file", "metrics", "report"}


def check(pipeline: Pipeline, *, ours: Collection[str] = ()) -> None:
    """Refuse a pipeline with all that is wrong; `ours` are outputs that a run which was stopped has begun."""
    found = [*_inputs(pipeline), *_outputs(pipeline, ours), *_streamed(pipeline), *impossible(pipeline)]
    if found:
        raise PipelineError(str(pipeline.file), found)


@dataclass(frozen=True)
class _Input:
    where: str
    path: str | None
    columns: tuple[str, ...]


def _inputs(pipeline: Pipeline) -> list[Problem]:
    problems: list[Problem] = []
    given = pipeline.subscriptions
    problems += _refused("subscriptions.dialect", partial(content_at_hand, pipeline))
    tables = [
        _Input("subscriptions.table", given.table if given else None, ("id", "filter")),
        _Input("subscriptions.sample", given.sample if given else None, ("id",)),
        _Input("graph.nodes", pipeline.graph.nodes if pipeline.graph else None, ("id",)),
        _Input("graph.edges", pipeline.graph.edges if pipeline.graph else None, ("source", "target")),
        _Input("plan.sites", pipeline.plan.sites if pipeline.plan else None, ("id",)),
        *(_Input(f"what_if.{each.name}.changes", each.changes, ()) for each in pipeline.what_ifs),
    ]
    made = {pipeline.generated(name) for name in ("subscriptions", "nodes", "edges", "events")}
    for table in tables:
        if table.path is not None and table.path not in made:
            problems += _refused(table.where, partial(_table, table.path, table.columns))
    events = pipeline.events.table if pipeline.events else None
    sample = pipeline.plan.sample if pipeline.plan else None
    for where, path in (("events.table", events), ("plan.sample", sample)):
        if path is not None and path not in made:
            problems += _refused(where, partial(_events, pipeline, path))
    if given and given.schema:
        problems += _refused("subscriptions.schema", partial(_schema, given.schema))
    for path in given.taxonomy or () if given else ():
        problems += _refused("subscriptions.taxonomy", partial(read_taxonomy, [path]))
    return problems


def _table(path: str, columns: tuple[str, ...]) -> None:
    check_input(path)
    if is_remote(path):
        return
    names = column_names(path)
    for name in columns if names else ():
        if names is not None and name not in map(fold, names):
            raise HeadgateError(f"{path} has no column {name!r}; its columns are {', '.join(names)}")


def _events(pipeline: Pipeline, path: str) -> None:
    kind = kind_of(content_at_hand(pipeline))
    if not kind.documents:
        _table(path, ("id",))
        return
    check_events(path, kind, pipeline.events.format if pipeline.events else None)
    if not is_remote(path) and is_table(path):
        _table(path, ("id", "data"))


def _schema(path: str) -> None:
    try:
        read_schema(Path(path).read_text("utf-8"))
    except OSError as error:
        raise HeadgateError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise HeadgateError(f"{path} is not UTF-8: {error}") from None


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
    from headgate.pipeline.file.streams import settings_of_stream

    return _refused("stream", partial(settings_of_stream, pipeline))


def _output(where: str, path: str) -> None:
    if where in _DIRECTORIES:
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
