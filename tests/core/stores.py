"""An S3-speaking server on loopback, as a process of its own, and what tests need to reach it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BUCKET = "bucket"


class StoreServer:
    """The server; its buckets are in its memory."""

    def __init__(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                break
            except OSError:
                assert self._process.poll() is None, "the server ended"
                time.sleep(0.05)
        from pyarrow.fs import S3FileSystem

        self.files = S3FileSystem(
            access_key="key",
            secret_key="secret",
            region="us-east-1",
            endpoint_override=f"http://127.0.0.1:{self.port}",
            allow_bucket_creation=True,
        )
        self.files.create_dir(BUCKET)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a process needs to reach it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}",
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def address(self, path: str) -> str:
        """Return an address that says all that is needed, also to workers that were started before."""
        options = f"scheme=http&endpoint_override=127.0.0.1:{self.port}&region=us-east-1"
        return f"s3://key:secret@{BUCKET}/{path}?{options}"

    def names(self, path: str = "") -> list[str]:
        """List the objects below a path."""
        from pyarrow.fs import FileSelector, FileType

        found = self.files.get_file_info(
            FileSelector(f"{BUCKET}/{path}", recursive=True, allow_not_found=True)
        )
        return sorted(each.path for each in found if each.type is FileType.File)

    def read(self, path: str) -> bytes:
        with self.files.open_input_stream(path) as file:
            return bytes(file.read())

    def write(self, path: str, content: bytes) -> None:
        with self.files.open_output_stream(path) as file:
            file.write(content)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(30)


@contextmanager
def reaching(server: StoreServer, cache: Path) -> Iterator[None]:
    """Have this process, and those that it starts, reach the server, with a cache of their own."""
    given = {**server.environment, "HEADGATE_CACHE": str(cache)}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
