"""Views over XMark's schema, drawn as YFilter's generator draws queries, and refined.

One view in `period` is a walk of its own (see `xmark_walks`). The others refine such a one: they have its
nodes and its tests, a step or two more, and return much the same. So views overlap as interests do, and large
ones are of use to others, not only those that ask for next to nothing. After Diao, Altinel, Franklin, Zhang
and Fischer, "Path sharing and predicate evaluation for high-performance XML filtering", TODS 2003.
Departures: views are refined, and several nodes of a view return something.

A view is a function of (seed, number, attempt). Views are unique up to the order of siblings: a number takes
its first attempt that no lesser number has taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headgate.errors import HeadgateError
from headgate.workloads.hashing import Key, bits
from headgate.workloads.xml.walks import ViewLaw, Walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from headgate.xml.language.model import Node, Pattern

    Ints = NDArray[np.int64]

__all__ = ["TABLE_2", "draw_views", "unique_views"]

TABLE_2 = ViewLaw()
_TABLE = "xmark views"
_DRAWS = 112
"""Random numbers of a view."""
_ATTEMPTS = 250
_BATCH = 4096
_EARLY = 2.0
"""How much more often early views are refined: an exponent as `skew` is."""


def unique_views(law: ViewLaw, count: int, seed: int) -> Iterator[tuple[int, Pattern]]:
    """Draw the views 0 to `count`, each with the attempt that it took.

    Some 80 microseconds a view.
    """
    law.check()
    seen: set[tuple[Node, ...]] = set()
    for first in range(0, count, _BATCH):
        rows = np.arange(first, min(first + _BATCH, count))
        for row, drawn in zip(rows.tolist(), draw_views(law, rows, seed, bytes(len(rows))), strict=True):
            view, attempt = drawn, 0
            while view.nodes in seen:
                attempt += 1
                if attempt == _ATTEMPTS:
                    raise HeadgateError(
                        f"view {row} of {count} was drawn {_ATTEMPTS} times and never new: "
                        "ask for fewer unique views"
                    )
                (view,) = draw_views(law, np.array([row]), seed, bytes([attempt]))
            seen.add(view.nodes)
            yield attempt, view


def draw_views(law: ViewLaw, rows: Ints, seed: int, attempts: bytes) -> list[Pattern]:
    """Draw the views of some rows, each at the given attempt."""
    law.check()
    rows = np.asarray(rows, np.int64)
    own = _numbers(rows, seed, np.frombuffer(attempts, np.uint8))
    refined = rows % law.period != 0
    refined_rows = law.period * np.floor((rows // law.period + 1) * own[:, -1] ** _EARLY).astype(np.int64)
    of = _numbers(
        np.where(refined, refined_rows, rows), seed, np.where(refined, 0, np.frombuffer(attempts, np.uint8))
    )
    found = []
    for numbers, others, is_refined in zip(of.tolist(), own.tolist(), refined.tolist(), strict=True):
        walk = Walk(law, numbers)
        if is_refined:
            walk.refine(others)
        walk.finish()
        found.append(walk.pattern())
    return found


def _numbers(rows: Ints, seed: int, attempts: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Draw the random numbers of some rows, each at the given attempt."""
    drawn = np.empty((len(rows), _DRAWS))
    address = rows[:, None] * _DRAWS + np.arange(_DRAWS)
    for attempt in np.unique(attempts).tolist():
        (at,) = np.nonzero(attempts == attempt)
        words = bits(Key(seed, _TABLE, "draw", address[at].ravel()), attempt)
        drawn[at] = ((words >> np.uint64(11)).astype(np.float64) / (1 << 53)).reshape(len(at), _DRAWS)
    return drawn
