"""Explanations on a terminal: as wide as it is, and in colour. Elsewhere lines stay as they are."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap

import click

_COLOURS = {
    "match": "green",
    "held": "green",
    "passes": "green",
    "no match": "red",
    "failed": "red",
    "blocks": "red",
    "unknown": "yellow",
    "nearest miss": "cyan",
}
_WORD = re.compile(rf"( *)({'|'.join(sorted(_COLOURS, key=len, reverse=True))})(?=$|[ :])")
_LEAST = 32
"""No line is broken narrower."""
_GAP = re.compile(r" {3,}")


def shown(lines: list[str]) -> list[str]:
    """Write lines for where they go: a terminal gets them no wider than it is, and in colour."""
    if not sys.stdout.isatty():
        return lines
    width = max(shutil.get_terminal_size().columns, _LEAST)
    fitted = [part for line in lines for part in fit(line, width)]
    return [colour(line) for line in fitted] if has_colours() else fitted


def has_colours() -> bool:
    """Tell whether standard output is a terminal that shows colours, and nobody has asked for none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def fit(line: str, width: int) -> list[str]:
    """Break a line that is too wide: first where there is a gap, then between words; the rest hangs below.

    >>> fit("  failed  name LIKE '%smith%'   name = 'john' (it does not fit)", 34)
    ["  failed  name LIKE '%smith%'", "            name = 'john' (it does", '            not fit)']
    """
    if len(line) <= width:
        return [line]
    word = _WORD.match(line)
    hang = len(line) - len(line.lstrip())
    if word is not None and not line[word.end() :].startswith(":"):
        rest = line[word.end() :]
        hang = word.end() + len(rest) - len(rest.lstrip())
    pieces = _GAP.split(line[hang:].rstrip())
    found: list[str] = []
    for number, piece in enumerate(pieces):
        before = " " * (hang + 2 * (number > 0))
        after = " " * (hang + 2)
        found += textwrap.wrap(
            piece, width, initial_indent=before, subsequent_indent=after, break_on_hyphens=False
        )
    return [line[:hang] + found[0][hang:], *found[1:]] if found else [line]


def colour(line: str) -> str:
    r"""Colour the word that says how it went, at the beginning of a line.

    >>> colour("  held    age > 30")
    '  \x1b[32mheld\x1b[0m    age > 30'
    """
    found = _WORD.match(line)
    if found is None:
        return line
    word = click.style(found[2], fg=_COLOURS[found[2]], bold=not found[1] or None)
    return f"{found[1]}{word}{line[found.end() :]}"
