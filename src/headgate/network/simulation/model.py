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

The paper's sites were machines of Grid'5000 in "nine major cities across France and Luxembourg". It does not
name them, nor tell their delays. These nine had sites of Grid'5000 then; everything else here is assumed:

    way      the great circle between two cities, times 1.5: cables follow railways and go by nodes
    light    200 km in a millisecond of fibre
    nodes    0.5 ms for what lies between a machine and the backbone, once for each message
    speed    1 Gbit/s, the network card of a machine: the backbone, at 10 Gbit/s, is seldom the narrowest

That makes 0.6 ms in a city, 2 to 8 ms between cities: twice that, there and back, is what pings of such a
network show (some 5 to 17 ms).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from headgate.errors import NetworkError, TableError
from headgate.plan.measures import input_places
from headgate.plan.model import SOURCE as BY_SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from headgate.core.arrays import Ints
    from headgate.plan.model import Plan, Rewritings

    Floats = NDArray[np.float64]


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
        latencies: Floats = self.there - self.left[:, None]
        return latencies


CITIES = {
    "Lyon": (45.76, 4.84),
    "Bordeaux": (44.84, -0.58),
    "Grenoble": (45.19, 5.72),
    "Lille": (50.63, 3.06),
    "Luxembourg": (49.61, 6.13),
    "Nancy": (48.69, 6.18),
    "Rennes": (48.11, -1.68),
    "Sophia Antipolis": (43.62, 7.05),
    "Toulouse": (43.60, 1.44),
}
"""Latitude and longitude; the source is in the first."""
_RADIUS, _DETOUR, _LIGHT, _NODES, _SHORT = 6_371.0, 1.5, 200_000.0, 0.5e-3, 0.1e-3
GIGABIT = 125e6
"""Bytes a second."""


def nine_cities() -> Links:
    """Return the wires between the nine cities.

    >>> links = nine_cities()
    >>> (1e3 * links.delay[0, :4]).round(1).tolist()
    [0.6, 3.8, 1.2, 4.7]
    """
    places = list(CITIES.values())
    delay = np.array([[_NODES + max(_SHORT, _way(a, b) / _LIGHT) for b in places] for a in places])
    return Links(tuple(CITIES), delay, np.full_like(delay, GIGABIT))


def _way(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Return the kilometres of cable between two places."""
    (north_a, east_a), (north_b, east_b) = (tuple(map(math.radians, each)) for each in (a, b))
    half = (
        math.sin((north_b - north_a) / 2) ** 2
        + math.cos(north_a) * math.cos(north_b) * math.sin((east_b - east_a) / 2) ** 2
    )
    return _DETOUR * 2 * _RADIUS * math.asin(math.sqrt(half))


def spread(stations: int, links: Links) -> Ints:
    """Deal stations out to the cities, one after another; the source is in the first."""
    return np.arange(stations, dtype=np.int64) % len(links.cities)


class _File(msgspec.Struct, forbid_unknown_fields=True):
    cities: list[str]
    delay: list[list[float]]
    speed: float | list[list[float]] = GIGABIT
    sites: dict[str, str] = {}


def read_links(path: Path) -> tuple[Links, Mapping[str, str]]:
    """Read cities, delays, speeds, and the city of each site, from a file of JSON."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise TableError(
            f"{path}: {error}: give `cities`, and `delay` in seconds from each to each"
        ) from None
    count = len(file.cities)
    speed: Any = file.speed
    tables = [("delay", file.delay)] + ([("speed", speed)] if isinstance(speed, list) else [])
    for name, table in tables:
        if len(table) != count or any(len(row) != count for row in table):
            raise TableError(f"{path}: `{name}` has not {count} rows of {count} numbers, one for each city")
    for site, city in file.sites.items():
        if city not in file.cities:
            raise TableError(f"{path}: site {site!r} is in {city!r}, which is not among the cities: add it")
    delay = np.array(file.delay, np.float64).reshape(count, count)
    links = Links(tuple(file.cities), delay, np.broadcast_to(np.array(speed, np.float64), delay.shape).copy())
    if not count:
        raise TableError(f"{path}: `cities` is empty: name one at least")
    links.check()
    return links, file.sites


def cities_of(names: Sequence[str], links: Links, sites: Mapping[str, str]) -> Ints:
    """Return the city of each station: as is said for its name, or as `spread` deals."""
    numbers = {city: number for number, city in enumerate(links.cities)}
    cities = spread(len(names), links)
    for station, name in enumerate(names):
        if name in sites:
            cities[station] = numbers[sites[name]]
    return cities


def layout_of(station: ArrayLike, input_offsets: ArrayLike, inputs: ArrayLike, stations: int) -> Layout:
    """Lay views out: the station of each, from 1 on, and its inputs; without inputs the source feeds it."""
    at = np.asarray(station, np.int64)
    offsets, used = np.asarray(input_offsets, np.int64), np.asarray(inputs, np.int64)
    views = len(at)
    if views and not (at.min() > SOURCE and at.max() < stations):
        raise NetworkError(f"a view is at station {at.min()} or {at.max()}: give 1 to {stations - 1}")
    counts = np.diff(offsets)
    fed = np.flatnonzero(counts == 0)
    targets = np.repeat(np.arange(views), counts)
    # By input and station, the input's own station first; targets of one feed rise.
    where = at[targets]
    own = where != at[used]
    order = np.lexsort((targets, where, own, used))
    targets, used, where = targets[order], used[order], where[order]
    new = np.ones(len(targets), np.bool_)
    new[1:] = (used[1:] != used[:-1]) | (where[1:] != where[:-1])
    (firsts,) = np.nonzero(new)
    feed_view = np.concatenate([used[firsts], fed])
    target_offsets = np.concatenate([firsts, len(targets) + np.arange(len(fed) + 1)])
    feed_offsets = np.searchsorted(used[firsts], np.arange(views + 1))
    return Layout(
        stations,
        at,
        offsets,
        np.asarray(inputs, np.int64),
        fed,
        feed_offsets.astype(np.int64),
        feed_view.astype(np.int64),
        np.concatenate([where[firsts], at[fed]]),
        target_offsets.astype(np.int64),
        np.concatenate([targets, fed]),
    )


def layout_of_plan(plan: Plan, rewritings: Rewritings, sites: NDArray[np.integer], count: int) -> Layout:
    """Lay out a plan whose views are at sites 0 to `count`: these are stations 1 and on."""
    fed = plan.chosen != BY_SOURCE
    counts = np.zeros(len(plan.chosen) + 1, np.int64)
    counts[1:][fed] = np.diff(rewritings.input_offsets)[plan.chosen[fed]]
    inputs = rewritings.inputs[input_places(plan, rewritings)]
    return layout_of(np.asarray(sites, np.int64) + 1, np.cumsum(counts), inputs, count + 1)


def with_joins(layout: Layout, hosts: ArrayLike) -> tuple[Layout, Ints]:
    """Compute views at other stations than their own, from where these take them as they are.

    `hosts` are the stations where views are computed, or their own. What is computed elsewhere is a view
    more, at the end; returns for all views which they are.
    """
    at = np.asarray(hosts, np.int64)
    moved = np.flatnonzero((at != layout.station) & (np.diff(layout.input_offsets) > 0))
    if not len(moved):
        return layout, np.arange(layout.views)
    number_of = {view: layout.views + number for number, view in enumerate(moved.tolist())}
    inputs = [layout.inputs[slice(*layout.input_offsets[view : view + 2])] for view in range(layout.views)]
    whole = [[number_of[view]] if view in number_of else own.tolist() for view, own in enumerate(inputs)]
    whole += [inputs[view].tolist() for view in moved.tolist()]
    offsets = np.cumsum([0, *map(len, whole)])
    flat = np.array([each for some in whole for each in some], np.int64)
    station = np.concatenate([layout.station, at[moved]])
    return layout_of(station, offsets, flat, layout.stations), np.concatenate(
        [np.arange(layout.views), moved]
    )


def levels_of(layout: Layout) -> Ints:
    """Count the levels: 1 if the source feeds a view, else one more than the highest among its inputs."""
    return steps_behind(layout, np.ones(len(layout.inputs), np.int64), np.maximum)


def steps_behind(layout: Layout, step: Ints, pick: np.ufunc) -> Ints:
    """Add steps up from the source on, round by round until all views are reached."""
    steps = np.zeros(layout.views, np.int64)
    steps[layout.fed] = 1
    owners = np.repeat(np.arange(layout.views), np.diff(layout.input_offsets))
    left = np.setdiff1d(np.arange(layout.views), layout.fed)
    while len(left):
        waits = np.zeros(layout.views, np.bool_)
        waits[owners[steps[layout.inputs] == 0]] = True
        ready = left[~waits[left]]
        if not len(ready):
            raise NetworkError("views feed each other in a circle: a plan has none")
        for view in ready.tolist():
            begin, end = layout.input_offsets[view : view + 2]
            steps[view] = pick.reduce(steps[layout.inputs[begin:end]] + step[begin:end])
        left = left[waits[left]]
    return steps
