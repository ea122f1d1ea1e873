"""How charts are drawn: with Matplotlib's `Figure` objects, without global state, without a display.

Colours, fonts, and how a drawing gets into a page are the same for all of them.

Text stays text, so that it can be found and copied. In a page colours are CSS variables with the light colour
as the fallback, so that the page can turn them dark.
"""

from __future__ import annotations

import io
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from headgate.report import words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    Draw = Callable[[Axes], None]


PANEL = "#ffffff"
"""The colour behind everything."""
# Hexadecimal colour in the drawing -> CSS variable in the page.
INK, SOFT, GRID, MAIN, PALE, ACCENT = "#16202b", "#526070", "#dce2e8", "#1f7a8c", "#a9cdd5", "#c44f2b"
_VARIABLES = {
    PANEL: "--panel", INK: "--ink", SOFT: "--ink-soft", GRID: "--line",
    MAIN: "--series-1", PALE: "--series-2", ACCENT: "--series-3",
}  # fmt: skip
_COLOURS = re.compile("|".join(_VARIABLES))
STYLE: dict[Any, object] = {
    "svg.fonttype": "none",
    "text.parse_math": False,  # a "$" in a filter is a dollar sign
    "font.family": "DejaVu Sans",  # to measure with; the page shows its own sans-serif, which is narrower
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": GRID,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "ytick.major.size": 0,
}


def adapt(svg: str, name: str, title: str) -> str:
    """Fit the drawing into the page: change its tags only, never the texts of users between them."""

    def tag(match_: re.Match[str]) -> str:
        text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", match_[0])
        text = text.replace("'DejaVu Sans'", "system-ui, sans-serif")
        return _COLOURS.sub(lambda colour: f"var({_VARIABLES[colour[0]]}, {colour[0]})", text)

    svg = svg[svg.index("<svg") :].rstrip()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, count=1, flags=re.DOTALL)
    svg = svg.replace("*{", f"#{name} *{{", 1)
    head, body = svg.split(">", 1)
    view = re.search(r'viewBox="[^"]*"', head)
    spaces = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    head = f'<svg id="{name}" role="img" aria-label="{title}" {view[0] if view else ""} {spaces}>'
    return head + re.sub(r"<[^>]*>", tag, body)


WIDTH, NARROW = 9.6, 4.7
"""Inches of a picture in a page, and of its twin for a telephone."""


class Chart(NamedTuple):
    """A picture: its heading, what to say of it, how high it is, how to draw it.

    Without a way to draw it there is nothing to be seen, and the caption says so. One that is `fixed`
    cannot be drawn narrower, only looked at part by part.
    """

    name: str
    heading: str
    caption: str
    height: float = 0.0
    draw: Draw | None = None
    width: float = WIDTH
    fixed: bool = False

    @property
    def svg(self) -> str | None:
        """Draw it for a page."""
        return None if self.draw is None else svg(self.name, self.heading, self.height, self.draw, self.width)

    @property
    def narrow_svg(self) -> str | None:
        """Draw it for a page that is as narrow as a telephone."""
        if self.draw is None or self.fixed:
            return None
        return svg(f"{self.name}-narrow", self.heading, self.height, self.draw, NARROW)


def svg(name: str, title: str, height: float, draw: Draw, width: float = WIDTH) -> str:
    """Draw on new axes and return an SVG element whose ids and styles cannot disturb the page."""
    with styled(name):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return adapt(text.getvalue(), name, title)


def is_narrow(axes: Axes) -> bool:
    """Tell whether this is a picture for a telephone: fewer ticks, shorter texts."""
    return bool(axes.figure.get_figwidth() < WIDTH / 1.5)  # type: ignore[union-attr]


def sheet(title: str, charts: Sequence[Chart], form: str) -> bytes:
    """Draw those charts that can be drawn below each other, each under its heading: one file, svg or png."""
    parts = [(chart.heading, chart.draw) for chart in charts if chart.draw is not None]
    heights = [chart.height for chart in charts if chart.draw is not None]
    width = max(WIDTH, *(chart.width for chart in charts))
    with styled("sheet"):
        figure = Figure(figsize=(width, sum(heights) + 0.6 * len(parts)), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontsize=12, wrap=True)
        axes = figure.subplots(len(parts), 1, height_ratios=heights, squeeze=False)
        for (heading, draw), below in zip(parts, axes[:, 0], strict=True):
            below.set_title(heading, loc="left", fontsize=11, pad=16)
            draw(below)
        out = io.BytesIO()
        about = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        figure.savefig(out, format=form, dpi=130, metadata=about)
    return out.getvalue()


@contextmanager
def styled(name: str) -> Iterator[None]:
    """Draw in our style; a name makes the same drawing the same text."""
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}), warnings.catch_warnings():
        # A filter may be in any script; the browser has the glyphs that Matplotlib's font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def note(axes: Axes, x: float, text: str) -> None:
    """Write above the plot, centred on a line where there is room for it."""
    side = "left" if x < 0.1 else "right" if x > 0.9 else "center"
    axes.text(x, 1.01, text, transform=axes.transAxes, color=ACCENT, ha=side, va="bottom")


def thousands(axis: Axis) -> None:
    """Mark an axis with whole numbers."""
    axis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def bare(axes: Axes, *, keep_names: bool = False) -> None:
    """Leave out the frame and the marks."""
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.set_xticks([])
    if not keep_names:
        axes.set_yticks([])


class Ranked(NamedTuple):
    """A row of a list of bars: what is written above the bar."""

    name: str
    about: str
    value: float


def list_bars(axes: Axes, rows: Sequence[Ranked]) -> None:
    """Draw a bar for each row, the longest first, with its name and what it is above it."""
    right = max(each.value for each in rows)
    for row, each in enumerate(rows):
        axes.barh(row + 0.2, each.value, height=0.3, color=MAIN)
        name = words.shorten(each.name, 28)
        text = f"{name} · {words.shorten(each.about, (48 if is_narrow(axes) else 110) - len(name))}"
        # A line of wide letters is cut at the edge; the layout must not make room for it.
        axes.text(0, row - 0.02, text, va="bottom", fontsize=9.5, clip_on=True, in_layout=False)
        axes.text(each.value + right * 0.01, row + 0.2, words.count(each.value), va="center", color=SOFT)
    axes.set_ylim(len(rows) - 0.55, -0.45)
    axes.set_xlim(0, right * (1.2 if is_narrow(axes) else 1.1))
    bare(axes)


def write_values(axes: Axes, places: Iterable[float], heights: Iterable[int]) -> None:
    """Write above each bar how high it is, if it is."""
    for x, height in zip(places, heights, strict=True):
        if height:
            axes.text(x, height, words.count(height), ha="center", va="bottom", color=SOFT, fontsize=9)
