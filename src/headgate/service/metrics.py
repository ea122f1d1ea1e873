"""What the service counts, as Prometheus reads it.

Counting costs an addition. Names, help and form are made when somebody asks.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily

from headgate.core import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from headgate.service.server import Server
    from headgate.service.storage.log import Block
    from headgate.service.tenant.tenant import Tenant

WAYS = ("pull", "server-sent events", "WebSocket", "webhook")
"""How deliveries are made, as they are counted."""
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds up to which requests are counted together."""


class Times:
    """How long something took: counts by bounds, as a histogram has them."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return the counts up to each bound."""
        counts, running = [], 0
        for bound, count in zip((*map(str, BOUNDS), "+Inf"), self.counts, strict=True):
            running += count
            counts.append((bound, float(running)))
        return counts


class TenantCounts:
    """What is counted of one tenant."""

    def __init__(self) -> None:
        self.events = self.matches = self.held = self.blocks = 0
        self.requests: Counter[tuple[str, int]] = Counter()
        """By operation and status."""
        self.times: dict[str, Times] = {}
        """Of requests, by operation."""

    def committed(self, block: Block) -> None:
        """Count a block that is on disk."""
        self.events += len(block)
        self.matches += len(block.subscriptions)
        self.held += len(block.held)
        self.blocks += 1

    def requested(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[operation, status] += 1
        times = self.times.get(operation)
        if times is None:
            times = self.times[operation] = Times()
        times.add(seconds)


class _Collector:
    """Gives the counts of one tenant to the library that writes them."""

    def __init__(self, server: Server, tenant: Tenant) -> None:
        self._server = server
        self._tenant = tenant

    def collect(self) -> Iterator[Any]:
        """List what is counted."""
        tenant, counts = self._tenant, self._tenant.counters
        delivery = self._server.dispatchers[tenant.name].counts
        info = GaugeMetricFamily("headgate_build_info", "The version that runs.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info
        yield GaugeMetricFamily(
            "headgate_up_seconds", "How long the service runs.", time.time() - self._server.began
        )
        for name, about, value in (
            ("events", "Events that were published and are on disk.", counts.events),
            ("matches", "Matches of these events.", counts.matches),
            ("held", "Matches that limits of subscriptions held back.", counts.held),
            ("commits", "Group commits with events.", counts.blocks),
            ("cut_off", "Listeners that took nothing for too long.", delivery["cut off"]),
            ("failed_attempts", "Webhook calls that failed.", delivery["webhook failures"]),
            ("passed", "Events that were forgotten before a consumer had them.", delivery["passed"]),
        ):
            yield self._family(CounterMetricFamily, name, about, [((), value)])
        bounds = tenant.store.log.bounds()
        for name, about, number in (
            ("subscriptions", "Subscriptions.", len(tenant.names)),
            ("waiting_bytes", "Bytes of events that wait to be written.", tenant.waiting),
            ("first_cursor", "The cursor of the first event that is kept.", bounds.first),
            ("last_cursor", "The cursor of the last event.", bounds.last),
        ):
            yield self._family(GaugeMetricFamily, name, about, [((), number)])
        requests = [((name, str(status)), count) for (name, status), count in counts.requests.items()]
        about = "Requests, by operation and status."
        yield self._family(CounterMetricFamily, "requests", about, requests, "operation", "status")
        times = [((name,), found.buckets(), found.total) for name, found in counts.times.items()]
        about = "How long requests took."
        yield self._family(HistogramMetricFamily, "request_seconds", about, times, "operation")
        sent = [((how,), delivery[how]) for how in WAYS]
        yield self._family(
            CounterMetricFamily, "deliveries", "Deliveries, by how they were made.", sent, "how"
        )
        consumers = tenant.store.consumers
        lags = [((each.id,), max(0, tenant.position - each.cursor)) for each in consumers.all()]
        about = "Events after the consumer's cursor."
        yield self._family(GaugeMetricFamily, "consumer_lag", about, lags, "consumer")
        dead = [((consumer,), count) for consumer, count in consumers.count_dead().items()]
        yield self._family(GaugeMetricFamily, "dead_letters", "Dead letters of a consumer.", dead, "consumer")

    def _family(self, kind: Any, name: str, about: str, rows: Iterable[tuple[Any, ...]], *labels: str) -> Any:
        """Make a family of rows, each with the values of its labels and what was counted."""
        family = kind(f"headgate_{name}", about, labels=["tenant", *labels])
        for values, *counted in rows:
            family.add_metric([self._tenant.name, *values], *counted)
        return family


def written(server: Server, tenant: Tenant) -> bytes:
    """Write what is counted of a tenant."""
    registry = CollectorRegistry()
    registry.register(_Collector(server, tenant))
    text: bytes = generate_latest(registry)
    return text
