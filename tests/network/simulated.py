"""The slow, obvious simulator: a queue of events, and what stations do at each of them."""

from __future__ import annotations

import heapq
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from headgate.network.simulation.model import SOURCE, Times

if TYPE_CHECKING:
    from headgate.network.simulation.model import Scene

_ARRIVE, _FREE = 0, 1


def simulate(scene: Scene) -> Times:
    """Simulate a scene, event by event."""
    scene.check()
    return _Simulation(scene).run()


class _Simulation:
    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        layout, traffic = scene.layout, scene.traffic
        documents = len(traffic.published)
        self.computed = np.full(documents, np.nan)
        self.left = np.full(documents, np.nan)
        self.there = np.full((documents, layout.views), np.nan)
        self.come: dict[tuple[int, int], int] = {}
        """Inputs that have come, by document and view."""
        self.arrived: list[list[tuple[float, int, int]]] = [[] for _ in range(layout.stations)]
        """What waits at each station: when it came, its document and its feed, -1 for the document itself."""
        self.busy = [False] * layout.stations
        self.free_since = [0.0] * layout.stations
        self.link_free = [0.0] * layout.stations
        self.cores = scene.machines.cores.tolist()
        self.events: list[tuple[float, int, int, int, int]] = []
        for document, at in enumerate(traffic.published.tolist()):
            heapq.heappush(self.events, (at, _ARRIVE, SOURCE, document, -1))

    def run(self) -> Times:
        while self.events:
            now = self.events[0][0]
            while self.events and self.events[0][0] == now:
                at, kind, station, document, feed = heapq.heappop(self.events)
                if kind == _ARRIVE:
                    self.arrived[station].append((at, document, feed))
                else:
                    self.busy[station] = False
                    self.free_since[station] = at
                    self.cores[self.scene.machines.machine[station]] += 1
            self.start_all(now)
        return Times(self.computed, self.left, self.there)

    def start_all(self, now: float) -> None:
        """Give free cores to the stations that have waited longest."""
        waiting = sorted(
            (max(self.free_since[station], min(arrived)[0]), station)
            for station, arrived in enumerate(self.arrived)
            if arrived and not self.busy[station]
        )
        for _, station in waiting:
            machine = self.scene.machines.machine[station]
            if self.cores[machine] > 0:
                self.cores[machine] -= 1
                self.busy[station] = True
                self.start(station, now)

    def start(self, station: int, now: float) -> None:
        """Work off a batch."""
        scene, prices = self.scene, self.scene.costs
        arrived = sorted(self.arrived[station])
        most = scene.documents_together if station == SOURCE else scene.together
        batch, self.arrived[station] = arrived[:most], arrived[most:]
        now += prices.batch
        results: list[tuple[int, int]] = []
        for _, document, feed in batch:
            if station == SOURCE:
                now += prices.match + prices.match_byte * self.document_bytes(document)
                for view in scene.layout.fed.tolist():
                    size = self.size(document, view)
                    if size >= 0:
                        now += prices.compute + prices.compute_byte * size
                        results.append((document, view))
            else:
                size = self.size(document, int(scene.layout.feed_view[feed]))
                now += prices.take + prices.take_byte * size
                now = self.evaluate(document, feed, now, results)
        if station == SOURCE:
            for _, document, _ in batch:
                self.computed[document] = now
        else:
            for document, view in results:
                self.there[document, view] = now
        for document, view in results:
            now += prices.keep + prices.keep_byte * self.size(document, view)
        for document, view in results:
            for feed in self.feeds(station, view):
                size = self.size(document, view)
                now += prices.send + prices.send_byte * size
                self.send(station, document, feed, size, now)
        heapq.heappush(self.events, (now, _FREE, station, 0, 0))

    def evaluate(self, document: int, feed: int, now: float, results: list[tuple[int, int]]) -> float:
        """Give what came to the views that take it, and what that leads to here to others."""
        layout, prices = self.scene.layout, self.scene.costs
        left = deque([feed])
        while left:
            feed = left.popleft()
            for target in layout.targets[slice(*layout.target_offsets[feed : feed + 2])].tolist():
                inputs = layout.inputs[slice(*layout.input_offsets[target : target + 2])].tolist()
                come = self.come[document, target] = self.come.get((document, target), 0) + 1
                if come < len(inputs):
                    continue
                large = 0.0
                for each in inputs:
                    large += self.size(document, each)
                if len(inputs) == 1:
                    now += prices.select + prices.select_byte * large
                elif inputs:
                    now += prices.join + prices.join_byte * large
                if self.size(document, target) >= 0:
                    results.append((document, target))
                    first = int(layout.feed_offsets[target])
                    own = layout.feed_offsets[target + 1] > first
                    if own and layout.feed_station[first] == layout.station[target]:
                        left.append(first)
        return now

    def feeds(self, station: int, view: int) -> list[int]:
        """List the feeds of a view to other stations."""
        layout = self.scene.layout
        if station == SOURCE:
            return [int(layout.feed_offsets[-1] + np.flatnonzero(layout.fed == view)[0])]
        every = range(int(layout.feed_offsets[view]), int(layout.feed_offsets[view + 1]))
        return [feed for feed in every if layout.feed_station[feed] != station]

    def send(self, station: int, document: int, feed: int, size: float, now: float) -> None:
        """Put a message on the link."""
        if station == SOURCE and np.isnan(self.left[document]):
            self.left[document] = now
        other = int(self.scene.layout.feed_station[feed])
        cities, links = self.scene.machines.city, self.scene.links
        way = cities[station], cities[other]
        self.link_free[station] = max(self.link_free[station], now) + size / float(links.speed[way])
        at = self.link_free[station] + float(links.delay[way])
        heapq.heappush(self.events, (at, _ARRIVE, other, document, feed))

    def size(self, document: int, view: int) -> float:
        traffic = self.scene.traffic
        return float(traffic.result_bytes[traffic.kind[document], view])

    def document_bytes(self, document: int) -> float:
        traffic = self.scene.traffic
        return float(traffic.document_bytes[traffic.kind[document]])
