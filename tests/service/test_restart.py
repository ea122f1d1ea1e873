"""What goes on by itself after a restart, and what is noted of consumers."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from headgate.service.delivery.hub import read_log
from headgate.service.security.keys import Keys
from headgate.service.server import make_place
from headgate.service.storage.log import NONE, Block
from headgate.service.storage.store import Store
from headgate.service.tenant.names import Names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.service.servers import Servers


class Hook(HTTPServer):
    """A webhook that notes what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.status = 503
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                if hook.status < 300:
                    hook.told.append(json.dumps(body))
                self.send_response(hook.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/"


@pytest.fixture
def hook() -> Iterator[Hook]:
    """Return a webhook that fails, until its status is another."""
    found = Hook()
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


def _until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert true()


def test_webhooks_of_all_tenants_go_on_after_a_restart(servers: Servers, tmp_path: Path, hook: Hook) -> None:
    """A tenant that nobody asks for is opened, if it has a webhook."""
    data = tmp_path / "data"
    make_place(data)
    keys = Keys(data)
    tenants = {name: keys.add(name, ["admin"])[1] for name in ("one", "two")}
    keys.close()
    server = servers.start(data, private_webhooks=True)
    as_one, as_two = ({"Authorization": f"Bearer {text}"} for text in tenants.values())
    server.ask("PUT", "/v1/consumers/hook", {"url": hook.url}, **as_one)
    server.ask("PUT", "/v1/subscriptions/all", {"filter": "true", "consumer": "hook"}, **as_one)
    server.ask("POST", "/v1/events", {"id": "missed"}, **as_one)
    server.ask("PUT", "/v1/subscriptions/all", {"filter": "true"}, **as_two)
    server.kill()
    hook.status = 204
    server = servers.start(data, private_webhooks=True)
    _until(lambda: hook.told)
    assert "missed" in hook.told[0]
    server.stop()


def test_changes_of_consumers_are_noted(servers: Servers, tmp_path: Path) -> None:
    server = servers.start(tmp_path / "data", private_webhooks=True)
    server.ask("PUT", "/v1/consumers/c", {"url": "http://127.0.0.1:9/"})
    server.ask("PATCH", "/v1/consumers/c", {"enabled": False})
    server.ask("POST", "/v1/consumers/c/secret")
    server.ask("POST", "/v1/consumers/c/replay", {"cursor": 0})
    server.ask("DELETE", "/v1/consumers/c")
    server.kill()
    store = Store(tmp_path / "data" / "tenants" / "default")
    found = [(each.action, each.what) for each in store.audit.page(0, 100)]
    store.close()
    assert found == [
        ("replace consumer", "c"),
        ("patch consumer", "c"),
        ("new secret of consumer", "c"),
        ("replay to consumer", "c after 0"),
        ("delete consumer", "c"),
    ]


def test_positions_that_never_were_are_not_lost(tmp_path: Path) -> None:
    """Where appends failed at the start of the log, nothing has passed; what was forgotten has."""
    store = Store(tmp_path)

    def append(first: int) -> None:
        numbers = np.zeros(0, np.uint32)
        ends, ids = np.array([0], np.uint32), np.array([0], np.uint32)
        store.log.append([Block(first, 0, [b"{}"], ends, numbers, NONE, NONE, ids)], [])

    append(4)
    append(9)
    assert store.log.bounds() == (1, 9)
    assert [read_log(store.log, Names(), 1, after, 9).first for after in (0, 3, 4, 8, 9)] == [0] * 5
    store.log.append([], [store.log.trimming(9)])
    assert store.log.bounds() == (9, 9)
    assert [read_log(store.log, Names(), 1, after, 9).first for after in (0, 7, 8, 9)] == [9, 9, 0, 0]
    store.close()
