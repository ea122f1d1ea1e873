"""CONTRIBUTING.md has the commands, steps and lanes that `dev` has, no more and no fewer."""

from __future__ import annotations

import re
import shlex
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from typing import Any

import pytest

from tests.docs.fences import ROOT

PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
GOES_ON = "…"


@pytest.fixture
def dev(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Load the script as a module: it has no suffix."""
    # Else the loader leaves a compiled copy beside the script.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("dev_script", str(ROOT / "dev"))
    spec = spec_from_loader("dev_script", loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def rows_below(*titles: str) -> list[list[str]]:
    """Return the cells of the rows of a table, without the marks of code."""
    head = f"| {' | '.join(titles)} |\n"
    assert PAGE.count(head) == 1
    lines = PAGE.partition(head)[2].splitlines()[1:]
    table = lines[: next(at for at, line in enumerate(lines) if not line.startswith("|"))]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in table]


def as_typed(dev: Any, command: list[str], extra: dict[str, str]) -> list[str]:
    """Return a command as people type it: tools by their names in `.venv`, without how long tests took."""
    idle = ["nice", "-n", "19"]
    if command[:3] == idle:
        typed = as_typed(dev, command[3:], {})
        return [*(f"{name}={value}" for name, value in extra.items()), *idle, *typed]
    python, module, *rest = command if command[0] == dev.PYTHON_IN else ("", "", *command)
    if module == "-m" and rest[0] != "benchmarks":
        first = [f".venv/bin/{rest[0]}"]
    else:
        first = [word for word in (python, module, rest[0]) if word]
    words = [*first, *(word for word in rest[1:] if not word.startswith("--durations"))]
    return [
        *(f"{name}={value}" for name, value in extra.items()),
        *(word.replace(f"{dev.VENV}/", ".venv/") for word in words),
    ]


def steps_of_test(dev: Any, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, list[str]]]:
    """Run `./dev test` with nothing set up or started; returns the row, name and command of steps."""
    rows: list[list[Any]] = []

    def take_rows(given: list[list[Any]]) -> int:
        rows.extend(given)
        return 0

    def take_step(step: Any, words: object) -> int:
        assert words is None
        rows.append([step])
        return 0

    for name in ("set_up", "warm", "archive_classes", "say"):
        monkeypatch.setattr(dev, name, lambda *_: None)
    monkeypatch.setattr(dev, "run_rows", take_rows)
    monkeypatch.setattr(dev, "run_step", take_step)
    assert dev.test([]) == 0
    return [
        (str(number), name, as_typed(dev, command, extra))
        for number, row in enumerate(rows, 1)
        for name, command, extra in row
    ]


def test_commands(dev: Any, capsys: pytest.CaptureFixture[str]) -> None:
    dev.main(["none"])
    known = re.findall(r"it is one of (.*)", capsys.readouterr().err)[0].split(", ")
    assert [command for command, _ in rows_below("command", "what it does")] == [f"./dev {n}" for n in known]


def test_steps(dev: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done = steps_of_test(dev, monkeypatch)
    told = [(row, name, shlex.split(line)) for row, name, line in rows_below("row", "step", "by itself")]
    assert [step[:2] for step in told] == [step[:2] for step in done]
    for (_, _, written), (_, _, typed) in zip(told, done, strict=True):
        if written[-1] == GOES_ON:
            assert written[:-1] == typed[: len(written) - 1]
            assert len(typed) > len(written) - 1
        else:
            assert written == typed


def test_lanes(dev: Any) -> None:
    assert [lane for lane, _ in rows_below("lane", "what runs")] == list(dev.nightly_lanes())
