"""Documents parsed in another process, so that one that ends its parser ends nothing else.

The process is started when it is first needed and lives as long as its reader. It answers document by
document. If it ends, the document that it was at is tried once more, alone, in a new process, because
somebody may have ended the first from outside; if that ends too, the document is refused and the others go
on. If it takes too long by the clock, it may take as long again by its own use of a processor, because the
machine may be busy; then it is ended, and the document refused.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from headgate.errors import EventError, MachineError
from headgate.rdf.events.triples import NumberedTriples
from headgate.rdf.events.worker import HEAD, READY, Frame, pack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headgate.rdf.events.screening import Limits
    from headgate.rdf.events.triples import Settings

T = TypeVar("T")
START_SECONDS = 60.0
"""How long a process may take to start: machines are slow at times."""
FRAME_BYTES = 8 << 20
"""How much is sent at once."""
_CHUNK = 1 << 20
_PATIENCE = 5.0
_SLICES = 100
"""How often a process that is late is looked at, each time after a tenth of what it was given."""
_ANSWER: msgspec.msgpack.Decoder[NumberedTriples | str] = msgspec.msgpack.Decoder(NumberedTriples | str)


class Document(NamedTuple):
    """A text that was screened, its media type, and what messages call that."""

    data: bytes
    kind: str
    name: str


class Isolated:
    """A process and its place in this one; threads take turns, and a forked child starts its own."""

    def __init__(self, module: str, name: str, memory: int) -> None:
        self._started_by = (module, name, memory)
        self._lock = threading.Lock()
        self._process: WorkerProcess | None = None
        _EVERY.add(self)

    def close(self) -> None:
        """End the process; the next question starts another."""
        with self._lock:
            self._stop()

    @property
    def pid(self) -> int | None:
        """Return the id of the process, if one is running."""
        process = self._process
        return None if process is None else process.pid

    def _running(self) -> WorkerProcess:
        if self._process is None:
            self._process = WorkerProcess(*self._started_by)
        return self._process

    def _gather(
        self, count: int, ask: Callable[[list[T], bool], None], given_up: Callable[[LostError], T]
    ) -> list[T]:
        """Ask until there are so many answers, of a new process where one ended; the lock is held.

        `ask` appends answers as they come; it is told whether only the next question is to be asked. That at
        which a process ends by its doing, or twice, is given up.
        """
        answers: list[T] = []
        suspect = -1
        while len(answers) < count:
            try:
                ask(answers, len(answers) == suspect)
            except LostError as lost:
                self._stop()
                if lost.guilty or len(answers) == suspect:
                    answers.append(given_up(lost))
                else:
                    suspect = len(answers)
            except BaseException:
                # An interruption: the answer to this question must not be taken for the next one's.
                self._stop()
                raise
        return answers

    def _stop(self) -> None:
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _forget(self) -> None:
        """Leave the process to the parent that we were forked from."""
        self._lock = threading.Lock()
        if self._process is not None:
            self._process.forget()
            self._process = None


class Isolation(Isolated):
    """A parser process."""

    def __init__(self, settings: Settings, limits: Limits) -> None:
        super().__init__("headgate.rdf.events.worker", "the parser", limits.memory)
        self._settings = settings
        self._limits = limits

    def parse(self, documents: Sequence[Document]) -> list[NumberedTriples | EventError]:
        """Parse documents; one that is refused has the reason in its place."""

        def ask(answers: list[NumberedTriples | EventError], alone: bool) -> None:
            first = len(answers)
            self._ask(documents[first : first + 1] if alone else _frame(documents, first), answers)

        with self._lock:
            return self._gather(
                len(documents), ask, lambda lost: EventError(f"{lost}: the document is refused")
            )

    def _ask(self, documents: Sequence[Document], answers: list[NumberedTriples | EventError]) -> None:
        """Parse documents and append what comes back, as far as it comes."""
        process = self._running()
        patience = [self._limits.patience(len(document.data)) for document in documents]
        process.send(pack(Frame(self._settings, list(documents))), sum(patience))
        for seconds in patience:
            answer = _ANSWER.decode(process.receive(seconds))
            answers.append(EventError(answer) if isinstance(answer, str) else answer)


_EVERY: weakref.WeakSet[Isolated] = weakref.WeakSet()


def _forget_all() -> None:
    for each in list(_EVERY):
        each._forget()  # noqa: SLF001 -- the module's own class


os.register_at_fork(after_in_child=_forget_all)


class LostError(Exception):
    """The process ended, or has not answered in time; `guilty` if that can only be the document's doing."""

    def __init__(self, reason: str, *, guilty: bool = False) -> None:
        super().__init__(reason)
        self.guilty = guilty


class WorkerProcess:
    """Pipes to a process that runs a module; `name` is what messages call it."""

    def __init__(self, module: str, name: str, memory: int) -> None:
        self._name = name
        # It finds the packages where we found them, and nothing in the directory where we happen to be.
        places = os.pathsep.join(path for path in sys.path if path)
        command = [sys.executable, "-P", "-m", module, str(memory)]
        try:
            self._child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                env={**os.environ, "PYTHONPATH": places},
            )
        except OSError as error:
            raise MachineError(f"{name} process does not start: {error}") from None
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self.pid = self._child.pid
        self._in, self._out = self._child.stdin, self._child.stdout
        os.set_blocking(self._in.fileno(), False)
        self._poll_in, self._poll_out = select.poll(), select.poll()
        self._poll_in.register(self._in.fileno(), select.POLLOUT)
        self._poll_out.register(self._out.fileno(), select.POLLIN)
        self._buffer = bytearray()
        self._end = weakref.finalize(self, _end, self._child)
        try:
            ready = msgspec.msgpack.decode(self.receive(START_SECONDS))
        except LostError as lost:
            self.stop()
            raise MachineError(f"{name} process does not start: {lost}; try {' '.join(command)}") from None
        assert ready == READY

    def send(self, data: bytes, seconds: float) -> None:
        """Write a frame."""
        until = time.monotonic() + seconds
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._in.fileno(), rest) :]
            except BlockingIOError:
                self._wait(self._poll_in, until, seconds)
            except BrokenPipeError:
                raise self._death() from None

    def receive(self, seconds: float) -> bytes:
        """Read a frame."""
        until = time.monotonic() + seconds
        buffer = self._buffer
        while len(buffer) < HEAD or len(buffer) < (size := HEAD + int.from_bytes(buffer[:HEAD], "little")):
            self._wait(self._poll_out, until, seconds)
            part = os.read(self._out.fileno(), _CHUNK)
            if not part:
                raise self._death()
            buffer += part
        frame = bytes(buffer[HEAD:size])
        del buffer[:size]
        return frame

    def stop(self) -> None:
        """End the process and wait until it has."""
        self._end()

    def forget(self) -> None:
        """Close our ends of the pipes without touching the process, which is the child of another."""
        self._end.detach()
        self._child.returncode = 0
        self._in.close()
        self._out.close()

    def _wait(self, poll: select.poll, until: float, seconds: float) -> None:
        if poll.poll(max(0.0, until - time.monotonic()) * 1000):
            return
        before = used = _processor_seconds(self.pid)
        for _ in range(_SLICES):
            if before is None or used is None:
                break
            if used - before >= seconds:
                raise LostError(f"{self._name} was not done after {seconds:.1f} s", guilty=True)
            if poll.poll(seconds * 100):
                return
            used = _processor_seconds(self.pid)
        raise LostError(f"{self._name} was not done after {seconds:.1f} s")

    def _death(self) -> LostError:
        """Say what the process died of."""
        try:
            code = self._child.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            return LostError(f"{self._name} closed its pipes")
        if code >= 0:
            return LostError(f"{self._name} ended with exit code {code}")
        with contextlib.suppress(ValueError):
            return LostError(f"{self._name} died of signal {-code} ({signal.Signals(-code).name})")
        return LostError(f"{self._name} died of signal {-code}")


def _end(child: subprocess.Popen[bytes]) -> None:
    """End a process, whatever state it is in."""
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            pipe.close()
    child.kill()
    child.wait()


def _processor_seconds(pid: int) -> float | None:
    """Return how long a process has used a processor, where the platform tells."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _frame(documents: Sequence[Document], first: int) -> Sequence[Document]:
    """Take as many documents as go into one frame, one at least."""
    size, last = 0, first
    while last < len(documents) and (size == 0 or size + len(documents[last].data) <= FRAME_BYTES):
        size += len(documents[last].data) + 1
        last += 1
    return documents[first:last]
