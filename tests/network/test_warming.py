"""A network that is run once before sites are forked leaves nothing behind, and makes them small."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from headgate.network.assignment import SOURCE
from headgate.network.deployment import look_at
from headgate.network.local import LocalSites
from headgate.network.warming import warm_up

if TYPE_CHECKING:
    from pathlib import Path


def test_no_thread_is_left() -> None:
    """A fork would lose it."""
    before = threading.enumerate()
    warm_up()
    assert threading.enumerate() == before


def test_many_sites_are_small(tmp_path: Path) -> None:
    """A site that holds nothing has less than 16 MB of its own; without care it has 19."""
    with LocalSites(tmp_path, many=100) as sites:
        for name in (SOURCE, "a", "b", "c"):
            sites.start(name)
        found = asyncio.run(look_at(sites.neighbours()))
        pids = {name: site.pid for name, site in sites.sites.items()}
        assert all(each is not None for each in found.values())
        assert {name: _own(pid) < 16e6 for name, pid in pids.items()} == dict.fromkeys(pids, True)


def _own(pid: int) -> float:
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as lines:  # noqa: PTH123
        return sum(int(line.split()[1]) * 1_024 for line in lines if line.startswith("Private_Dirty"))
