"""A real service on loopback, in a thread of this process, and a plain client of it."""

from __future__ import annotations

import asyncio
import http.client
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from headgate.service.resources import SubscriptionBody
from headgate.service.running import Running
from headgate.service.settings import ServiceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path


class Service:
    """A service that runs."""

    def __init__(self, place: Path, **settings: Any) -> None:
        self.running = Running(ServiceSettings(str(place), port=0, **settings))
        ready = threading.Event()
        self._thread = threading.Thread(target=self.running.run, args=(lambda _: ready.set(),), daemon=True)
        self._thread.start()
        assert ready.wait(60)
        self.port = self.running.port
        self.get("/v1/events")

    def stop(self) -> None:
        self.running.stop()
        self._thread.join(30)
        assert not self._thread.is_alive()

    @property
    def tenant(self) -> Any:
        return self.running.server.tenants["default"]

    @property
    def dispatcher(self) -> Any:
        return self.running.server.dispatchers["default"]

    def do(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the service's loop."""
        return asyncio.run_coroutine_threadsafe(work, self.dispatcher.hub.loop).result(60)

    def subscribe(self, identity: str, consumer: str, text: str = "true", **more: Any) -> None:
        said = (
            SubscriptionBody(filter=text, **more)
            if more
            else SubscriptionBody(filter=text, consumer=consumer)
        )
        self.do(self.tenant.put(identity, said))

    def publish(self, *rows: dict[str, Any]) -> list[int]:
        status, found, _ = self.ask("POST", "/v1/events", list(rows))
        assert status == 200, found
        return [each["cursor"] for each in found["events"]]

    def ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Send a request; returns status, body and headers."""
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=40)
        try:
            given = {"Content-Type": "application/json"} if body is not None else {}
            link.request(method, path, None if body is None else json.dumps(body), given | (headers or {}))
            answer = link.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text else None, dict(answer.headers)
        finally:
            link.close()

    def get(self, path: str) -> Any:
        status, found, _ = self.ask("GET", path)
        assert status == 200, found
        return found

    def listen(self, path: str, headers: dict[str, str] | None = None) -> Stream:
        return Stream(self.port, path, headers or {})


class Stream:
    """Server-sent events, as a client reads them."""

    def __init__(self, port: int, path: str, headers: dict[str, str]) -> None:
        self._link = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        self._link.request("GET", path, headers=headers)
        self.answer = self._link.getresponse()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Read events: `id`, `event`, `data`; a comment is an event with nothing but `comment`."""
        fields: dict[str, Any] = {}
        for line in self.answer:
            text = line.decode().rstrip("\n")
            if not text:
                if fields:
                    if "data" in fields:
                        fields["data"] = json.loads(fields["data"])
                    yield fields
                fields = {}
                continue
            name, _, value = text.partition(":")
            if name == "data" and "data" in fields:
                fields["data"] += "\n" + value.removeprefix(" ")
            else:
                fields[name or "comment"] = value.removeprefix(" ")

    def take(self, most: int) -> list[dict[str, Any]]:
        """Read so many events that are no comments."""
        found: list[dict[str, Any]] = []
        for each in self:
            if "comment" not in each:
                found.append(each)
                if len(found) == most:
                    break
        return found

    def close(self) -> None:
        self.answer.close()
        self._link.close()


class Endpoint:
    """An HTTP server that webhooks are sent to; `answer` says what it answers to the n-th request."""

    def __init__(self, answer: Callable[[int], Any] = lambda _: 200) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answer = answer
        self.changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.changed:
                    outer.got.append((dict(self.headers), body))
                    answer = outer.answer(len(outer.got))
                    outer.changed.notify_all()
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook"

    def wait(self, count: int, seconds: float = 20) -> list[tuple[dict[str, str], bytes]]:
        """Wait for so many requests."""
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.got) >= count, seconds), len(self.got)
            return list(self.got)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
