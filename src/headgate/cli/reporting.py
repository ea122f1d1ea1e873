"""Commands that draw."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.documents import OneEvent, read_document, read_record, refuse_options
from headgate.cli.options import options_of
from headgate.cli.shell import cli, json_option, quiet_option, shown_command, tell
from headgate.core.machine import need
from headgate.core.settings import setting
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from headgate.graph.index import GraphIndex


@cli.group()
def report() -> None:
    """Draw a graph, or a dissemination network."""


@dataclass(frozen=True, kw_only=True)
class ReportGraph(OneEvent):
    """What is drawn of a graph."""

    snapshot: str = setting("a snapshot of a graph", metavar="DIRECTORY")
    output: str = setting("a page (.html), or the picture alone (.svg, .png)", metavar="FILE")
    event: str | None = setting(
        "the event to follow: JSON with its source, a file with such, - for standard input; or a document",
        metavar="JSON",
    )


@report.command(name="graph")
@options_of(ReportGraph)
@quiet_option
@json_option
def report_graph(asked: ReportGraph, *, quiet: bool, as_json: bool) -> None:
    r"""Draw a graph, and the path of an event through it.

    \b
    Examples:
      headgate report graph --snapshot snapshot/ --output graph.html
      headgate report graph --snapshot snapshot/ --output path.svg --event '{"source": "pub-1", "age": 35}'
      headgate report graph --snapshot rdf/ --output path.svg --event news.ttl --source pub-1
    """
    from headgate.contents.registry import DEFAULT, content_at, kind_of
    from headgate.core.versions.stores import located
    from headgate.report.pages import FORMATS

    snapshot, output, event = asked.snapshot, asked.output, asked.event
    path = Path(output)
    if path.suffix not in FORMATS:
        raise click.UsageError(f"--output {output}: let the name end in .html, .svg or .png")
    need("report", "graph")
    graph = located(snapshot)
    _check_graph(snapshot, graph)
    content = DEFAULT if event is None else content_at(graph)
    kind = kind_of(content)
    refuse_options(content)
    shown = None
    if event is not None:
        shown = kind.shown(read_document(content, event, asked)) if kind.documents else read_record(event)
    from headgate.core.ids import fit_id
    from headgate.report.graph.page import GraphReport, write
    from headgate.runtime.progress import step

    with step("opening the snapshot", quiet=quiet):
        index = _open(graph)
    if kind.documents and shown is not None and asked.source is not None:
        entry = fit_id(asked.source, numbered=index.base.names.node_ids.numbered)
        shown = replace(shown, source=asked.source if entry is None else entry)
    with step("drawing", quiet=quiet):
        about = GraphReport.of(
            f"The graph {Path(snapshot).resolve().name}", index.view, shown, shown_command(sys.argv[1:])
        )
        write(about, path)
    shape, journey = about.outline, about.journey
    result: dict[str, object] = {"nodes": shape.nodes, "edges": shape.edges, "components": shape.components}
    lines = [about.sentence, f"drawn in {output}"]
    if journey is not None:
        result |= {"reached": int(journey.reached.sum()), "stopped": int(journey.stopped.sum())}
        result |= {"subscriptions": len(journey.served)}
    tell({**result, "output": output}, lines, as_json=as_json)


@report.command(name="plan")
@click.option("--network", required=True, metavar="DIRECTORY", help="What headgate plan wrote.")
@click.option(
    "--output", required=True, metavar="FILE", help="A page (.html), or the charts alone (.svg, .png)."
)
@quiet_option
@json_option
def report_plan(network: str, output: str, *, quiet: bool, as_json: bool) -> None:
    r"""Draw a dissemination network: who feeds whom, levels, fan-out, the busiest sites, latency.

    \b
    Examples:
      headgate report plan --network network/ --output plan.html
      headgate report plan --network network/ --output plan.png
    """
    from headgate.core.snapshot import room_of
    from headgate.report.pages import check_output

    check_output(Path(output))
    room_of(Path(network))
    from headgate.plan.running.saved_plan import SavedPlan
    from headgate.report.plan_page import sentence, write_report
    from headgate.runtime.progress import step

    with step("opening the network", quiet=quiet):
        saved = SavedPlan.open(Path(network))
    title, command = f"The network {Path(network).resolve().name}", shown_command(sys.argv[1:])
    with step("drawing", quiet=quiet):
        write_report(saved, Path(output), title=title, command=command)
    tell(
        {"views": len(saved.ids), "output": output}, [sentence(saved), f"drawn in {output}"], as_json=as_json
    )


def _check_graph(path: str, folder: Path) -> None:
    """Refuse a snapshot that is not one of a graph in one piece."""
    from headgate.core.rooms import GRAPH, GRAPH_SHARDS
    from headgate.core.snapshot import room_of

    room = room_of(folder)
    if room == GRAPH_SHARDS:
        from headgate.core.snapshot import shard_places

        first = shard_places(folder)[0]
        raise SnapshotError(f"snapshot {path} is a graph in shards: give one of them, such as {first}")
    if room != GRAPH:
        raise SnapshotError(f"snapshot {path} is one of {room!r} and has no graph: give one of a graph")


def _open(path: Path) -> GraphIndex:
    from headgate.contents.registry import room_at
    from headgate.graph.index import GraphIndex

    return GraphIndex.open(path, room=room_at(path))
