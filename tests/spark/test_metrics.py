"""Metrics: the text held against a strict parser, from many threads, in files and over HTTP."""

from __future__ import annotations

import re
import string
import threading
import urllib.request
from math import inf, isnan, nan
from typing import TYPE_CHECKING, NamedTuple
from urllib.error import HTTPError

import numpy as np
import pytest

from headgate.errors import HeadgateError, MachineError, TableError
from headgate.stream.metrics import BUCKETS, CATALOGUE, Metric, Metrics

if TYPE_CHECKING:
    from pathlib import Path

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r"[a-zA-Z_][a-zA-Z0-9_]*"
PAIR = re.compile(rf'({LABEL})="((?:[^"\\\n]|\\["\\n])*)"(,|$)')
SAMPLE = re.compile(rf"({NAME})(?:\{{(.*)\}})? (\S+)")
ODD = string.ascii_letters + ' "\\\n{},=#é東\t'


class Sample(NamedTuple):
    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


def parse(text: str) -> tuple[dict[str, str], list[Sample]]:
    """Read text exposition 0.0.4 strictly: HELP, TYPE, then that metric's samples, each once."""
    assert text == "" or text.endswith("\n")
    kinds: dict[str, str] = {}
    samples: list[Sample] = []
    helped = ""
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            helped = line.split(" ")[2]
            assert helped not in kinds
            continue
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name == helped
            assert kind in {"counter", "gauge", "histogram"}
            kinds[name] = kind
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        name, inside, value = found[1], found[2], found[3]
        family = re.sub(r"_(bucket|sum|count)$", "", name) if kinds[helped] == "histogram" else name
        assert family == helped
        sample = Sample(name, _pairs(inside or ""), float(value.replace("Inf", "inf")))
        assert (sample.name, sample.labels) not in {(each.name, each.labels) for each in samples}
        samples.append(sample)
    return kinds, samples


def _pairs(inside: str) -> tuple[tuple[str, str], ...]:
    found, at = [], 0
    while at < len(inside):
        pair = PAIR.match(inside, at)
        assert pair, inside
        plain = re.sub(r"\\(.)", lambda sign: {"n": "\n"}.get(sign[1], sign[1]), pair[2])
        found.append((pair[1], plain))
        at = pair.end()
    return tuple(found)


@pytest.mark.parametrize("seed", range(20))
def test_the_text_says_what_was_counted(seed: int) -> None:
    random = np.random.default_rng(seed)
    metrics = Metrics([Metric("own", "gauge", "Words \\ with\nodd signs.", ("a", "b"))])
    counted: dict[str, float] = {}
    gauges: dict[tuple[str, str], float] = {}
    times: list[float] = []
    for _ in range(int(random.integers(0, 120))):
        reason = "".join(random.choice(list(ODD), int(random.integers(0, 6))))
        n = float(random.choice([0, 1, 0.5, 1e17]))
        metrics.count("headgate_rejected_total", n, reason=reason)
        counted[reason] = counted.get(reason, 0) + n
        value = float(random.choice([inf, -inf, nan, -1.25, 0, 1e-9]))
        metrics.gauge("own", value, b=reason, a="x")
        gauges["x", reason] = value
        seconds = float(random.choice([*BUCKETS, *random.exponential(10, 3), 0, 1e6]))
        metrics.observe("headgate_batch_seconds", seconds)
        times.append(seconds)
    kinds, samples = parse(metrics.text())
    of = {
        name: [each for each in samples if each.name.startswith(name)]
        for name in ("headgate_rejected_total", "own", "headgate_batch_seconds")
    }
    assert {each.labels[0][1]: each.value for each in of["headgate_rejected_total"]} == counted
    shown = {(each.labels[0][1], each.labels[1][1]): each.value for each in of["own"]}
    assert shown.keys() == gauges.keys()
    assert all(isnan(shown[key]) if isnan(value) else shown[key] == value for key, value in gauges.items())
    for each in of["headgate_batch_seconds"]:
        if each.name.endswith("_bucket"):
            end = float(dict(each.labels)["le"].replace("Inf", "inf"))
            assert each.value == sum(seconds <= end for seconds in times)
        else:
            assert each.value == pytest.approx(
                sum(times) if each.name.endswith("_sum") else len(times), rel=1e-12
            )
    if times:
        assert kinds == {
            "headgate_batch_seconds": "histogram",
            "headgate_rejected_total": "counter",
            "own": "gauge",
        }
        assert len(of["headgate_batch_seconds"]) == len(BUCKETS) + 3


def test_many_threads_lose_nothing() -> None:
    metrics = Metrics()

    def work() -> None:
        for _ in range(2000):
            metrics.count("headgate_events_total")
            metrics.observe("headgate_latency_seconds", 0.3, 2)
            metrics.gauge("headgate_subscriptions", 7)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    texts = [metrics.text() for _ in range(50)]
    for thread in threads:
        thread.join()
    for text in texts:
        parse(text)
    _, samples = parse(metrics.text())
    values = {each.name: each.value for each in samples if not each.name.endswith("_bucket")}
    assert values["headgate_events_total"] == metrics.value("headgate_events_total") == 8000
    assert values["headgate_latency_seconds_count"] == 16_000
    assert values["headgate_latency_seconds_sum"] == pytest.approx(4800)


def test_reasons_without_end_stay_few() -> None:
    metrics = Metrics()
    for number in range(1000):
        metrics.count("headgate_rejected_total", reason=f"row {number}")
    _, samples = parse(metrics.text())
    assert len(samples) == 201
    assert sum(each.value for each in samples) == 1000
    assert metrics.value("headgate_rejected_total", reason="other") == 800


def test_what_makes_no_sense_is_refused() -> None:
    metrics = Metrics()
    with pytest.raises(HeadgateError, match="there is no metric 'headgate_nothing'"):
        metrics.count("headgate_nothing")
    with pytest.raises(HeadgateError, match="is a counter, and was used as a gauge"):
        metrics.gauge("headgate_events_total", 1)
    with pytest.raises(HeadgateError, match="has the labels reason, and was given"):
        metrics.count("headgate_rejected_total")
    with pytest.raises(HeadgateError, match="only rises"):
        metrics.count("headgate_events_total", -1)
    assert metrics.text() == ""


def test_the_catalogue_keeps_to_the_habits_of_names() -> None:
    assert len({each.name for each in CATALOGUE}) == len(CATALOGUE)
    for each in CATALOGUE:
        assert re.fullmatch(NAME, each.name)
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert each.words.endswith(".")
        assert all(re.fullmatch(LABEL, label) for label in each.labels)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    metrics = Metrics()
    place = tmp_path / "headgate.prom"
    place.write_text("old", encoding="utf-8")
    metrics.count("headgate_rejected_total", reason="é\n")
    metrics.write(place)
    assert place.read_text(encoding="utf-8") == metrics.text()
    assert place.stat().st_mode & 0o777 == 0o644
    assert list(tmp_path.iterdir()) == [place]
    with pytest.raises(TableError, match=r"cannot write the metrics to .*: No such file or directory$"):
        metrics.write(tmp_path / "missing" / "headgate.prom")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TableError, match="cannot write the metrics"):
        metrics.write(str(tmp_path / "folder"))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["folder", "headgate.prom"]


def test_it_is_served_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    metrics = Metrics()
    metrics.count("headgate_events_total", 5)
    with metrics.serve() as served:
        assert served.url == f"http://127.0.0.1:{served.port}/metrics"
        with urllib.request.urlopen(served.url, timeout=10) as answer:
            assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert answer.read().decode() == metrics.text()
        metrics.count("headgate_events_total")
        with urllib.request.urlopen(f"{served.url}?x=1", timeout=10) as answer:
            assert parse(answer.read().decode())[1] == [Sample("headgate_events_total", (), 6)]
        head = urllib.request.Request(served.url, method="HEAD")
        with urllib.request.urlopen(head, timeout=10) as answer:
            assert (answer.status, answer.read()) == (200, b"")
        with pytest.raises(HTTPError, match="404") as missing:
            urllib.request.urlopen(f"http://127.0.0.1:{served.port}/", timeout=10)
        missing.value.close()
        with pytest.raises(HTTPError, match="501") as wrong:
            urllib.request.urlopen(served.url, data=b"x", timeout=10)
        wrong.value.close()
        with (
            pytest.raises(MachineError, match=rf"cannot be served at 127.0.0.1:{served.port}: .*in use"),
            metrics.serve(served.port),
        ):
            pass
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(served.url, timeout=10)
    with pytest.raises(MachineError, match="cannot be served at 127"), metrics.serve(99999):
        pass
    assert capsys.readouterr() == ("", "")
