"""Links between the Markdown files lead somewhere, and fenced blocks name a language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.fences import ROOT, fences, markdown_files, without_fences

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = {
    "console",
    "csv",
    "dockerfile",
    "ini",
    "json",
    "jsonl",
    "python",
    "sh",
    "sql",
    "text",
    "toml",
    "yaml",
}

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"(`+).*?\1")
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)

PAGES = pytest.mark.parametrize("page", markdown_files(), ids=lambda page: str(page.relative_to(ROOT)))


def anchors(page: Path) -> set[str]:
    """List the anchors that headings of a page have."""
    text = without_fences(page.read_text("utf-8"))
    return {anchor(heading) for heading in _HEADING.findall(text)}


def anchor(heading: str) -> str:
    """Write a heading as the anchor of a link.

    >>> anchor("NaN, infinities and `-0.0`")
    'nan-infinities-and--00'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@PAGES
def test_links(page: Path) -> None:
    prose = _CODE.sub("", without_fences(page.read_text("utf-8")))
    for target in _LINK.findall(prose):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, place = target.partition("#")
        other = (page.parent / path).resolve() if path else page
        assert other.is_file(), f"{page.name} links to {target}, which is no file"
        if place:
            assert place in anchors(other), f"{page.name} links to {target}, and there is no such heading"


@PAGES
def test_languages(page: Path) -> None:
    for fence in fences(page):
        assert fence.language in LANGUAGES, f"{page.name}:{fence.line}: language {fence.language!r}"


@PAGES
def test_pages_begin_with_a_title(page: Path) -> None:
    assert page.read_text("utf-8").startswith("# ")


def test_every_page_is_in_the_index() -> None:
    docs = ROOT / "docs"
    index = docs / "README.md"
    linked = {
        (index.parent / target.partition("#")[0]).resolve()
        for target in _LINK.findall(index.read_text("utf-8"))
    }
    # The tables of benchmarks are written by a command and linked from the algorithms' pages.
    pages = [
        page for page in markdown_files() if docs in page.parents and docs / "benchmarks" not in page.parents
    ]
    assert [page for page in pages if page not in {*linked, index}] == []
