"""Commands that draw."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headgate.cli.documents import (
    format_option,
    item_option,
    read_document,
    read_row,
    refuse_options,
    source_option,
)
from headgate.cli.shell import cli, json_option, quiet_option, tell
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from headgate.core.event import Event
    from headgate.graph.index import GraphIndex


@cli.group()
def report() -> None:
    """Draw a graph, or a dissemination network."""


@report.command(name="graph")
@click.option("--snapshot", required=True, metavar="DIRECTORY", help="A snapshot of a graph.")
@click.option(
    "--output", required=True, metavar="FILE", help="A page (.html), or the picture alone (.svg, .png)."
)
@click.option(
    "--event",
    metavar="JSON",
    help="The event to follow: JSON with its source, a file with such, - for standard input; or a document.",
)
@format_option
@source_option
@item_option
@quiet_option
@json_option
def report_graph(
    snapshot: str,
    output: str,
    event: str | None,
    form: str | None,
    source: str | None,
    item: int | None,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    r"""Draw a graph, and the path of an event through it.

    \b
    Examples:
      headgate report graph --snapshot snapshot/ --output graph.html
      headgate report graph --snapshot snapshot/ --output path.svg --event '{"source": "pub-1", "age": 35}'
      headgate report graph --snapshot rdf/ --output path.svg --event news.ttl --source pub-1
    """
    from headgate.contents.registry import DEFAULT, content_at, kind_of
    from headgate.core.versions.locating import located
    from headgate.report.pages import FORMATS

    place = Path(output)
    if place.suffix not in FORMATS:
        raise click.UsageError(f"--output {output}: let the name end in .html, .svg or .png")
    graph = located(snapshot)
    _check_graph(snapshot, graph)
    content = DEFAULT if event is None else content_at(graph)
    kind = kind_of(content)
    refuse_options(content)
    given = None
    if event is not None:
        given = (
            kind.shown(read_document(content, event, form, source, item)) if kind.documents else _event(event)
        )
    from headgate.core.id_types import fit_id
    from headgate.report.graph.page import GraphReport, write
    from headgate.runtime.progress import step

    with step("opening the snapshot", quiet=quiet):
        index = _open(graph)
    if kind.documents and given is not None and source is not None:
        entry = fit_id(source, numbered=index.base.names.node_ids.numbered)
        given = replace(given, source=source if entry is None else entry)
    with step("drawing", quiet=quiet):
        about = GraphReport.of(
            f"The graph {Path(snapshot).resolve().name}", index.view, given, _command(snapshot, output, event)
        )
        write(about, place)
    found, journey = about.outline, about.journey
    result: dict[str, object] = {"nodes": found.nodes, "edges": found.edges, "components": found.components}
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
        found = SavedPlan.open(Path(network))
    command = shlex.join(["headgate", "report", "plan", "--network", network, "--output", output])
    with step("drawing", quiet=quiet):
        write_report(
            found, Path(output), title=f"The network {Path(network).resolve().name}", command=command
        )
    tell(
        {"views": len(found.ids), "output": output}, [sentence(found), f"drawn in {output}"], as_json=as_json
    )


def _event(text: str) -> Event:
    """Read an event; it needs no id, because it is the only one."""
    from headgate.core.event import Event

    row = read_row(text)
    return replace(Event.from_row({"id": "", **row}), data=row)


def _check_graph(path: str, place: Path) -> None:
    """Refuse a snapshot that is not one of a graph in one piece."""
    from headgate.core.rooms import GRAPH, GRAPH_SHARDS
    from headgate.core.snapshot import room_of

    room = room_of(place)
    if room == GRAPH_SHARDS:
        from headgate.graph.build.sharding import shard_places

        first = shard_places(place)[0]
        raise SnapshotError(f"snapshot {path} is a graph in shards: give one of them, such as {first}")
    if room != GRAPH:
        raise SnapshotError(f"snapshot {path} is one of {room!r} and has no graph: give one of a graph")


def _open(path: Path) -> GraphIndex:
    from headgate.contents.registry import room_at
    from headgate.graph.index import GraphIndex

    return GraphIndex.open(path, room=room_at(path))


def _command(snapshot: str, output: str, event: str | None) -> str:
    words = ["headgate", "report", "graph", "--snapshot", snapshot, "--output", output]
    return shlex.join(words if event is None else [*words, "--event", event])
