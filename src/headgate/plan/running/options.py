"""How views can be fed, in rows that grow: those planned at first as arrays, later ones as they came."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.plan.model import AT_VIEW, Costs, Rewritings

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


class Option(NamedTuple):
    """One way to feed a view, with what it costs; the fields are those of `Costs`.

    Without inputs it is the source; `sent` and `sending` are then what is asked of the source.
    """

    inputs: tuple[int, ...]
    utilization: float
    latency: float
    sent: tuple[float, ...]
    sending: tuple[float, ...]
    joining: float
    host: int = AT_VIEW


class Compact(NamedTuple):
    """Some of the views, counted from 0.

    `views` are their numbers in the rows, `places` where each rewriting stands in its row there.
    """

    views: NDArray[np.int64]
    places: NDArray[np.int64]
    rewritings: Rewritings
    costs: Costs


def spread(
    rewritings: Rewritings, costs: Costs, numbers: NDArray[np.int64], views: int
) -> tuple[Rewritings, Costs]:
    """Give views other numbers, rising, among so many; the others have no rewritings and cost nothing."""
    counts = np.zeros(views, np.int64)
    counts[numbers] = np.diff(rewritings.offsets)
    wider = Rewritings(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        rewritings.input_offsets,
        numbers[rewritings.inputs].astype(np.int32),
    )

    def by_view(amounts: NDArray[np.float64]) -> NDArray[np.float64]:
        whole = np.zeros(views, np.float64)
        whole[numbers] = amounts
        return whole

    own = {name: by_view(getattr(costs, name)) for name in Costs._fields if name.startswith("source_")}
    return wider, costs._replace(**own)


class OptionRows:
    """The rewritings of each view, and how the source would feed it. No number is used for two views."""

    def __init__(self, rewritings: Rewritings, costs: Costs) -> None:
        self._rewritings = rewritings
        self._costs = costs
        self._first = len(rewritings.offsets) - 1
        self._added: list[tuple[tuple[Option, ...], Option]] = []

    def __len__(self) -> int:
        """Count the views, those that are gone too."""
        return self._first + len(self._added)

    def add(self, options: Sequence[Option], source: Option) -> int:
        """Add a view; returns its number."""
        self._added.append((tuple(options), source))
        return len(self) - 1

    def rewritings_of(self, view: int) -> Sequence[Option]:
        """List the rewritings of a view."""
        if view >= self._first:
            return self._added[view - self._first][0]
        first, end = self._rewritings.offsets[view : view + 2].tolist()
        return [self._option(number) for number in range(first, end)]

    def chosen_of(self, view: int, place: int) -> Option:
        """Return one of the rewritings of a view."""
        if view >= self._first:
            return self._added[view - self._first][0][place]
        return self._option(int(self._rewritings.offsets[view]) + place)

    def source_of(self, view: int) -> Option:
        """Tell what it costs that the source feeds a view."""
        if view >= self._first:
            return self._added[view - self._first][1]
        costs = self._costs
        return Option(
            (),
            float(costs.source_utilization[view]),
            float(costs.source_latency[view]),
            (float(costs.source_sent[view]),),
            (float(costs.source_sending[view]),),
            float(costs.source_joining[view]),
        )

    def _option(self, number: int) -> Option:
        costs = self._costs
        span = slice(*self._rewritings.input_offsets[number : number + 2].tolist())
        return Option(
            tuple(self._rewritings.inputs[span].tolist()),
            float(costs.utilization[number]),
            float(costs.latency[number]),
            tuple(costs.sent[span].tolist()),
            tuple(costs.sending[span].tolist()),
            float(costs.joining[number]),
            costs.host_of(number),
        )

    def compact(self, taken: NDArray[np.bool_]) -> Compact:
        """Take some views, and of their rewritings those that use no other."""
        base = self._rewritings
        costs = self._costs
        old = self._first
        counts = np.diff(base.offsets)
        widths = np.diff(base.input_offsets)
        owners = np.repeat(np.arange(old), counts)
        kept = taken[owners]
        if len(kept):
            kept &= np.logical_and.reduceat(taken[base.inputs], base.input_offsets[:-1])
        kept_inputs = np.repeat(kept, widths)
        places = (np.arange(len(owners)) - base.offsets[owners])[kept]

        views = np.flatnonzero(taken)
        numbered = np.cumsum(taken) - 1
        rows = [int(view) - old for view in views[views >= old]]
        later = [
            (view, place, option)
            for view in rows
            for place, option in enumerate(self._added[view][0])
            if all(taken[each] for each in option.inputs)
        ]
        options = [option for _, _, option in later]
        sources = [self._added[view][1] for view in rows]
        per_view = np.concatenate(
            [
                np.bincount(owners[kept], minlength=old)[taken[:old]],
                np.bincount(
                    np.array([view for view, _, _ in later], dtype=np.int64), minlength=len(self._added)
                )[np.array(rows, dtype=np.int64)],
            ]
        )
        per_rewriting = np.concatenate([widths[kept], [len(option.inputs) for option in options]])
        inputs = np.concatenate(
            [base.inputs[kept_inputs], np.array([each for o in options for each in o.inputs], dtype=np.int64)]
        )

        def each(old_part: NDArray[np.float64], read: Callable[[Option], float]) -> NDArray[np.float64]:
            return np.concatenate(
                [old_part[kept], np.array([read(option) for option in options], dtype=float)]
            )

        def direct(old_part: NDArray[np.float64], read: Callable[[Option], float]) -> NDArray[np.float64]:
            new = np.array([read(option) for option in sources], dtype=float)
            return np.concatenate([old_part[taken[:old]], new])

        old_hosts = np.full(len(kept), AT_VIEW, np.int32) if costs.hosts is None else costs.hosts
        hosts = np.concatenate([old_hosts[kept], [option.host for option in options]]).astype(np.int32)
        sent = np.array([amount for option in options for amount in option.sent], dtype=float)
        sending = np.array([amount for option in options for amount in option.sending], dtype=float)
        return Compact(
            views.astype(np.int64),
            np.concatenate([places, [place for _, place, _ in later]]).astype(np.int64),
            Rewritings(
                np.array([0, *accumulate(per_view.astype(np.int64).tolist())], dtype=np.int64),
                np.array([0, *accumulate(per_rewriting.astype(np.int64).tolist())], dtype=np.int64),
                numbered[inputs.astype(np.int64)].astype(np.int32),
            ),
            Costs(
                utilization=each(costs.utilization, lambda option: option.utilization),
                latency=each(costs.latency, lambda option: option.latency),
                sent=np.concatenate([costs.sent[kept_inputs], sent]),
                sending=np.concatenate([costs.sending[kept_inputs], sending]),
                joining=each(costs.joining, lambda option: option.joining),
                source_utilization=direct(costs.source_utilization, lambda option: option.utilization),
                source_latency=direct(costs.source_latency, lambda option: option.latency),
                source_sent=direct(costs.source_sent, lambda option: option.sent[0]),
                source_sending=direct(costs.source_sending, lambda option: option.sending[0]),
                source_joining=direct(costs.source_joining, lambda option: option.joining),
                hosts=hosts,
            ),
        )
