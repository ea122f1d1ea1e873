"""The public class of boxes: rank them for events, exactly or relaxed, and change them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.core.arguments import check_id, is_id, listed, place_of, source_of, told
from headgate.core.ids import Ids
from headgate.core.ranks import Best, check_k, check_weight
from headgate.errors import SubscriptionError
from headgate.ranking.boxes.boxes import Boxes, of_boxes, of_columns, take
from headgate.ranking.boxes.ends import OVERLAP
from headgate.ranking.boxes.explain import BoxExplanation, explain
from headgate.ranking.boxes.live import ROOM, Base, BoxState
from headgate.ranking.boxes.methods import AUTO, EXACTLY, Question, check_method, methods
from headgate.ranking.model import Box, check_box_score, check_total
from headgate.ranking.rows import Moments

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path as FilePath

    from numpy.typing import ArrayLike, NDArray

    from headgate.core.event import Id
    from headgate.ranking.boxes.boxes import Combine

__all__ = ["ROOM", "BoxIndex", "methods"]

SHARE = 16
"""Changes are folded into the base once they are this part of it, and `compact_after` at least."""


class BoxIndex:
    """Boxes of intervals in many dimensions: the best k for an event, while boxes come, go and change.

    Exact: all intervals hold, by score. Relaxed: any holds, by the combined weights of those that do. Equal
    ones go by id. An interval holds for an event without a value there only if it has no ends.

    Any number of threads may read while others write. What a reader sees is the state at one moment. Changes
    go into a tail; `compact` folds it into the base. A change does so by itself once there were more than
    `compact_after` of them, and more than a 16th of the base; None turns it off.

    >>> from headgate.ranking.model import Box, Interval
    >>> index = BoxIndex.build([
    ...     Box("s1", {"age": Interval(25, 35), "salary": Interval(low=50_000)}, score=2.0),
    ...     Box("s2", {"age": Interval(20, 30)}, score=1.0, weights=3.0),
    ... ])
    >>> [best.subscription for best in index.top({"age": 28, "salary": 65_000}, 5)]
    ['s1', 's2']
    >>> index.top({"age": 28, "salary": 65_000}, 5, "relaxed")
    [Best(subscription='s2', value=3.0), Best(subscription='s1', value=2.0)]
    """

    def __init__(self, base: Base, *, compact_after: int | None = 4096) -> None:
        self.compact_after = compact_after
        self._state = BoxState(base)
        self._moments = Moments()

    @classmethod
    def build(cls, boxes: Iterable[Box]) -> BoxIndex:
        """Index boxes; refuses repeated ids. Dimensions are all that occur, sorted by name."""
        every = [_box(box) for box in listed(boxes, "boxes", SubscriptionError, "give a list of them")]
        ids = Ids.of(box.id for box in every)
        given = {box.id: box for box in every}
        dimensions = sorted({name for box in every for name in box.intervals})
        return cls(Base(ids, tuple(dimensions), of_boxes([given[identity] for identity in ids], dimensions)))

    @classmethod
    def from_columns(
        cls,
        ids: Sequence[Id] | NDArray[np.integer[Any]],
        dimensions: Sequence[str],
        low: ArrayLike,
        high: ArrayLike,
        score: ArrayLike,
        weight: ArrayLike | None = None,
    ) -> BoxIndex:
        """Index boxes given as columns of floats: `low`, `high` and `weight` by dimension and box.

        Ends are closed, and NaN where a box has no interval. One whose low end is above its high end holds
        nothing. Weights are 1 if none are given.
        """
        given: list[Id] = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
        names = sorted(set(dimensions))
        if len(names) < len(dimensions):
            raise SubscriptionError(
                f"a dimension is given twice among {', '.join(dimensions)}: give each once"
            )
        stored = Ids.of(given)
        boxes = of_columns(given, len(dimensions), low, high, weight, score)
        order = np.argsort(given) if stored.numbered else sorted(range(len(given)), key=given.__getitem__)
        boxes = _by_name(take(boxes, np.array(order, np.int64)), list(dimensions), names)
        return cls(Base(stored, tuple(names), boxes))

    @classmethod
    def open(cls, path: FilePath, *, verify: bool = True) -> BoxIndex:
        """Open a snapshot, memory-mapped; see `headgate.core.snapshot` for what is refused."""
        return cls(Base.open(place_of(path), verify=verify))

    def save(self, path: FilePath, *, source: Mapping[str, object] | None = None) -> None:
        """Write a snapshot, compacted if need be; `source` says what it was built from."""
        with self._moments.lock:
            if self._state.changes:
                self.compact()
            base = self._state.base
        base.save(place_of(path), source=source_of(source))

    @property
    def dimensions(self) -> tuple[str, ...]:
        """List the dimensions in which boxes have, or had, intervals: sorted by name."""
        return self._state.tail.dimensions

    @property
    def changes(self) -> int:
        """Count the changes since the base was built."""
        return self._state.changes

    def __len__(self) -> int:
        """Count the boxes."""
        return self._moments.reading(lambda: len(self._state.rows))

    def __contains__(self, identity: Id) -> bool:
        """Tell whether there is a box of this id."""
        return is_id(identity) and self._moments.reading(lambda: self._state.rows.find(identity) >= 0)

    def top(
        self,
        event: Mapping[str, object],
        k: int,
        mode: str = EXACTLY,
        *,
        method: str = AUTO,
        notion: str = OVERLAP,
        factors: Mapping[str, float] | None = None,
        combine: str | Combine = "sum",
    ) -> list[Best]:
        """List the best k for an event, which has a number, an `Interval` or None in each dimension.

        What it says of other dimensions is ignored. `notion` says when an interval holds for an event that is
        one: "overlap", or the event lies "within". Relaxed, `factors` re-weigh dimensions, and 0 drops one;
        weights are combined by "sum", "max" or any function that does not fall when a value rises: it is
        given one value for each of `dimensions`, 0 where nothing holds.
        """
        check_k(k)
        check_method(mode, method)
        question = Question(event, mode, notion, factors, combine)

        def find() -> list[Best]:
            state = self._state
            question.ask(state.tail.dimensions)
            ranked = state.top(question, k, method)
            return list(map(Best, state.rows.ids(ranked.rows), ranked.values.tolist()))

        return self._moments.reading(find)

    def explain(
        self,
        event: Mapping[str, object],
        identity: Id,
        k: int,
        mode: str = EXACTLY,
        *,
        notion: str = OVERLAP,
        factors: Mapping[str, float] | None = None,
        combine: str | Combine = "sum",
    ) -> BoxExplanation:
        """Say why a box has its rank for an event, what the k-th has, and what it lacks to enter."""
        check_k(k)
        check_method(mode, AUTO)
        question = Question(event, mode, notion, factors, combine)
        _check_known(identity)
        return self._moments.reading(lambda: explain(self._state, question, identity, k))

    def insert(self, box: Box) -> None:
        """Add a box; it is ranked from now on. Refuses an id that is here."""
        check_id(_box(box).id)
        with self._changing() as state:
            if state.rows.find(box.id) >= 0:
                raise SubscriptionError(f"id {box.id!r} is here already: delete it first")
            state.rows.check_new(box.id)
            state.widen(box.intervals)
            state.add(box.id, of_boxes([box], state.tail.dimensions))

    def delete(self, identity: Id) -> None:
        """Remove a box; it is ranked no more. Refuses an id that is not here."""
        _check_known(identity)
        with self._changing() as state:
            state.rows.remove(identity)

    def set_score(self, identity: Id, score: float) -> None:
        """Give a box another score. Nothing is rebuilt."""
        check_box_score(score, f"subscription {identity!r}")
        _check_known(identity)
        with self._changing() as state:
            box = state.box(state.rows.get(identity))
            state.rows.remove(identity)
            state.add(identity, box._replace(score=np.array([score], np.float64)))

    def set_weights(self, identity: Id, weights: Mapping[str, float] | float) -> None:
        """Give a box other weights, as `Box` takes them: a dimension not named weighs 1."""
        named = weights if isinstance(weights, Mapping) else {}
        for name, weight in named.items():
            check_weight(weight, f"{name!r} of subscription {identity!r}")
        if not isinstance(weights, Mapping):
            check_weight(weights, f"subscription {identity!r}")
        _check_known(identity)
        with self._changing() as state:
            box = state.box(state.rows.get(identity))
            held = [state.tail.dimensions[dim] for dim in box.dim.tolist()]
            for name in named:
                if name not in held:
                    raise SubscriptionError(
                        f"subscription {identity!r} has no interval in {name!r}, to be weighed: leave it out"
                    )
            other = 1.0 if isinstance(weights, Mapping) else weights
            fresh_weights = np.array([named.get(name, other) for name in held], np.float64) + 0.0
            check_total(fresh_weights.tolist(), f"subscription {identity!r}")
            state.rows.remove(identity)
            state.add(identity, box._replace(weight=fresh_weights))

    def compact(self) -> None:
        """Fold the tail into a new base, without what was deleted. Others read the old one meanwhile."""
        with self._moments.lock:
            folded = self._state.folded()
            with self._moments.changing():
                self._state = folded

    @contextmanager
    def _changing(self) -> Iterator[BoxState]:
        """Change what there is, and fold the tail in once there were many changes."""
        with self._moments.lock:
            with self._moments.changing():
                yield self._state
                self._state.changes += 1
            least = self.compact_after
            if least is not None and self._state.changes > max(least, self._state.base.boxes.size // SHARE):
                self.compact()


def _check_known(identity: object) -> None:
    """Refuse what is no id, and so not here."""
    if not is_id(identity):
        raise SubscriptionError(f"there is no subscription {identity!r} here")


def _box(given: object) -> Box:
    """Refuse what is no box."""
    if not isinstance(given, Box):
        raise SubscriptionError(f"{told(given)} is given for a box: give a Box")
    return given


def _by_name(boxes: Boxes, given: list[str], names: list[str]) -> Boxes:
    """Number dimensions by their names instead of by the order given."""
    if given == names:
        return boxes
    dim_of = {name: number for number, name in enumerate(names)}
    dim = np.array([dim_of[name] for name in given], np.int32)[boxes.dim]
    order = np.lexsort((dim, boxes.row))
    return boxes._replace(
        dim=dim[order], low=boxes.low[order], high=boxes.high[order], weight=boxes.weight[order]
    )
