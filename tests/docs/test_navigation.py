"""The site's navigation, without building the site: each page and each public name once, in known groups."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import headgate
import headgate.spark
from tests.docs import site
from tests.docs.fences import ROOT
from tests.docs.navigation import API, GROUPS, INDEX, Entry, complaints, entries, pages

FOUND = entries(INDEX.read_text("utf-8"), INDEX.parent)


def test_every_page_is_listed_once_in_a_known_group() -> None:
    assert len(FOUND) > 80
    assert complaints(FOUND, pages()) == []


def test_groups_come_in_their_order_and_none_is_empty() -> None:
    assert tuple(dict.fromkeys(entry.group for entry in FOUND)) == GROUPS


def test_what_is_wrong_with_an_index_is_said() -> None:
    one, two, three = (Path(f"/docs/{name}.md") for name in ("one", "two", "three"))
    found = [Entry("Learn", "", "One", one), Entry("Do", "", "Again", one), Entry("Play", "", "Three", three)]
    assert complaints(found, [one, two]) == [
        "three.md is listed under 'Play', not under one of Learn, Do, Look up, Understand",
        "one.md is listed 2 times",
        "two.md is listed 0 times",
        "three.md is listed and not there",
    ]


def test_every_public_name_has_its_place_in_the_reference() -> None:
    listed: dict[str, Counter[str]] = {}
    for package, names in API.values():
        listed.setdefault(package, Counter()).update(names)
    assert listed == {
        "headgate": Counter(headgate.__all__),
        "headgate.spark": Counter(headgate.spark.__all__),
    }
    assert all(hasattr(headgate.spark, name) for name in headgate.spark.__all__)


def test_pages_are_laid_out_with_what_they_link_to(tmp_path: Path) -> None:
    site.lay_out(tmp_path)
    for path in ("README.md", "docs/tutorial.md", "docs/pictures/console.png", "LICENSE", "CHANGELOG.md"):
        assert (tmp_path / path).read_bytes() == (ROOT / path).read_bytes()
    text = (tmp_path / "api" / "dataframes.md").read_text("utf-8")
    assert "::: headgate.spark.frames.match.match\n" in text
    top = site.navigation(tmp_path)
    assert [next(iter(each)) for each in top if isinstance(each, dict)] == ["Headgate", *GROUPS, "All pages"]


def test_what_a_page_would_load_from_a_network_is_told(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "deep").mkdir()
    page = tmp_path / "deep" / "page.html"
    page.write_text(
        f'<script src="{site.SHIM_ELSEWHERE}"></script><a href="https://example.org">x</a>', "utf-8"
    )
    assert site.make_local(tmp_path) == []
    assert f'src="../assets/{site.SHIM}"' in page.read_text("utf-8")
    page.write_text(
        '<link rel="stylesheet" href="https://fonts.example.org/a.css"><img src=//b/c.png>', "utf-8"
    )
    assert len(site.make_local(tmp_path)) == 2
