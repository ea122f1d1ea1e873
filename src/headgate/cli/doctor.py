"""Examine the machine: does it have what Headgate needs, and if not, what would help?"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import socket
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.core.machine import cache_home, cores, memory
from headgate.errors import HeadgateError
from headgate.spark.session.java import ADVICE, PACKAGES, find_java, missing, need_spark

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_MEMORY = 2 * 2**30
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `advice` is empty when it is fine."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def examine(*, deep: bool = False) -> list[Finding]:
    """Look at everything that Headgate needs; `deep` also starts Spark and runs a small job."""
    findings = [_python(), *_packages(), _compiled_parser(), _java()]
    findings += [Finding("cores", True, str(cores())), _memory(), _kernel_cache(), _loopback()]
    if deep:
        findings.append(_spark())
    return findings


def _python() -> Finding:
    found = platform.python_version()
    ok = tuple(int(part) for part in platform.python_version_tuple()[:2]) >= OLDEST_PYTHON
    return Finding("Python", ok, found, "" if ok else "use Python 3.11 or newer")


def _packages() -> Iterator[Finding]:
    """Hold each installed package against what Headgate's own metadata asks for."""
    try:
        required = importlib.metadata.requires("headgate") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("headgate", False, "not installed", "run ./dev setup, or pip install headgate")
        return
    for requirement in required:
        wanted = re.match(r"([\w.-]+)(?:\[[^]]*])?\s*([^;]*)", requirement)
        if wanted and ("extra ==" not in requirement or wanted[1] in PACKAGES):
            yield _package(wanted[1], wanted[2].strip())


def _package(name: str, wanted: str) -> Finding:
    advice = f"run pip install '{name}{wanted}'"
    if name in missing():
        return Finding(name, False, "not installed", ADVICE)
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", advice)
    ok = _satisfies(found, wanted)
    return Finding(name, ok, found, "" if ok else advice)


def _satisfies(version: str, wanted: str) -> bool:
    """Hold a version against bounds such as `>=4.1,<5`.

    >>> _satisfies("4.10.0", ">=4.9,<5"), _satisfies("5.0", ">=4.9,<5"), _satisfies("4.8.9", ">=4.9")
    (True, False, False)
    """
    have = _numbers(version)
    for operator, bound in re.findall(r"(>=|<)\s*([\d.]+)", wanted):
        limit = _numbers(bound)
        if (have < limit) == (operator == ">="):
            return False
    return True


def _numbers(version: str) -> tuple[int, ...]:
    leading = re.match(r"[\d.]*\d", version)
    return tuple(int(part) for part in leading[0].split(".")) if leading else ()


def _compiled_parser() -> Finding:
    try:
        found = importlib.metadata.version("sqlglotc")
    except importlib.metadata.PackageNotFoundError:
        advice = "filters are parsed four times slower: run pip install 'sqlglot[c]'"
        return Finding("compiled sqlglot", False, "not installed", advice)
    return Finding("compiled sqlglot", True, found)


def _java() -> Finding:
    try:
        java = find_java()
    except HeadgateError as error:
        return Finding("Java", False, "none", str(error))
    return Finding("Java", True, f"{java.version} from {java.source} ({java.home})")


def _memory() -> Finding:
    total = memory()
    ok = total >= LEAST_MEMORY
    advice = "" if ok else "Spark and an index need 2 GiB or more: expect it to be slow or to be killed"
    return Finding("memory", ok, f"{total / 2**30:.1f} GiB", advice)


def _kernel_cache() -> Finding:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(chosen) if chosen else cache_home()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        advice = "kernels compile anew in every run: set NUMBA_CACHE_DIR to a folder that can be written"
        return Finding("kernel cache", False, f"{folder}: {error.strerror}", advice)
    return Finding("kernel cache", True, str(folder))


def _loopback() -> Finding:
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = server.getsockname()
            socket.create_connection(address, timeout=5).close()
    except OSError as error:
        advice = (
            "Spark talks to Python through 127.0.0.1: bring the loopback interface up (ip link set lo up)"
        )
        return Finding("loopback", False, error.strerror or str(error), advice)
    return Finding("loopback", True, "127.0.0.1")


def _spark() -> Finding:
    # By name, so that looking at a machine without Spark does not end at an import.
    try:
        need_spark()
        sessions: Any = importlib.import_module("headgate.spark.session.session")
        session = sessions.open_session()
        try:
            with sessions.spark_errors():
                rows = session.range(1).mapInArrow(lambda batches: batches, "id long").count()
            found = f"{session.version} on {session.sparkContext.master}"
        finally:
            sessions.close_session(session)
    except (ImportError, HeadgateError) as error:
        return Finding("Spark", False, "does not start", str(error))
    ok = rows == 1
    return Finding("Spark", ok, found, "" if ok else f"a job of one row returned {rows}: reinstall pyspark")
