"""A plan as data, with its views, sites and costs: who feeds whom, and a plan carried out for an event."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from headgate.core.arguments import place_of
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.snapshot import open_snapshot, write_snapshot
from headgate.errors import PlanError, SnapshotError
from headgate.plan.measures import input_places, latencies, levels, measures, utilizations
from headgate.plan.model import AT_VIEW, SOURCE, Capacities, Costs, Plan, Rewritings
from headgate.plan.placement import Links

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from headgate.contents.views import Results
    from headgate.core.arrays import Floats64, Ints
    from headgate.core.event import Event


ROOM = "plan"
LAYOUT = 1
"""The layout of the arrays in a snapshot; one that was written with another must be planned again."""
VIEWS, FEEDS = "views.parquet", "feeds.parquet"
_SCALARS = ("source_fan_out", "source_bandwidth", "source_cpu")


class SavedPlan(NamedTuple):
    """Views by number, which is the place of their id, and how each of them is fed.

    `before` is the plan of least utilization, `plan` the one after latency was lowered, within `capacities`:
    those that were asked for, times what they were relaxed by. `sites` are the names of sites, by number.
    `about` says what it was made of and how.
    """

    ids: Ids
    filters: TextPool
    sites: TextPool
    rewritings: Rewritings
    costs: Costs
    capacities: Capacities
    before: Plan
    plan: Plan
    about: Mapping[str, Any]
    sizes: tuple[Floats64, Floats64] | None = None
    """The rows and bytes that each view gives for an event; plans of the first version lack them."""
    links: Links | None = None
    weights: Floats64 | None = None
    """What work at each site weighs; None is the same everywhere."""

    def views(self) -> pa.Table:
        """Return a row for each view: how it is fed, and what that is like.

        `rewriting` is which of its rewritings, counted from 0, null if the source feeds it.
        """
        fed = self.plan.chosen != SOURCE
        names = self.ids.to_arrow()
        places = input_places(self.plan, self.rewritings)
        counts = np.zeros(len(self.ids) + 1, np.int32)
        counts[1:][fed] = np.diff(self.rewritings.input_offsets)[self.plan.chosen[fed]]
        inputs = names.take(self.rewritings.inputs[places])
        offsets: Any = pa.array(np.cumsum(counts, dtype=np.int32))
        feeding = np.bincount(self.rewritings.inputs[places], minlength=len(self.ids))
        columns: dict[str, Any] = {
            "view": names,
            "site": pa.array(self.sites.texts()).take(self.capacities.sites),
            "level": levels(self.plan, self.rewritings),
            "rewriting": pa.array(self.plan.chosen - self.rewritings.offsets[:-1], mask=~fed),
            "inputs": pa.ListArray.from_arrays(offsets, inputs),
            "feeds": feeding,
            "utilization": utilizations(self.plan, self.costs),
            "latency": latencies(self.plan, self.rewritings, self.costs),
            "level_before": levels(self.before, self.rewritings),
            "latency_before": latencies(self.before, self.rewritings, self.costs),
            "computed_at": pa.array(self.sites.texts()).take(self.capacities.sites[self.hosts()]),
        }
        return pa.table(columns)

    def hosts(self, plan: Plan | None = None) -> Ints:
        """Return for each view at whose site it is computed: its own, or an input's.

        A view that the source feeds is taken by its own site as it is.
        """
        hosts = np.arange(len(self.ids))
        if self.costs.hosts is None:
            return hosts
        chosen = (self.plan if plan is None else plan).chosen
        moved = np.flatnonzero((chosen != SOURCE) & (self.costs.hosts[chosen] != AT_VIEW))
        places = self.rewritings.input_offsets[chosen[moved]] + self.costs.hosts[chosen[moved]]
        hosts[moved] = self.rewritings.inputs[places]
        return hosts

    def feeds(self) -> pa.Table:
        """Return a row for each view that another feeds: who feeds whom, and the bytes that are sent."""
        fed = np.flatnonzero(self.plan.chosen != SOURCE)
        counts = np.diff(self.rewritings.input_offsets)[self.plan.chosen[fed]]
        places = input_places(self.plan, self.rewritings)
        names = self.ids.to_arrow()
        columns: dict[str, Any] = {
            "view": names.take(np.repeat(fed, counts)),
            "input": names.take(self.rewritings.inputs[places]),
            "bytes": self.costs.sent[places],
        }
        return pa.table(columns)

    def save(self, path: Path) -> None:
        """Write it as a snapshot: arrays for Headgate, the tables `views` and `feeds` for everybody."""
        path = place_of(path)
        capacities = self.capacities._asdict()
        about = {
            **self.about,
            "layout": LAYOUT,
            # JSON has no infinity.
            "source": {name: _told(capacities.pop(name)) for name in _SCALARS},
        }
        arrays: dict[str, NDArray[Any]] = {"before": self.before.chosen, "chosen": self.plan.chosen}
        for name, part in (("rewritings", self.rewritings._asdict()), ("costs", self.costs._asdict())):
            arrays |= {f"{name}_{field}": array for field, array in part.items() if array is not None}
        arrays |= {f"capacities_{field}": array for field, array in capacities.items()}
        if self.sizes is not None:
            arrays["view_rows"], arrays["view_bytes"] = self.sizes
        if self.links is not None:
            arrays |= {f"links_{field}": array for field, array in self.links._asdict().items()}
        if self.weights is not None:
            arrays["site_weights"] = self.weights
        for name, pool in (("filter", self.filters), ("site", self.sites)):
            arrays[f"{name}_offsets"], arrays[f"{name}_data"] = pool
        measured = measures(self.plan, self.rewritings, self.costs)
        counts = {
            "views": len(self.ids),
            "source_fed": measured.source_fed,
            "levels": len(measured.per_level),
            "rewritings": len(self.rewritings.input_offsets) - 1,
        }
        tables = {VIEWS: partial(pq.write_table, self.views()), FEEDS: partial(pq.write_table, self.feeds())}
        write_snapshot(
            path, ROOM, {**arrays, **self.ids.to_arrays()}, counts=counts, about=about, tables=tables
        )

    @classmethod
    def open(cls, path: Path, *, verify: bool = True) -> SavedPlan:
        """Open a snapshot, memory-mapped."""
        snapshot = open_snapshot(place_of(path), ROOM, verify=verify)
        arrays, about = snapshot.arrays, dict(snapshot.about)
        if about.pop("layout", None) != LAYOUT:
            raise SnapshotError(
                f"snapshot {path} has another layout of the plan than this Headgate reads: plan it again "
                "(headgate plan), or use the Headgate that wrote it"
            )
        bounds = {name: _bound(value) for name, value in about.pop("source").items()}
        given = {name: arrays[f"capacities_{name}"] for name in Capacities._fields if name not in _SCALARS}
        capacities: dict[str, Any] = {**given, **bounds}
        return cls(
            Ids.from_arrays(arrays),
            TextPool(arrays["filter_offsets"], arrays["filter_data"]),
            TextPool(arrays["site_offsets"], arrays["site_data"]),
            Rewritings(*(arrays[f"rewritings_{name}"] for name in Rewritings._fields)),
            # Plans without links have no hosts.
            Costs(**{name: arrays.get(f"costs_{name}") for name in Costs._fields}),  # type: ignore[arg-type]
            Capacities(**capacities),
            Plan(arrays["before"]),
            Plan(arrays["chosen"]),
            about,
            (arrays["view_rows"], arrays["view_bytes"]) if "view_rows" in arrays else None,
            Links(*(arrays[f"links_{name}"] for name in Links._fields)) if "links_delays" in arrays else None,
            arrays.get("site_weights"),
        )


def _told(bound: float) -> float | None:
    return None if np.isinf(bound) else bound


def _bound(told: float | None) -> float:
    return float("inf") if told is None else told


class Delivery(NamedTuple):
    """What each view got for an event, and what was sent for it: bytes by the source, and by other views."""

    results: list[Any]
    source_bytes: int
    bytes: int


def disseminate(views: Results, plan: Plan, rewritings: Rewritings, event: Event) -> Delivery:
    """Give every view its result for an event, as the plan says. Only views at the source see the event."""
    if len(views) != len(plan.chosen):
        raise PlanError(f"the plan is for {len(plan.chosen)} views, there are {len(views)}: plan these first")
    results: list[Any] = [None] * len(views)
    source_bytes = sent = 0
    for view in np.argsort(levels(plan, rewritings), kind="stable").tolist():
        number = int(plan.chosen[view])
        if number == SOURCE:
            results[view] = views.result(view, event)
            source_bytes += views.size(results[view])[1]
            continue
        inputs = rewritings.inputs[slice(*rewritings.input_offsets[number : number + 2])].tolist()
        given = [results[each] for each in inputs]
        results[view] = views.rewritten(view, inputs, given)
        sent += sum(views.size(each)[1] for each in given)
    return Delivery(results, source_bytes, sent)
