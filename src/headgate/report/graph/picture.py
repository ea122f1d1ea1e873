"""The picture of a graph, with or without the path of one event, as SVG or PNG.

The axes cover the figure and count points from its upper left corner, so what is measured in points before is
drawn where it was meant to be. States differ by line, fill and sign, and by colour only besides.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

from matplotlib.figure import Figure

from headgate.report import words
from headgate.report.drawing import GRID, INK, PANEL, SOFT, Chart, adapt, styled
from headgate.report.graph import strokes
from headgate.report.graph.layout import Box, Layout, Link, place
from headgate.report.graph.scene import State, Tie
from headgate.report.graph.strokes import LINE, LOOKS, fit, measure, wrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headgate.report.graph.scene import Part, Scene

_WIDTH, _MARGIN = 691.0, 16.0
_WIDEST, _GAP, _PADDING = 900.0, 44.0, 9.0
_WIDEST_TEXT, _NARROWEST_TEXT = 150, 50
_TEXT, _SMALL = 10.5, 9.0
_NAME = "graph"


def svg(shown: Scene, sentence: str) -> bytes:
    """Draw a graph as an SVG file."""
    text = _svg(shown, sentence, transparent=False)
    # Where the font is missing, browsers would take one with serifs.
    text = re.sub(r"<[^>]*>", lambda tag: tag[0].replace("'DejaVu Sans'", "'DejaVu Sans', sans-serif"), text)
    return text.encode("utf-8", "replace")


def png(shown: Scene, sentence: str) -> bytes:
    """Draw a graph as a PNG file."""
    with styled(_NAME):
        drawn = io.BytesIO()
        figure = draw(shown, sentence)
        figure.savefig(drawn, format="png", dpi=150, metadata={"Software": None})
    return drawn.getvalue()


def inline(shown: Scene) -> str:
    """Draw a graph as an SVG element for a page, whose colours it takes; the page says the rest."""
    return adapt(_svg(shown, None, transparent=True), _NAME, "The graph as boxes and links")


def chart(name: str, heading: str, caption: str, shown: Scene) -> Chart:
    """Make a chart of boxes and links: one among others of a page or a sheet."""
    with styled(_NAME):
        painter = _Painter(shown, None)
    return Chart(name, heading, caption, painter.height / 72, painter.paint, painter.width / 72, fixed=True)


def _svg(shown: Scene, sentence: str | None, *, transparent: bool) -> str:
    with styled(_NAME):
        text = io.StringIO()
        figure = draw(shown, sentence)
        about = {"Date": None, "Creator": None}
        figure.savefig(text, format="svg", transparent=transparent, metadata=about)
    return text.getvalue()


def draw(shown: Scene, sentence: str | None) -> Figure:
    """Draw a graph on a figure, with a sentence above it and notes below; without both if there is none."""
    with styled(_NAME):
        painter = _Painter(shown, sentence)
        figure = Figure(figsize=(painter.width / 72, painter.height / 72), facecolor=PANEL)
        painter.paint(figure.add_axes((0, 0, 1, 1)))
        return figure


class _Painter:
    """Draws from the top down; `top` is where the next thing goes."""

    def __init__(self, shown: Scene, sentence: str | None) -> None:
        self.scene = shown
        self.parts = self._fitted()
        self.layout = self._placed()
        self.width = width = self.layout.width + 2 * _MARGIN
        notes = () if sentence is None else shown.notes
        self.above = above = wrap(sentence or "", width - 2 * _MARGIN, _TEXT)
        self.below = below = [line for note in notes for line in wrap(note, width - 2 * _MARGIN, _SMALL)]
        self.key = key = _key(shown, width - 2 * _MARGIN) if shown.keyed else []
        self.height = (
            2 * _MARGIN + len(above) * LINE * _TEXT + (10 if above else 0) + (26 if shown.headings else 0)
            + self.layout.height + (14 if key else 0) + len(key) * 20 + (6 if below else 0)
            + len(below) * LINE * _SMALL
        )  # fmt: skip

    def paint(self, axes: Axes) -> None:
        """Draw everything; where the axes are smaller than the picture, it becomes smaller, texts do not."""
        self.axes = axes
        axes.set(xlim=(0, self.width), ylim=(self.height, 0), aspect="equal")
        axes.axis("off")
        self.top = _MARGIN
        self._lines(self.above, _TEXT, INK)
        self.top += 10 if self.above else 0
        self._headings()
        self._body()
        self.top += 14 if self.key else 0
        for row in self.key:
            self._key_row(row)
        self.top += 6 if self.below else 0
        self._lines(self.below, _SMALL, SOFT)

    def _fitted(self) -> list[list[str]]:
        """Shorten the lines of each box to what a box may have: less where there are many columns."""
        parts = self.scene.parts
        wide = [0.0] * (1 + max((part.column for part in parts), default=0))
        for part in parts:
            texts = [words.clean(line.text) for line in part.lines]
            widths = [
                measure(text, line.size, bold=line.bold) for text, line in zip(texts, part.lines, strict=True)
            ]
            wide[part.column] = max(wide[part.column], *widths)
        room = next(
            (most for most in range(_WIDEST_TEXT, _NARROWEST_TEXT, -4)
             if sum(min(most, each) + 2 * _PADDING + _GAP for each in wide) < _WIDEST),
            _NARROWEST_TEXT,
        )  # fmt: skip
        return [[fit(line.text, room, line.size, bold=line.bold) for line in part.lines] for part in parts]

    def _placed(self) -> Layout:
        boxes = []
        for part, texts in zip(self.scene.parts, self.parts, strict=True):
            pairs = list(zip(texts, part.lines, strict=True))
            wide = max(measure(text, line.size, bold=line.bold) for text, line in pairs)
            high = sum(LINE * line.size for line in part.lines)
            boxes.append(Box(part.column, wide + 2 * _PADDING, high + _PADDING, part.rank))
        links = []
        for tie in self.scene.ties:
            label = measure(tie.label, _SMALL) + 6 if tie.label else 0.0
            links.append(Link(tie.source, tie.target, max(tie.width, 3), label, tie.gate is not None))
        pitch = 17.0 if self.scene.grouped else 9.0
        return place(boxes, links, width=_WIDTH - 2 * _MARGIN, gap=_GAP, pitch=pitch)

    def _lines(self, lines: list[str], size: float, colour: str) -> None:
        for line in lines:
            self.axes.text(_MARGIN, self.top, line, size=size, color=colour, va="top")
            self.top += LINE * size

    def _headings(self) -> None:
        if not self.scene.headings:
            return
        for first, last, text in self.scene.headings:
            left, right = self.layout.columns[first][0], self.layout.columns[last][1]
            middle, half = (left + right) / 2, max(right - left, measure(text, _SMALL)) / 2
            # A narrow column's heading may be wider than the column, but not than the figure.
            middle = min(max(middle, half), self.layout.width - half) + _MARGIN
            self.axes.text(middle, self.top, text, size=_SMALL, color=SOFT, ha="center", va="top")
            y = self.top + LINE * _SMALL + 2
            self.axes.plot([_MARGIN + left, _MARGIN + right], [y, y], color=GRID, linewidth=1, zorder=0)
        self.top += 26

    def _body(self) -> None:
        routes = zip(self.scene.ties, self.layout.routes, strict=True)
        for tie, route in routes:
            points = [(x + _MARGIN, y + self.top) for x, y in route.points]
            if self.scene.grouped:
                strokes.band(self.axes, tie, points)
            else:
                strokes.line(self.axes, tie.state, points)
            if tie.gate is not None:
                strokes.gate(self.axes, tie.gate, points)
            if tie.label:
                x, y = route.label[0] + _MARGIN, route.label[1] + self.top
                self._label(tie, x, y)
        for part, texts, box in zip(self.scene.parts, self.parts, self.layout.boxes, strict=True):
            left, top, width, height = box
            self._box(part, texts, (left + _MARGIN, top + self.top, width, height))
        self.top += self.layout.height

    def _label(self, tie: Tie, x: float, y: float) -> None:
        missed = tie.state in {State.MISSED, State.STOPPED}
        back = {"boxstyle": "round,pad=0.15", "facecolor": PANEL, "edgecolor": "none", "alpha": 0.88}
        self.axes.text(
            x, y, tie.label, size=_SMALL, color=SOFT if missed else INK, ha="center", va="center_baseline",
            bbox=back, zorder=6,
        )  # fmt: skip

    def _box(self, part: Part, texts: list[str], box: tuple[float, float, float, float]) -> None:
        look = LOOKS[part.state]
        strokes.frame(self.axes, part.state, box)
        left, top, width, height = box
        y = top + (height - sum(LINE * line.size for line in part.lines)) / 2
        for number, (text, line) in enumerate(zip(texts, part.lines, strict=True)):
            y += LINE * line.size / 2
            plain = number == 0 and part.state is not State.MISSED
            self.axes.text(
                left + width / 2, y, text, size=line.size, weight="bold" if line.bold else "normal",
                color=INK if plain else look.small, ha="center", va="center_baseline", zorder=8,
            )  # fmt: skip
            y += LINE * line.size / 2

    def _key_row(self, row: list[tuple[str, State, str]]) -> None:
        x, y = _MARGIN, self.top + 10
        for sample, state, text in row:
            ends = [(x, y), (x + 8, y), (x + 16, y), (x + 24, y)]
            if sample == "box":
                strokes.frame(self.axes, state, (x + 1, y - 6, 22, 12))
            elif sample == "gate":
                strokes.gate(self.axes, state, ends)
            elif sample == "band":
                strokes.band(self.axes, Tie(0, 0, 9, state, 5), ends)
            elif sample == "line":
                strokes.line(self.axes, state, ends)
            indent = 0 if sample == "text" else 30
            self.axes.text(x + indent, y, text, size=_SMALL, color=SOFT, va="center_baseline")
            x += indent + measure(text, _SMALL) + 20
        self.top += 20


def _key(shown: Scene, width: float) -> list[list[tuple[str, State, str]]]:
    """List the rows of the key: only what is in the picture."""
    boxes, ties = {part.state for part in shown.parts}, {tie.state for tie in shown.ties}
    link = "band" if shown.grouped else "line"
    some = "some of its nodes reached" if shown.grouped else "✓ reached"
    entries = [
        ("box", State.PLAIN, "nodes of one layer" if shown.grouped else "a node or a subscription"),
        ("box", State.SOURCE, "▶ where the event entered"),
        ("box", State.REACHED, some),
        (
            "box",
            State.STOPPED,
            "✕ came there, but its filter failed" if link == "line" else "all that it came to failed",
        ),
        ("box", State.MISSED, "not reached"),
    ]
    entries = [entry for entry in entries if entry[1] in boxes]
    for state, text in {
        State.PLAIN: "edges, with their number" if shown.grouped else "an edge",
        State.REACHED: "edges that it travelled",
        State.STOPPED: "edges to a filter that failed",
        State.MISSED: "edges that it did not come to",
    }.items():
        entries += [(link, state, text)] * (state in ties)
    if any(tie.gate is not None for tie in shown.ties):
        entries.append(("gate", State.PLAIN, "an edge with a filter"))
        entries += [("gate", State.STOPPED, "an edge whose filter failed")] * any(
            tie.gate is State.STOPPED for tie in shown.ties
        )
    entries += [("text", State.PLAIN, "↻ leads to itself")] * shown.loops
    rows: list[list[tuple[str, State, str]]] = []
    room = 0.0
    for entry in entries:
        needed = 50 + measure(entry[2], _SMALL)
        if needed > room:
            rows.append([])
            room = width + 20
        rows[-1].append(entry)
        room -= needed
    return rows
