"""What the tests of records share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.records.crowd import tree_of

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module", autouse=True)
def forget_trees() -> Iterator[None]:
    """Drop the parsed filters of a file with it: those of ten thousand clauses are large."""
    yield
    tree_of.cache_clear()
