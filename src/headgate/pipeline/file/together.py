"""Settings that are sound each by itself, and cannot go together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.contents.registry import content_of, kind_of, kinds, titles_of
from headgate.contents.settings import PLAIN
from headgate.core.settings import Problem, SettingKind, settings_of, unmet
from headgate.pipeline.file.settings import TABLES
from headgate.stream.settings import is_broker
from headgate.tables.packed import ending
from headgate.tables.places import ENDINGS, Format
from headgate.workloads.catalogue import RDF_NAMES
from headgate.workloads.settings import GRAPHS, SELECTIVITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.file.settings import Match
    from headgate.workloads.settings import Generate

_SETTINGS = {"coerce": "options", "injective": "options"}
"""Settings of filters that a kind of content knows by another name."""


class Place(NamedTuple):
    """A path that the file names, or has by default, and the setting that it is of."""

    where: str
    path: str
    output: bool


def together(pipeline: Pipeline) -> list[Problem]:
    """List what cannot go together."""
    return [
        *_missing(pipeline),
        *(problem for label, request in requests(pipeline) for problem in _unmet(label, request)),
        *_generated(pipeline.generate),
        *_filters(pipeline),
        *_sharded(pipeline),
        *(problem for match in pipeline.matches for problem in _matched(pipeline, match)),
        *_apart(pipeline),
    ]


def requests(pipeline: Pipeline) -> Iterator[tuple[str, object]]:
    """List what is asked of each job, by the table that says it: `match`, or `match.best` of several."""
    for name in ("generate", "compile", "plan", "report", "metrics"):
        if (request := getattr(pipeline, name)) is not None:
            yield name, request
    several: dict[str, tuple[Any, ...]] = {
        "match": pipeline.matches,
        "backtest": pipeline.backtests,
        "what_if": pipeline.what_ifs,
    }
    for name, entries in several.items():
        for entry in entries:
            yield f"{name}.{entry.name}" if len(entries) > 1 else name, entry
    if pipeline.stream is not None:
        yield "stream", pipeline.stream


def _unmet(label: str, request: object) -> Iterator[Problem]:
    """Refuse settings without those that they go with."""
    for each, needed, value in unmet(settings_of(type(request)), request):
        where, other = (setting.key or f"{label}.{setting.name}" for setting in (each, needed))
        if value:
            yield Problem(
                where, f"{other} is not {value!r}", f'say {needed.where} = "{value}", or leave it out'
            )
        else:
            yield Problem(where, f"there is no {other}", "give both, or leave it out")


def places(pipeline: Pipeline) -> list[Place]:
    """List the paths of a pipeline, those of tables that it generates among its outputs."""
    paths_named = []
    # What several jobs share is a place of its own table.
    shared = [(name, pipeline if name == "events" else pipeline.compile) for name in _SHARED]
    for label, request in (*shared, *requests(pipeline)):
        for setting in TABLES[label.partition(".")[0]].settings:
            value = getattr(request, setting.name, None)
            if value is not None and setting.kind.is_path:
                paths = value if isinstance(value, tuple) else (value,)
                output = setting.kind is SettingKind.OUTPUT
                where = f"{label}.{setting.where}"
                paths_named += [Place(where, path, output) for path in paths if not _brokered(where, path)]
    for name in ("subscriptions", "nodes", "edges", "events", "taxonomy"):
        path = pipeline.generated(name)
        if path is not None:
            paths_named.append(Place(f"generate ({name})", path, output=True))
    return paths_named


_SHARED = ("subscriptions", "graph", "events")


def _brokered(where: str, path: str) -> bool:
    """Tell whether a place may be a broker's, and is."""
    brokered = {"compile.changes", "stream.events", "stream.changes", "stream.output"}
    return where in brokered and is_broker(path)


def _missing(pipeline: Pipeline) -> Iterator[Problem]:
    graph = (pipeline.compile.nodes, pipeline.compile.edges)
    if pipeline.compile.subscriptions is None and graph == (None, None):
        right = "name a table of subscriptions, or [graph] with nodes and edges, or let [generate] make one"
        yield Problem("subscriptions.table", "it is missing", right)
    for name, other, given, missing in (("nodes", "edges", *graph), ("edges", "nodes", *reversed(graph))):
        if given is not None and missing is None:
            yield Problem(f"graph.{other}", f"it is missing, and there are {name}", "a graph has both")
    if pipeline.events is None:
        asking = {"match": pipeline.matches, "backtest": pipeline.backtests, "what_if": pipeline.what_ifs}
        wanting = [name for name, given in asking.items() if given]
        if pipeline.plan is not None and not pipeline.plan.sample:
            wanting.append("plan")
        if wanting:
            why = f"it is missing, and [{wanting[0]}] needs events"
            yield Problem("events.table", why, "name a table of events, or let [generate] make one")


def _generated(generate: Generate | None) -> Iterator[Problem]:
    if generate is None:
        return
    workload = generate.workload
    for each in settings_of(type(generate)):
        if each.only and workload not in each.only and each.given(generate):
            why = f"the workload {workload!r} has no such setting"
            yield Problem(f"generate.{each.name}", why, f"leave it out, or use {' or '.join(each.only)}")
    if generate.subscriptions is not None and workload in GRAPHS:
        why = f"the nodes of {workload!r} serve subscriptions by themselves"
        yield Problem("generate.subscriptions", why, "leave it out")
    selectivities = SELECTIVITIES.get(workload)
    if selectivities and generate.selectivity and generate.selectivity not in selectivities:
        why = f"{workload!r} has no {generate.selectivity!r}"
        yield Problem("generate.selectivity", why, f"there are {', '.join(selectivities)}")
    if generate.attributes is not None and generate.dimensions is not None:
        yield Problem("generate.dimensions", "there is generate.attributes, too", "give one of them")


def _filters(pipeline: Pipeline) -> Iterator[Problem]:
    """Hold what is said of filters against their dialect: rows may name others of the same content only."""
    compiled = pipeline.compile
    dialect = compiled.dialect
    if dialect is None:
        # The rows say it, and they are looked at later.
        return
    kind = kind_of(content_of([dialect], "the filters"))
    generated = (pipeline.generated("taxonomy"),)
    for name in ("schema", "sample", "taxonomy", "coerce", "injective", *PLAIN):
        setting = _SETTINGS.get(name, name)
        if getattr(compiled, name) not in (None, False, (), {}, generated) and setting not in kind.settings:
            owners = [each for each in kinds().values() if setting in each.settings]
            why = f"it is for filters of {titles_of(owners)}, and the dialect is {dialect!r}"
            theirs = " or ".join(each for owner in owners for each in owner.dialects)
            yield Problem(f"subscriptions.{name}", why, f"leave it out, or use {theirs}")
    form = pipeline.format
    if form is not None and form not in kind.types:
        known = list(kind.types)
        right = f"use {known[0]}" if len(known) == 1 else f"use one of {kind.title}"
        why = f"{form!r} is none of filters whose dialect is {dialect!r}"
        yield Problem("events.format", why, right if known else "leave it out")
    made = pipeline.generate
    if made is not None and made.workload in RDF_NAMES and "taxonomy" not in kind.settings:
        yield Problem("subscriptions.dialect", f"{dialect!r} is none of generated RDF", "leave it out")
    plan = pipeline.plan
    if plan is not None and plan.carries is not None and kind.documents:
        yield Problem("plan.carries", f"it is for records, and the dialect is {dialect!r}", "leave it out")


def _sharded(pipeline: Pipeline) -> Iterator[Problem]:
    compiled = pipeline.compile
    if compiled.shard_column is not None and compiled.shard_by in {None, "hash"}:
        yield Problem(
            "shards.column", "the rule 'hash' looks at no column", "leave it out, or use tenant or access"
        )
    if compiled.shard_column is not None and not all(compiled.shard_column.split(".")):
        yield Problem(
            "shards.column", f"{compiled.shard_column!r} is not a name", "give a name, or names with dots"
        )
    if (compiled.shards or 1) == 1:
        return
    graph, cut = compiled.nodes is not None, "and the subscriptions are cut into shards"
    if pipeline.plan is not None:
        why = f"it is made of a snapshot in one piece, {cut}"
        yield Problem("plan", why, "leave out [shards], or plan with a file of its own")
    for each in pipeline.what_ifs:
        label = f"what_if.{each.name}" if len(pipeline.what_ifs) > 1 else "what_if"
        if graph or each.top is not None:
            what = "who is reached through a graph" if graph else "who is among the best"
            where = label if graph else f"{label}.top"
            yield Problem(where, f"{what} is known of the whole only, {cut}", "leave out [shards]")


def _matched(pipeline: Pipeline, match: Match) -> Iterator[Problem]:
    label = f"match.{match.name}" if len(pipeline.matches) > 1 else "match"
    graph = pipeline.compile.nodes is not None
    if match.top is not None and pipeline.compile.ranked is False and not graph:
        yield Problem(f"{label}.top", "subscriptions.ranked is false", "leave that out, or leave out top")
    if match.lists and ENDINGS.get(ending(match.output)) is Format.CSV:
        why = f"{match.output} is CSV, which has no lists"
        yield Problem(f"{label}.{match.lists[0]}", why, "let the output end in .parquet or .jsonl")
    if match.tuples is not None:
        dialect = pipeline.compile.dialect
        if dialect is not None and not kind_of(content_of([dialect], "the filters")).gives("tuples"):
            why = f"it is for filters of XML, and the dialect is {dialect!r}"
            yield Problem(f"{label}.tuples", why, "leave it out")
        elif graph or match.top is not None:
            yield Problem(
                f"{label}.tuples", "it is for matches without a graph and without top", "leave it out"
            )


def _apart(pipeline: Pipeline) -> Iterator[Problem]:
    """Refuse places that are named twice, or lie inside another output."""
    taken: dict[str, str] = {}
    named = places(pipeline)
    made = {_real(each.path) for each in named if each.where.startswith("generate")}
    for each in sorted(named, key=lambda place: not place.output):
        path = _real(each.path)
        if path in taken and (each.output or path not in made):
            right = "give every input and output a place of its own"
            yield Problem(each.where, f"{each.path} is {taken[path]}, too", right)
        if each.output:
            taken.setdefault(path, each.where)
    for each in named:
        if "://" in each.path:
            continue
        above = next((up for up in map(str, Path(_real(each.path)).parents) if up in taken), None)
        if above is not None:
            why = f"{each.path} lies inside {taken[above]}"
            yield Problem(each.where, why, "choose a place outside: what is there is replaced as a whole")
    for each in named:
        if each.output and _real(each.path) == _real(str(pipeline.file)):
            yield Problem(each.where, f"{each.path} is the pipeline file itself", "choose another place")


def _real(path: str) -> str:
    return path if "://" in path else os.path.realpath(path)
