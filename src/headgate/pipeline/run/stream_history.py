"""What the page of a stream's run shows: its batches, where their time went, and what was not matched."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from headgate.brokers.nats.settings import shown
from headgate.core.machine import naming
from headgate.jobs.summary import Refusal
from headgate.report.runs import model
from headgate.runtime.parts import Staged, final_name
from headgate.spark.session.java import find_java
from headgate.stream.rows import DUPLICATE, KINDS, LATE, MALFORMED, MATCHING, READING

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping

    from headgate.runtime.state import Record
    from headgate.spark.session.session import Session
    from headgate.stream.reporting import StreamResult
    from headgate.stream.settings import StreamSettings

MOST = 10_000
"""Batches that are drawn, the last ones: a stream may run for months."""
EXAMPLES = 2
"""Dead letters of each kind that are shown."""
SHARES = (0.5, 0.99)
"""The quantiles of latency."""
_LONGEST = 500
_STEPS = {
    "pin": "take in changes",
    "job": "read and match",
    "write": "write down",
    "commit": "commit",
}
"""What a batch spends its time on."""


class History:
    """The batches of this run, as they are committed."""

    def __init__(self, settings: StreamSettings) -> None:
        self._settings = settings
        self._begun = time.monotonic()
        self._batches: deque[model.StreamBatch] = deque(maxlen=MOST)
        self._spent = dict.fromkeys((*_STEPS, READING, MATCHING, "batch"), 0.0)
        self._before: float | None = None
        self._examples: dict[str, list[str]] = {kind: [] for kind in KINDS}

    def add(self, record: Record, arrivals: list[tuple[float, int]], seconds: Mapping[str, float]) -> None:
        """Take in a batch that was just committed."""
        counts = record["counts"]
        start = time.monotonic() - seconds["batch"] - self._begun
        if self._before is None:
            self._before = start
        for name in self._spent:
            self._spent[name] += seconds.get(name, 0.0)
        self._batches.append(
            model.StreamBatch(
                number=record["batch"],
                start=start,
                seconds=seconds["batch"],
                events=counts["events"],
                matches=counts["matches"],
                duplicates=counts[DUPLICATE],
                late=counts[LATE],
                malformed=counts[MALFORMED],
                version=record["version"],
                latency=_quantiles(arrivals, time.time()),
            )
        )
        wanting = {kind for kind in KINDS if counts[kind] and len(self._examples[kind]) < EXAMPLES}
        if wanting:
            self._exemplify(Staged.of(record["dead"], record["batch"], Path(self._settings.dead)), wanting)

    def _exemplify(self, files: Staged, wanting: set[str]) -> None:
        """Take dead letters from the files of a batch, until there are enough of each kind."""
        try:
            for row in _letters(files):
                examples = self._examples[row["kind"]]
                if len(examples) < EXAMPLES:
                    examples.append(f"{row['reason']}, in {row['row']}"[:_LONGEST])
                if all(len(self._examples[kind]) >= EXAMPLES for kind in wanting):
                    return
        except OSError:
            # Whoever reads dead letters may have taken them away by now: the page has their number.
            return

    def page(self, done: StreamResult, command: str) -> model.RunPage:
        """Put together what the page shows."""
        dead = {kind: getattr(done, kind.replace("-", "_")) for kind in KINDS}
        reasons = [Refusal(kind, rows, tuple(self._examples[kind])) for kind, rows in dead.items() if rows]
        refused = [model.RefusedRows("events", sum(dead.values()), self._settings.dead, tuple(reasons))]
        refused.append(model.RefusedRows("changes", done.rejected_changes, self._settings.rejected))
        left_out = done.batches - len(self._batches)
        words = f"The charts show the last {len(self._batches):,} of {done.batches:,} micro-batches."
        return model.RunPage(
            title=f"The stream to {shown(self._settings.output)}",
            created=dt.datetime.now(dt.UTC),
            counts=model.Counts(done.subscriptions, done.events, done.matches, self._spent["batch"]),
            steps=tuple(self._steps(done.seconds)),
            throughput=tuple(
                model.Partition(batch.number, batch.start, batch.seconds, batch.events)
                for batch in self._batches
            ),
            rejected=tuple(refused),
            batches=tuple(self._batches),
            machine=model.this_machine(str(find_java().version)),
            command=command,
            troubles=(words,) if left_out else (),
        )

    def _steps(self, seconds: float) -> Iterator[model.Step]:
        """Sum up where the time went, whatever the batch; the steps of batches come one after another."""
        before = seconds if self._before is None else self._before
        yield model.Step("open the snapshot, start", before)
        for name, title in _STEPS.items():
            note = ""
            if name == "job":
                reading, matching = self._spent[READING], self._spent[MATCHING]
                note = f"tasks: {reading:.1f} s reading, {matching:.1f} s matching"
            yield model.Step(title, self._spent[name], note=note)
        yield model.Step("wait for events", max(0.0, seconds - before - self._spent["batch"]))


def _letters(files: Staged) -> Iterator[dict[str, Any]]:
    for name in files.files:
        path = Path(files.folder) / final_name(name)
        if path.suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(256, columns=["row", "reason", "kind"]):
                    yield from batch.to_pylist()
        else:
            with path.open("rb") as lines:
                yield from map(json.loads, lines)


def _quantiles(arrivals: list[tuple[float, int]], now: float) -> tuple[tuple[float, float], ...]:
    """Find the quantiles of the times since events arrived.

    >>> _quantiles([(10.0, 98), (7.0, 2)], 12.0)
    ((0.5, 2.0), (0.99, 5.0))
    """
    if not arrivals:
        return ()
    waited, events = zip(
        *sorted((max(0.0, now - arrived), count) for arrived, count in arrivals), strict=True
    )
    behind = np.cumsum(events)
    places = np.searchsorted(behind, np.array(SHARES) * behind[-1])
    return tuple((share, float(waited[index])) for share, index in zip(SHARES, places, strict=True))


def run_told(
    session: Session | None,
    settings: StreamSettings,
    *,
    stop: threading.Event | None = None,
    quiet: bool = False,
    command: str = "",
) -> StreamResult:
    """Run a stream, and write the page about it, if one is named; `command` is how it was asked for.

    Without a session of Spark it runs in this process.
    """
    history = None if settings.report is None else History(settings)
    if session is None:
        from headgate.local import stream

        done = stream.run_stream(settings, stop=stop, quiet=quiet, history=history)
    else:
        from headgate.spark.stream.run import run_stream

        done = run_stream(session, settings, stop=stop, quiet=quiet, history=history)
    if settings.report is None or history is None:
        return done
    # What draws is slow to import, and most streams do not.
    from headgate.report.runs import page as run_page

    with naming(Path(settings.report)):
        run_page.write(history.page(done, command), Path(settings.report))
    return done
