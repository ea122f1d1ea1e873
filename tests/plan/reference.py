"""The obvious slow answers, of graphs, plans and latency: the definition of right."""

from __future__ import annotations

import math
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from headgate.plan.measures import measures
from headgate.plan.model import AT_VIEW, SOURCE, Costs, Embeddings, Plan
from headgate.plan.placement import PUBLISHER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from headgate.contents.views import Views
    from headgate.plan.costs import Settings
    from headgate.plan.model import Capacities, Rewritings
    from headgate.plan.placement import Placement


def embedding_graph(views: Views) -> Embeddings:
    """Ask about every pair of views."""
    offsets, sources, masks = [0], [np.empty(0, np.int32)], [np.empty(0, np.uint64)]
    everybody = np.arange(len(views), dtype=np.int32)
    needed = views.needed
    for target in everybody:
        embeds, covered = views.coverage(everybody, np.full(len(views), target, np.int32))
        kept = embeds & (everybody != target) & (needed != 0) & (needed[target] != 0)
        sources.append(everybody[kept])
        masks.append(covered[kept])
        offsets.append(offsets[-1] + int(kept.sum()))
    return Embeddings(np.array(offsets), np.concatenate(sources), np.concatenate(masks))


Trie: TypeAlias = "dict[int, Trie]"
_END = -1


def make_trie(sets: Iterable[tuple[int, Sequence[int]]]) -> Trie:
    """Make the paper's trie of numbered label sets; labels rise from the root on."""
    root: Trie = {}
    for number, labels in sets:
        at = root
        for label in labels:
            at = at.setdefault(label, {})
        at.setdefault(_END, {})[number] = {}
    return root


def subsets(trie: Trie, labels: Sequence[int]) -> Iterator[int]:
    """Find the sets in a trie whose labels are among some rising labels.

    >>> sorted(subsets(make_trie(enumerate([(1, 2), (2, 3), (), (3,)])), (1, 2, 4)))
    [0, 2]
    """
    yield from trie.get(_END, ())
    for place, label in enumerate(labels):
        if label in trie:
            yield from subsets(trie[label], labels[place + 1 :])


def minimal_covers(
    needed: int, row: Sequence[tuple[int, int]], most_inputs: int | None = None
) -> set[tuple[int, ...]]:
    """Find all sets of sources that together cover what is needed, none of which can be left out.

    `row` is pairs of a source and its mask. By trying all sets, small ones first.

    >>> sorted(minimal_covers(0b111, [(4, 0b110), (5, 0b011), (6, 0b111), (7, 0b001)]))
    [(4, 5), (4, 7), (6,)]
    """
    found: set[tuple[int, ...]] = set()
    for size in range(1, min(len(row), most_inputs or len(row)) + 1):
        for some in combinations(row, size):
            chosen = tuple(sorted(source for source, _ in some))
            covered = 0
            for _, mask in some:
                covered |= mask
            if needed & ~covered == 0 and not any(set(each) < set(chosen) for each in found):
                found.add(chosen)
    return found


def fewest_removed(vertices: int, edges: Sequence[tuple[int, int]]) -> int:
    """Count the edges that must be removed, at least, to leave no cycle: over all sets of vertices.

    The best order of a set of vertices ends with one of them, which has behind it whatever it leads to.

    >>> fewest_removed(3, [(0, 1), (1, 2), (2, 0), (0, 2)])
    1
    """
    leads = [0] * vertices
    for source, target in edges:
        leads[source] |= 1 << target
    best = [0] + [len(edges)] * ((1 << vertices) - 1)
    for some in range(1, 1 << vertices):
        for last in range(vertices):
            if some >> last & 1:
                before = some & ~(1 << last)
                best[some] = min(best[some], best[before] + (leads[last] & before).bit_count())
    return best[-1]


def inputs_of(rewriting: int, rewritings: Rewritings) -> list[int]:
    """List the inputs of a rewriting."""
    first, end = rewritings.input_offsets[rewriting : rewriting + 2].tolist()
    return [int(view) for view in rewritings.inputs[first:end]]


def costs_by_the_letter(
    rewritings: Rewritings,
    rows: Sequence[float],
    sizes: Sequence[float],
    settings: Settings,
    placement: Placement,
) -> Costs:
    """Compute what rewritings cost, one by one, for views at sites with links between them."""

    def link(origin: int, target: int) -> tuple[float, float]:
        listed = placement.links or ()
        for begin, end, delay, speed in zip(*listed, strict=True) if listed else ():
            if (begin, end) == (origin, target):
                return float(delay), float(speed)
        return settings.hop, settings.link

    def weight(site: int) -> float:
        return 1.0 if placement.weights is None else float(placement.weights[site])

    def joined(host: int, inputs: Sequence[int], work: float) -> tuple[float, float, list[float]]:
        """Return utilization, latency and bytes sent if a join runs at a site."""
        taken, slowest, bytes_sent = weight(host) * work, 0.0, []
        for each in inputs:
            site = int(placement.sites[each])
            size = 0.0 if site == host else sizes[each]
            bytes_sent.append(size)
            taken += weight(site) * (settings.byte + settings.sending) * size
            if site != host:
                delay, speed = link(site, host)
                slowest = max(slowest, delay + size / speed)
        return taken, slowest + work / settings.speed, bytes_sent

    utilization, latency, joining = [], [], []
    sent: list[float] = []
    sending: list[float] = []
    hosts: list[int] = []
    by_source: list[tuple[float, float, float, float, float]] = []
    for view in range(len(rewritings.offsets) - 1):
        own = int(placement.sites[view])
        for number in range(rewritings.offsets[view], rewritings.offsets[view + 1]):
            inputs = inputs_of(number, rewritings)
            work = settings.joining * (sum(rows[each] for each in inputs) + rows[view])
            sites = [int(placement.sites[each]) for each in inputs]
            taken, waited, bytes_sent = joined(own, inputs, work)
            most = taken
            least, place = waited, AT_VIEW
            if placement.links is not None and len(inputs) > 1 and own not in sites:
                for number_of, site in enumerate(sites):
                    there, first, some = joined(site, inputs, work)
                    delay, speed = link(site, own)
                    there += weight(site) * (settings.byte + settings.sending) * sizes[view]
                    time = first + delay + sizes[view] / speed
                    if time < least and there <= most:
                        taken, least, place, bytes_sent = there, time, number_of, some
            if place != AT_VIEW:
                bytes_sent[place] = sizes[view]
            sent += bytes_sent
            sending += [
                settings.sending * size + (work if slot == place else 0.0)
                for slot, size in enumerate(bytes_sent)
            ]
            utilization.append(taken)
            latency.append(least)
            joining.append(work if place == AT_VIEW else 0.0)
            hosts.append(place)
        delay, speed = link(PUBLISHER, own)
        work = settings.extracting + settings.sending * sizes[view]
        by_source.append(
            (settings.byte * sizes[view] + work, delay + sizes[view] / speed, sizes[view], work, 0.0)
        )
    lists = (utilization, latency, sent, sending, joining, *zip(*by_source, strict=True))
    found = Costs(*(np.array(numbers, dtype=np.float64) for numbers in lists))
    return found if placement.links is None else found._replace(hosts=np.array(hosts, np.int32))


def level_of(view: int, chosen: list[int], rewritings: Rewritings) -> int:
    """Count hops from the source."""
    if chosen[view] == SOURCE:
        return 1
    return 1 + max(level_of(each, chosen, rewritings) for each in inputs_of(chosen[view], rewritings))


def latency_of(view: int, chosen: list[int], rewritings: Rewritings, costs: Costs) -> float:
    """Add the rewriting's own latency to that of the slowest input."""
    if chosen[view] == SOURCE:
        return float(costs.source_latency[view])
    slowest = max(latency_of(each, chosen, rewritings, costs) for each in inputs_of(chosen[view], rewritings))
    return slowest + float(costs.latency[chosen[view]])


def mixed_cost_of(
    chosen: list[int], rewritings: Rewritings, costs: Costs, alpha: float, beta: float
) -> float:
    """Weigh utilization and latency of a plan."""
    taken = [
        float(costs.source_utilization[view] if number == SOURCE else costs.utilization[number])
        for view, number in enumerate(chosen)
    ]
    waited = [latency_of(view, chosen, rewritings, costs) for view in range(len(chosen))]
    return alpha * math.fsum(taken) + beta * math.fsum(waited)


def mixed_cost(plan: Plan, rewritings: Rewritings, costs: Costs, alpha: float, beta: float) -> float:
    """Weigh what is measured of a plan."""
    return measures(plan, rewritings, costs).cost(alpha, beta)


def reachable(chosen: list[int], rewritings: Rewritings) -> list[set[int]]:
    """Find for each view all that it feeds, directly or through others."""
    above: list[set[int]] = []

    def climb(view: int, found: set[int]) -> set[int]:
        if chosen[view] != SOURCE:
            for each in inputs_of(chosen[view], rewritings):
                if each not in found:
                    found.add(each)
                    climb(each, found)
        return found

    above = [climb(view, set()) for view in range(len(chosen))]
    return [{fed for fed, over in enumerate(above) if view in over} for view in range(len(chosen))]


def within(chosen: list[int], rewritings: Rewritings, costs: Costs, capacities: Capacities) -> bool:
    """Tell whether no site has to bear more than it can; a feed within a site is not sent."""
    fan_out = np.zeros(len(capacities.fan_out))
    bandwidth = np.zeros(len(capacities.fan_out))
    cpu = np.zeros(len(capacities.fan_out))
    for view, number in enumerate(chosen):
        own = capacities.sites[view]
        cpu[own] += costs.source_joining[view] if number == SOURCE else costs.joining[number]
        if number == SOURCE:
            continue
        for place in range(rewritings.input_offsets[number], rewritings.input_offsets[number + 1]):
            site = capacities.sites[rewritings.inputs[place]]
            if site == own:
                continue
            fan_out[site] += 1
            bandwidth[site] += costs.sent[place]
            cpu[site] += costs.sending[place]
    near = 1 + 1e-9
    return bool(
        (fan_out <= capacities.fan_out * near).all()
        and (bandwidth <= capacities.bandwidth * near).all()
        and (cpu <= capacities.cpu * near).all()
    )


def source_within(chosen: list[int], costs: Costs, capacities: Capacities) -> bool:
    """Tell whether the source has to bear no more than it can."""
    direct = [view for view, number in enumerate(chosen) if number == SOURCE]
    near = 1 + 1e-9
    return (
        len(direct) <= capacities.source_fan_out * near
        and math.fsum(costs.source_sent[direct]) <= capacities.source_bandwidth * near
        and math.fsum(costs.source_sending[direct]) <= capacities.source_cpu * near
    )


def loga_by_the_letter(
    plan: Plan,
    rewritings: Rewritings,
    costs: Costs,
    capacities: Capacities,
    *,
    alpha: float = 0.0,
    beta: float = 1.0,
    to_source: bool = False,
) -> Plan:
    """Run Algorithm 2: every alternative is tried, and the whole configuration evaluated for it.

    Of equal alternatives the first is taken; of views with equal impact the lower number comes first. With
    `to_source`, feeding by the source is the last alternative of every view.
    """
    chosen = [int(number) for number in plan.chosen]

    def cost() -> float:
        return mixed_cost_of(chosen, rewritings, costs, alpha, beta)

    while True:
        before = cost()
        reach = reachable(chosen, rewritings)
        impact = [
            latency_of(view, chosen, rewritings, costs) * len(reach[view]) for view in range(len(chosen))
        ]
        listed = [view for view in range(len(chosen)) if to_source or chosen[view] != SOURCE]
        for view in sorted(listed, key=lambda view: (-impact[view], view)):
            current = chosen[view]
            least, best = cost(), None
            others = [*range(rewritings.offsets[view], rewritings.offsets[view + 1])]
            for other in [*others, SOURCE] if to_source else others:
                chosen[view] = other
                free = within(chosen, rewritings, costs, capacities)
                if free and source_within(chosen, costs, capacities) and cost() < least:
                    least, best = cost(), other
                chosen[view] = current
            if best is not None:
                chosen[view] = best
        if cost() == before:
            return Plan(np.array(chosen, dtype=np.int64))
