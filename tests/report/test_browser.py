"""Static pages in a real browser: accessible in both themes, no wider than a telephone, nothing loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate.report import network_page, plan_page
from headgate.report.graph import page as graph_page
from headgate.report.runs import page as run_page
from headgate.report.runs import what_if_page
from tests.console.browsing import PLACE, started, violations, window
from tests.lanes import some
from tests.plan.test_saved_plan import drawn
from tests.report import runs, test_graph_picture, test_network_page, test_what_if_page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

pytestmark = pytest.mark.skipif(PLACE is None, reason="not verified in a browser: there is no chromium")
GROUND = "getComputedStyle(document.body).backgroundColor"
OPEN = "document.querySelectorAll('details').forEach(each => { each.open = true })"


def write_graph(path: Path) -> None:
    view, event = test_graph_picture.chain()
    graph_page.write(graph_page.GraphReport.of("A graph", view, event, "headgate report graph"), path)


PAGES: dict[str, Callable[[Path], None]] = {
    "run": lambda path: run_page.write(runs.PAGE, path),
    "stream": lambda path: run_page.write(runs.STREAM, path),
    "what-if": lambda path: what_if_page.write(test_what_if_page.PAGE, path),
    "graph": write_graph,
    "plan": lambda path: plan_page.write_report(drawn(3), path, title="A plan", command="headgate plan"),
    "many views": lambda path: plan_page.write_report(drawn(4, 300), path, title="A plan"),
    "network": lambda path: network_page.write_report(test_network_page.NETWORK, path, title="A network"),
}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser for all tests."""
    with started() as found:
        yield found


@pytest.mark.parametrize("width", some([390, 1280, 3840], 0))
@pytest.mark.parametrize("name", some([*PAGES], 0, 3, 4))
def test_pages(name: str, width: int, browser: Browser, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    PAGES[name](path)
    loaded: list[str] = []
    with window(
        browser, "about:blank", viewport={"width": width, "height": 900}, color_scheme="dark"
    ) as page:
        page.on("request", lambda request: loaded.append(request.url))
        page.goto(path.as_uri())
        page.evaluate(OPEN)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []
        dark = page.evaluate(GROUND)
        # The attribute goes before what the browser prefers.
        page.evaluate("document.documentElement.dataset.theme = 'light'")
        assert page.evaluate(GROUND) != dark
        assert violations(page, "color-contrast") == []
    assert loaded == [path.as_uri()]
