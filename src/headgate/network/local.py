"""Sites on this machine: one process each, forked from one that has loaded everything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from headgate.errors import MachineError
from headgate.network.assignment import SOURCE, Neighbour
from headgate.network.extension import TENANT
from headgate.network.forking import SITE, WARM
from headgate.service.security.keys import DEFAULT_TENANT, Keys
from headgate.service.server import make_place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Self

_PATIENCE = 60.0
_MANY = 20


def keys_of(data: Path, tenants: Iterable[str], note: str) -> dict[str, str]:
    """Make a directory of data, and a key of each tenant that may do everything."""
    make_place(data)
    with closing(Keys(data)) as keys:
        return {each: keys.add(each, ["admin"], note=note)[1] for each in tenants}


class LocalSite(NamedTuple):
    """A site that runs here."""

    pid: int
    neighbour: Neighbour
    publisher: Neighbour | None
    """At the source: how documents are published."""


class LocalSites:
    """Sites that run here, with their data in folders of one directory. They end with this process.

    Where it is said that they will be many, each takes less memory, and the first a second longer to come up.
    """

    def __init__(self, place: Path, *, many: int = 0, **settings: Any) -> None:
        self.place = place
        self.sites: dict[str, LocalSite] = {}
        self._settings = settings
        self._keys: dict[str, dict[str, str]] = {}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headgate.network.forking", *([WARM] if many >= _MANY else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, name: str, port: int = 0) -> LocalSite:
        """Start a site, or start it again with what it has kept."""
        data = self.place / name
        keys = self._keys.get(name) or self._made(name, data)
        asked = {"data": str(data), "port": port, SITE: TENANT, **self._settings}
        answer = self._ask(asked)
        address = answer["address"]
        publisher = Neighbour(address, keys[DEFAULT_TENANT]) if name == SOURCE else None
        started = LocalSite(answer["pid"], Neighbour(address, keys[TENANT]), publisher)
        self.sites[name] = started
        return started

    def again(self, name: str) -> LocalSite:
        """Start a site that has ended, where it was."""
        port = int(self.sites[name].neighbour.address.rpartition(":")[2])
        return self.start(name, port)

    def _made(self, name: str, data: Path) -> dict[str, str]:
        """Make the keys of a site: one for the network, and at the source one for publishers."""
        tenants = (TENANT, DEFAULT_TENANT) if name == SOURCE else (TENANT,)
        self._keys[name] = keys_of(data, tenants, "local")
        return self._keys[name]

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = json.loads(
            self._process.stdout.readline() or '{"error": "no sites can be started"}'
        )
        if "error" in answer:
            raise MachineError(f"site {asked['data']} does not run: {answer['error']}")
        return answer

    def neighbours(self) -> dict[str, Neighbour]:
        """Return how the sites can be reached."""
        return {name: site.neighbour for name, site in self.sites.items()}

    def kill(self, name: str) -> None:
        """End a site at once, as kill -9 does."""
        _end(self.sites[name].pid, signal.SIGKILL)

    def stop(self, name: str) -> None:
        """End a site in good order."""
        _end(self.sites[name].pid, signal.SIGTERM)

    def close(self) -> None:
        """End all of them."""
        for site in self.sites.values():
            with suppress(ProcessLookupError):
                os.kill(site.pid, signal.SIGKILL)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(_PATIENCE)
        self._process.stdout.close()

    def __enter__(self) -> Self:
        """Return them."""
        return self

    def __exit__(self, *_: object) -> None:
        """End them."""
        self.close()


def _end(pid: int, how: int) -> None:
    try:
        os.kill(pid, how)
    except ProcessLookupError:
        return
    deadline = time.monotonic() + _PATIENCE
    while _runs(pid):
        if time.monotonic() > deadline:
            raise MachineError(f"process {pid} does not end")
        time.sleep(0.005)


def _runs(pid: int) -> bool:
    """Tell whether anything of a process is there: its first thread may be gone before the others."""
    return Path(f"/proc/{pid}").exists()
