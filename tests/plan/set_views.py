"""Views that are as simple as can be: sets of elements, some of them shown.

An event is a mapping of elements to values. A view holds if the event has all elements of its set, and gives
the values of those that it shows. So u embeds in v if its set is a subset of v's. Items of a view: that each
element is there (bit e), and the value of each that is shown (bit 32 + e).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.contents.views import Pairs, Views

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from headgate.core.event import Event

ELEMENTS = 32


@dataclass(frozen=True)
class SetRewriting:
    """Values of some elements, put together."""

    shown: tuple[int, ...]

    def run(self, results: Sequence[Any]) -> dict[int, Any] | None:
        """Put together what inputs give."""
        if any(result is None for result in results):
            return None
        values = {e: value for result in results for e, value in result.items()}
        return {e: values[e] for e in self.shown}


@dataclass(frozen=True)
class SetViews(Views):
    """Views by number: `sets` and `shown` have bit e for element e; labels are elements / 2."""

    sets: NDArray[np.uint64]
    shown: NDArray[np.uint64]
    label_offsets: NDArray[np.int64]
    labels: NDArray[np.int32]
    names: range
    demands: NDArray[np.uint64]
    offers: NDArray[np.uint64]
    needed: NDArray[np.uint64]
    equals: NDArray[np.int32]

    @classmethod
    def build(cls, views: Iterable[tuple[Iterable[int], Iterable[int]]]) -> SetViews:
        """Build from pairs of a set and what is shown of it; a view of no elements has no items."""
        given = [(frozenset(elements), frozenset(shown)) for elements, shown in views]
        sets = np.array([sum(1 << e for e in elements) for elements, _ in given], np.uint64)
        shown = np.array([sum(1 << e for e in some) for _, some in given], np.uint64)
        rows = [sorted({e // 2 for e in elements}) for elements, _ in given]
        firsts: dict[Any, int] = {}
        signatures = np.stack([sets & np.uint64(0x00FF00FF), sets & np.uint64(0x0F000000)], 1).reshape(-1)
        return cls(
            sets,
            shown,
            np.cumsum([0, *map(len, rows)]),
            np.array([label for row in rows for label in row], np.int32),
            range(ELEMENTS // 2),
            signatures,
            signatures,
            sets | (shown << np.uint64(32)),
            np.array([firsts.setdefault(view, number) for number, view in enumerate(given)], np.int32),
        )

    def __len__(self) -> int:
        """Count the views."""
        return len(self.sets)

    def _cover(self, pairs: Pairs) -> None:
        sources, targets, embeds, masks = pairs
        embeds[:] = self.sets[sources] & ~self.sets[targets] == 0
        masks[:] = np.where(embeds, self.needed[sources] & self.needed[targets], np.uint64(0))

    def result(self, view: int, event: Event) -> dict[int, Any] | None:
        """Give the values of what is shown."""
        if any(e not in event.data for e in self._elements(self.sets[view])):
            return None
        return {e: event.data[e] for e in self._elements(self.shown[view])}

    def rewriting(self, view: int, inputs: Sequence[int]) -> SetRewriting:
        """Make what puts together what others give."""
        covered = np.bitwise_or.reduce(self.needed[list(inputs)])
        if self.needed[view] & ~covered:
            raise ValueError(f"view {view} is not covered")
        return SetRewriting(tuple(self._elements(self.shown[view])))

    def pack(self, result: Any) -> Any:
        """Return pairs: JSON has no whole numbers as names."""
        return None if result is None else sorted(result.items())

    def unpack(self, view: int, packed: Any) -> Any:
        """Return the result that was packed."""
        del view
        return None if packed is None else dict(packed)

    def plan_of(self, view: int, inputs: Sequence[int]) -> list[str]:
        """Say where values come from."""
        return [f"view {view} = union of {list(inputs)}"]

    def size(self, result: Any) -> tuple[int, int]:
        """Count values."""
        return (0, 0) if result is None else (len(result), 8 * len(result))

    @staticmethod
    def _elements(word: np.uint64) -> list[int]:
        return [e for e in range(ELEMENTS) if int(word) >> e & 1]


def random_views(rng: random.Random, count: int, elements: int = 8, *, alike: float = 0.2) -> SetViews:
    """Draw views; some are written alike, some have the same set but show other elements, a few are empty."""
    drawn: list[tuple[list[int], list[int]]] = []
    for _ in range(count):
        kind = rng.random()
        if drawn and kind < alike:
            drawn.append(rng.choice(drawn))
            continue
        if drawn and kind < alike + 0.2:
            chosen = rng.choice(drawn)[0]
        else:
            chosen = rng.sample(range(elements), min(elements, rng.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 6])))
        drawn.append((chosen, [e for e in chosen if rng.random() < 0.5]))
    return SetViews.build(drawn)
