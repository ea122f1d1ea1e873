"""A way to a server that is cut once, when the client says a certain word."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress


class Proxy:
    """Forwards connections; hangs up one of them instead of forwarding the word."""

    def __init__(self, port: int, word: bytes) -> None:
        self.cuts = 0
        self._to = port
        self._word = word
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        """Return the port that it listens on."""
        return int(self._listening.getsockname()[1])

    def close(self) -> None:
        """Hang up everything."""
        for one in (self._listening, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._to))
                self._open += [near, far]
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(*pair, pair[0] is near), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket, listens: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if listens and not self.cuts and self._word in data:
                    self.cuts += 1
                    break
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
