"""How a stream is doing: a line now and then, a file of such lines for machines, and metrics."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from headgate.core.machine import naming
from headgate.stream.metrics import Metrics
from headgate.stream.rows import DUPLICATE, KINDS, LATE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from headgate.runtime.log import Subscriptions
    from headgate.runtime.state import Record
    from headgate.stream.settings import StreamSettings

LARGEST = 10_000_000
"""Bytes of the file of progress, about; then it begins anew, and the one before is kept."""
LATENCIES = 1000
"""How many of the last arrivals the middle is taken of."""


@dataclass(frozen=True)
class StreamResult:
    """What a stream did in this run."""

    batches: int
    events: int
    matches: int
    malformed: int
    late: int
    duplicate: int
    unknown_source: int
    left_out: int
    changes: int
    """Changes of subscriptions that were accepted."""
    rejected_changes: int
    version: int
    """The version of the subscriptions at the end."""
    subscriptions: int
    seconds: float
    latency: float | None
    """The middle of the last times from arrival to commit, in seconds."""
    stopped: str
    """Why it ended: once, seconds, or asked."""

    @property
    def dead_letters(self) -> int:
        """Count the events that were not matched, for whatever reason."""
        return self.malformed + self.late + self.duplicate + self.unknown_source + self.left_out


class History(Protocol):
    """Somebody who wants to know of every batch."""

    def add(self, record: Record, arrivals: list[tuple[float, int]], seconds: Mapping[str, float]) -> None:
        """Take in a batch that was just committed."""


class StreamReporter:
    """Counts of this run, and when they were last told."""

    def __init__(
        self, settings: StreamSettings, folder: Path, *, quiet: bool, history: History | None = None
    ) -> None:
        self._settings = settings
        self._history = history
        self._quiet = quiet
        self._place = folder / "progress.jsonl"
        self._begun = self._told = time.monotonic()
        self._before = 0
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        self.counts = dict.fromkeys(("batches", "events", "matches", *KINDS), 0)
        self.metrics = Metrics()
        self._changes: Counter[str] = Counter()
        for name in ("headgate_events_total", "headgate_matches_total", "headgate_batches_total"):
            self.metrics.count(name, 0)

    @property
    def latency(self) -> float | None:
        """Return the middle of the last times from arrival to commit."""
        times = sorted(self._latencies)
        return times[len(times) // 2] if times else None

    def batch(self, record: Record, arrivals: list[tuple[float, int]], seconds: dict[str, float]) -> None:
        """Count a batch that is committed."""
        counts = record["counts"]
        self.counts["batches"] += 1
        for name, count in counts.items():
            self.counts[name] += count
        metrics = self.metrics
        metrics.count("headgate_batches_total")
        metrics.count("headgate_events_total", counts["events"])
        metrics.count("headgate_matches_total", counts["matches"])
        metrics.count("headgate_late_total", counts[LATE])
        metrics.count("headgate_duplicates_total", counts[DUPLICATE])
        for kind in KINDS:
            metrics.count("headgate_rejected_total", counts[kind], reason=kind)
        now = time.time()
        for arrived, count in arrivals:
            self._latencies.append(now - arrived)
            metrics.observe("headgate_latency_seconds", max(0.0, now - arrived), count)
        metrics.observe("headgate_batch_seconds", seconds["batch"])
        for step, spent in seconds.items():
            metrics.gauge("headgate_step_seconds", spent, step=step)
        if self._history is not None:
            self._history.add(record, arrivals, seconds)

    def now_and_then(self, batch: int | None, subscriptions: Subscriptions, *, last: bool = False) -> None:
        """Tell how it goes, if that was long ago."""
        now = time.monotonic()
        if not last and now - self._told < self._settings.progress:
            return
        rate = (self.counts["events"] - self._before) / max(1e-9, now - self._told)
        self._told, self._before = now, self.counts["events"]
        metrics = self.metrics
        metrics.gauge("headgate_snapshot_age_seconds", subscriptions.age)
        metrics.gauge("headgate_snapshot_version", subscriptions.version)
        metrics.gauge("headgate_subscriptions", subscriptions.count)
        for operation, count in subscriptions.operations.items():
            metrics.count("headgate_changes_total", count - self._changes[operation], op=operation)
            self._changes[operation] = count
        line = {
            "at": time.time(),
            "seconds": round(now - self._begun, 1),
            "batch": batch,
            **self.counts,
            "events_per_second": round(rate, 1),
            "latency_p50": None if self.latency is None else round(self.latency, 3),
            "version": subscriptions.version,
            "subscriptions": subscriptions.count,
            "changes_accepted": subscriptions.accepted,
            "changes_refused": subscriptions.refused,
        }
        self._write(line)
        if self._settings.metrics is not None:
            metrics.write(self._settings.metrics)
        if not self._quiet:
            print(_words(line), file=sys.stderr, flush=True)

    def say(self, line: str) -> None:
        """Tell something that is no error."""
        if not self._quiet:
            print(f"stream: {line}", file=sys.stderr, flush=True)

    def _write(self, line: dict[str, Any]) -> None:
        if self._place.exists() and self._place.stat().st_size > LARGEST:
            self._place.replace(self._place.with_name("progress.1.jsonl"))
        with naming(self._place), self._place.open("ab+") as file:
            if file.tell():
                file.seek(-1, 2)
                # A process may have died in the midst of a line, or the disk was full.
                file.write(b"" if file.read() == b"\n" else b"\n")
            file.write(json.dumps(line).encode() + b"\n")


def _words(line: dict[str, Any]) -> str:
    dead = sum(line[kind] for kind in KINDS)
    parts = [
        f"stream: {line['seconds']:.0f} s",
        f"{line['batches']:,} batches",
        f"{line['events']:,} events ({line['events_per_second']:,.0f} a second)",
        f"{line['matches']:,} matches",
        f"{line['subscriptions']:,} subscriptions, version {line['version']}",
    ]
    if dead:
        parts.append(", ".join(f"{line[kind]:,} {kind}" for kind in KINDS if line[kind]))
    if line["latency_p50"] is not None:
        parts.append(f"p50 {line['latency_p50']:.2f} s")
    return ", ".join(parts)
