"""The store that tests of this room share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.core.stores import StoreServer, reaching

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server() -> Iterator[StoreServer]:
    """Share one server; tests give their snapshots names of their own."""
    started = StoreServer()
    yield started
    started.stop()


@pytest.fixture
def store(server: StoreServer, tmp_path: Path) -> Iterator[StoreServer]:
    """Reach the server, with an empty cache."""
    with reaching(server, tmp_path / "cache"):
        yield server
