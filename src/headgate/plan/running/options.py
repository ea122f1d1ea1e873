"""What a plan that changes keeps: how views can be fed, in rows that grow, and what sites have to bear."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.errors import PlanError
from headgate.plan.model import AT_VIEW, Capacities, Costs, Rewritings
from headgate.plan.placement import PUBLISHER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from headgate.core.arrays import Bools, Floats64, Ints


_BY_SOURCE = "source_"
"""How the names of costs begin that the source has."""


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

    views: Ints
    places: Ints
    rewritings: Rewritings
    costs: Costs


def spread(rewritings: Rewritings, costs: Costs, numbers: Ints, views: int) -> tuple[Rewritings, Costs]:
    """Give views other numbers, rising, among so many; the others have no rewritings and cost nothing."""
    counts = np.zeros(views, np.int64)
    counts[numbers] = np.diff(rewritings.offsets)
    wider = Rewritings(
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        rewritings.input_offsets,
        numbers[rewritings.inputs].astype(np.int32),
    )

    def by_view(amounts: Floats64) -> Floats64:
        whole = np.zeros(views, np.float64)
        whole[numbers] = amounts
        return whole

    own = {name: by_view(getattr(costs, name)) for name in Costs._fields if name.startswith(_BY_SOURCE)}
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

    def chosen_of(self, view: int, choice: int) -> Option:
        """Return one of the rewritings of a view."""
        if view >= self._first:
            return self._added[view - self._first][0][choice]
        return self._option(int(self._rewritings.offsets[view]) + choice)

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

    def compact(self, taken: Bools) -> Compact:
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
            (view, choice, option)
            for view in rows
            for choice, option in enumerate(self._added[view][0])
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

        def merged(name: str, own: Bools, new: list[Any]) -> Floats64:
            amounts = [np.ravel(getattr(option, name.removeprefix(_BY_SOURCE))) for option in new]
            return np.concatenate([getattr(costs, name)[own], *amounts], dtype=np.float64)

        amounts = {name: merged(name, kept, options) for name in ("utilization", "latency", "joining")}
        amounts |= {name: merged(name, kept_inputs, options) for name in ("sent", "sending")}
        by_source = [name for name in Costs._fields if name.startswith(_BY_SOURCE)]
        amounts |= {name: merged(name, taken[:old], sources) for name in by_source}
        old_hosts = np.full(len(kept), AT_VIEW, np.int32) if costs.hosts is None else costs.hosts
        hosts = np.concatenate([old_hosts[kept], [option.host for option in options]]).astype(np.int32)
        return Compact(
            views.astype(np.int64),
            np.concatenate([places, [choice for _, choice, _ in later]]).astype(np.int64),
            Rewritings(
                np.array([0, *accumulate(per_view.astype(np.int64).tolist())], dtype=np.int64),
                np.array([0, *accumulate(per_rewriting.astype(np.int64).tolist())], dtype=np.int64),
                numbered[inputs.astype(np.int64)].astype(np.int32),
            ),
            Costs(**amounts, hosts=hosts),
        )


RESOURCES = ("fan-out", "bandwidth", "cpu")
NEAR = 1.0 + 1e-9


class SiteLoads:
    """Sites, their bounds, and what is asked of them."""

    def __init__(self, capacities: Capacities) -> None:
        self.sites: list[int] = capacities.sites.tolist()
        rows = zip(
            capacities.fan_out.tolist(), capacities.bandwidth.tolist(), capacities.cpu.tolist(), strict=True
        )
        self._bounds: dict[int, tuple[float, float, float]] = dict(enumerate(rows))
        self._bounds[PUBLISHER] = (
            capacities.source_fan_out,
            capacities.source_bandwidth,
            capacities.source_cpu,
        )
        self._used: dict[int, list[float]] = {site: [0.0, 0.0, 0.0] for site in self._bounds}
        self._failed: set[int] = set()
        self._relieved: dict[int, frozenset[int]] = {}
        """Sites that feed nobody elsewhere at present: each with those of its machine."""

    def __contains__(self, site: object) -> bool:
        """Tell whether there is such a site, and it has not failed."""
        return site in self._bounds and site != PUBLISHER and site not in self._failed

    def add_site(self, fan_out: float, bandwidth: float, cpu: float) -> int:
        """Add a site; returns its number."""
        if any(math.isnan(bound) or bound < 0 for bound in (fan_out, bandwidth, cpu)):
            raise PlanError("a bound of a new site is negative or not a number: 0 or more, inf for no limit")
        site = len(self._bounds) - 1
        self._bounds[site] = (float(fan_out), float(bandwidth), float(cpu))
        self._used[site] = [0.0, 0.0, 0.0]
        return site

    def fail(self, site: int) -> None:
        """Take a site out."""
        self._failed.add(site)
        for each in self._relieved.get(site, ()):
            del self._relieved[each]

    def relieve(self, machine: frozenset[int]) -> None:
        """Have sites of one machine feed nobody elsewhere."""
        self._relieved |= dict.fromkeys(machine, machine)

    def resume(self, machine: frozenset[int]) -> None:
        """Let sites feed others again."""
        for site in machine:
            self._relieved.pop(site, None)

    def begin(self, view: int, option: Option) -> None:
        """Count what feeding a view asks of sites."""
        for site, amounts in self._asked(view, option).items():
            self._used[site] = [used + amount for used, amount in zip(self._used[site], amounts, strict=True)]

    def end(self, view: int, option: Option) -> None:
        """Take off what feeding a view asked; a site that is not asked for anything bears exactly nothing."""
        for site, amounts in self._asked(view, option).items():
            left = [used - amount for used, amount in zip(self._used[site], amounts, strict=True)]
            # Rounding would add up. Where nobody is fed nothing is sent either.
            self._used[site] = [left[0], left[1] if left[0] else 0.0, max(left[2], 0.0)]

    def excess(self, view: int, option: Option) -> str | None:
        """Say which bound feeding a view would break; None if all can bear it."""
        for site, _, _ in self._feeders(option):
            if site in self._relieved and self.sites[view] not in self._relieved[site]:
                return f"site {site}, which is behind, would feed one more"
        for site, amounts in self._asked(view, option).items():
            for what, used, amount, bound in zip(
                RESOURCES, self._used[site], amounts, self._bounds[site], strict=True
            ):
                if amount > 0 and not used + amount <= bound * NEAR:
                    who = "the source" if site == PUBLISHER else f"site {site}"
                    return f"the {what} of {who} would be {used + amount:g} of {bound:g}"
        return None

    def fan_outs(self) -> dict[int, float]:
        """Return the bound of each site that has not failed."""
        return {site: bounds[0] for site, bounds in self._bounds.items() if site in self}

    def source_is_full(self) -> bool:
        """Tell whether the source can feed nobody more."""
        fan_out, *rest = zip(self._used[PUBLISHER], self._bounds[PUBLISHER], strict=True)
        return fan_out[0] + 1 > fan_out[1] or any(used * NEAR >= bound for used, bound in rest)

    def capacities(self, views: list[int], *, relieved: bool = False) -> Capacities:
        """Return the bounds for some views; sites that failed bear nothing.

        With `relieved`, those that feed nobody at present have no room for that.
        """
        count = len(self._bounds) - 1
        bounds = np.array([self._bounds[site] for site in range(count)], dtype=np.float64).reshape(count, 3)
        bounds[sorted(self._failed)] = 0.0
        if relieved:
            bounds[sorted(self._relieved), :2] = 0.0
        return Capacities(
            np.array([self.sites[view] for view in views], dtype=np.int32),
            np.ascontiguousarray(bounds[:, 0]),
            np.ascontiguousarray(bounds[:, 1]),
            np.ascontiguousarray(bounds[:, 2]),
            *self._bounds[PUBLISHER],
        )

    def _asked(self, view: int, option: Option) -> dict[int, list[float]]:
        asked: dict[int, list[float]] = {}
        for site, sent, sending in self._feeders(option):
            if site == self.sites[view]:
                continue
            row = asked.setdefault(site, [0.0, 0.0, 0.0])
            row[0] += 1
            row[1] += sent
            row[2] += sending
        asked.setdefault(self.sites[view], [0.0, 0.0, 0.0])[2] += option.joining
        return asked

    def _feeders(self, option: Option) -> Iterator[tuple[int, float, float]]:
        feeders = [self.sites[view] for view in option.inputs] or [PUBLISHER]
        return zip(feeders, option.sent, option.sending, strict=True)
