"""Commands about this machine: what it lacks and what would help, kernels compiled ahead, and a demo."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import re
import shutil
import socket
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headgate.cli import shell
from headgate.cli.options import options_of
from headgate.core.machine import EXTRAS, cache_home, cores, lacking, memory, need
from headgate.core.settings import Request, setting
from headgate.errors import HeadgateError
from headgate.pipeline.demo import Demo, check_place, run_demo, summary_lines
from headgate.spark.session.java import find_java

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headgate.tables.settings import Where

LEAST_MEMORY = 2 * 2**30
OLDEST_PYTHON = (3, 11)
_WANTED = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*])?\s*(?P<bounds>[^;]*)(?:;.*extra == ['\"](?P<extra>[\w-]+)['\"])?"
)


LIBRARY, SPARK, SERVICE = "the library", "Spark", "the service"
_GROUPS = {"spark": SPARK, "java": SPARK, "client": SERVICE, "nats": SERVICE, "service": SERVICE}
"""Where extras belong; all others belong to the library."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `advice` is empty when it is there and fine."""

    name: str
    ok: bool
    """Whether it works, or is an extra that is not installed."""
    found: str
    advice: str = ""
    group: str = LIBRARY


def examine(*, deep: bool = False) -> list[Finding]:
    """Look at everything that Headgate needs; `deep` also starts Spark and runs a small job."""
    findings = [_python(), *_packages(), Finding("cores", True, str(cores())), _memory(), _kernel_cache()]
    findings += _extras()
    if _is_installed("spark"):
        findings += [_java(), _loopback()]
    if deep:
        findings.append(_spark())
    # Several extras may ask for the same package.
    single = {each.name: each for each in findings}.values()
    return sorted(single, key=lambda each: (LIBRARY, SPARK, SERVICE).index(each.group))


def _python() -> Finding:
    version = platform.python_version()
    ok = tuple(int(part) for part in platform.python_version_tuple()[:2]) >= OLDEST_PYTHON
    return Finding("Python", ok, version, "" if ok else "use Python 3.11 or newer")


def _packages() -> Iterator[Finding]:
    """Hold each installed package against what Headgate's own metadata asks for."""
    try:
        required = importlib.metadata.requires("headgate") or []
    except importlib.metadata.PackageNotFoundError:
        yield Finding("headgate", False, "not installed", "run ./dev setup, or pip install headgate")
        return
    for requirement in required:
        wanted = _WANTED.match(requirement)
        if wanted and (wanted["extra"] is None or _is_installed(wanted["extra"])):
            group = _GROUPS.get(wanted["extra"] or "", LIBRARY)
            yield replace(_package(wanted["name"], wanted["bounds"].strip()), group=group)


def _extras() -> Iterator[Finding]:
    """Tell which extras are not there."""
    for extra in EXTRAS:
        if not _is_installed(extra):
            advice = f"pip install 'headgate[{extra}]'"
            yield Finding(f"[{extra}]", True, "not installed", advice, _GROUPS.get(extra, LIBRARY))


def _is_installed(extra: str) -> bool:
    return extra in EXTRAS and not lacking(extra)


def _package(name: str, wanted: str) -> Finding:
    advice = f"run pip install '{name}{wanted}'"
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, False, "not installed", advice)
    ok = _satisfies(version, wanted)
    return Finding(name, ok, version, "" if ok else advice)


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


def _java() -> Finding:
    try:
        java = find_java()
    except HeadgateError as error:
        return Finding("Java", False, "none", str(error), SPARK)
    return Finding("Java", True, f"{java.version} from {java.source} ({java.home})", group=SPARK)


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
        advice = "kernels compile again in every run: set NUMBA_CACHE_DIR to a folder that can be written"
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
        return Finding("loopback", False, error.strerror or str(error), advice, SPARK)
    return Finding("loopback", True, "127.0.0.1", group=SPARK)


def _spark() -> Finding:
    # By name, so that looking at a machine without Spark does not end at an import.
    try:
        need("spark")
        sessions: Any = importlib.import_module("headgate.spark.session.session")
        session = sessions.open_session()
        try:
            with sessions.spark_errors():
                rows = session.range(1).mapInArrow(lambda batches: batches, "id long").count()
            about = f"{session.version} on {session.sparkContext.master}"
        finally:
            sessions.close_session(session)
    except (ImportError, HeadgateError) as error:
        return Finding("Spark", False, "does not start", str(error), SPARK)
    ok = rows == 1
    return Finding(
        "Spark", ok, about, "" if ok else f"a job of one row returned {rows}: reinstall pyspark", SPARK
    )


@shell.cli.command()
@click.option("--deep", is_flag=True, help="Also start Spark and run a small job (about ten seconds).")
@shell.json_option
def doctor(*, deep: bool, as_json: bool) -> None:
    r"""Say what is installed on this machine and works, and how to get the rest.

    It ends with 0 if what is installed works: an extra that is not installed is no fault.

    \b
    Example:
      headgate doctor --deep
    """
    findings = examine(deep=deep)
    lines = []
    for group, some in groupby(findings, key=lambda each: each.group):
        lines.append(group)
        for each in some:
            mark = "NO" if not each.ok else "--" if each.advice else "ok"
            lines.append(f"  {mark}  {each.name}: {each.found}{each.advice and f', {each.advice}'}")
    sound = all(finding.ok for finding in findings)
    lines.append("what is installed works" if sound else "something is missing, see NO above")
    shell.tell({"ok": sound, "findings": [asdict(finding) for finding in findings]}, lines, as_json=as_json)
    if not sound:
        sys.exit(1)


@dataclass(frozen=True)
class Warm(Request):
    """How kernels are compiled."""

    native: bool = setting("make code for this very processor, which others may not be able to run", False)
    processes: int | None = setting("how many compile at a time; by default one a core", least=1)
    copy_to: str | None = setting(
        "also copy the machine code of all rooms to this directory, as a wheel carries it",
        metavar="DIRECTORY",
    )


@shell.cli.command()
@click.argument("rooms", metavar="[ROOM]...", nargs=-1)
@options_of(Warm)
@shell.quiet_option
@shell.json_option
def warm(asked: Warm, rooms: tuple[str, ...], *, quiet: bool, as_json: bool) -> None:
    r"""Compile all kernels ahead of time, or those of the rooms named.

    A kernel that is compiled already is left alone. Where Headgate was installed from a wheel of this kind of
    processor, all of them are.

    \b
    Example:
      headgate warm records graph
    """
    from headgate.core.jit import signatures

    for room in rooms:
        if room not in signatures.rooms():
            known = ", ".join(signatures.rooms())
            raise click.UsageError(f"{room!r} is not a room with kernels: those are {known}")
    if rooms and asked.copy_to:
        raise click.UsageError("--copy-to takes all rooms: name none")
    if asked.copy_to and Path(asked.copy_to).is_file():
        raise click.UsageError(f"--copy-to {asked.copy_to} is a file: name a directory")
    from headgate.core.jit.warming import copy_code
    from headgate.core.jit.warming import warm as compile_all

    with shell.counting("compiling kernels", quiet=quiet) as tell_done:
        done = compile_all(rooms, native=asked.native, processes=asked.processes, tell=tell_done)
    result: dict[str, object] = {
        "processor": done.target.cpu,
        "ready": done.ready,
        "compiled": done.compiled,
        "seconds": round(done.seconds, 1),
        "removed": done.removed,
    }
    lines = [f"kernels for {done.target.cpu}: {done.compiled} compiled, {done.ready} were ready"]
    if asked.copy_to is not None:
        size = copy_code(done.target, Path(asked.copy_to))
        result["bytes"] = size
        lines.append(f"copied to {asked.copy_to}: {size / 1e6:.1f} MB")
    shell.tell(result, lines, as_json=as_json)


@shell.cli.command()
@options_of(Demo)
@shell.where_options(engine=False)
def demo(asked: Demo, where: Where, *, quiet: bool, as_json: bool) -> None:
    r"""Generate an advertising workload, compile it, match it on Spark, and write a report.

    It is a pipeline file, which is left in the directory: change it, and give it to headgate run.

    \b
    Example:
      headgate demo --subscriptions 10000 --events 2000
    """
    if asked.directory.is_file():
        raise click.UsageError(f"--output {asked.output} is a file: name a directory")
    check_place(asked.directory)
    shell.ready(where)
    outcome = run_demo(asked, where, quiet=quiet, command=shell.shown_command(sys.argv[1:]))
    report = outcome.report
    refused = {each.what: each.rows for each in report.rejected}
    result = {
        "subscriptions": report.counts.subscriptions,
        "rejected_subscriptions": refused["subscriptions"],
        "events": report.counts.events,
        "rejected_events": refused["events"],
        "matches": report.counts.matches,
        "events_per_second": report.counts.events_per_second,
        "steps": {step.name: round(step.seconds, 3) for step in report.steps},
        "seconds": round(outcome.seconds, 3),
        "pipeline": str(outcome.pipeline.file),
        "report": str(outcome.page),
    }
    shell.tell(result, [*summary_lines(outcome), f"see it live: {_called()} serve --demo"], as_json=as_json)


def _called() -> str:
    """Return how this program is called: by its name, where shells find it."""
    if shutil.which("headgate") is not None:
        return "headgate"
    return os.path.relpath(sys.argv[0])
