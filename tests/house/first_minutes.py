"""Time what somebody new meets: `./dev demo` from a clone and an empty home, and the base install of a wheel.

    python -m tests.house.first_minutes

It ends with 1 if a goal is missed, so it is to be run on a quiet machine.
"""

from __future__ import annotations

import os
import pty
import re
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.house.test_wheel import build_wheel

ROOT = Path(__file__).resolve().parents[2]
GOALS = {
    "first line": (5.0, "s"),
    "longest silence": (3.0, "s"),
    "set-up": (80.0, "s"),
    "demo in all": (120.0, "s"),
    "base install": (560.0, "MB"),
    "first answer": (0.9, "CPU s"),
    "first answer without kernels": (25.0, "CPU s"),
}
"""The most that each may be."""
_NOT_NEW = ("XDG_", "HEADGATE_", "NUMBA_", "PYTHON", "SPARK_", "VIRTUAL_ENV", "PIP_CACHE_DIR")
"""Beginnings of what an environment has that somebody new has not."""
_ANSWER = """
from headgate import Engine, Subscription
engine = Engine.build([Subscription("s", "age > 30 AND country IN ('US', 'CA')")])
assert engine.match({"id": "e", "age": 35, "country": "US"}) == ["s"]
"""


def new_environment(home: Path) -> dict[str, str]:
    """Return the environment of somebody whose home this is, at a terminal."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_NEW)}
    return {**kept, "HOME": str(home), "TERM": "xterm", "COLUMNS": "110"}


def time_demo(folder: Path) -> list[float]:
    """Clone, run the demo at a terminal, and return its seconds in the order of the goals."""
    clone = folder / "headgate"
    env = new_environment(folder / "home")
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
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
    return [first, silence, float(setup[1]), time.monotonic() - began]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:
        # What Linux says when the other end of a terminal is closed.
        return b""


def measure_install(folder: Path) -> list[float]:
    """Install a wheel and nothing else, with pip; return its megabytes, and what two first answers take."""
    env, place = new_environment(folder / "home"), folder / "env"
    wheel = build_wheel(folder)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    python = str(place / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(wheel)], env=env, check=True)
    size = sum(each.lstat().st_size for each in place.rglob("*") if not each.is_dir())
    # The first run writes Python's own form of the modules.
    answers = [_answer_time(python, env) for _ in range(3)]
    # Code for a processor that only this name has is not in the wheel.
    own = {**env, "NUMBA_CPU_NAME": "x86-64-v2", "NUMBA_CPU_FEATURES": ""}
    return [size / 1e6, min(answers), _answer_time(python, own)]


def _answer_time(python: str, env: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, "-c", _ANSWER], env=env, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print what is measured beside the goals."""
    found: list[float] = []
    for measure in (measure_install, time_demo):
        with tempfile.TemporaryDirectory() as place:
            found = [*measure(Path(place)), *found]
    measured = dict(zip(GOALS, found, strict=True))
    words = [
        f"{name} {value:.1f} {GOALS[name][1]} (at most {GOALS[name][0]:g})"
        for name, value in measured.items()
    ]
    print(f"\ndemo: {', '.join(words)}; load {os.getloadavg()[0]:.1f}")
    return int(any(value > GOALS[name][0] for name, value in measured.items()))


if __name__ == "__main__":
    raise SystemExit(main())
