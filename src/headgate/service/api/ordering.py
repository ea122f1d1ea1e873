"""Subscriptions in other orders than that of their ids: by age, and by how often they matched."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from headgate.service.problems import NotFound, Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.service.api.subscriptions import SubscriptionQuery
    from headgate.service.storage.subscriptions import Stored
    from headgate.service.tenant.tenant import Tenant

_CURSOR = re.compile(r"(-?\d{1,18}):(\d{1,18})")
"""What a page ended with: the value it is sorted by, and the number. Counts rise while pages are read."""


def ordered(tenant: Tenant, query: SubscriptionQuery) -> tuple[list[Stored], str | None]:
    """List some subscriptions in an order, and say after what the next page begins."""
    numbers = _wanted(tenant, query)
    if query.sort == "id":
        return _by_id(tenant, query, numbers)
    values = _values(tenant, query, numbers)
    if query.after:
        after = _CURSOR.fullmatch(query.after)
        if after is None:
            raise Problem(f"after is {query.after!r}: give what `next` was in the part before", 400)
        value, number = int(after[1]), int(after[2])
        rest = (values > value) | ((values == value) & (numbers > number))
        numbers, values = numbers[rest], values[rest]
    most = query.most()
    order = np.lexsort((numbers, values))
    found: list[Stored] = []
    last = ""
    for place in order.tolist():
        if len(found) == most:
            return found, last
        # One that has just gone is passed over.
        stored = tenant.store.subscriptions.by_number(int(numbers[place]))
        if stored is not None:
            found.append(stored)
            last = f"{values[place]}:{numbers[place]}"
    return found, None


def _by_id(
    tenant: Tenant, query: SubscriptionQuery, numbers: NDArray[np.int64]
) -> tuple[list[Stored], str | None]:
    ids = sorted(each for each in tenant.names.ids_of(numbers.tolist()) if each > query.after)
    most = query.most()
    found = [tenant.store.subscriptions.get(each) for each in ids[:most]]
    return [each for each in found if each is not None], ids[most - 1] if len(ids) > most else None


def _wanted(tenant: Tenant, query: SubscriptionQuery) -> NDArray[np.int64]:
    names = tenant.names
    if query.consumer is not None and query.consumer not in names.consumers:
        raise NotFound(f"there is no consumer {query.consumer!r}")
    numbers = names.present(None if query.consumer is None else names.consumers[query.consumer])
    if query.search is not None:
        numbers = np.intersect1d(numbers, np.array(tenant.store.subscriptions.found(query.search), np.int64))
    if query.matched is not None:
        counts, events = tenant.counts.counts(numbers), tenant.counters.events
        numbers = numbers[counts == 0 if query.matched == "never" else (counts >= events) & (counts > 0)]
    return numbers


def _values(tenant: Tenant, query: SubscriptionQuery, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what each is sorted by, the smallest first."""
    if query.sort == "most":
        return -tenant.counts.counts(numbers)
    if query.sort == "least":
        return tenant.counts.counts(numbers)
    # Numbers are given one after another.
    return -numbers
