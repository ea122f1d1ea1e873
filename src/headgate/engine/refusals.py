"""Subscriptions that are refused: which it was, and the rest without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.core.arguments import check_id
from headgate.errors import FilterError, GraphError, HeadgateError, SubscriptionError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headgate.core.event import Id
    from headgate.core.subscription import Subscription
    from headgate.engine.backend import Backend

RAISE, COLLECT = WAYS = ("raise", "collect")
"""What is done about a subscription that is refused: nothing goes on, or the others do."""


class RefusedSubscription(NamedTuple):
    """A subscription that was refused: its row, counted from 0, its id if it has one, and why."""

    row: int
    id: Id | None
    reason: str


def check_way(on_error: object) -> bool:
    """Refuse a way that there is not; tells whether refusals are collected."""
    if on_error not in WAYS:
        raise SubscriptionError(f"on_error is {on_error!r}: give {' or '.join(map(repr, WAYS))}")
    return on_error == COLLECT


def named(error: HeadgateError, identity: object) -> HeadgateError:
    """Say of which subscription an error is, if it does not say so.

    >>> print(named(FilterError("a subquery is not part of the filter language", "a IN (SELECT 1)", 6), "s7"))
    subscription 's7': a subquery is not part of the filter language, at character 7: a IN (⟪SELECT 1)
    """
    if error.names_it:
        return error
    what = f"subscription {identity!r}"
    found: HeadgateError
    if isinstance(error, FilterError):
        # The place is part of the text already.
        found = FilterError(f"{what}: {error}", "", None)
        found.position = error.position
    else:
        found = type(error)(f"{what}: {error}")
    found.names_it = True
    return found


def add(backend: Backend, subscription: Subscription) -> None:
    """Subscribe one; refuses a node where there is no graph, and tells of all that is refused whose it is."""
    try:
        check_node(subscription, routed=backend.routed)
        backend.subscribe(subscription)
    except HeadgateError as error:
        raise named(error, subscription.id) from error


def check_node(subscription: Subscription, *, routed: bool) -> None:
    """Refuse a node that is none, or where there is no graph."""
    node = subscription.node
    if node is not None and (isinstance(node, bool) or not isinstance(node, str | int)):
        raise GraphError(
            f"subscription {subscription.id!r}: node {node!r} is not usable: give text or a whole number"
        )
    if node is not None and not routed:
        raise GraphError(
            f"subscription {subscription.id!r} is attached to node {node!r}, and there is no graph: "
            "give nodes, or leave `node` out"
        )


def ids_checked(
    rows: Sequence[Subscription | RefusedSubscription],
) -> tuple[dict[Any, tuple[int, Subscription]], list[RefusedSubscription]]:
    """Return the subscriptions whose ids can be together, with their rows, and all that are refused."""
    taken: dict[Any, tuple[int, Subscription]] = {}
    refused: list[RefusedSubscription] = []
    for row, each in enumerate(rows):
        if isinstance(each, RefusedSubscription):
            refused.append(each)
            continue
        try:
            _check_beside(each.id, taken)
        except HeadgateError as error:
            refused.append(RefusedSubscription(row, each.id, str(error)))
        else:
            taken[each.id] = row, each
    return taken, refused


def _check_beside(identity: Any, taken: Mapping[Any, object]) -> None:
    check_id(identity)
    if identity in taken:
        raise SubscriptionError(f"id {identity!r} is given twice: the first one is taken")
    other = next(iter(taken), identity)
    if isinstance(other, int) is not isinstance(identity, int):
        wanted = "whole numbers" if isinstance(other, int) else "text"
        raise SubscriptionError(f"id {identity!r} has the wrong type: ids here are {wanted}")
