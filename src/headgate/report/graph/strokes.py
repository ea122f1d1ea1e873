"""The strokes of a picture of a graph: frames of boxes, bands, lines with tips, signs of filters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path as Curve
from matplotlib.textpath import text_to_path

from headgate.report import words
from headgate.report.drawing import ACCENT, GRID, INK, MAIN, PALE, PANEL, SOFT
from headgate.report.graph.scene import State

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headgate.report.graph.layout import Point
    from headgate.report.graph.scene import Tie

    Dashes = str | tuple[int, tuple[float, ...]]


FONT = "DejaVu Sans"
LINE = 1.3
"""The height of a line, in font sizes."""


@lru_cache(maxsize=4096)
def measure(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in points."""
    font = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width)


def fit(text: str, width: float, size: float, *, bold: bool = False) -> str:
    """Cut a text in its middle until it fits: names often differ at their end.

    >>> fit("advertiser-0000042", 60, 10)
    'adve…0042'
    """
    text = words.clean(text)
    if measure(text, size, bold=bold) <= width:
        return text
    for kept in range(min(len(text) - 1, 200), 0, -1):
        head, tail = (kept + 1) // 2, kept // 2
        cut = f"{text[:head]}…{text[len(text) - tail :]}"
        if measure(cut, size, bold=bold) <= width:
            return cut
    return "…"


def wrap(text: str, width: float, size: float) -> list[str]:
    """Break a text into lines at blanks; a word that is too long is cut.

    >>> wrap("one two three", 60, 10)
    ['one two', 'three']
    """
    lines: list[str] = []
    for word in (fit(word, width, size) for word in words.clean(text).split()):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and measure(longer, size) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


@dataclass(frozen=True)
class Look:
    """How a state looks: fill, line, width and dashes of a box; colour of the smaller lines of text."""

    fill: str
    line: str
    width: float
    dashes: Dashes
    small: str
    alpha: float = 1.0


_DASHES = (0, (4.0, 2.5))
LOOKS = {
    State.PLAIN: Look(PANEL, MAIN, 1.2, "solid", SOFT),
    State.SOURCE: Look(PALE, INK, 2.6, "solid", INK),
    State.REACHED: Look(PALE, MAIN, 1.8, "solid", INK),
    State.STOPPED: Look(PANEL, ACCENT, 1.6, _DASHES, INK),
    State.MISSED: Look(PANEL, SOFT, 0.8, "solid", SOFT, 0.55),
}
_LINES = {
    State.PLAIN: (SOFT, 1.4, 1.0),
    State.REACHED: (MAIN, 2.8, 1.0),
    State.STOPPED: (ACCENT, 1.6, 1.0),
    State.MISSED: (SOFT, 0.9, 0.45),
}


def frame(axes: Axes, state: State, box: tuple[float, float, float, float]) -> None:
    """Draw a box: left, top, width and height."""
    look, (left, top, width, height) = LOOKS[state], box
    shape: dict[str, Any] = {"boxstyle": "round,pad=0,rounding_size=4"}
    axes.add_patch(
        FancyBboxPatch((left, top), width, height, facecolor=look.fill, linewidth=0, zorder=7, **shape)
    )
    axes.add_patch(
        FancyBboxPatch(
            (left, top), width, height, facecolor="none", edgecolor=look.line, linewidth=look.width,
            linestyle=look.dashes, alpha=look.alpha, zorder=7.5, **shape,
        )
    )  # fmt: skip


def band(axes: Axes, tie: Tie, points: list[Point]) -> None:
    """Draw the edges between two groups, and inside what an event travelled or tried."""
    base = PALE if tie.state is State.PLAIN else GRID
    _arrow(axes, points, tie.width, base, zorder=1)
    if tie.state is State.REACHED:
        _arrow(axes, points, max(tie.inner, 1.5), MAIN, zorder=3)
    elif tie.state is State.STOPPED:
        _arrow(axes, points, 1.4, ACCENT, zorder=2, dashes=_DASHES)


def line(axes: Axes, state: State, points: list[Point]) -> None:
    """Draw one edge."""
    colour, width, alpha = _LINES[state]
    dashes = _DASHES if state is State.STOPPED else "solid"
    _arrow(axes, points, width, colour, zorder=3 if state is State.REACHED else 2, alpha=alpha, dashes=dashes)


def _arrow(
    axes: Axes,
    points: list[Point],
    width: float,
    colour: str,
    *,
    zorder: float,
    alpha: float = 1.0,
    dashes: Dashes = "solid",
) -> None:
    """Draw curves with a tip at their end."""
    (bx, by), (ex, ey) = points[-2:]
    size = ((ex - bx) ** 2 + (ey - by) ** 2) ** 0.5 or 1.0
    dx, dy = (ex - bx) / size, (ey - by) / size
    half, long = max(width / 2 + 1.2, 3.2), max(width * 0.45, 6.5)
    neck = (ex - dx * long, ey - dy * long)
    codes = [Curve.MOVETO] + [Curve.CURVE4] * (len(points) - 1)
    curve = Curve([*points[:-1], neck], codes)
    shared: dict[str, Any] = {"alpha": alpha, "zorder": zorder}
    axes.add_patch(
        PathPatch(
            curve, fill=False, edgecolor=colour, linewidth=width, linestyle=dashes, capstyle="butt", **shared
        )
    )
    sides = [(neck[0] - dy * half, neck[1] + dx * half), (neck[0] + dy * half, neck[1] - dx * half)]
    axes.add_patch(Polygon([*sides, (ex, ey)], closed=True, facecolor=colour, linewidth=0, **shared))


def gate(axes: Axes, state: State, points: list[Point]) -> None:
    """Draw a diamond in the middle of the first curve for an edge's filter, crossed out if it failed."""
    look, (x, y) = LOOKS[state], _middle(points)
    size = 5.0
    corners = [(x - size, y), (x, y - size), (x + size, y), (x, y + size)]
    axes.add_patch(
        Polygon(corners, closed=True, facecolor=look.fill, edgecolor=look.line, linewidth=1.3, zorder=5)
    )
    if state is State.STOPPED:
        for sign in (1, -1):
            axes.plot(
                [x - 2, x + 2], [y - 2 * sign, y + 2 * sign], color=look.line, linewidth=1.3, zorder=5.5
            )


def _middle(points: list[Point]) -> Point:
    """Find the middle of the first curve."""
    (ax, ay), (bx, by), (cx, cy), (dx, dy) = points[:4]
    return (ax + 3 * bx + 3 * cx + dx) / 8, (ay + 3 * by + 3 * cy + dy) / 8
