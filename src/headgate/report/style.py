"""What all pictures share: colours, fonts, and how a drawing gets into a page."""

from __future__ import annotations

import re
from typing import Any

# Hexadecimal colour in the drawing -> CSS variable in the page.
INK, SOFT, GRID, MAIN, PALE, ACCENT = "#1c2733", "#5b6b7b", "#dfe5ea", "#1f7a8c", "#a9cdd5", "#d1603d"
_VARIABLES = {
    INK: "--ink", SOFT: "--soft", GRID: "--grid", MAIN: "--main", PALE: "--pale", ACCENT: "--accent",
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

    def tag(found: re.Match[str]) -> str:
        text = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", found[0])
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
