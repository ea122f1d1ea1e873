"""Which cases of a test run always, and which are left to the nightly lane."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Sequence


def some(cases: Sequence[Any], *places: int) -> list[Any]:
    """Keep the cases at these places in the default lane, and mark the others nightly."""
    assert set(places) < set(range(len(cases))), "some cases, neither all nor none that there are not"
    return [
        case
        if place in places
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.nightly)
        for place, case in enumerate(cases)
    ]
