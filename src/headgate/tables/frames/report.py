"""What a task of the match job tells beside its matches: counts, what was left out, where its time went."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headgate.runtime.pieces import Counting
from headgate.runtime.statistics import pack_statistics
from headgate.tables.results import Batch

if TYPE_CHECKING:
    from headgate.core.omission import Omission, Omissions
    from headgate.engine.statistics import Statistics
    from headgate.runtime.engines import Runtime
    from headgate.tables.frames.reading import Given

RECEIVING, MATCHING, NAMING, WRITING = STAGES = ("receiving", "matching", "naming", "writing")
"""What a worker spends its time on; naming is to give matches the ids of their events."""


@dataclass
class Report:
    """What a task has done. A task that is tried again tells it again, and only one of them counts."""

    task: int
    events: int = 0
    refused: int = 0
    texts: bool = False
    """Whether some ids are text."""
    met: int = 0
    """How often an event met a shard."""
    left_out: dict[Omission, None] = field(default_factory=dict)
    """Filters that were too much for an event, each once."""
    statistics: bytes | None = None
    batches: list[Batch] = field(default_factory=list)


class Reporter:
    """Makes the report of a task while it runs; with `counts`, also statistics of the subscriptions.

    Of several groups of shards one `tells` how many events there are.
    """

    def __init__(self, task: int, *, tells: bool = True, counts: bool = False) -> None:
        self._report = Report(task)
        self._tells = tells
        self._counts = counts
        self._engines: Runtime | None = None
        self._statistics: Statistics | None = None
        self._begin()

    def _begin(self) -> None:
        self._begun = time.time()
        self._clock = time.thread_time()
        self._spent = dict.fromkeys(STAGES, 0.0)

    def counting(self, engines: Runtime, given: Given) -> Counting | None:
        """Say where answers of engines are counted that know events by their places; None if nowhere."""
        if self._engines is None:
            self._engines, self._met = engines, engines.met
            self._statistics = engines.statistics() if self._counts else None
        return None if self._statistics is None else Counting(self._statistics, given.ids)

    def lap(self, stage: str) -> None:
        """Note that the time since the last lap went into a stage."""
        now = time.thread_time()
        self._spent[stage] += now - self._clock
        self._clock = now

    def add(self, given: Given, left_out: Omissions) -> None:
        """Note events that are done, and filters that were left out of them."""
        report = self._report
        if self._tells:
            report.events += len(given.events)
            report.refused += len(given.refused)
        report.texts |= given.texts
        if self._statistics is not None:
            self._statistics.exceed(left_out)
        for each in left_out:
            event = given.ids[int(each.event or 0)].as_py()
            report.left_out[each._replace(event=event)] = None
        seconds, spent = time.time() - self._begun, tuple(self._spent.values())
        report.batches.append(Batch(report.task, self._begun, seconds, len(given.events), spent))
        self._begin()

    def done(self) -> Report:
        """Return the report."""
        report = self._report
        if self._engines is not None:
            report.met = self._engines.met - self._met
        if self._statistics is not None:
            report.statistics = pack_statistics(self._statistics.table())
        return report
