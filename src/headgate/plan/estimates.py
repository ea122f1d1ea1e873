"""What views give for an event on average, from a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import EventError, PlanError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from headgate.core.event import Event
    from headgate.core.views import Views

UNSEEN = 0.5
"""Rows that a view counts as having given if nothing in the sample matched it: it is rare, not free."""


class Estimates(NamedTuple):
    """Rows and bytes for an event, by view, and of how many events that was learned."""

    rows: NDArray[np.float64]
    bytes: NDArray[np.float64]
    events: int
    rejected: int
    """Rows of the sample that are no events."""
    unseen: int
    """Views that nothing in the sample matched."""


def averages(rows: NDArray[np.int64], size: NDArray[np.int64], events: int, rejected: int = 0) -> Estimates:
    """Divide what views gave in all; those that gave nothing get half an average row."""
    if events == 0:
        raise PlanError("the sample has no event that can be read: give some that are like those to come")
    many, large = rows.astype(np.float64), size.astype(np.float64)
    unseen = rows == 0
    a_row = large.sum() / many.sum() if many.any() else 1.0
    many[unseen], large[unseen] = UNSEEN, UNSEEN * a_row
    return Estimates(many / events, large / events, events, rejected, int(unseen.sum()))


def sums(
    views: Views, matching: Callable[[Event], Iterable[int]], events: Iterable[Event]
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Sum up rows and bytes of what views give for events; `matching` lists the views that match one."""
    rows, size = np.zeros(len(views), np.int64), np.zeros(len(views), np.int64)
    count = 0
    for event in events:
        count += 1
        try:
            given = [(view, views.size(views.result(view, event))) for view in matching(event)]
        except EventError as error:
            raise EventError(f"event {event.id!r} of the sample: {error}") from None
        for view, found in given:
            rows[view] += found[0]
            size[view] += found[1]
    return rows, size, count
