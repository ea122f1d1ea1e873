"""What only a process of its own can show: streams, signals, and what is left when it is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.running import HEADGATE, run_alone
from tests.conftest import SMALL_TABLES
from tests.spark.files import names, put, put_lines

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.mark.nightly
@pytest.mark.spark
def test_a_job_leaves_its_outputs_and_nothing_else(tmp_path: Path) -> None:
    put_lines(tmp_path / "subs.jsonl", [{"id": 1, "filter": "a = 1"}, {"id": 2, "filter": "a ="}])
    command = ("compile", "--subscriptions", "subs.jsonl", "--output", "snapshot/", "--engine", "spark")
    small = [
        word
        for name, value in SMALL_TABLES.items()
        if ".sql." in name
        for word in ("--conf", f"{name}={value}")
    ]
    ran = run_alone(*command, *small, "--json", cwd=tmp_path)
    assert ran.code == 0
    assert ran.json["subscriptions"] == 1
    lines = ran.err.splitlines()
    assert lines[0].startswith("starting Spark: ")
    assert all(line.endswith(" s") for line in lines)
    assert names(tmp_path) == ["snapshot", "snapshot-rejected.jsonl", "subs.jsonl"]


def test_a_master_that_is_none_is_one_line(tmp_path: Path) -> None:
    put_lines(tmp_path / "events.jsonl", [{"id": 1, "a": 1}])
    command = ("backtest", "--filter", "a = 1", "--events", "events.jsonl", "--quiet")
    ran = run_alone(*command, "--master", "nonsense", cwd=tmp_path)
    assert ran.code == 1
    assert ran.complaint.startswith(
        "master 'nonsense' is one that Headgate cannot use: it can use local[N], "
    )


@pytest.mark.spark
@pytest.mark.nightly
def test_workers_without_headgate_are_told_in_one_line(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    venv.create(bare, with_pip=False)
    put_lines(tmp_path / "subs.jsonl", [{"id": 1, "filter": "a = 1"}])
    command = ("compile", "--subscriptions", "subs.jsonl", "--output", "snapshot", "--quiet")
    ran = run_alone(*command, "--conf", f"spark.pyspark.python={bare}/bin/python", cwd=tmp_path)
    assert ran.code == 1
    # Spark's own daemon may say more above.
    assert "headgate: the Python of Spark's workers lacks headgate: " in ran.err.splitlines()[-1]
    assert names(tmp_path) == ["bare", "subs.jsonl"]


def java_of(group: int) -> list[str]:
    """List the command lines of the Java processes of a process group."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text("utf-8").rpartition(")")[2].split()
            if int(fields[2]) == group and fields[0] != "Z":
                found.append((place / "cmdline").read_bytes().decode(errors="replace"))
        except (OSError, ValueError):
            continue
    return [line for line in found if "java" in line]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Let children be interrupted, also where a shell runs this suite in the background and forbids it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.spark
@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("wait", [pytest.param("starting Spark", marks=pytest.mark.nightly), "generating"])
def test_an_interrupt_ends_everything_at_once(tmp_path: Path, wait: str) -> None:
    output = tmp_path / "ads"
    command = [HEADGATE, "generate", "records", "--output", str(output), "--subscriptions", "50000000"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if line.startswith(wait))
        assert java_of(process.pid)
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        enough = threading.Timer(60, os.killpg, (process.pid, signal.SIGKILL))
        enough.start()
        rest = process.stderr.read()
        code = process.wait(timeout=60)
        enough.cancel()
    assert time.monotonic() - began < 30
    assert code == 130, rest
    complaints = [line for line in rest.splitlines() if not line.endswith(" s")]
    assert complaints == ["headgate: interrupted"]
    assert java_of(process.pid) == []
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []
    assert names(tmp_path) in ([], ["ads"])
    assert not output.exists() or names(output) == []


def test_a_reader_that_stops_reading_is_no_error() -> None:
    texts = " OR ".join(f"a{number} = 'some rather long text'" for number in range(2500))
    for more in ((), ("--json",)):
        command = [HEADGATE, "explain", "--filter", texts, "--event", "{}", *more]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
            assert process.wait(timeout=60) == 1


def test_standard_input_of_a_real_process() -> None:
    ran = run_alone("explain", "--filter", "a = 'é'", "--event", "-", stdin='{"a": "é"}'.encode())
    assert (ran.code, ran.out.splitlines()[0]) == (0, "match")
    ran = run_alone("explain", "--filter", os.fsdecode(b"a = '\xff'"), "--event", "{}")
    assert ran.code == 1
    assert "lone surrogate" in ran.complaint


def test_a_disk_that_is_full_is_one_line(tmp_path: Path) -> None:
    put(tmp_path / "event.json", '{"a": 1}')
    with Path("/dev/full").open("wb") as full:
        command = [HEADGATE, "explain", "--filter", "a = 1", "--event", '{"a": 1}']
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.decode() == "headgate: [Errno 28] No space left on device\n"
