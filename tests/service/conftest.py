"""Servers that the tests of the service share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.service.servers import Servers

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """Return what starts servers."""
    with Servers() as found:
        yield found
