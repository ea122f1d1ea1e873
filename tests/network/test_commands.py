"""The commands of networks, from a saved plan to a network that is stopped."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from benchmarks.waiting import processes_below
from headgate import Client
from headgate.network.assignment import SOURCE, read_sites, write_sites
from headgate.network.local import LocalSites
from headgate.network.picture import picture_of
from tests.cli.running import HEADGATE, Command
from tests.network.test_sites import row_of
from tests.network.worlds import world_of

if TYPE_CHECKING:
    from pathlib import Path


def test_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Deploy, look, draw, go over to another plan, let a site leave, stop; each mistake is one line."""
    run = Command(monkeypatch, capsys)
    world = world_of("xpath", random.Random(2), 8, 12)
    plan = world.plan()
    plan.saved.save(tmp_path / "plan")
    names = sorted({view.site for view in plan.placed()})
    sites, plans = str(tmp_path / "sites.jsonl"), str(tmp_path / "plan")
    with LocalSites(tmp_path / "data") as running:
        for name in (SOURCE, *names):
            running.start(name)
        write_sites(tmp_path / "sites.jsonl", running.neighbours())
        assert read_sites(tmp_path / "sites.jsonl") == running.neighbours()
        found = run("network", "deploy", plans, "--sites", sites)
        assert found.err.splitlines()[-1] == "8 views are at 8 sites"
        again = run("network", "deploy", plans, "--sites", sites)
        assert "the sites hold network 'headgate' already: use `headgate network redeploy`" in again.complaint
        other = run("network", "redeploy", plans, "--sites", sites, "--name", "other")
        assert "belongs to network 'headgate', and not to 'other': stop that one first" in other.complaint
        publisher = running.sites[SOURCE].publisher
        assert publisher is not None
        with Client(publisher.address, key=publisher.key) as client:
            client.publish([row_of(event) for event in world.documents])
        deadline = time.monotonic() + 30
        while True:
            picture = asyncio.run(picture_of(running.neighbours()))
            if picture.document == "12" or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        expected = {each.id for each in world.subscriptions if plan.deliver(world.documents[-1])[each.id]}
        assert {way.view for way in picture.ways} == expected
        for way in picture.ways:
            assert way.stops[0][0] == SOURCE
            assert way.stops[-1][0] == way.view
            assert sorted(time for _, time in way.stops) == [time for _, time in way.stops]
        assert [site.state for site in picture.sites] == ["runs"] * 9
        lines = run("network", "status", "--sites", sites).out.splitlines()
        assert [line.split()[0] for line in lines] == ["site", SOURCE, *names]
        assert {line.split()[-1] for line in lines[1:]} == {"runs"}
        run("report", "network", "--sites", sites, "--output", str(tmp_path / "page.html"))
        page = (tmp_path / "page.html").read_text()
        assert "8 views at 8 sites, of which all run; 12 documents so far." in page
        assert run("network", "redeploy", plans, "--sites", sites).err.startswith("8 views are fed as")
        leaving = plan.placed()[-1].site
        left = run("network", "drain", plans, leaving, "--sites", sites)
        assert f"site '{leaving}' holds nothing: 0 views are fed in another way" in left.err
        missing = run("network", "drain", plans, "nowhere", "--sites", sites)
        assert "there is no site 'nowhere'" in missing.complaint
        assert "9 sites hold nothing" in run("network", "stop", "--sites", sites, "--yes").err


@pytest.mark.nightly
def test_a_network_on_one_machine(tmp_path: Path) -> None:
    """It starts, says how to publish, repairs itself, and ends."""
    world_of("sql", random.Random(2), 12, 5).plan().saved.save(tmp_path / "plan")
    given = ["--directory", str(tmp_path / "try"), "--sites", "3", "--port", "0"]
    started = subprocess.Popen(
        [HEADGATE, "network", "local", str(tmp_path / "plan"), *given], stderr=subprocess.PIPE, text=True
    )
    assert started.stderr is not None
    seen: list[str] = []
    killed = False
    for line in started.stderr:
        seen.append(line)
        if "network status --sites" in line and not killed:
            killed = True
            os.kill(list(processes_below(started.pid))[-1], signal.SIGKILL)
        if "does not answer" in line:
            break
    started.send_signal(signal.SIGINT)
    started.wait(60)
    started.stderr.close()
    assert any("views are fed in another way" in line for line in seen)
