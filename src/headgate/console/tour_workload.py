"""What the tour begins with: campaigns of the advertising workload, a small exchange, and odd ones out.

    publishers ──► networks ──► exchanges ──► advertisers      events enter at the publisher of their page
    campaigns                                                  subscriptions at no node, over all events
    odd ones                                                   match everything, match nothing, are limited

Everything is made from row numbers and one seed, so that two tours are alike.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.service.resources import EdgeBody, Limit, Part, SubscriptionBody
from headgate.workloads.records import advertising
from headgate.workloads.records.advertising_filters import CATEGORIES

if TYPE_CHECKING:
    from collections.abc import Iterator

SEED = 1
LISTENING, PULLING, LAGGING, CALLED = "dashboard", "bidders", "archive", "partner-hook"
"""The consumers: one listens, one pulls and acknowledges, one never does, one has a closed webhook."""
_PUBLISHERS = ("pub-news", "pub-sport", "pub-video", "pub-shop", "pub-games", "pub-travel")
_ADVERTISED = CATEGORIES[:12]


class Network(NamedTuple):
    """A node between publishers and advertisers."""

    id: str
    filter: str | None
    targets: tuple[str, ...]


_EUROPE = "country IN ('GB', 'DE', 'FR', 'IT', 'ES', 'NL', 'PL', 'SE')"
_NETWORKS = (
    Network("net-europe", _EUROPE, ("exchange-open", "exchange-premium")),
    Network(
        "net-americas", "country IN ('US', 'BR', 'MX', 'CA', 'AR')", ("exchange-open", "exchange-premium")
    ),
    Network("net-mobile", "device = 'phone' AND connection != '3g'", ("exchange-open",)),
    Network("net-screens", "device IN ('tv', 'tablet')", ("exchange-premium",)),
    Network("net-members", "is_member = true", ("exchange-premium", "exchange-late")),
)
_EXCHANGES = (
    ("exchange-open", None),
    ("exchange-premium", "viewability >= 0.6 AND price_floor >= 0.3"),
    ("exchange-late", "hour >= 20 OR hour <= 5"),
)


def nodes() -> list[Part]:
    """List the nodes of the exchange."""
    found = [Part(id=name, kind="publisher") for name in _PUBLISHERS]
    found += [Part(id=each.id, filter=each.filter, kind="network") for each in _NETWORKS]
    found += [Part(id=name, filter=text, kind="exchange") for name, text in _EXCHANGES]
    return found + [
        Part(
            id=f"adv-{name}",
            filter=f"category = '{name}' OR array_contains(interests, '{name}')",
            kind="advertiser",
        )
        for name in _ADVERTISED
    ]


def edges() -> list[EdgeBody]:
    """List its edges; some have filters of their own."""
    found = []
    for place, source in enumerate(_PUBLISHERS):
        for step in range(3):
            network = _NETWORKS[(place + step) % len(_NETWORKS)]
            adult = None if step else "NOT array_contains(blocked_categories, 'gambling')"
            found.append(EdgeBody(source=source, target=network.id, filter=adult))
    found += [EdgeBody(source=each.id, target=target) for each in _NETWORKS for target in each.targets]
    for place, name in enumerate(_ADVERTISED):
        first, second = _EXCHANGES[place % 3][0], _EXCHANGES[(place + 1) % 3][0]
        found.append(EdgeBody(source=first, target=f"adv-{name}"))
        found.append(EdgeBody(source=second, target=f"adv-{name}", filter="price_floor < 2.5"))
    return found


def subscriptions(campaigns: int) -> list[SubscriptionBody]:
    """List all subscriptions."""
    rows = advertising.subscriptions(np.arange(campaigns), SEED)
    ids, filters = rows.column(0).to_pylist(), rows.column(1).to_pylist()
    found = []
    for place, (name, text) in enumerate(zip(ids, filters, strict=True)):
        # Some bids depend on the event: more for places that are seen.
        score: float | str = round(0.1 + 4.9 * ((place * 7_919) % 1_000) / 1_000, 2)
        if place % 20 == 0:
            score = f"{score} * viewability"
        consumer = (LISTENING, LISTENING, PULLING, LAGGING)[place % 4]
        found.append(SubscriptionBody(id=str(name), filter=str(text), score=score, consumer=consumer))
    return [*found, *_at_nodes(), *_odd()]


def _at_nodes() -> Iterator[SubscriptionBody]:
    wishes = ("age BETWEEN 25 AND 44", "income >= 30000", "device = 'phone'", "user.score > 0.5")
    for name in _ADVERTISED:
        for place, wish in enumerate(wishes):
            yield SubscriptionBody(
                id=f"{name}-{place + 1}", filter=wish, node=f"adv-{name}", score=1.0 + place, consumer=PULLING
            )
    for exchange, _ in _EXCHANGES:
        yield SubscriptionBody(
            id=f"audit-{exchange}", filter="price_floor >= 1", node=exchange, score=0.5, consumer=LISTENING
        )


def _odd() -> Iterator[SubscriptionBody]:
    yield SubscriptionBody(id="everything", filter="true", consumer=LAGGING, metadata={"why": "an archive"})
    for name, text in {
        "never-atlantis": "country = 'Atlantis'",
        "never-hour": "hour > 23",
        "never-free": "price_floor < 0 AND device = 'phone'",
    }.items():
        yield SubscriptionBody(id=name, filter=text, consumer=LISTENING, score=9.0)
    yield SubscriptionBody(
        id="partner-phones", filter="device = 'phone' AND country = 'DE'", consumer=CALLED, score=2.0
    )
    yield SubscriptionBody(
        id="night-alert", filter="hour >= 22 AND viewability > 0.9", consumer=LISTENING, score=3.0,
        limit=Limit(events=3, period=60, digest=True),
    )  # fmt: skip


def events(first: int, count: int) -> list[dict[str, Any]]:
    """Make events with given row numbers, as rows; each enters the exchange at the publisher of its page."""
    batch = advertising.events(np.arange(first, first + count), SEED)
    found: list[dict[str, Any]] = batch.to_pylist()
    for row in found:
        row["source"] = _PUBLISHERS[zlib.crc32(str(row["site"]).encode()) % len(_PUBLISHERS)]
    return found
