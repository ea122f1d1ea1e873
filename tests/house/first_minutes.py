"""Time `./dev demo` as somebody new meets it: a clone, an empty home, a terminal.

    python -m tests.house.first_minutes

It ends with 1 if a goal is missed, so it is to be run on a quiet machine.
"""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOALS = {"first line": 5.0, "longest silence": 3.0, "set-up": 80.0, "in all": 120.0}
"""Seconds that each may take."""
_NOT_NEW = ("XDG_", "HEADGATE_", "NUMBA_", "PYTHON", "SPARK_", "VIRTUAL_ENV", "PIP_CACHE_DIR")
"""Beginnings of what an environment has that somebody new has not."""


def run_demo(folder: Path) -> dict[str, float]:
    """Clone, run the demo at a terminal, and return the seconds of each goal."""
    clone, home = folder / "headgate", folder / "home"
    home.mkdir()
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_NEW)}
    env = {**kept, "HOME": str(home), "TERM": "xterm", "COLUMNS": "110"}
    ours, theirs = pty.openpty()
    began = heard = time.monotonic()
    first, silence, shown = 0.0, 0.0, b""
    command = ["./dev", "demo"]
    with subprocess.Popen(command, cwd=clone, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as demo:
        os.close(theirs)
        while words := _read(ours):
            now = time.monotonic()
            first = first or now - began
            silence, heard = max(silence, now - heard), now
            shown += words
            sys.stdout.write(words.decode(errors="replace"))
            sys.stdout.flush()
    os.close(ours)
    if demo.returncode:
        raise SystemExit(f"./dev demo ended with {demo.returncode}")
    assert b"compiling kernels for this processor" not in shown, "KERNELS of the demo are not all it takes"
    setup = re.search(rb"set up in (\d+) s", shown)
    assert setup is not None, "the demo does not say how long its set-up took"
    taken = time.monotonic() - began
    return dict(zip(GOALS, (first, silence, float(setup[1]), taken), strict=True))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:
        # What Linux says when the other end of a terminal is closed.
        return b""


def main() -> int:
    """Print the seconds beside the goals."""
    with tempfile.TemporaryDirectory() as place:
        seconds = run_demo(Path(place))
    words = [f"{name} {taken:.1f} s of {GOALS[name]:.0f}" for name, taken in seconds.items()]
    print(f"\ndemo: {', '.join(words)}; load {os.getloadavg()[0]:.1f}")
    return int(any(taken > GOALS[name] for name, taken in seconds.items()))


if __name__ == "__main__":
    raise SystemExit(main())
