"""Connections: who is let in, what is encrypted, and one line for whatever goes wrong."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from headgate.brokers.nats.settings import NatsSettings
from headgate.brokers.nats.stream import Stream
from headgate.errors import HeadgateError
from headgate.stream.settings import StreamSettings
from headgate.stream.sources.nats import Nats
from tests.nats.server import Server

if TYPE_CHECKING:
    from pathlib import Path


def said(url: str) -> str:
    """Return the one line that a connection fails with."""
    with Stream(NatsSettings.of(url)) as stream, pytest.raises(HeadgateError) as caught:
        stream.state()
    text = str(caught.value)
    assert "\n" not in text
    assert "pa55" not in text
    return text


def test_a_server_that_is_not_there_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        begun = time.monotonic()
        text = said(f"nats://ann:pa55@127.0.0.1:{port}/S?patience=0.5")
        assert time.monotonic() - begun >= 0.5
    assert text.startswith(f"nats://127.0.0.1:{port}/S: no NATS server answers there (")
    assert text.endswith("): start one, or name another address")


def test_the_next_server_is_tried(server: Server) -> None:
    server.add("NEXT", "next")
    with Stream(NatsSettings.of(f"nats://127.0.0.1:1,127.0.0.1:{server.port}/NEXT")) as stream:
        assert stream.state().subjects == ("next",)


def test_users_tokens_and_wrong_ones(tmp_path: Path) -> None:
    users = Server(tmp_path / "users", 'authorization { user: ann, password: "pa55:wörd@" }')
    tokens = Server(tmp_path / "tokens", 'authorization { token: "pa55token" }')
    try:
        right = users.url("S", "patience=0", "ann:pa55%3Aw%C3%B6rd%40@")
        assert "has no stream S" in said(right)
        file = tmp_path / "password"
        file.write_text("pa55:wörd@", "utf-8")
        assert "has no stream S" in said(users.url("S", f"password_file={file}", "ann@"))
        begun = time.monotonic()
        for wrong in (users.url("S"), users.url("S", access="ann:pa55@"), tokens.url("S", "token=pa55")):
            assert said(wrong).endswith("the server refuses this user, password, token or credentials file")
        # Asking again would not help, so nobody waits for it.
        assert time.monotonic() - begun < 20
        assert "has no stream S" in said(tokens.url("S", "token=pa55token"))
    finally:
        users.stop()
        tokens.stop()


def test_a_server_without_jetstream_is_told(tmp_path: Path) -> None:
    plain = Server(tmp_path / "plain", "jetstream: disabled")
    try:
        assert said(plain.url("S", "patience=0")).endswith(
            "runs without JetStream: start nats-server with -js"
        )
    finally:
        plain.stop()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes its certificate with openssl")
def test_connections_are_encrypted(server: Server, tmp_path: Path) -> None:
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    make = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=localhost",
    ]
    make += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(make, check=True, capture_output=True)
    safe = Server(tmp_path / "safe", f'tls {{ cert_file: "{cert}", key_file: "{key}" }}')
    try:
        assert "has no stream S" in said(safe.url("S", f"tls=yes&ca={cert}"))
        assert "encrypted connection cannot be made: self-signed certificate" in said(
            safe.url("S", "tls=yes")
        )
        assert f"certificates {tmp_path}/none: No such file" in said(
            safe.url("S", f"tls=yes&ca={tmp_path}/none")
        )
    finally:
        safe.stop()
    for query in (f"tls=yes&ca={cert}", f"ca={cert}", f"cert={cert}&key={key}"):
        assert "the server does not encrypt" in said(server.url("S", f"{query}&token=pa55"))


def test_settings_are_checked_before_anything_starts(server: Server) -> None:
    server.add("CHECKED", "checked.*")

    def check(events: str, output: str = "out", changes: str | None = None, top: int | None = None) -> None:
        Nats().ask(StreamSettings("", events, output, "state", changes=changes, top=top))

    good = server.url("CHECKED", "subject=checked.a")
    check(good, good, good)
    check("in", server.url("CHECKED", "subject=checked.{rank}"), top=3)
    for bad, words in (
        ((server.url("CHECKED", "subject=other.>"),), "the stream takes checked.*, and none fits other.>"),
        (("in", "out", server.url("NOCHANGES")), "has no stream NOCHANGES: create it"),
        (("in", server.url("CHECKED", "subject=checked.a&patience=99")), "published again 129 s later"),
        (("in", server.url("CHECKED")), "matches go to matches: set subject"),
        (("in", server.url("CHECKED", "subject=checked.{rank}")), "names 'rank', and matches have event_id"),
    ):
        with pytest.raises(HeadgateError) as caught:
            check(*bad)
        assert words in str(caught.value)


def test_a_missing_client_library_is_told() -> None:
    script = """
import sys
sys.modules["nats"] = None
import headgate.stream.sources.nats_log
from headgate.brokers.nats.settings import NatsSettings
from headgate.brokers.nats.stream import Stream
try:
    Stream(NatsSettings.of("nats://u:pa55@h/S"))
except Exception as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == ("MachineError this needs nats: pip install 'headgate[nats]'\n")
