"""The report of a graph: one HTML file with the picture and the numbers behind it, or the picture alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.graph.summary import (
    HANGING,
    INTERMEDIARY,
    PUBLISHER,
    SUBSCRIBER,
    degrees,
    follow,
    outline,
)
from headgate.report import words
from headgate.report.graph import picture as graph_picture
from headgate.report.graph import words as graph_words
from headgate.report.graph.scene import count_stops, scene, stops
from headgate.report.pages import Tile, template, write_as

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from headgate.core.event import Event
    from headgate.graph.changes.view import View
    from headgate.graph.summary import Journey, Outline
    from headgate.report.graph.scene import Scene, Stop

_SHOWN = 50
_LARGEST = 5


@dataclass(frozen=True)
class GraphReport:
    """A graph, and perhaps the path of an event through it."""

    title: str
    view: View
    outline: Outline
    event: Event | None
    journey: Journey | None
    stops: tuple[Stop, ...]
    """Where the event was stopped, the first of these places."""
    command: str

    @classmethod
    def of(cls, title: str, view: View, event: Event | None = None, command: str = "") -> GraphReport:
        """Sum up a graph, and follow an event if one is given."""
        summary = outline(view)
        if event is None:
            return cls(title, view, summary, None, None, (), command)
        journey = follow(view, summary, event)
        return cls(title, view, summary, event, journey, tuple(stops(view, summary, journey, event)), command)

    @property
    def scene(self) -> Scene:
        """Say what is drawn."""
        return scene(self.view, self.outline, self.journey, self.stops)

    @property
    def subscriptions(self) -> int:
        """Count the subscriptions."""
        return len(self.view.base.names.subscription_ids)

    @property
    def sentence(self) -> str:
        """Say what there is, or what became of the event."""
        if self.event is None or self.journey is None:
            return graph_words.graph(self.outline)
        return graph_words.journey(self.event, self.outline, self.journey, self.subscriptions)


class _Table(NamedTuple):
    """A table; the first `words` of its columns hold words, the others numbers."""

    heading: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    words: int = 1
    meaning: str = ""


def write(report: GraphReport, path: Path) -> None:
    """Write a report in the format of its file's name, whole or not at all."""
    picture = {"svg": graph_picture.svg, "png": graph_picture.png}
    write_as(path, lambda: render(report), lambda form: picture[form](report.scene, report.sentence))


def render(report: GraphReport) -> str:
    """Return the page of a report."""
    shown = report.scene
    left_out = 0 if report.journey is None else count_stops(report.journey) - len(report.stops)
    served = _served(report)
    return template("graph_page.html.j2").render(
        report=report,
        tiles=_tiles(report),
        heading="The graph" if report.journey is None else "The path of the event",
        caption=" ".join(shown.notes),
        svg=graph_picture.inline(shown) if shown.parts else None,
        stops=report.stops,
        stops_left_out=left_out,
        served=served,
        more=words.count(left) if (left := _got(report) - len(served)) else "",
        event=json.dumps(report.event.data, ensure_ascii=False, default=str) if report.event else "",
        tables=[*_path_table(report), _degree_table(report.outline), _component_table(report.outline)],
    )


def _tiles(report: GraphReport) -> list[Tile]:
    outline, journey = report.outline, report.journey
    filtered = int(np.count_nonzero(outline.via >= 0))
    tiles = [
        Tile(
            "nodes",
            words.count(outline.nodes),
            f"in {words.many(outline.components, 'component')}: within one, each leads to each",
        ),
        Tile(
            "edges",
            words.count(outline.edges),
            f"links an event may take; {words.count(filtered) if filtered else 'none'} with a filter",
        ),
        Tile("subscriptions", words.count(report.subscriptions), f"who may get events; {_hanging(outline)}"),
    ]
    if journey is None:
        largest = int(outline.sizes.max(initial=0))
        return [*tiles, Tile("largest component", words.count(largest), _largest(largest))]
    share = words.share_of(len(journey.served), report.subscriptions)
    return [*tiles, Tile("subscriptions that got it", words.count(len(journey.served)), f"{share} of all")]


def _largest(nodes: int) -> str:
    return "node: no cycle leads back to one" if nodes == 1 else "nodes, each of which leads to each"


def _hanging(outline: Outline) -> str:
    hanging = len(outline.vertex) - outline.nodes
    return f"{words.count(hanging)} attached to nodes" if hanging else "served by nodes"


def _got(report: GraphReport) -> int:
    return 0 if report.journey is None else len(report.journey.served)


def _served(report: GraphReport) -> list[str]:
    places = report.journey.served[:_SHOWN].tolist() if report.journey else []
    return [words.clean(str(report.view.subscription_id(number))) for number in places]


def _path_table(report: GraphReport) -> Iterator[_Table]:
    """Count what the event reached, layer by layer."""
    outline, journey = report.outline, report.journey
    if journey is None:
        return
    rows = []
    for layer, name in graph_words.LAYERS.items():
        there = outline.layer == layer
        if there.any():
            counts = (journey.reached & there).sum(), (journey.stopped & there).sum(), there.sum()
            rows.append((name, *(words.count(int(count)) for count in counts)))
    yield _Table(
        "How far it came, the source not counted",
        ("layer", "reached", "stopped by their filter", "all"),
        rows,
        meaning="Nodes and hanging subscriptions by layer: those it passed, those whose filter it failed, "
        "and all there are. Edges that it failed are not counted.",
    )


def _degree_table(outline: Outline) -> _Table:
    rows = [
        (
            graph_words.LAYERS[each.layer],
            graph_words.kind_name(outline.kinds, each.kind, each.points),
            words.count(each.points),
            f"{each.mean_in:,.1f}",
            words.count(each.most_in),
            f"{each.mean_out:,.1f}",
            words.count(each.most_out),
        )
        for each in degrees(outline)
    ]
    columns = ("layer", "kind", "number", "edges in, mean", "most", "edges out, mean", "most")
    meaning = (
        "Publishers have no edges in, subscribers none out, intermediaries both. Numbers are edges of one "
        "node: on average, and of the one with the most."
    )
    return _Table("Layers and degrees", columns, rows, 2, meaning)


def _component_table(outline: Outline) -> _Table:
    sizes = np.sort(outline.sizes)[::-1]
    large = sizes[sizes > 1]
    past = (outline.layer[outline.source] == PUBLISHER) & (outline.layer[outline.target] == SUBSCRIBER)
    rows = [
        ("nodes", words.count(outline.nodes)),
        ("edges", words.count(outline.edges)),
        ("edges straight from publishers to subscribers", words.count(int(np.count_nonzero(past)))),
        ("strongly connected components", words.count(outline.components)),
        ("of more than one node", words.count(len(large))),
        ("the largest of them", ", ".join(words.count(int(size)) for size in large[:_LARGEST]) or "none"),
    ]
    rows += [
        (f"intermediaries: {name}", words.count(count))
        for side, name in graph_words.SIDES.items()
        if (count := int(np.count_nonzero((outline.layer == INTERMEDIARY) & (outline.side == side))))
    ]
    hanging = int(np.count_nonzero(outline.kind == HANGING))
    rows += [("subscriptions that hang at nodes", words.count(hanging))] * bool(hanging)
    meaning = "A strongly connected component is a set of nodes in which each leads to each; most are of one."
    return _Table("Structure", ("what", "number"), rows, meaning=meaning)
