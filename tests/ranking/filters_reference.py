"""The obvious slow answers about filters of any content: the definition of right.

Every filter and every clause is asked alone, as the only one of an index of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.core.ranks import Best, read_factors
from headgate.core.subscription import Subscription
from headgate.ranking.filters.clauses import weigh

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headgate.contents.protocol import ContentRoom
    from headgate.core.event import Event


def holds(room: ContentRoom, text: str, dialect: str, event: Event) -> bool:
    """Tell whether one filter holds for an event."""
    return bool(room.build([Subscription(0, text, dialect)]).match(event))


def exact(subscriptions: Iterable[Subscription], event: Event, k: int, *, room: ContentRoom) -> list[Best]:
    """List the best k of the subscriptions that match, by score."""
    found = [
        Best(each.id, float(each.score))
        for each in subscriptions
        if holds(room, each.filter, each.dialect, event)
    ]
    return in_order(found)[:k]


def relaxed(
    subscriptions: Iterable[Subscription],
    event: Event,
    k: int,
    *,
    room: ContentRoom,
    factors: Mapping[str, float] | None = None,
) -> list[Best]:
    """List the best k of the subscriptions of which any clause holds, by the sum of the weights of those."""
    read = read_factors(factors)
    found = []
    for each in subscriptions:
        clauses = room.clauses(each.filter, each.dialect)
        value, any_holds = 0.0, False
        for clause, weight in zip(clauses, weigh(clauses, each.weights, repr(each.id)), strict=True):
            factor = 1.0
            for name in clause.names:
                factor *= read.get(name, 1.0)
            if factor > 0 and holds(room, clause.filter, room.dialect, event):
                value += weight * factor
                any_holds = True
        if any_holds:
            found.append(Best(each.id, value))
    return in_order(found)[:k]


def in_order(found: Iterable[Best]) -> list[Best]:
    """Sort by falling value, equal ones by id."""
    return sorted(found, key=lambda best: (-best.value, best.subscription))
