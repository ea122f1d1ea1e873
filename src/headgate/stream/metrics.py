"""Metrics of a run as Prometheus reads them: counted in memory, written to a file or served over HTTP.

The format is text exposition 0.0.4. Nothing here needs a package: what is written are lines such as

    # HELP headgate_rejected_total Rows that could not be used, by reason.
    # TYPE headgate_rejected_total counter
    headgate_rejected_total{reason="malformed"} 3

Only what is in the catalogue can be counted, so that every name has its words and its kind, here and in the
documentation. A program may bring more of its own.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from math import isinf, isnan
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from headgate.core.machine import put_file
from headgate.errors import HeadgateError, MachineError, TableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE = 10.0
"""Seconds that a client may take to send its request: one that hangs must not hold a thread for ever."""


class MetricsAddress(NamedTuple):
    """Where the metrics are."""

    url: str
    port: int


@contextmanager
def serving(text: Callable[[], str], port: int, host: str) -> Iterator[MetricsAddress]:
    """Serve what `text` returns while the body runs, in a thread that holds nothing up."""

    class Handler(_Handler):
        page = staticmethod(text)

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise MachineError(
            f"metrics cannot be served at {host}:{port}: {why}; choose another port, or 0 for a free one"
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        real = int(server.server_address[1])
        yield MetricsAddress(f"http://{host}:{real}{PATH}", real)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    timeout = _PATIENCE
    page: Callable[[], str]

    def do_GET(self) -> None:
        """Send the page, or say that there is no other."""
        self._send(body=True)

    def do_HEAD(self) -> None:
        """Send what would come before the page."""
        self._send(body=False)

    def _send(self, *, body: bool) -> None:
        found = self.path.partition("?")[0] == PATH
        text = self.page() if found else f"nothing is here: the metrics are at {PATH}\n"
        data = text.encode("utf-8", "replace")
        self.send_response(HTTPStatus.OK if found else HTTPStatus.NOT_FOUND)
        self.send_header("Content-Type", CONTENT_TYPE if found else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if body:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: a scrape every few seconds is not news."""


MetricKind: TypeAlias = Literal["counter", "gauge", "histogram"]
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper ends in seconds: from a quick batch to one that somebody should look at."""
OTHER = "other"
_MOST = 200
"""Label sets of one metric. Reasons are texts, and a scrape must stay small whatever they say."""


class Metric(NamedTuple):
    """A metric: its name, its kind, its words, and the labels that tell its series apart."""

    name: str
    kind: MetricKind
    words: str
    labels: tuple[str, ...] = ()


CATALOGUE = (
    Metric("headgate_events_total", "counter", "Events that were matched."),
    Metric("headgate_matches_total", "counter", "Matches that were written."),
    Metric("headgate_rejected_total", "counter", "Rows that could not be used, by reason.", ("reason",)),
    Metric("headgate_duplicates_total", "counter", "Events left out because their id was seen before."),
    Metric("headgate_late_total", "counter", "Events left out because they came too late."),
    Metric("headgate_changes_total", "counter", "Changes of subscriptions taken in, by kind.", ("op",)),
    Metric("headgate_batches_total", "counter", "Micro-batches that were committed."),
    Metric("headgate_batch_seconds", "histogram", "Time from a micro-batch's start to its commit."),
    Metric("headgate_latency_seconds", "histogram", "Time from an event's arrival to its commit."),
    Metric("headgate_input_rows_per_second", "gauge", "Rows a second that came in, last micro-batch."),
    Metric("headgate_processed_rows_per_second", "gauge", "Rows a second handled, last micro-batch."),
    Metric("headgate_phase_seconds", "gauge", "Time of the last batch by Spark's phase.", ("phase",)),
    Metric("headgate_observed", "gauge", "A metric observed by a query, last micro-batch.", ("name",)),
    Metric("headgate_snapshot_age_seconds", "gauge", "Time since the snapshot in use was written."),
    Metric("headgate_snapshot_version", "gauge", "How many changes the snapshot in use has taken in."),
    Metric("headgate_subscriptions", "gauge", "Subscriptions that events are matched against."),
    Metric("headgate_step_seconds", "gauge", "Time that a step of the last run took.", ("step",)),
    Metric("headgate_tasks_total", "counter", "Spark tasks that ended, by how.", ("status",)),
    Metric("headgate_task_seconds", "histogram", "Run time of Spark tasks."),
    Metric("headgate_stage_skew", "gauge", "Slowest task over the median one, last stage.", ("stage",)),
)  # fmt: skip
"""All that Headgate counts of itself."""

_Labels: TypeAlias = tuple[tuple[str, str], ...]


class _Histogram:
    """Counts by bucket, the last of them without an upper end, and the sum."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS) + 1)
        self.sum = 0.0


class Metrics:
    r"""Count from any thread, and give it all as text.

    >>> metrics = Metrics()
    >>> metrics.count("headgate_rejected_total", 2, reason='no "id"')
    >>> print(metrics.text(), end="")
    # HELP headgate_rejected_total Rows that could not be used, by reason.
    # TYPE headgate_rejected_total counter
    headgate_rejected_total{reason="no \"id\""} 2
    """

    def __init__(self, more: Iterable[Metric] = ()) -> None:
        self._described = {each.name: each for each in (*CATALOGUE, *more)}
        self._lock = threading.Lock()
        self._values: dict[str, dict[_Labels, float]] = {}
        self._histograms: dict[str, dict[_Labels, _Histogram]] = {}

    def count(self, name: str, n: float = 1, /, **labels: object) -> None:
        """Add to a counter; with 0 it is there from the start."""
        if n < 0:
            raise HeadgateError(f"metric {name}: a counter only rises, and {n} is below 0")
        with self._lock:
            series, key = self._values_of(name, "counter", labels)
            series[key] = series.get(key, 0) + n

    def gauge(self, name: str, value: float, /, **labels: object) -> None:
        """Set a gauge."""
        with self._lock:
            series, key = self._values_of(name, "gauge", labels)
            series[key] = value

    def observe(self, name: str, seconds: float, n: int = 1, /, **labels: object) -> None:
        """Put a time into a histogram, `n` times."""
        with self._lock:
            self._check(name, "histogram", labels)
            series = self._histograms.setdefault(name, {})
            histogram = series.setdefault(_key(labels, series), _Histogram())
            histogram.counts[bisect_left(BUCKETS, seconds)] += n
            histogram.sum += seconds * n

    def value(self, name: str, /, **labels: object) -> float:
        """Return what a counter or gauge stands at; 0 if it was never touched."""
        with self._lock:
            return self._values.get(name, {}).get(_labels(labels), 0.0)

    def text(self) -> str:
        """Write all that was counted, by name and labels."""
        with self._lock:
            lines: list[str] = []
            for name in sorted({*self._values, *self._histograms}):
                described = self._described[name]
                lines.append(f"# HELP {name} {_escaped(described.words)}")
                lines.append(f"# TYPE {name} {described.kind}")
                for labels, value in sorted(self._values.get(name, {}).items()):
                    lines.append(f"{name}{_braced(labels)} {_number(value)}")
                for labels, histogram in sorted(self._histograms.get(name, {}).items(), key=_first):
                    lines += _histogram_lines(name, labels, histogram)
        return "".join(f"{line}\n" for line in lines)

    def write(self, path: str | Path) -> None:
        """Write the text to a file, at once or not at all: for Prometheus' collector of text files."""
        try:
            put_file(Path(path), self.text().encode())
        except OSError as error:
            raise TableError(f"cannot write the metrics to {path}: {error.strerror or error}") from error

    @contextmanager
    def serve(self, port: int = 0, host: str = "127.0.0.1") -> Iterator[MetricsAddress]:
        """Serve the text at /metrics while the body runs; port 0 takes a free one, which is yielded."""
        with serving(self.text, port, host) as served:
            yield served

    def _values_of(
        self, name: str, kind: MetricKind, labels: dict[str, object]
    ) -> tuple[dict[_Labels, float], _Labels]:
        self._check(name, kind, labels)
        series = self._values.setdefault(name, {})
        return series, _key(labels, series)

    def _check(self, name: str, kind: MetricKind, labels: dict[str, object]) -> None:
        metric = self._described.get(name)
        if metric is None:
            raise HeadgateError(f"there is no metric {name!r}: describe it when `Metrics` is made")
        if metric.kind != kind:
            raise HeadgateError(f"metric {name} is a {metric.kind}, and was used as a {kind}")
        if set(labels) != set(metric.labels):
            wanted = ", ".join(metric.labels) or "none"
            raise HeadgateError(f"metric {name} has the labels {wanted}, and was given {sorted(labels)}")


def _key(labels: dict[str, object], series: dict[_Labels, float] | dict[_Labels, _Histogram]) -> _Labels:
    """Return the key of a series; where there are too many, that of what is left over."""
    key = _labels(labels)
    if key in series or len(series) < _MOST:
        return key
    return tuple((name, OTHER) for name, _ in key)


def _labels(labels: dict[str, object]) -> _Labels:
    return tuple(sorted((name, str(value)) for name, value in labels.items()))


def _first(pair: tuple[_Labels, _Histogram]) -> _Labels:
    return pair[0]


def _histogram_lines(name: str, labels: _Labels, histogram: _Histogram) -> Iterator[str]:
    """Write the buckets, each with those below it, then the sum and the count."""
    seen = 0
    for end, count in zip((*map(_number, BUCKETS), "+Inf"), histogram.counts, strict=True):
        seen += count
        yield f"{name}_bucket{_braced((*labels, ('le', end)))} {seen}"
    yield f"{name}_sum{_braced(labels)} {_number(histogram.sum)}"
    yield f"{name}_count{_braced(labels)} {seen}"


def _braced(labels: _Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_quotable(value)}"' for name, value in labels) + "}"


def _quotable(value: str) -> str:
    return _escaped(value).replace('"', '\\"')


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    """Write a number: a whole one without a point.

    >>> _number(3.0), _number(0.25), _number(float("inf")), _number(float("nan"))
    ('3', '0.25', '+Inf', 'NaN')
    """
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) else repr(float(value))
