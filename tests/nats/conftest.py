"""The servers that tests of this room share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.nats.server import Server

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Share one server; tests give their streams names of their own."""
    started = Server(tmp_path_factory.mktemp("nats"))
    yield started
    started.stop()


@pytest.fixture
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a test a server that it may stop."""
    started = Server(tmp_path_factory.mktemp("own"))
    yield started
    started.stop()
