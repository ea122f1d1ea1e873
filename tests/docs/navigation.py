"""How pages hang together: the groups of docs/README.md, the navigation of the site, and the Python API.

Read from the text, so that the suite can check it without the tools that build the site.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tests.docs.fences import ROOT, markdown_files

if TYPE_CHECKING:
    from pathlib import Path

INDEX = ROOT / "docs" / "README.md"
GROUPS = ("Learn", "Do", "Look up", "Understand")
API = {
    "The engine, call by call": (
        "headgate",
        ("Engine", "Event", "Subscription", "Node", "Edge", "Schema", "Omission", "Omissions"),
    ),
    "Answers": ("headgate", ("Explanation", "Best")),
    "Boxes of intervals": ("headgate", ("BoxIndex", "Box", "Interval")),
    "RDF": ("headgate", ("Taxonomy", "SUBCLASS", "Options")),
    "Dissemination": ("headgate", ("Dissemination", "SavedPlan", "Settings")),
    "Clients of the service": ("headgate", ("Client", "AsyncClient")),
    "DataFrames": (
        "headgate.spark",
        (
            "compile", "match", "top", "refused", "explain", "backtest", "what_if", "each_batch",
            "write_parquet", "disseminate", "register_source", "Compiled", "Backtest", "WhatIf", "EachBatch",
        ),
    ),
}  # fmt: skip
"""Pages of the reference: a title, the package that names are public in, and the names in order."""
_LINK = re.compile(r"\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s#]+)(?:#[^)]*)?\)")
_PART = re.compile(r"^(##+) (.+)$|^(?:- |\d+\. )(.*(?:\n  .*)*)", re.MULTILINE)


class Entry(NamedTuple):
    """A page, as the index lists it."""

    group: str
    part: str
    """The heading below the group; empty if it has none."""
    title: str
    page: Path


def entries(text: str, folder: Path) -> list[Entry]:
    r"""Read the pages from the index, in order.

    >>> from pathlib import Path
    >>> text = "## Learn\n- [Tutorial](tutorial.md): all.\n### More\n1. [One](a/b.md)"
    >>> [(each.group, each.part, each.title, str(each.page)) for each in entries(text, Path("/docs"))]
    [('Learn', '', 'Tutorial', '/docs/tutorial.md'), ('Learn', 'More', 'One', '/docs/a/b.md')]
    """
    found: list[Entry] = []
    group = part = ""
    for each in _PART.finditer(text):
        if each[1] == "##":
            group, part = each[2], ""
        elif each[1]:
            part = each[2]
        else:
            found += [
                Entry(group, part, title.strip("`"), (folder / target).resolve())
                for title, target in _LINK.findall(each[3])
            ]
    return found


def pages() -> list[Path]:
    """List the pages that the index must have: all but itself, the README, and what stands in examples."""
    return [
        page
        for page in markdown_files()
        if page not in {INDEX, ROOT / "README.md"} and ROOT / "examples" not in page.parents
    ]


def complaints(found: list[Entry], wanted: list[Path]) -> list[str]:
    """Say what is wrong with an index: pages that are missing, listed twice, or in no known group."""
    listed = [entry.page for entry in found]
    wrong = [f"{entry.page.name} is listed under {entry.group!r}, not under one of {', '.join(GROUPS)}"
             for entry in found if entry.group not in GROUPS]  # fmt: skip
    wrong += [
        f"{page.name} is listed {listed.count(page)} times" for page in wanted if listed.count(page) != 1
    ]
    return wrong + [
        f"{entry.page.name} is listed and not there" for entry in found if entry.page not in wanted
    ]
