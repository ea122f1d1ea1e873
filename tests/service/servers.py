"""Real servers for tests: forked from one process that has loaded everything, so that each starts at once.

with Servers() as servers:
server = servers.start(data)       listens on a port of its own
server.kill()                      as kill -9 does
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

_PATIENCE = 60.0


class Served:
    """A server that runs."""

    def __init__(self, pid: int, address: str) -> None:
        self.pid = pid
        self.address = address

    @property
    def port(self) -> int:
        """Return its port."""
        return int(self.address.rpartition(":")[2])

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        """Ask it something and read JSON; raises for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(
            self.address + path, data, {"Content-Type": "application/json", **named}, method=method
        )
        with urlopen(request, timeout=30) as answer:
            found = answer.read()
        return json.loads(found) if found else None

    def kill(self) -> None:
        """End it at once, as kill -9 does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in good order."""
        self._end(signal.SIGTERM)

    def _end(self, how: int) -> None:
        try:
            os.kill(self.pid, how)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + _PATIENCE
        while time.monotonic() < deadline and _runs(self.pid):
            time.sleep(0.01)
        assert not _runs(self.pid), f"server {self.pid} did not end"


def _runs(pid: int) -> bool:
    """Tell whether anything of a process is there: its first thread may be gone before the others."""
    return Path(f"/proc/{pid}").exists()


class Servers:
    """A process that has loaded everything, and forks servers."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headgate.network.forking"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._started: list[Served] = []

    def start(self, data: Path, **settings: Any) -> Served:
        """Start a server over a data directory."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"data": str(data), "port": 0, **settings}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert "error" not in answer, answer["error"]
        self._started.append(Served(answer["pid"], answer["address"]))
        return self._started[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for each in self._started:
            each.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(_PATIENCE)
