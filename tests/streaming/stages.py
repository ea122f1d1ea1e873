"""Streams that kill themselves at a stage: processes that are forked from one that has loaded everything.

Run as a program it reads lines of JSON, a stream each, and writes how each has ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate import Engine, Event, Subscription
from headgate.local.stream import run_stream
from headgate.runtime.state import COMMITTED, PINNED, READY, State
from headgate.stream.settings import StreamSettings

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

RENAME, SEGMENT, FORCED = "rename", "segment", "forced"
STAGES = (PINNED, READY, RENAME, COMMITTED, SEGMENT, FORCED)
"""After a record; before a staged file is renamed, a segment is in place, or something is forced."""


def arm(stage: str, count: int) -> None:
    """Have this process killed when it comes to a stage for the n-th time."""
    left = count

    def step() -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    if stage == FORCED:
        _before(os, "fsync", lambda _: True, step)
    elif stage in {RENAME, SEGMENT}:
        wanted = "_staged" if stage == RENAME else "log"
        _before(Path, "replace", lambda place: wanted in place.parts, step)
    else:
        put = State.put

        def noted(state: State, number: int, record: Any) -> Any:
            found = put(state, number, record)
            if record["stage"] == stage:
                step()
            return found

        State.put = noted  # type: ignore[method-assign, assignment]


def _before(owner: Any, name: str, wanted: Callable[[Any], bool], step: Callable[[], None]) -> None:
    real = getattr(owner, name)

    def watched(*given: Any) -> Any:
        if wanted(given[0]):
            step()
        return real(*given)

    setattr(owner, name, watched)


def serve() -> None:
    """Fork a stream for each line, and say how it ended."""
    # Loads what matching needs, once.
    Engine.build([Subscription("s", "n > 1")]).match(Event(1, {"n": 2}))
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        child = os.fork()
        if not child:
            arm(asked["stage"], asked["count"])
            run_stream(StreamSettings(**asked["settings"]), quiet=True)
            os._exit(0)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


class Server:
    """The other side: asks for streams that are killed."""

    def __enter__(self) -> Self:
        """Start the process."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "tests.streaming.stages"]
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self._process.communicate()

    def run(self, settings: StreamSettings, stage: str, count: int) -> bool:
        """Run a stream that is killed at a stage; tells whether it came to that."""
        given = {name: value for name, value in vars(settings).items() if value is not None}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"settings": given, "stage": stage, "count": count}) + "\n")
        self._process.stdin.flush()
        code = int(self._process.stdout.readline())
        assert code in {0, -signal.SIGKILL}
        return code != 0


if __name__ == "__main__":
    serve()
