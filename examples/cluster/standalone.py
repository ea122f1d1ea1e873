"""Spark's own cluster on one machine, from the pyspark package alone: a master and workers."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyspark

from headgate.spark.session.java import find_java, quiet_home

if TYPE_CHECKING:
    from types import TracebackType

HOST = "127.0.0.1"
PATIENCE = 120.0
MASTER = "org.apache.spark.deploy.master.Master"
WORKER = "org.apache.spark.deploy.worker.Worker"


class Cluster:
    """A master and some workers of one core each; they end with the `with` block, whatever happens in it.

    To Spark a core is a task at a time, and Java and Python both work at it: together they may use more than
    one core of the machine. `bound` workers cannot: each has one core, and its processes no other.
    """

    def __init__(self, folder: Path, workers: int = 2, memory: str = "1g", *, bound: bool = False) -> None:
        self.folder = folder
        self.url = ""
        self.workers: list[subprocess.Popen[bytes]] = []
        self._count = workers
        self._memory = memory
        self._cores = sorted(os.sched_getaffinity(0)) if bound else []
        self._master: subprocess.Popen[bytes] | None = None
        self._page = ""

    def __enter__(self) -> Cluster:
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            port, page = _free_port(), _free_port()
            self._page = f"http://{HOST}:{page}/json/"
            self.url = f"spark://{HOST}:{port}"
            self._master = self._start("master", MASTER, "--port", str(port), "--webui-port", str(page))
            self._wait(0)
            for _ in range(self._count):
                self.add()
            self._wait(self._count)
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def settings(self) -> dict[str, str]:
        """Return what a session on this cluster needs to be told."""
        return {
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            # Tasks begin when all workers are there, so that figures are of all of them.
            "spark.cores.max": str(self._count),
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": "60s",
            # As for local runs: small tables still give every worker something to do.
            "spark.sql.files.maxPartitionBytes": "4m",
            "spark.sql.files.openCostInBytes": "256k",
        }

    def add(self) -> None:
        """Start one more worker."""
        self.workers.append(self._start_worker(len(self.workers)))

    def kill(self, number: int) -> None:
        """Kill a worker with all that it has started."""
        _kill(self.workers[number])

    def stop(self) -> None:
        """End all processes, by their ids."""
        for process in self.workers:
            _kill(process)
        if self._master is not None:
            _kill(self._master)
        shutil.rmtree(self.folder / "work", ignore_errors=True)

    def status(self) -> dict[str, Any]:
        """Ask the master what it knows."""
        with urllib.request.urlopen(self._page, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def _start_worker(self, number: int) -> subprocess.Popen[bytes]:
        place = self.folder / "work" / str(number)
        size = ("--cores", "1", "--memory", self._memory, "--work-dir", str(place))
        worker = self._start(f"worker-{number}", WORKER, "--webui-port", "0", *size, self.url)
        if self._cores:
            # Java has not started yet, and whatever is started later inherits it.
            os.sched_setaffinity(worker.pid, {self._cores[number % len(self._cores)]})
        return worker

    def _start(self, name: str, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-class"), program, "--host", HOST, *arguments]
        environment = os.environ | {
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": HOST,
            "JAVA_HOME": str(quiet_home(find_java())),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        # A group of its own: what a worker starts ends with it.
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)

    def _wait(self, workers: int) -> None:
        """Wait until the master answers and so many workers have registered with it."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for process in filter(None, (self._master, *self.workers)):
                if process.poll() is not None:
                    raise RuntimeError(
                        f"a process of the cluster ended by itself: see the logs in {self.folder}"
                    )
            with suppress(OSError, ValueError):
                alive = [one for one in self.status()["workers"] if one["state"] == "ALIVE"]
                if len(alive) == workers:
                    return
            time.sleep(0.1)
        raise RuntimeError(
            f"{workers} workers did not register in {PATIENCE:.0f} s: see the logs in {self.folder}"
        )


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])
