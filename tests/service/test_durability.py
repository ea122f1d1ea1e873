"""What stays of a data directory over restarts, copies, damage, a full disk, and too much load."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError

import apsw
import pytest

from headgate.errors import StorageError
from headgate.service.backup import back_up, check, restore

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.service.servers import Served, Servers

ROWS = [{"id": f"e{number}", "number": number} for number in range(50)]


def _fill(server: Served) -> None:
    server.ask("PUT", "/v1/subscriptions/small", {"filter": "number < 10", "consumer": "me"})
    server.ask("PUT", "/v1/subscriptions/limited", {"filter": "true", "limit": {"events": 3, "period": 3600}})
    server.ask("POST", "/v1/events", ROWS)


def _count(server: Served) -> int:
    """Count the events that are kept, page after page."""
    found = 0
    after: str | None = "0"
    while after is not None:
        page = server.ask("GET", f"/v1/events?limit=1000&after={after}")
        found, after = found + len(page["items"]), page["next"]
    return found


def _matches(server: Served, row: dict[str, Any]) -> set[str]:
    (event,) = server.ask("POST", "/v1/events?matches=true", [row])["events"]
    return set(event.get("matches", ()))


def test_a_copy_made_while_it_runs_is_whole(servers: Servers, tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    server = servers.start(data)
    _fill(server)
    assert back_up(data, copy) == ["default"]
    server.ask("POST", "/v1/events", {"id": "late", "number": 1})
    with pytest.raises(StorageError, match="has files in it"):
        back_up(data, copy)
    server.kill()
    (found,) = check(copy)
    assert (found.events, found.subscriptions, found.damage) == (50, 2, [])
    assert restore(copy, tmp_path / "again") == ["default"]
    server = servers.start(tmp_path / "again")
    assert server.ask("GET", "/v1/events?limit=1")["last"] == 50
    assert "small" in _matches(server, {"id": "x", "number": 3})
    server.stop()


def test_damage_is_told_in_a_line(servers: Servers, tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = servers.start(data)
    _fill(server)
    server.stop()
    file = data / "tenants" / "default" / "store.db"
    connection = apsw.Connection(str(file))
    ((first, block),) = connection.execute("SELECT first, block FROM blocks LIMIT 1")
    torn = bytearray(block)
    torn[len(torn) // 2] ^= 1
    connection.execute("UPDATE blocks SET block = ? WHERE first = ?", (bytes(torn), first))
    connection.close()
    (found,) = check(data)
    assert len(found.damage) == 1
    assert "block of events at position 1 is damaged: its checksum does not fit" in found.damage[0]
    copy = tmp_path / "copy"
    back_up(data, copy)
    with pytest.raises(StorageError, match=r"the copy .* is damaged"):
        restore(copy, tmp_path / "other")
    # What is not damaged goes on.
    server = servers.start(data)
    with pytest.raises(HTTPError) as refused:
        server.ask("GET", "/v1/events?limit=1")
    assert "is damaged" in json.loads(refused.value.read())["detail"]
    assert _matches(server, {"id": "x", "number": 3}) >= {"small"}
    server.stop()


def test_an_index_that_is_gone_is_built_again(servers: Servers, tmp_path: Path) -> None:
    data = tmp_path / "data"
    server = servers.start(data)
    _fill(server)
    server.stop()
    shutil.rmtree(data / "tenants" / "default" / "index")
    server = servers.start(data)
    _matches(server, {"id": "x", "number": 3})
    kept = server.ask("GET", "/v1/events/51")
    assert (kept["matches"], kept["held"]) == (["small"], ["limited"])
    server.stop()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Give a disk of a few megabytes."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_loses_nothing_and_ends(servers: Servers, small_disk: Path) -> None:
    data = small_disk / "data"
    server = servers.start(data, spare=0)
    _fill(server)
    body = [{"id": f"f{number}", "number": 1, "text": "x" * 20_000} for number in range(40)]
    acknowledged, refusals = 50, []
    for _ in range(40):
        try:
            acknowledged += server.ask("POST", "/v1/events", body)["accepted"]
        except HTTPError as error:
            refusals.append((error.code, json.loads(error.read())["detail"], error.headers["Retry-After"]))
            break
    assert refusals, "the disk was not full"
    ((status, detail, later),) = refusals
    assert status == 507
    assert "is full: free some space" in detail
    assert later is not None
    assert _count(server) == acknowledged
    server.kill()
    server = servers.start(data, spare=0)
    assert _count(server) == acknowledged
    server.kill()
    # Below what is to stay free, it does not even try.
    server = servers.start(data, spare=1 << 30)
    with pytest.raises(HTTPError) as refused:
        server.ask("POST", "/v1/events", {"id": "x"})
    assert refused.value.code == 507
    assert "stay free" in json.loads(refused.value.read())["detail"]
    server.kill()


def test_more_than_it_can_take_is_told_to_come_later(servers: Servers, tmp_path: Path) -> None:
    server = servers.start(tmp_path / "data", waiting=300_000)
    body = [{"id": f"e{number}", "text": "x" * 1_000} for number in range(100)]
    codes: list[int] = []
    taken: list[int] = []
    later: list[str | None] = []

    def publish() -> None:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            try:
                taken.append(server.ask("POST", "/v1/events", body)["accepted"])
                codes.append(200)
            except HTTPError as error:
                codes.append(error.code)
                later.append(error.headers["Retry-After"])

    threads = [threading.Thread(target=publish) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(codes) == {200, 429}
    assert all(later)
    assert server.ask("GET", "/v1/events?limit=1")["last"] == sum(taken)
    pages = Path(f"/proc/{server.pid}/statm").read_text("ascii").split()[1]
    assert int(pages) * os.sysconf("SC_PAGESIZE") < 700e6
    server.stop()


def test_two_processes_never_share_data(servers: Servers, tmp_path: Path) -> None:
    server = servers.start(tmp_path / "data")
    with pytest.raises(AssertionError, match="is used by another process"):
        servers.start(tmp_path / "data")
    server.stop()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(AssertionError, match="has other files in it"):
        servers.start(tmp_path / "other")
    with pytest.raises(AssertionError, match="can be reached by others, and there are no keys"):
        servers.start(tmp_path / "open", host="0.0.0.0")
