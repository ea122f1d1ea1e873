"""The report of a network says what the network is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from lxml import etree

from headgate.errors import TableError
from headgate.plan.measures import levels
from headgate.plan.model import SOURCE
from headgate.report.plan_page import charts, render, write_report
from tests.plan.test_saved_plan import drawn

if TYPE_CHECKING:
    from pathlib import Path


def test_a_small_network_is_drawn_view_by_view() -> None:
    network = drawn(3)
    page = render(network, title="The network <x>", command="headgate plan")
    direct = int((network.plan.chosen == SOURCE).sum())
    assert f"30 views; {30 - direct} of them" in page
    assert "The network &lt;x&gt;" in page
    assert all(f">{identity}<" in page for identity in network.ids)
    assert [chart.name for chart in charts(network)] == ["network", "levels", "fan-out", "busiest", "latency"]
    assert f"after ({levels(network.plan, network.rewritings).max()})" in page


def test_a_large_one_is_drawn_level_by_level(tmp_path: Path) -> None:
    network = drawn(4, 300)
    write_report(network, tmp_path / "plan.svg", title="n")
    text = " ".join(map(str, etree.parse(str(tmp_path / "plan.svg")).getroot().itertext()))
    top = int(levels(network.plan, network.rewritings).max())
    assert all(f"level {level}" in text for level in range(1, top + 1))
    assert "v017" not in text.partition("Busiest")[0]
    write_report(network, tmp_path / "plan.png", title="n")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_name_without_a_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=r"let it end in .html, .svg or .png"):
        write_report(drawn(1), tmp_path / "plan.pdf", title="n")
    assert not list(tmp_path.iterdir())
