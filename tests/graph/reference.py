"""The obvious slow answer: the definition of right."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from headgate.graph.model import fixed_score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.graph.model import Edge, Node

    Holds = Callable[[str, str], bool]
    """Tell whether a filter, given as text and dialect, holds for the event."""


def reach_nodes(nodes: Iterable[Node], edges: Iterable[Edge], source: Id, holds: Holds) -> set[Id]:
    """Find the nodes that are valid and that a path of valid nodes and edges leads to from the source.

    The source's own filter does not count; the source is in the answer only if a valid path leads back to it.
    """
    by_id = {node.id: node for node in nodes}
    leaving: dict[Id, list[Edge]] = {}
    for edge in edges:
        leaving.setdefault(edge.source, []).append(edge)
    found: set[Id] = set()
    frontier = [source]
    while frontier:
        for edge in leaving.get(frontier.pop(), []):
            target = by_id[edge.target]
            if target.id not in found and passes(edge, holds) and passes(target, holds):
                found.add(target.id)
                frontier.append(target.id)
    return found


def reach_subscriptions(
    nodes: Iterable[Node],
    edges: Iterable[Edge],
    subscriptions: Iterable[Subscription],
    source: Id,
    holds: Holds,
) -> set[Id]:
    """Find the subscriptions that are served: by a node that is reached, or hanging at one and holding.

    One that hangs at the source itself is served as well: the source is where the event is.
    """
    nodes = list(nodes)
    by_id = {each.id: each for each in subscriptions}
    reached = reach_nodes(nodes, edges, source, holds)
    return set(_served(nodes, by_id, reached, source, holds))


def _served(
    nodes: list[Node], subscriptions: dict[Id, Subscription], reached: set[Id], source: Id, holds: Holds
) -> Iterator[Id]:
    at = reached | {source}
    for each in subscriptions.values():
        if each.node in at and holds(each.filter, each.dialect):
            yield each.id
    for node in nodes:
        if node.subscription is None:
            continue
        named = subscriptions.get(node.subscription)
        if named is None and node.id in reached:
            yield node.subscription
        elif named is not None and node.id in at and holds(named.filter, named.dialect):
            yield named.id


def best_paths(
    nodes: Iterable[Node],
    edges: Iterable[Edge],
    subscriptions: Iterable[Subscription],
    source: Id,
    holds: Holds,
    k: int,
    *,
    times: float | None = None,
    hops: bool = False,
) -> list[tuple[Id, float, float, float]]:
    """List the k subscriptions of highest value, equal ones by id: each with value, score and cost.

    The value is the score less the cost of the cheapest valid path, or times a power of `times`.
    """
    nodes = list(nodes)
    by_id = {each.id: each for each in subscriptions}
    reached = path_costs(nodes, edges, source, holds, hops=hops)
    # What hangs at the source costs nothing; what the source itself serves costs the way back to it.
    at = {**reached, source: 0.0}
    cost: dict[Id, float] = {}
    score = {each.id: fixed_score(each.score, each.id) for each in by_id.values()}
    for node in nodes:
        if node.subscription is not None and node.subscription not in by_id:
            score[node.subscription] = max(node.score, score.get(node.subscription, node.score))
            if node.id in reached:
                cost[node.subscription] = min(reached[node.id], cost.get(node.subscription, math.inf))
    for each in by_id.values():
        places = [each.node, *(node.id for node in nodes if node.subscription == each.id)]
        costs = [at[place] for place in places if place in at]
        if costs and holds(each.filter, each.dialect):
            cost[each.id] = min(costs)
    found = [(each, worth(score[each], cost[each], times), score[each], cost[each]) for each in cost]
    return sorted(found, key=lambda row: (-row[1], row[0]))[:k]


def path_costs(
    nodes: Iterable[Node], edges: Iterable[Edge], source: Id, holds: Holds, *, hops: bool = False
) -> dict[Id, float]:
    """Find the cost of the cheapest valid path to every node that has one: its edges, and the nodes passed.

    The source does not count as passed, the last node does; in hops every edge costs 1 and nodes nothing.
    """
    by_id = {node.id: node for node in nodes}
    whole = [edge for edge in edges if passes(edge, holds) and passes(by_id[edge.target], holds)]
    cost: dict[Id, float] = {}
    changed = True
    while changed:
        changed = False
        for edge in whole:
            so_far = 0.0 if edge.source == source else cost.get(edge.source, math.inf)
            reached = so_far + 1.0 if hops else so_far + edge.cost + by_id[edge.target].cost
            if reached < cost.get(edge.target, math.inf):
                cost[edge.target] = reached
                changed = True
    return cost


def worth(score: float, cost: float, times: float | None) -> float:
    """Return the value of a score at a cost; a score below zero is divided, so that it falls as well."""
    if times is None:
        return score - cost
    power: float = times**cost
    if score >= 0:
        return score * power
    return score / power if power else -math.inf


def passes(part: Node | Edge, holds: Holds) -> bool:
    """Tell whether a node or an edge lets the event through."""
    return part.filter is None or holds(part.filter, part.dialect)
