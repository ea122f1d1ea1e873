"""Networks simulated: held against a real one, then Figures 7, 8 and 9 of the paper at its size.

A small network runs as processes. Some of its documents tell what things cost, and the simulator must tell
how long the others took. With these costs it shows the network of section 5.5 of Karanasos et al., VLDB 2014.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.network import Size as RealSize
from benchmarks.network import World, _Network, _Page, _world
from benchmarks.network_calibration import (
    Observed,
    calibrate,
    error,
    hops_of,
    layout_of_placed,
    one_place,
    predicted,
    slowed_to,
)
from benchmarks.plan_data import say
from benchmarks.results import Result
from headgate import AsyncClient, Dissemination, Settings
from headgate.client.asking import Ask
from headgate.core.ids import Ids
from headgate.core.interning import TextPool
from headgate.core.machine import cores
from headgate.engine.views import views_of
from headgate.network.assignment import SOURCE
from headgate.network.entry import RESULT
from headgate.network.simulation.fast import totals
from headgate.network.simulation.figures import figures_of
from headgate.network.simulation.model import (
    NOTHING,
    Costs,
    Machines,
    Scene,
    Traffic,
    layout_of_plan,
    levels_of,
    nine_cities,
    spread,
)
from headgate.plan.costs import averages
from headgate.plan.running.planner import PlanInput, find_ways, make_plan
from headgate.workloads.xml.xmark import TABLE_2, WAN, XMark
from headgate.xml.answers.answers import PreparedPattern
from headgate.xml.events.reading import read_document
from headgate.xml.events.subject import Subject
from headgate.xml.views.views import XmlViews

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from headgate.engine.dissemination import PlacedView
    from headgate.network.simulation.figures import Figures
    from headgate.network.simulation.model import Floats, Layout
    from headgate.plan.running.saved_plan import SavedPlan
    from headgate.xml.language.model import Pattern

SEED = 1
SITES = 300
SOURCE_FED = 72.0
"""Views that the source may feed, as in the paper."""
_WIDER = 1.5
_PAPER = 1.6
"""Seconds: the paper's mean latency."""
_ALONE = 60.0
"""Seconds between documents that are simulated one by one."""
_LEAST = 0.03
"""Seconds: its least one."""
_WARM = 6
"""Documents that are published before anything is measured."""
_HOW = ("one by one", "at once")


@dataclass(frozen=True)
class Size:
    """What a size measures."""

    real: RealSize
    turns: int
    """How often documents are published; the best counts."""
    pairs: int
    """Documents that are published one by one, for calibrating and as many for checking."""
    burst: int
    """The same of those that are published at once."""
    apart: float
    """Seconds between documents, about."""
    views: int
    unique: int
    bounds: tuple[float, ...]
    kinds: int
    documents: int
    scale: tuple[int, int, int]
    """Views, kinds and documents of the large network."""


SIZES = {
    "quick": Size(
        RealSize(6, 60, 40, 22, 0, 0, 0), 2, 3, 5, 0.4, 600, 200, (5, math.inf), 3, 30, (2_000, 2, 50)
    ),
    "full": Size(
        RealSize(20, 300, 200, 34, 0, 0, 0),
        6, 4, 10, 0.6, 10_000, 3_000, (5, 10, 30, 50, 100, math.inf), 20, 200, (100_000, 4, 1_000),
    ),
}  # fmt: skip


def run(size: str, workload: XMark | None = None, source: float | None = SOURCE_FED) -> list[Result]:
    """Hold the simulator against a real network, and show networks at the paper's size and beyond."""
    chosen = SIZES[size]
    results = held_against(chosen, full=size == "full")
    results += section_5_5(chosen, workload or XMark(unique=chosen.unique, law=WAN), source, Costs())
    return results + at_scale(chosen, Costs(), full=size == "full")


# The real network


class _Data(msgspec.Struct):
    view: str
    document: int
    began: int
    result: msgspec.Raw
    path: list[list[Any]]


class _Measured(NamedTuple):
    """What happened to documents in a real network; times in seconds."""

    placed: list[PlacedView]
    layout: Layout
    sizes: NDArray[np.float32]
    """By document and view."""
    latency: Floats
    """From when the source had computed the document."""
    began: Floats
    computing: Floats
    """How long the source took to compute each document, or those that it took together."""
    hops: NDArray[np.int64]
    levels_told: int
    """Views whose site tells another level than the simulator."""


def held_against(size: Size, *, full: bool) -> list[Result]:
    """Calibrate on some documents of a real network, and check on others."""
    world = _world(size.real, TABLE_2)
    plan = Dissemination.build(world.subscriptions, world.documents[:3], Settings(fan_out=7.0))
    with tempfile.TemporaryDirectory() as place:
        found, turns = asyncio.run(_measure(size, Path(place), world, plan))
    parts = {kind: _best(kind, each, found.latency) for kind, each in turns.items()}
    machines = Machines.one(found.layout.stations, cores())

    def observed(kind: str, documents: Sequence[int]) -> Observed:
        some = np.array(documents)
        apart = _ALONE * np.arange(len(some), dtype=np.float64)
        began = apart if kind.startswith(_HOW[0]) else found.began[some] - found.began[some].min()
        traffic = Traffic(
            began, np.arange(len(some)), np.zeros(len(some)), np.ascontiguousarray(found.sizes[some])
        )
        scene = Scene(found.layout, machines, one_place(), traffic, Costs())
        return Observed(scene, found.latency[some])

    alone = np.array(turns[f"{_HOW[0]}: calibrating"])
    given = (found.sizes[alone[0]][:, found.layout.fed] >= 0).sum()
    select, join = _evaluating(world, found.placed)
    first = Costs(
        match=0.0, compute=float(found.computing[alone].min(axis=0).sum() / given), select=select, join=join
    )
    known = {name: observed(name, documents) for name, documents in parts.items()}
    costs = calibrate([part for name, part in known.items() if name.endswith("calibrating")], first)
    section = (
        f"The simulator against a real network of {size.real.sites} sites and {size.real.views} views, "
        "on one machine"
    )
    results = []
    for name, part in known.items():
        checked = name.endswith("checking")
        seen = ~np.isnan(part.latency)
        told = predicted(part, costs)[seen]
        results += [
            Result(f"{name}: mean latency, simulated", 1e3 * float(told.mean()), "ms",
                   1e3 * float(part.latency[seen].mean()), "real", section=section),
            Result(f"{name}: error of the mean", 100 * abs(error(part, costs)), "%",
                   goal=15 if checked and full else None, section=section),
        ]  # fmt: skip
    least, most = hops_of(found.layout)
    there = found.hops > 0
    wrong = int(((found.hops < least) | (found.hops > most))[there].sum())
    results += [
        Result(
            "views on another level than their site tells", found.levels_told, "", goal=0, section=section
        ),
        Result("results that came by another number of hops", wrong, "", goal=0, section=section),
        Result("of so many", int(there.sum()), "", section=section),
    ]
    costing = "What things cost, in ms"
    for name in ("compute", "batch", "take", "select", "join", "keep", "send"):
        for column, each in (("measured there", costs), ("in what follows", Costs())):
            results.append(Result(name, 1e3 * getattr(each, name), "", section=costing, column=column))
    return results


async def _measure(
    size: Size, place: Path, world: World, plan: Dissemination
) -> tuple[_Measured, dict[str, list[list[int]]]]:
    """Publish documents one by one and many at once, again and again; returns their numbers, by turn."""
    rng = random.Random(SEED)
    kinds = [f"{how}: {what}" for how in _HOW for what in ("calibrating", "checking")]
    parts: dict[str, list[list[int]]] = {kind: [] for kind in kinds}
    taken = iter(world.documents[_WARM:])
    documents = {
        kind: list(itertools.islice(taken, size.pairs if kind.startswith(_HOW[0]) else size.burst))
        for kind in kinds
    }
    async with _Network(place, world, plan, size.real.sites) as network:
        await network.deployment.deploy()
        await network.publish(world.documents[:_WARM])
        await network.deployment.wait(network.published, 300)
        await asyncio.sleep(1.0)
        for _ in range(size.turns):
            for kind in rng.sample(kinds, len(kinds)):
                some = documents[kind]
                parts[kind].append(list(range(network.published, network.published + len(some))))
                for each in [[one] for one in some] if kind.startswith(_HOW[0]) else [some]:
                    await network.publish(each)
                    # Asking sites how far they are would be work beside that which is measured.
                    await asyncio.sleep(size.apart * (1 if len(each) == 1 else 3) * rng.uniform(0.8, 1.2))
                await network.deployment.wait(network.published, 300)
        return await _read(network, plan), parts


def _best(kind: str, turns: Sequence[Sequence[int]], latency: Floats) -> list[int]:
    """Take of documents that were published several times those that the rest of the machine disturbed least.

    Documents that were published at once are taken together.
    """
    means = np.array([[np.nanmean(latency[each]) for each in turn] for turn in turns])
    if kind.startswith(_HOW[0]):
        return [int(np.array(turns)[means[:, place].argmin(), place]) for place in range(means.shape[1])]
    return list(turns[int(means.mean(axis=1).argmin())])


async def _read(network: _Network, plan: Dissemination) -> _Measured:
    """Read from all sites what came when."""
    placed = plan.placed()
    layout, _ = layout_of_placed(placed)
    numbers = {view.id: number for number, view in enumerate(placed)}
    shape = network.published, len(placed)
    sizes = np.full(shape, NOTHING, np.float32)
    latency, hops = np.full(shape, np.nan), np.zeros(shape, np.int64)
    began, computing = np.zeros(shape[0]), np.zeros(shape[0])
    for name, site in network.local.neighbours().items():
        async with AsyncClient(site.address, key=site.key) as client:
            after: str | None = "0"
            while after is not None:
                page: _Page = await client.send(Ask("GET", f"/v1/events?after={after}&limit=1000", _Page))
                after = page.next
                for item in page.items:
                    if item.event.type != RESULT:
                        continue
                    data = msgspec.json.decode(item.event.data, type=_Data)
                    document, view = data.document - 1, numbers[data.view]
                    if name == SOURCE:
                        began[document] = 1e-6 * data.began
                        computing[document] = 1e-6 * data.path[0][1]
                    else:
                        sizes[document, view] = len(bytes(data.result))
                        latency[document, view] = 1e-6 * (data.path[-1][1] - data.path[0][1])
                        hops[document, view] = len(data.path) - 1
    told = {
        view.id: view.level
        for name, status in (await network.status()).items()
        if name != SOURCE
        for view in status.views
    }
    wrong = sum(
        told[view.id] != level for view, level in zip(placed, levels_of(layout).tolist(), strict=True)
    )
    return _Measured(placed, layout, sizes, latency, began, computing, hops, wrong)


def _evaluating(world: World, placed: Sequence[PlacedView]) -> tuple[float, float]:
    """Measure what it takes to compute a view from one other, and from several: CPU seconds."""
    views = views_of(world.subscriptions)
    numbers = {each.id: number for number, each in enumerate(world.subscriptions)}
    spent, counts = [0.0, 0.0], [0, 0]
    for view in placed:
        inputs = [numbers[each] for each in view.inputs]
        if not inputs:
            continue
        rewriting = views.rewriting(numbers[view.id], inputs)
        for document in world.documents[:3]:
            results = [views.result(each, document) for each in inputs]
            if any(views.pack(each) is None for each in results):
                continue
            begun = time.thread_time()
            views.pack(rewriting.run(results))
            spent[len(inputs) > 1] += time.thread_time() - begun
            counts[len(inputs) > 1] += 1
    select = spent[0] / max(1, counts[0])
    return select, spent[1] / counts[1] if counts[1] else select


# The paper's network


class _Planned(NamedTuple):
    bound: float
    saved: SavedPlan
    sizes: NDArray[np.float32]
    document_bytes: Floats

    def scene(self, costs: Costs, documents: int, *, after: bool) -> Scene:
        """Put the plan on sites in nine cities, one document after another."""
        saved = self.saved
        places = np.arange(len(saved.ids)) % SITES
        plan = saved.plan if after else saved.before
        layout = layout_of_plan(plan, saved.rewritings, places, SITES)
        links = nine_cities()
        traffic = Traffic.of(self.sizes, self.document_bytes, documents, _ALONE)
        return Scene(layout, Machines.own(spread(SITES + 1, links)), links, traffic, costs)


def section_5_5(size: Size, workload: XMark, source: float | None, costs: Costs) -> list[Result]:
    """Simulate the paper's network before and after LOGA, by our costs and by such as meet its mean once."""
    planned = plans_of(workload, size.views, size.kinds, size.bounds, source)
    measured = {
        (each.bound, after): figures_of(each.scene(costs, size.documents, after=after))
        for each in planned
        for after in (False, True)
    }
    slow = slowed_to(planned[0].scene(costs, size.kinds, after=False), _PAPER, _LEAST)
    slower = {
        (each.bound, after): figures_of(each.scene(slow, size.documents, after=after))
        for each in planned
        for after in (False, True)
    }
    where = f"{size.views:,} views on {SITES} sites in nine cities"
    results = [
        Result("views that the source feeds", float((each.saved.plan.chosen < 0).sum()), "",
               section=f"{where}: plans", column=_named(each.bound, after=True))
        for each in planned
    ]  # fmt: skip
    results += _figure_7(f"Figure 7, {where}: views per level", measured)
    results += _figures_8_9(f"Figures 8 and 9, {where}, by the measured costs, in ms", measured, 1e3)
    factor = slow.take / costs.take
    results += _figures_8_9(
        f"Figures 8 and 9, {where}, costs that meet the paper's mean and least for B = 5, in s",
        slower,
        1.0,
    )
    section = (
        f"Told by the paper, and simulated: a message costs {factor:.3g} times what was measured, a batch "
        f"{slow.batch / costs.batch:.3g} times"
    )
    return results + _beside_the_paper(section, slower)


def plans_of(
    workload: XMark, views: int, kinds: int, bounds: Sequence[float], source: float | None
) -> list[_Planned]:
    """Plan for some bounds, as the paper does: LOGA may use 1.5 times what the program had to keep."""
    patterns = workload.views(views, SEED)
    texts = workload.documents(np.arange(kinds), SEED)
    rows, sizes = sizes_of(patterns, texts)
    given = np.where(sizes < 0, 0, sizes)
    found = averages(rows.sum(axis=0), given.sum(axis=0).astype(np.int64), kinds)
    laid = XmlViews.build(patterns)
    ids = Ids.of(f"view-{number:07}" for number in range(views))
    asked = PlanInput(ids, TextPool.build([""] * views), found.rows, found.bytes)
    planned = []
    ways = find_ways(laid, found.bytes, Settings())
    for bound in bounds:
        settings = Settings(
            fan_out=bound, source_fan_out=source, relax=_WIDER, swaps=False, time_limit=60.0, gap=0.01
        )
        begun = time.perf_counter()
        made = make_plan(laid, asked, settings, ways=lambda: ways).saved
        say(f"{_bound(bound)}: planned in {time.perf_counter() - begun:.0f} s")
        planned.append(_Planned(bound, made, sizes, np.array([float(len(text)) for text in texts])))
    return planned


def sizes_of(
    patterns: Sequence[Pattern], texts: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Count the rows and bytes that views give for documents, by document and view."""
    places: dict[Pattern, int] = {}
    of = np.array([places.setdefault(pattern, len(places)) for pattern in patterns], np.int64)
    rows = np.zeros((len(texts), len(places)), np.int64)
    sizes = np.full((len(texts), len(places)), NOTHING, np.float32)
    documents = [read_document(text) for text in texts]
    for pattern, number in places.items():
        prepared = PreparedPattern(pattern)
        for kind, document in enumerate(documents):
            given = prepared.ask(Subject(document))
            if given is not None:
                rows[kind, number], sizes[kind, number] = given.rows(), given.nbytes
    return rows[:, of], np.ascontiguousarray(sizes[:, of])


_Runs = dict[tuple[float, bool], "Figures"]


def _figure_7(section: str, runs: _Runs) -> list[Result]:
    return [
        Result(f"level {level}", float(count), "", section=section, column=_named(bound, after=after))
        for (bound, after), each in runs.items()
        for level, count in enumerate(each.per_level.tolist(), 1)
    ]


def _figures_8_9(section: str, runs: _Runs, unit: float) -> list[Result]:
    found = []
    for (bound, after), each in runs.items():
        rows = {
            "levels": float(len(each.per_level)),
            "latency, mean": unit * each.latency.mean,
            "latency, least": unit * each.latency.least,
            "latency, most": unit * each.latency.most,
            "delivery of a document, mean": unit * each.delivery.mean,
            "delivery of a document, least": unit * each.delivery.least,
            "delivery of a document, most": unit * each.delivery.most,
        }
        found += [
            Result(name, value, "", section=section, column=_named(bound, after=after))
            for name, value in rows.items()
        ]
    return found


def _beside_the_paper(section: str, runs: _Runs) -> list[Result]:
    least, widest = min(bound for bound, _ in runs), max(bound for bound, _ in runs)
    before, free = runs[least, False], runs[widest, False]
    less = [
        100 * (1 - runs[bound, True].latency.mean / runs[bound, False].latency.mean)
        for bound in sorted({bound for bound, _ in runs})
    ]
    means = [each.latency.mean for each in runs.values()]
    told = [
        ("latency for B = 5, mean, s (set)", before.latency.mean, 1.6),
        ("latency for B = 5, least, s (set)", before.latency.least, 0.03),
        ("latency for B = 5, most, s", before.latency.most, 3.7),
        ("latency without a bound, most, s", free.latency.most, 4.7),
        ("levels without a bound", float(len(free.per_level)), 13.0),
        ("mean of all plans, s", float(np.mean(means)), 1.6),
        ("latency less after LOGA, at most, %", max(less), 20.0),
        ("latency less after LOGA for B = 5, %", less[0], 20.0),
        ("a document is with everybody, mean for B = 5, s", before.delivery.mean, 2.25),
        ("levels after LOGA for B = 5, % of those before",
         100 * len(runs[least, True].per_level) / len(before.per_level), 50.0),
    ]  # fmt: skip
    return [
        Result(name, value, "", section=section, column=column)
        for name, ours, theirs in told
        for column, value in (("simulated", ours), ("the paper", theirs))
    ]


def _bound(bound: float) -> str:
    return "no bound" if math.isinf(bound) else f"B = {bound:g}"


def _named(bound: float, *, after: bool) -> str:
    return f"{_bound(bound)}, {'after' if after else 'before'}"


# More views


def at_scale(size: Size, costs: Costs, *, full: bool) -> list[Result]:
    """Simulate a large network, and see what that takes."""
    views, kinds, documents = size.scale
    (planned,) = plans_of(XMark(), views, kinds, (30.0,), None)
    scene = planned.scene(costs, documents, after=True)
    begun = time.process_time()
    found = totals(scene)
    spent = time.process_time() - begun
    section = f"{views:,} views on {SITES} sites, {documents:,} documents simulated"
    return [
        Result("CPU of the simulation", spent, "s", goal=120 if full else None, section=section),
        Result("results", float(found.sums.view_count.sum()), "", section=section),
        Result("messages", found.messages, "", section=section),
        Result("CPU of a message", 1e9 * spent / max(1, found.messages), "ns", section=section),
        Result("mean latency", 1e3 * found.sums.mean, "ms", section=section),
        Result(
            "views that the source feeds", float((planned.saved.plan.chosen < 0).sum()), "", section=section
        ),
    ]
