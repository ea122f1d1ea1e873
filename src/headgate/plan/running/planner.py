"""From views and what they give to a plan: graphs, costs, the program, latency. In the paper's order.

views -> embedding graph -> without cycles -> rewritings -> costs -> least utilization -> lower latency
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.interning import TextPool
from headgate.core.ranks import double
from headgate.errors import PlanError
from headgate.plan.costs import Settings as CostSettings
from headgate.plan.costs import costs_of
from headgate.plan.graphs.embeddings import EmbeddingFinder
from headgate.plan.graphs.joining import graphs_of, join_targets, statistics_of
from headgate.plan.graphs.rewritability import Search
from headgate.plan.latency.latency import loga
from headgate.plan.measures import measures
from headgate.plan.model import same_capacities, scaled_capacities
from headgate.plan.placement import Placement
from headgate.plan.program.infeasible import InfeasibleError, Names
from headgate.plan.program.program import solve
from headgate.plan.running.saved_plan import SavedPlan
from headgate.plan.settings import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from headgate.contents.views import Views
    from headgate.core.arrays import Floats64
    from headgate.core.ids import Ids
    from headgate.plan.graphs.joining import GraphStatistics, JoinResult
    from headgate.plan.graphs.rewritability import SearchResult
    from headgate.plan.latency.latency import ImprovedPlan
    from headgate.plan.model import Capacities, Rewritings, Solution
    from headgate.plan.placement import Links

    Progress = Callable[[str], None]

HELD = 300_000
"""Views whose embeddings are held at once, at most: they grow with the square of the views."""
MOST_THREADS = 1024
MARGIN = 0.2
"""What the source is given beyond the views that only it can feed, as a part of these: the paper's 20 %."""


_SWITCHES = ("swaps", "to_source")
_PARTS: dict[str, type[Any]] = {"search": Search, "costs": CostSettings}


@dataclass(frozen=True)
class Settings:
    """What is asked of a plan.

    `fan_out`, `bandwidth` and `cpu` bound every site whose capacities are not given. `source_fan_out` of None
    gives the source what it must feed and a fifth more. `relax` multiplies the sites' capacities when latency
    is lowered (the paper takes 1.5); with `swaps` that also moves views aside to make room, and with
    `to_source` views to the source, as far as that may feed more. The mixed cost is `alpha` times utilization
    plus `beta` times latency.
    """

    search: Search = field(default_factory=Search)
    costs: CostSettings = field(default_factory=CostSettings)
    fan_out: float = math.inf
    bandwidth: float = math.inf
    cpu: float = math.inf
    source_fan_out: float | None = None
    source_bandwidth: float = math.inf
    source_cpu: float = math.inf
    alpha: float = Plan.alpha
    beta: float = Plan.beta
    relax: float = Plan.relax
    swaps: bool = Plan.swaps
    to_source: bool = Plan.to_source
    time_limit: float = Plan.time_limit
    gap: float = Plan.gap
    threads: int = 2

    def __post_init__(self) -> None:
        """Refuse what is no setting."""
        for name, kind in {**_PARTS, **dict.fromkeys(_SWITCHES, bool)}.items():
            if not isinstance(getattr(self, name), kind):
                raise PlanError(f"{name} is {getattr(self, name)!r}: give one of the class {kind.__name__}")
        for name in self._numbers():
            value = getattr(self, name)
            number = double(value)
            none = name == "source_fan_out" and value is None
            if not none and (number is None or not number >= 0):
                raise PlanError(f"{name} is {value!r}: give a number of 0 or more")
        if type(self.threads) is not int or not 1 <= self.threads <= MOST_THREADS:
            raise PlanError(f"threads is {self.threads!r}: give a whole number from 1 to {MOST_THREADS:,}")

    def _numbers(self) -> list[str]:
        others = {*_PARTS, *_SWITCHES, "threads"}
        return [each.name for each in fields(self) if each.name not in others]

    def told(self) -> dict[str, Any]:
        """Return them for JSON, which has no infinity."""
        given = {name: getattr(self, name) for name in self._numbers()}
        numbers = {
            name: None if value is None or math.isinf(value) else value for name, value in given.items()
        }
        parts = {"search": self.search._asdict(), "costs": asdict(self.costs)}
        return {**numbers, **{name: getattr(self, name) for name in _SWITCHES}, **parts}

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Settings:
        """Read what was told; what earlier versions did not tell is as by default."""
        given = {name: value for name, value in told.items() if value is not None}
        parts = {name: part(**given.pop(name)) for name, part in _PARTS.items() if name in given}
        return cls(**given, **parts)

    @classmethod
    def of(cls, rewritings: int, asked: Mapping[str, Any]) -> Settings:
        """Return what is asked, with `rewritings` for each view at most; what is None is as by default."""
        given = {name: value for name, value in asked.items() if value is not None}
        return cls(search=Search(k=rewritings), **given)


class FoundRewritings(NamedTuple):
    """How views can be computed from others, and what was found on the way."""

    searched: SearchResult
    statistics: GraphStatistics

    @classmethod
    def of(cls, joined: JoinResult) -> FoundRewritings:
        """Return what was found target by target."""
        return cls(joined.searched, statistics_of(joined.in_degrees, joined.removed, joined.searched))


class MadePlan(NamedTuple):
    """A plan, and how it came about; `seconds` by step."""

    saved: SavedPlan
    ways: FoundRewritings
    solution: Solution
    improved: ImprovedPlan
    seconds: dict[str, float]


class PlanInput(NamedTuple):
    """Views, with what they give for an event on average, and where they are."""

    ids: Ids
    filters: TextPool
    rows: Floats64
    bytes: Floats64
    capacities: Capacities | None = None
    sites: TextPool | None = None
    """The names of sites; without, a site has the name of its view."""
    links: Links | None = None
    weights: Floats64 | None = None
    """What work at each site weighs."""


def find_ways(
    views: Views, sizes: Floats64, settings: Settings, progress: Progress | None = None
) -> FoundRewritings:
    """Find who embeds in whom, and how views can be computed from others, on the cores of this machine.

    Where there are too many views to hold all embeddings, the two go target by target.
    """
    (progress or _silent)("finding which views embed in which, and rewritings")
    if len(views) > HELD:
        return FoundRewritings.of(
            join_targets(EmbeddingFinder(views), settings.search, weights=sizes, threads=settings.threads)
        )
    graphs = graphs_of(views, settings.search, weights=sizes, threads=settings.threads)
    return FoundRewritings(graphs.searched, graphs.statistics)


def make_plan(
    views: Views,
    given: PlanInput,
    settings: Settings | None = None,
    *,
    ways: Callable[[], FoundRewritings] | None = None,
    about: dict[str, Any] | None = None,
    progress: Progress | None = None,
) -> MadePlan:
    """Plan who feeds whom; refuses capacities that no plan can keep to, and names the views that cause it.

    `ways` finds how views can be computed elsewhere than on this machine.
    """
    settings = settings or Settings()
    say = progress or _silent
    if not (len(views) == len(given.ids) == len(given.rows) == len(given.bytes)):
        raise PlanError(
            f"{len(views)} views, {len(given.ids)} ids and {len(given.rows)} estimates: give as many"
        )
    sites = given.sites
    if sites is None:
        sites = TextPool.build([str(identity) for identity in given.ids])
    seconds: dict[str, float] = {}
    with _timed(seconds, "graphs"):
        graphs = ways() if ways is not None else find_ways(views, given.bytes, settings, progress)
    rewritings = graphs.searched.rewritings
    capacities = _capacities(rewritings, given.capacities, settings)
    placement = Placement(capacities.sites, given.links, given.weights)
    costs = costs_of(rewritings, given.rows, given.bytes, settings.costs, placement)
    with _timed(seconds, "program"):
        say(f"choosing among {len(rewritings.input_offsets) - 1:,} rewritings")
        try:
            solution = solve(
                rewritings,
                costs,
                capacities,
                time_limit=settings.time_limit,
                gap=settings.gap,
                progress=progress,
            )
        except InfeasibleError as error:
            raise error.named(Names(lambda view: repr(given.ids[view]), sites.text)) from None
    relaxed = scaled_capacities(capacities, settings.relax)
    with _timed(seconds, "latency"):
        say("lowering latency")
        improved = loga(
            solution.plan,
            rewritings,
            costs,
            relaxed,
            alpha=settings.alpha,
            beta=settings.beta,
            swaps=settings.swaps,
            to_source=settings.to_source,
        )
    before = measures(solution.plan, rewritings, costs)
    after = measures(improved.plan, rewritings, costs)
    told = {
        **(about or {}),
        "graphs": asdict(graphs.statistics),
        "utilization": {"bound": solution.bound, "gap": solution.gap, "ended": solution.ended},
        "before": {"utilization": before.utilization, "latency": before.latency},
        "after": {"utilization": after.utilization, "latency": after.latency},
        "relax": settings.relax,
        "settings": settings.told(),
        "trace": [[round(each.seconds, 4), each.latency] for each in improved.trace],
        "seconds": {name: round(spent, 3) for name, spent in seconds.items()},
    }
    saved = SavedPlan(
        given.ids,
        given.filters,
        sites,
        rewritings,
        costs,
        relaxed,
        solution.plan,
        improved.plan,
        told,
        (given.rows, given.bytes),
        given.links,
        given.weights,
    )
    return MadePlan(saved, graphs, solution, improved, seconds)


def _capacities(rewritings: Rewritings, given: Capacities | None, settings: Settings) -> Capacities:
    """Take the sites' capacities as given, or the same for all; the source's are among the settings."""
    capacities = given
    if capacities is None:
        views = len(rewritings.offsets) - 1
        capacities = same_capacities(views, settings.fan_out, bandwidth=settings.bandwidth, cpu=settings.cpu)
    most = settings.source_fan_out
    return capacities._replace(
        source_fan_out=float(default_source_fan_out(rewritings) if most is None else most),
        source_bandwidth=settings.source_bandwidth,
        source_cpu=settings.source_cpu,
    )


def default_source_fan_out(rewritings: Rewritings) -> float:
    """Return how many views the source must feed, and a fifth more."""
    alone = int((np.diff(rewritings.offsets) == 0).sum())
    return math.floor(alone * (1 + MARGIN))


@contextmanager
def _timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note how long a step takes."""
    begun = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - begun


def _silent(text: str) -> None:
    del text
