"""What is simulated: stations with a processor and a link each, views that feed each other, documents.

A station is a site, or the source, which is station 0. Each takes what has come in batches, as sites do:

    wait ──► a core of its machine ──► take, evaluate ──► there ──► keep ──► send ──► link ──► wire

    batch      what came while it was busy, in the order of arrival, at most `together` messages
    take       batch + take and take_byte for each message
    evaluate   select for a view of one input, join for one of several, both with a cost for the bytes of the
               inputs; a view that is taken as it is costs nothing. What that leads to at the same station is
               evaluated at once
    there      now each result of the batch has reached its view
    keep       keep and keep_byte for each result
    send       send and send_byte for each message: a result goes once to each station that needs it
    link       messages leave one after another: bytes / speed of the two cities. Other batches may begin
    wire       delay of the two cities

The source has documents instead of messages: `match` for each, and `compute` for each result.

Times are seconds, sizes bytes. Every message takes some time, so what happens at one moment has no order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import NetworkError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

SOURCE = 0
"""The station of the publisher."""
NOTHING = -1.0
"""The size of what a view gives for a document that it gives nothing for."""


class Costs(NamedTuple):
    """Seconds that things take on a core; those that end in `_byte` for each byte.

    The defaults were measured: docs/algorithms/network.md says how.
    """

    match: float = 0.0
    match_byte: float = 0.0
    compute: float = 2e-4
    compute_byte: float = 0.0
    batch: float = 3.3e-3
    take: float = 5e-5
    take_byte: float = 0.0
    select: float = 1e-4
    select_byte: float = 0.0
    join: float = 4e-4
    join_byte: float = 0.0
    keep: float = 5e-5
    keep_byte: float = 0.0
    send: float = 5e-5
    send_byte: float = 0.0

    def check(self) -> None:
        """Refuse what cannot be."""
        for name, value in self._asdict().items():
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value >= 0):
                raise NetworkError(f"the cost {name} is {value!r}: it is a number of seconds, 0 or more")

    def scaled(self, factor: float) -> Costs:
        """Return the costs of machines that are so many times slower."""
        return Costs(*(factor * value for value in self))


class Links(NamedTuple):
    """The wires between cities: seconds from one to another, and bytes a second. Cities are numbers here."""

    cities: tuple[str, ...]
    delay: Floats
    """By the city of the sender and the city of the receiver."""
    speed: Floats

    def check(self) -> None:
        """Refuse tables that are no tables of these cities."""
        count = len(self.cities)
        for name, table in (("delays", self.delay), ("speeds", self.speed)):
            if table.shape != (count, count):
                raise NetworkError(f"the {name} are {table.shape}, and there are {count} cities")
        if not (np.isfinite(self.delay) & (self.delay > 0)).all():
            raise NetworkError("a delay is not more than 0: no message is there before it was sent")
        if not (self.speed > 0).all():
            raise NetworkError("a speed is not more than 0: give bytes a second")


class Machines(NamedTuple):
    """Where stations are: the city of each, the machine of each, and the cores of each machine."""

    city: Ints
    machine: Ints
    cores: Ints

    @classmethod
    def own(cls, city: Sequence[int] | Ints) -> Machines:
        """Give each station a machine with one core."""
        count = len(city)
        return cls(np.asarray(city, np.int64), np.arange(count), np.ones(count, np.int64))

    @classmethod
    def one(cls, stations: int, cores: int) -> Machines:
        """Put all stations on one machine."""
        nowhere = np.zeros(stations, np.int64)
        return cls(nowhere, nowhere.copy(), np.array([cores], np.int64))


class Layout(NamedTuple):
    """Views on stations, and who feeds whom, as messages go.

    A *feed* is a view whose results go to a station: `feed_view`, `feed_station`, and the views there that
    take it, `targets[target_offsets[f]:target_offsets[f + 1]]`. Those of view v are `feed_offsets[v]` to
    `feed_offsets[v + 1]`, the one to its own station first, if there is one. Behind those of all views come
    the feeds of the source, one for each view of `fed`, in the same order.
    """

    stations: int
    """With the source."""
    station: Ints
    input_offsets: Ints
    inputs: Ints
    fed: Ints
    feed_offsets: Ints
    feed_view: Ints
    feed_station: Ints
    target_offsets: Ints
    targets: Ints

    @property
    def views(self) -> int:
        """Count the views."""
        return len(self.station)


class Traffic(NamedTuple):
    """Documents: when each is published, which kind it is of, and what views give for each kind.

    Documents of one kind are of one size, and views give as many bytes for each of them.
    """

    published: Floats
    """Rising."""
    kind: Ints
    document_bytes: Floats
    """By kind."""
    result_bytes: NDArray[np.float32]
    """By kind and view; NOTHING where a view gives nothing. Whoever gives something, its inputs do."""

    @classmethod
    def of(
        cls, result_bytes: NDArray[np.floating], document_bytes: Floats, count: int, interval: float
    ) -> Traffic:
        """Publish so many documents, one after another of all kinds, at an interval."""
        kinds = len(result_bytes)
        return cls(
            interval * np.arange(count, dtype=np.float64),
            np.arange(count, dtype=np.int64) % kinds,
            np.asarray(document_bytes, np.float64),
            np.ascontiguousarray(result_bytes, np.float32),
        )


class Scene(NamedTuple):
    """All that is simulated."""

    layout: Layout
    machines: Machines
    links: Links
    traffic: Traffic
    costs: Costs
    together: int = 128
    """Messages that a station takes in one batch at most."""
    documents_together: int = 100
    """Documents that the source takes in one batch at most."""

    def check(self) -> None:
        """Refuse what does not fit together."""
        layout, traffic = self.layout, self.traffic
        self.costs.check()
        self.links.check()
        if len(self.machines.city) != layout.stations:
            raise NetworkError(
                f"{len(self.machines.city)} stations have a city, and there are {layout.stations}"
            )
        if traffic.result_bytes.shape[1] != layout.views:
            raise NetworkError(
                f"sizes of {traffic.result_bytes.shape[1]} views are given, and there are {layout.views}"
            )
        if (np.diff(traffic.published) < 0).any():
            raise NetworkError("a document is published before the one before it: give times that rise")
        if self.together < 1 or self.documents_together < 1 or (self.machines.cores < 1).any():
            raise NetworkError("a station takes one message at least, and a machine has one core at least")


class Times(NamedTuple):
    """When everything happened, in seconds. NaN is never."""

    computed: Floats
    """By document: when the source had computed its views."""
    left: Floats
    """By document: when the first result left the source."""
    there: Floats
    """By document and view: when the result was there."""

    @property
    def latency(self) -> Floats:
        """Return for each document and view how long it took, from when the first result left the source."""
        found: Floats = self.there - self.left[:, None]
        return found
