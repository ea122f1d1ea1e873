"""The page of a network that runs: who feeds whom, who does not run, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.report.network_page import RunningNetwork, SiteRow, Way, charts, write_report
from tests.report.reading import Reader, svg_texts

if TYPE_CHECKING:
    from pathlib import Path

SITES = (
    SiteRow("source", (), 0, 2, 2, "runs"),
    SiteRow("paris", (1, 1, 2), 0, 1, 1, "runs"),
    SiteRow("lyon", (1, 2), 12, 2, 2, "runs"),
    SiteRow("nice <b>", (2, 3), 340, 2, 1, "lyon: refused the connection"),
)
FEEDS = (("source", "paris", 2), ("source", "lyon", 1), ("paris", "lyon", 1), ("lyon", "nice <b>", 2))
WAYS = (Way("v1", (("source", 0.0), ("paris", 3.0))), Way("v2", (("source", 0.0), ("lyon", 5.5))))
NETWORK = RunningNetwork("eu", 4, 1200, SITES, FEEDS, "1199", WAYS)


def test_the_page_shows_the_sites(tmp_path: Path) -> None:
    write_report(NETWORK, tmp_path / "network.html", title="eu", command="headgate network report")
    reader = Reader((tmp_path / "network.html").read_text("utf-8"))
    assert reader.of("h1") == ["eu"]
    assert "7 views at 3 sites, of which 1 does not run; 1,200 documents so far." in reader.of("p")
    assert {"340", "1 of 2", "lyon: refused the connection"} <= set(reader.of("td"))
    assert reader.of("span").count("runs") == 3
    assert "b" not in reader.tags
    assert reader.of("h2")[:4] == ["Who feeds whom", "Levels", "Who is behind", "The way of one document"]


def test_who_does_not_run_is_marked_in_the_picture() -> None:
    feeds = charts(NETWORK)[0]
    assert feeds.caption.endswith("A dashed box does not run.")
    texts = svg_texts(feeds.svg or "")
    assert {"source", "paris", "lyon", "✕ nice <b>", "level 1", "level 2"} <= set(texts)
    # Feeds are for different numbers of views, which stand at them.
    assert texts.count("2") == 2


def test_many_sites_become_feeds_from_level_to_level() -> None:
    sites = (SITES[0], *(SiteRow(f"s{i}", (1 + i % 3,), 0, 1, 1, "runs") for i in range(60)))
    feeds = [("source" if i % 3 == 0 else f"s{i - 1}", f"s{i}", 1) for i in range(60)]
    chart = charts(NETWORK._replace(sites=sites, feeds=tuple(feeds), ways=()))[0]
    assert "from the level of a row to the level of a column" in chart.caption
    assert svg_texts(chart.svg or "").count("20") == 3
