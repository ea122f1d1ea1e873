"""Texts of a picture, measured before they are drawn, so that boxes fit them and none covers another."""

from __future__ import annotations

from functools import lru_cache

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from headgate.report import words

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
