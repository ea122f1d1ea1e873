"""A server with a console that tests share, and what it holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.console.serving import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.console.serving import Visitor


@pytest.fixture(scope="package")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server without keys."""
    with serving(tmp_path_factory.mktemp("open")) as served:
        yield served


@pytest.fixture
def visitor(open_server: Served) -> Visitor:
    """Return somebody who uses it."""
    return open_server.visitor()
