"""The simulator for many views: the events of the reference, in arrays.

Nothing but the beginnings and ends of batches is an event here. Messages wait in a heap of their station from
the moment that they are sent, with the time at which they will have arrived; when a station begins a batch,
everything that has arrived by then has been sent before, because a message takes time.

    events   (time, kind and station): a batch ends, a station has something to do
    heaps    (arrival, document and feed): one for each station, in a common pool, moved where it outgrows
             its room; the second of either pair is kept negative, so that the least is on top
    cores    those that are free, by machine; who waits for one stands in a chain
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headgate.core.heaps import rise, sink
from headgate.core.jit import inner, kernel
from headgate.errors import NetworkError
from headgate.network.simulation.model import SOURCE, Costs, Times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.core.arrays import Bytes, Ints
    from headgate.network.simulation.model import Floats, Scene

MOST_INPUTS = 255
_TYPES: dict[str, type] = {
    **dict.fromkeys(("delay", "speed", "published", "document_bytes"), np.float64),
    "result_bytes": np.float32,
}
"""Of what the kernel reads; all else are whole numbers."""


def simulate(scene: Scene) -> Times:
    """Simulate a scene, and keep when each result was there: a number for each document and view."""
    there = np.full((len(scene.traffic.published), scene.layout.views), np.nan)
    sums = _run(scene, there).sums
    return Times(sums.computed, sums.left, there)


def totals(scene: Scene) -> Totals:
    """Simulate a scene, and keep sums."""
    return _run(scene, np.empty((0, 0)))


class _Input(NamedTuple):
    """The arrays that the kernel reads."""

    station: Ints
    input_offsets: Ints
    inputs: Ints
    fed: Ints
    feed_offsets: Ints
    feed_view: Ints
    feed_station: Ints
    target_offsets: Ints
    targets: Ints
    city: Ints
    machine: Ints
    delay: Floats
    speed: Floats
    published: Floats
    kind: Ints
    document_bytes: Floats
    result_bytes: NDArray[np.float32]


class Sums(NamedTuple):
    """What the kernel writes: latencies, from when the first result of a document left the source."""

    come: Bytes
    there: Floats
    view_count: Ints
    view_sum: Floats
    view_max: Floats
    view_min: Floats
    document_count: Ints
    document_sum: Floats
    document_max: Floats
    computed: Floats
    left: Floats
    busy: Floats
    """Seconds that each station worked."""

    @property
    def mean(self) -> float:
        """Return the mean over all results."""
        return float(self.view_sum.sum() / max(1, self.view_count.sum()))

    @property
    def least(self) -> float:
        """Return the least latency of all."""
        return float(self.view_min.min())

    @property
    def most(self) -> float:
        """Return the greatest latency of all."""
        return float(self.view_max.max())


class Totals(NamedTuple):
    """Sums by view and by document, and what was sent."""

    sums: Sums
    messages: int
    batches: int
    end: float
    """When all was done, in seconds after the first document."""


def _run(scene: Scene, there: Floats) -> Totals:
    scene.check()
    layout, traffic, machines = scene.layout, scene.traffic, scene.machines
    if len(layout.inputs) and int(np.diff(layout.input_offsets).max()) > MOST_INPUTS:
        raise NetworkError(f"a view has more than {MOST_INPUTS} inputs, which is not simulated")
    # The fields of these have the names of those that the kernel reads.
    parts = {**layout._asdict(), **machines._asdict(), **scene.links._asdict(), **traffic._asdict()}
    given = _Input(
        *(np.ascontiguousarray(parts[name], _TYPES.get(name, np.int64)) for name in _Input._fields)
    )
    documents, views = len(traffic.published), layout.views
    out = Sums(
        np.zeros((documents, views), np.uint8),
        there,
        np.zeros(views, np.int64),
        np.zeros(views, np.float64),
        np.zeros(views, np.float64),
        np.full(views, np.inf),
        np.zeros(documents, np.int64),
        np.zeros(documents, np.float64),
        np.zeros(documents, np.float64),
        np.full(documents, np.nan),
        np.full(documents, np.nan),
        np.zeros(layout.stations, np.float64),
    )
    messages, batches, end = _simulate(
        given,
        out,
        Costs(*map(float, scene.costs)),
        np.array(machines.cores, np.int64),
        scene.together,
        scene.documents_together,
    )
    begun = float(traffic.published[0]) if documents else 0.0
    return Totals(out, messages, batches, end - begun)


@inner
def _wider(array: NDArray[Any], room: int) -> NDArray[Any]:
    """Return an array with room for so many, at least twice as long as before if it has not."""
    if room <= len(array):
        return array
    wider = np.empty(max(room, 2 * len(array)), array.dtype)
    wider[: len(array)] = array
    return wider


_IDLE, _WAITS, _BUSY = 0, 1, 2
_FREE, _READY = 0, 1


@kernel
def _simulate(
    given: _Input, out: Sums, prices: Costs, cores: Ints, together: int, documents_together: int
) -> tuple[int, int, float]:
    """Simulate; returns messages, batches, and when all was done. One loop: the arrays in it grow."""
    stations, documents = len(given.city), len(given.published)
    feeds = len(given.feed_view)
    source_feeds = feeds - len(given.fed)
    keeps_all = len(out.there) > 0
    state = np.zeros(stations, np.int8)
    ready_at = np.full(stations, np.inf)
    link_free = np.zeros(stations)
    # Heaps of messages.
    first = np.arange(stations) * 16
    room = np.full(stations, 16, np.int64)
    size = np.zeros(stations, np.int64)
    pool = stations * 16
    times = np.empty(2 * pool)
    tags = np.empty(2 * pool, np.int64)
    # Events.
    event_times = np.empty(4 * stations + 16)
    event_tags = np.empty(4 * stations + 16, np.int64)
    events = 0
    # Those who wait for a core, in chains.
    behind = np.full(stations, -1, np.int64)
    head = np.full(len(cores), -1, np.int64)
    tail = np.full(len(cores), -1, np.int64)
    # Results of a batch, and feeds that are left to evaluate.
    result_document = np.empty(1024, np.int64)
    result_view = np.empty(1024, np.int64)
    left = np.empty(1024, np.int64)
    document = 0
    """The first document that the source has not taken."""
    messages = batches = 0
    now = 0.0
    end = 0.0
    if documents:
        ready_at[SOURCE] = given.published[0]
        rise(event_times, event_tags, 0, given.published[0], -(_READY * stations + SOURCE))
        events = 1
    while events:
        now, tag = event_times[0], -event_tags[0]
        events -= 1
        sink(event_times, event_tags, events, event_times[events], event_tags[events])
        station = tag % stations
        machine = given.machine[station]
        if tag < stations:
            end = now
            cores[machine] += 1
            state[station] = _IDLE
            ready_at[station] = np.inf
            at = np.inf
            if station == SOURCE:
                if document < documents:
                    at = given.published[document]
            elif size[station]:
                at = times[first[station]]
            if at < np.inf:
                ready_at[station] = max(at, now)
                event_times, event_tags = _wider(event_times, events + 2), _wider(event_tags, events + 2)
                rise(event_times, event_tags, events, ready_at[station], -(_READY * stations + station))
                events += 1
        else:
            if state[station] != _IDLE or ready_at[station] != now:
                continue
            state[station] = _WAITS
            if tail[machine] < 0:
                head[machine] = station
            else:
                behind[tail[machine]] = station
            tail[machine] = station
        if cores[machine] == 0 or head[machine] < 0:
            continue
        # One station at most can begin: one core came free, or one station came.
        station = head[machine]
        head[machine] = behind[station]
        if head[machine] < 0:
            tail[machine] = -1
        behind[station] = -1
        cores[machine] -= 1
        state[station] = _BUSY
        batches += 1
        begun = now
        now += prices.batch
        results = 0
        if station == SOURCE:
            first_document = document
            while (
                document < documents
                and document - first_document < documents_together
                and given.published[document] <= begun
            ):
                kind = given.kind[document]
                now += prices.match + prices.match_byte * given.document_bytes[kind]
                result_document = _wider(result_document, results + len(given.fed))
                result_view = _wider(result_view, results + len(given.fed))
                for place in range(len(given.fed)):
                    view = given.fed[place]
                    large = float(given.result_bytes[kind, view])
                    if large >= 0:
                        now += prices.compute + prices.compute_byte * large
                        result_document[results] = document
                        result_view[results] = place
                        results += 1
                document += 1
            for each in range(first_document, document):
                out.computed[each] = now
        else:
            taken = 0
            while taken < together and size[station] and times[first[station]] <= begun:
                top, last = first[station], first[station] + size[station] - 1
                tag = -tags[top]
                size[station] -= 1
                sink(times[top:], tags[top:], size[station], times[last], tags[last])
                taken += 1
                about = tag // feeds
                kind = given.kind[about]
                feed = tag % feeds
                now += prices.take + prices.take_byte * float(given.result_bytes[kind, given.feed_view[feed]])
                left[0] = feed
                lefts, next_left = 1, 0
                while next_left < lefts:
                    feed = left[next_left]
                    next_left += 1
                    for place in range(given.target_offsets[feed], given.target_offsets[feed + 1]):
                        target = given.targets[place]
                        begin, stop = given.input_offsets[target], given.input_offsets[target + 1]
                        if stop - begin > 1:
                            out.come[about, target] += 1
                            if out.come[about, target] < stop - begin:
                                continue
                        if stop > begin:
                            large = 0.0
                            for each in range(begin, stop):
                                large += float(given.result_bytes[kind, given.inputs[each]])
                            if stop - begin == 1:
                                now += prices.select + prices.select_byte * large
                            else:
                                now += prices.join + prices.join_byte * large
                        if given.result_bytes[kind, target] < 0:
                            continue
                        result_document = _wider(result_document, results + 1)
                        result_view = _wider(result_view, results + 1)
                        result_document[results] = about
                        result_view[results] = target
                        results += 1
                        own = given.feed_offsets[target]
                        if own < given.feed_offsets[target + 1] and given.feed_station[own] == station:
                            left = _wider(left, lefts + 1)
                            left[lefts] = own
                            lefts += 1
            messages += taken
            for place in range(results):
                about, view = result_document[place], result_view[place]
                if keeps_all:
                    out.there[about, view] = now
                latency = now - out.left[about]
                out.view_count[view] += 1
                out.view_sum[view] += latency
                out.view_max[view] = max(out.view_max[view], latency)
                out.view_min[view] = min(out.view_min[view], latency)
                out.document_count[about] += 1
                out.document_sum[about] += latency
                out.document_max[about] = max(out.document_max[about], latency)
        for place in range(results):
            view = given.fed[result_view[place]] if station == SOURCE else result_view[place]
            now += prices.keep + prices.keep_byte * float(
                given.result_bytes[given.kind[result_document[place]], view]
            )
        for place in range(results):
            about, view = result_document[place], result_view[place]
            if station == SOURCE:
                begin = source_feeds + view
                stop = begin + 1
                view = given.fed[view]
            else:
                begin, stop = given.feed_offsets[view], given.feed_offsets[view + 1]
                if begin < stop and given.feed_station[begin] == station:
                    begin += 1
            if begin == stop:
                continue
            large = float(given.result_bytes[given.kind[about], view])
            for feed in range(begin, stop):
                now += prices.send + prices.send_byte * large
                if station == SOURCE and np.isnan(out.left[about]):
                    out.left[about] = now
                other = given.feed_station[feed]
                here, far = given.city[station], given.city[other]
                link_free[station] = max(link_free[station], now) + large / given.speed[here, far]
                at = link_free[station] + given.delay[here, far]
                if size[other] == room[other]:
                    times = _wider(times, pool + 2 * room[other])
                    tags = _wider(tags, pool + 2 * room[other])
                    begin_old = first[other]
                    times[pool : pool + size[other]] = times[begin_old : begin_old + size[other]]
                    tags[pool : pool + size[other]] = tags[begin_old : begin_old + size[other]]
                    first[other] = pool
                    room[other] *= 2
                    pool += room[other]
                rise(times[first[other] :], tags[first[other] :], size[other], at, -(about * feeds + feed))
                size[other] += 1
                if state[other] == _IDLE and at < ready_at[other]:
                    ready_at[other] = at
                    event_times, event_tags = _wider(event_times, events + 2), _wider(event_tags, events + 2)
                    rise(event_times, event_tags, events, at, -(_READY * stations + other))
                    events += 1
        out.busy[station] += now - begun
        event_times, event_tags = _wider(event_times, events + 2), _wider(event_tags, events + 2)
        rise(event_times, event_tags, events, now, -(_FREE * stations + station))
        events += 1
    return messages, batches, end
