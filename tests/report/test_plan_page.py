"""The report of a network says what the network is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from lxml import etree
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch

from headgate.errors import TableError
from headgate.plan.measures import levels
from headgate.plan.model import SOURCE
from headgate.report.plan_page import (
    charts,
    latency_chart,
    levels_chart,
    network_chart,
    render,
    write_report,
)
from tests.plan.test_saved_plan import drawn
from tests.report.reading import svg_texts

if TYPE_CHECKING:
    from pathlib import Path


def test_a_small_network_is_drawn_view_by_view() -> None:
    network = drawn(3)
    page = render(network, title="The network <x>", command="headgate plan")
    direct = int((network.plan.chosen == SOURCE).sum())
    assert f"30 views; {30 - direct} of them" in page
    assert "The network &lt;x&gt;" in page
    assert all(f">{identity}<" in page for identity in network.ids)
    assert [chart.name for chart in charts(network)] == ["feeds", "levels", "fan-out", "busiest", "latency"]
    assert f"after ({levels(network.plan, network.rewritings).max()})" in page


def test_bars_have_their_values_and_what_does_not_change_is_a_sentence() -> None:
    network = drawn(3)
    after = np.bincount(levels(network.plan, network.rewritings))[1:]
    texts = svg_texts(levels_chart(network).svg or "")
    assert {str(height) for height in after if height} <= set(texts)
    assert latency_chart(network).draw is None
    for trace, drawing, words in (
        ([[0.0, 2.0], [0.5, 2.0], [0.9, 2.0]], False, "stayed as it was"),
        ([[0.0, 2.0], [0.5, 1.5], [0.9, 1.0]], True, "fell by 50% in 900 ms."),
    ):
        chart = latency_chart(network._replace(about={**network.about, "trace": trace}))
        assert ((chart.draw is not None), words in chart.caption) == (drawing, True)


def test_no_line_runs_over_a_name() -> None:
    network = drawn(3)
    chart = network_chart(network)
    figure = Figure(figsize=(chart.width, chart.height))
    axes = figure.add_axes((0, 0, 1, 1))
    assert chart.draw is not None
    chart.draw(axes)
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    lines = [
        np.asarray(line)
        for each in axes.patches
        if isinstance(each, PathPatch)
        for line in each.get_path().to_polygons(axes.transData, closed_only=False)
    ]
    assert len(lines) >= len(network.ids)
    for text in axes.texts:
        box = text.get_window_extent()
        assert not [line for line in lines if any(box.contains(x, y) for x, y in line)], text.get_text()


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
