"""Run the command line, here or in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate import cli

if TYPE_CHECKING:
    import pytest

HEADGATE = str(Path(sys.executable).with_name("headgate"))


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Read standard output as one JSON object and nothing else."""
        assert self.out.count("\n") == 1, self.out
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def complaint(self) -> str:
        """Return the one line on stderr of a command that was refused."""
        assert self.out == ""
        assert self.err.startswith("headgate: ")
        assert self.err.endswith("\n")
        assert self.err.count("\n") == 1, self.err
        return self.err.removeprefix("headgate: ").removesuffix("\n")


class Command:
    """Run `headgate.cli.main` in this process; Spark is shared if it is running."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Ran:
        self._monkeypatch.setattr(sys, "argv", ["headgate", *map(str, arguments)])
        self._capsys.readouterr()
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = int(str(end.code))
        said = self._capsys.readouterr()
        return Ran(code, said.out, said.err)


def run_alone(*arguments: str | Path, cwd: Path | None = None, stdin: bytes | None = None) -> Ran:
    """Run the installed command in a process of its own."""
    command = [HEADGATE, *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, timeout=300, check=False)
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
