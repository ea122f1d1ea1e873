"""Settings that are sound each by itself, and cannot go together."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headgate.contents.registry import content_of, kind_of, kinds
from headgate.pipeline.file.model import GRAPHS
from headgate.pipeline.file.setting import Kind, Problem, settings_of
from headgate.pipeline.file.settings import STREAM, TABLES
from headgate.workloads.catalogue import EXCHANGE_SELECTIVITIES, RDF_NAMES, SOCIAL_SELECTIVITIES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.pipeline.file.model import Pipeline
    from headgate.pipeline.file.settings import Generate, Match

_SETTINGS = {"coerce": "options", "injective": "options"}
"""Settings of filters that a kind of content knows by another name."""
_OF_WORKLOADS: dict[str, tuple[str, ...]] = {
    "nodes": ("social",),
    "edges": ("social",),
    "scale": ("exchange",),
    "selectivity": GRAPHS,
    "vocabulary": ("exchange",),
    "dimensions": ("ranking",),
    "attributes": ("ranking",),
    "presence": ("ranking",),
    "skew_length": ("ranking",),
    "scores": ("ranking",),
    "match_ratio": ("paper",),
    "overlap": ("paper",),
    "constrained": ("paper",),
    "unique": ("xmark",),
    "kilobytes": ("xmark",),
}
"""Settings of `[generate]` that mean something for some workloads only."""


class Place(NamedTuple):
    """A path that the file names, or has by default, and the setting that it is of."""

    where: str
    path: str
    output: bool


def together(pipeline: Pipeline) -> list[Problem]:
    """List what cannot go together."""
    return [
        *_missing(pipeline),
        *_generated(pipeline.generate),
        *_filters(pipeline),
        *_sharded(pipeline),
        *(problem for match in pipeline.matches for problem in _matched(pipeline, match)),
        *_apart(pipeline),
    ]


def places(pipeline: Pipeline) -> list[Place]:
    """List the paths of a pipeline, those of tables that it generates among its outputs."""
    found = []
    tables = {
        **{name: getattr(pipeline, name) for name in ("subscriptions", "graph", "compile", "events")},
        **{name: getattr(pipeline, name) for name in ("plan", "report", "metrics")},
        "match": pipeline.matches,
        "backtest": pipeline.backtests,
        "what_if": pipeline.what_ifs,
    }
    for name, given in tables.items():
        entries = given if isinstance(given, tuple) else () if given is None else (given,)
        for entry in entries:
            label = f"{name}.{entry.name}" if len(entries) > 1 else name
            for setting in settings_of(name, TABLES[name].made):
                value = getattr(entry, setting.name)
                if value is not None and setting.kind in {Kind.INPUT, Kind.INPUTS, Kind.OUTPUT}:
                    paths = value if isinstance(value, tuple) else (value,)
                    output = setting.kind is Kind.OUTPUT
                    found += [Place(f"{label}.{setting.name}", path, output) for path in paths]
    for name in ("subscriptions", "nodes", "edges", "events", "taxonomy"):
        path = pipeline.generated(name)
        if path is not None:
            found.append(Place(f"generate ({name})", path, output=True))
    if pipeline.stream is not None:
        from headgate.pipeline.file.streams import stream_places

        found += [Place(f"{STREAM}.{name}", path, output) for name, path, output in stream_places(pipeline)]
    return found


def _missing(pipeline: Pipeline) -> Iterator[Problem]:
    graph = (pipeline.node_table, pipeline.edge_table)
    if pipeline.subscription_table is None and graph == (None, None):
        right = "name a table of subscriptions, or [graph] with nodes and edges, or let [generate] make one"
        yield Problem("subscriptions.table", "it is missing", right)
    for name, other, given, missing in (("nodes", "edges", *graph), ("edges", "nodes", *reversed(graph))):
        if given is not None and missing is None:
            yield Problem(f"graph.{other}", f"it is missing, and there are {name}", "a graph has both")
    if pipeline.event_table is None:
        asking = {"match": pipeline.matches, "backtest": pipeline.backtests, "what_if": pipeline.what_ifs}
        wanting = [name for name, given in asking.items() if given]
        if pipeline.plan is not None and pipeline.plan.sample is None:
            wanting.append("plan")
        if wanting:
            why = f"it is missing, and [{wanting[0]}] needs events"
            yield Problem("events.table", why, "name a table of events, or let [generate] make one")


def _generated(generate: Generate | None) -> Iterator[Problem]:
    if generate is None:
        return
    workload = generate.workload
    for each in fields(generate):
        allowed = _OF_WORKLOADS.get(each.name)
        if allowed and workload not in allowed and getattr(generate, each.name) != each.default:
            why = f"the workload {workload!r} has no such setting"
            yield Problem(f"generate.{each.name}", why, f"leave it out, or use {' or '.join(allowed)}")
    if generate.subscriptions is not None and workload in GRAPHS:
        why = f"the nodes of {workload!r} serve subscriptions by themselves"
        yield Problem("generate.subscriptions", why, "leave it out")
    selectivities = {"exchange": EXCHANGE_SELECTIVITIES, "social": SOCIAL_SELECTIVITIES}.get(workload)
    if selectivities and generate.selectivity and generate.selectivity not in selectivities:
        why = f"{workload!r} has no {generate.selectivity!r}"
        yield Problem("generate.selectivity", why, f"there are {', '.join(selectivities)}")
    if generate.attributes is not None and generate.dimensions is not None:
        yield Problem("generate.dimensions", "there is generate.attributes, too", "give one of them")
    if generate.presence is not None and generate.attributes is None:
        yield Problem("generate.presence", "there is no generate.attributes", "give both, or leave it out")


def _filters(pipeline: Pipeline) -> Iterator[Problem]:
    """Hold what is said of filters against their dialect: rows may name others of the same content only."""
    dialect, given = pipeline.said_dialect, pipeline.subscriptions
    if dialect is None:
        # The rows say it, and they are looked at later.
        return
    kind = kind_of(content_of([dialect], "the filters"))
    for name in ("schema", "sample", "taxonomy", "coerce", "injective") if given is not None else ():
        setting = _SETTINGS.get(name, name)
        if getattr(given, name) and setting not in kind.settings:
            owner = next(each for each in kinds().values() if setting in each.settings)
            why = f"it is for filters of {owner.title}, and the dialect is {dialect!r}"
            yield Problem(f"subscriptions.{name}", why, f"leave it out, or use {' or '.join(owner.dialects)}")
    form = pipeline.events.format if pipeline.events else None
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
    if plan is not None and plan.carries is None and not kind.documents:
        why = "it is missing, and the filters look at records"
        yield Problem("plan.carries", why, "say what subscribers hold of an event: row or key")


def _sharded(pipeline: Pipeline) -> Iterator[Problem]:
    shards = pipeline.shards
    if shards.by == "hash" and shards.column is not None:
        yield Problem(
            "shards.column", "the rule 'hash' looks at no column", "leave it out, or use tenant or access"
        )
    if shards.column is not None and not all(shards.column.split(".")):
        yield Problem("shards.column", f"{shards.column!r} is no name", "give a name, or names with dots")
    if shards.count == 1:
        return
    graph, cut = pipeline.node_table is not None, "and the subscriptions are cut into shards"
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
    graph = pipeline.node_table is not None
    if match.top is None:
        for name in ("mode", "factors"):
            if getattr(match, name) is not None:
                yield Problem(f"{label}.{name}", "there is no top", f"say how many with {label}.top")
    elif match.factors and match.mode != "relaxed":
        yield Problem(f"{label}.factors", "exact matching weighs no clauses", 'say mode = "relaxed"')
    if match.top is not None and pipeline.ranked is False and not graph:
        yield Problem(f"{label}.top", "subscriptions.ranked is false", "leave that out, or leave out top")
    if match.tuples is not None:
        said = pipeline.said_dialect
        if said is not None and kind_of(content_of([said], "the filters")).results != "tuples":
            why = f"it is for filters of XML, and the dialect is {pipeline.said_dialect!r}"
            yield Problem(f"{label}.tuples", why, "leave it out")
        elif graph or match.top is not None:
            yield Problem(
                f"{label}.tuples", "it is for matches without a graph and without top", "leave it out"
            )


def _apart(pipeline: Pipeline) -> Iterator[Problem]:
    """Refuse places that are named twice, or lie inside another output."""
    taken: dict[str, str] = {}
    found = places(pipeline)
    made = {_real(each.path) for each in found if each.where.startswith("generate")}
    for each in sorted(found, key=lambda place: not place.output):
        place = _real(each.path)
        if place in taken and (each.output or place not in made):
            right = "give every input and output a place of its own"
            yield Problem(each.where, f"{each.path} is {taken[place]}, too", right)
        if each.output:
            taken.setdefault(place, each.where)
    for each in found:
        if "://" in each.path:
            continue
        above = next((up for up in map(str, Path(_real(each.path)).parents) if up in taken), None)
        if above is not None:
            why = f"{each.path} lies inside {taken[above]}"
            yield Problem(each.where, why, "choose a place outside: what is there is replaced as a whole")
    for each in found:
        if each.output and _real(each.path) == _real(str(pipeline.file)):
            yield Problem(each.where, f"{each.path} is the pipeline file itself", "choose another place")


def _real(path: str) -> str:
    return path if "://" in path else os.path.realpath(path)
