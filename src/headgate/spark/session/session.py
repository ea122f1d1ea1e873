"""Open and close Spark sessions, quietly, and turn Spark's errors into Headgate's.

A class-data archive for a faster start was measured and left out: it takes about 1.2 s off a start of
5.3 s, and costs 11 s, 157 MB and hundreds of warning lines once for each version of Java and Spark.
Tests start two dozen Sparks and keep one (`tests/spark/classes.py`).
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark import SparkContext
from pyspark.errors import PySparkException, PySparkImportError, PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home as find_spark_home
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from headgate import errors
from headgate.core.machine import cores, memory, says_full
from headgate.core.versions.stores import MOST, PLACE
from headgate.errors import FilterError, HeadgateError, MachineError, TableError
from headgate.spark.session.java import check_master, find_java, quiet_home
from headgate.spark.session.settings import SEMANTICS, WORKER_MEMORY, own_session

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# By name because py4j has no types.
_PY4J: Any = importlib.import_module("py4j.protocol")

Session: TypeAlias = SparkSession
"""For those who hold a session and must not import pyspark."""

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_PYTHON = "spark.pyspark.python"
_WORKER_POOL = "spark.executorEnv.ARROW_DEFAULT_MEMORY_POOL"
_KINDS = "HEADGATE_KINDS"
PATIENCE = 20.0
"""Seconds that Java is given to end by itself."""
_GATEWAY, _JVM = "_gateway", "_jvm"


@dataclass
class _Held:
    application: str
    master: str
    holders: int = 1


_lock = threading.RLock()
# What writes that were cut short have left.
_remains: set[Path] = set()
# The applications that we started; the last holder to close one ends it.
_held: dict[SparkContext, _Held] = {}


def open_session(
    master: str | None = None, *, app: str = "headgate", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Start Spark, or share that of the session that is active; give it back with `close_session`.

    A session that is already active stays as it is: if it lacks our `SEMANTICS` or one of the `settings`,
    another with them is returned, on the same Spark.
    """
    given = dict(settings or {})
    with _lock, spark_errors():
        active = SparkSession.getActiveSession()
        if active is not None:
            if active.sparkContext in _held:
                _held[active.sparkContext].holders += 1
            return own_session(active, given)
        session = _start(master or f"local[{cores()},4]", app, given)
        context = session.sparkContext
        _held[context] = _Held(context.applicationId, context.master or "")
        return session


def close_session(session: SparkSession) -> None:
    """Give a session back; the last holder ends Spark and its Java process.

    A session that `open_session` did not start belongs to someone else and stays as it is.
    """
    with _lock:
        context = session.sparkContext
        held = _held.get(context)
        if held is None:
            return
        held.holders -= 1
        if held.holders:
            return
        del _held[context]
        # After an interrupt Java may not answer any more: then it is ended all the same.
        with suppress(_PY4J.Py4JError, OSError):
            # Tasks that are cut short would say so at length.
            context.setLogLevel("OFF")
        with suppress(_PY4J.Py4JError, OSError):
            session.stop()
        context.stop()
        _end_java()
        while _remains:
            shutil.rmtree(_remains.pop(), ignore_errors=True)
        if held.master.startswith("local-cluster"):
            _remove_work_folders(held.application)


def discard(folder: Path) -> None:
    """Remove a folder now, and again when Spark ends: until then tasks may still write to it."""
    shutil.rmtree(folder, ignore_errors=True)
    _remains.add(folder)


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn Spark's errors into one line of ours.

    An error that a worker raised on purpose comes back as itself; an unforeseen one is a defect and comes
    as a `RuntimeError` with the worker's traceback.
    """
    try:
        yield
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise MachineError(
            "Spark's Java process ended before it was ready, for the reason above: "
            "headgate doctor says what this machine lacks"
        ) from error
    except PySparkImportError as error:
        raise MachineError(str(error)) from error
    except (PySparkException, _PY4J.Py4JJavaError) as error:
        text = str(error)
        ours = _raised_by_worker(text)
        if ours is not None:
            raise ours from error
        lacking = re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", text)
        if lacking is not None:
            raise MachineError(
                f"the Python of Spark's workers lacks {lacking[1]}: install Headgate there, or name another "
                "Python with --conf spark.pyspark.python=PATH"
            ) from error
        if re.search(r"^\S*MemoryError\b", text, re.MULTILINE):
            raise MachineError(
                "a Python worker ran out of memory: give workers more (spark.executor.pyspark.memory, if it "
                "is set), fewer cores each, or smaller batches (spark.sql.execution.arrow.maxRecordsPerBatch)"
            ) from error
        if "Traceback (most recent call last)" in text:
            # Its words are fetched from Java when they are shown, and by then Java may be gone.
            raise RuntimeError(text) from None
        raise _told_by_spark(text) from error
    except (_PY4J.Py4JError, ConnectionError) as error:
        raise MachineError(
            "the connection to Spark's Java process was lost, most often because it was killed "
            "for want of memory: free some, or set spark.driver.memory lower"
        ) from error


def _start(master: str, app: str, given: Mapping[str, str]) -> SparkSession:
    check_master(master)
    _hush_pyspark()
    settings = {**_defaults(master), **given}
    if WORKER_MEMORY in given:
        # It bounds address space, of which Arrow's own allocator reserves more than a gigabyte at once.
        settings.setdefault(_WORKER_POOL, "system")
    if os.environ.get(_KINDS):
        settings.setdefault(f"spark.executorEnv.{_KINDS}", os.environ[_KINDS])
    if _JAVA_OPTIONS in given:
        settings[_JAVA_OPTIONS] = f"{_quiet_log()} {given[_JAVA_OPTIONS]}"
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in settings.items():
        builder = builder.config(name, value)
    with _launch_environment(master, given.get(_PYTHON)), _plain_interrupts():
        before = _children()
        try:
            return builder.getOrCreate()
        except BaseException:
            _end_java()
            # Interrupted early, pyspark forgets the Java that it has launched, which would then live on.
            for process in _children() - before:
                os.kill(process, signal.SIGKILL)
            raise


def _defaults(master: str) -> dict[str, str]:
    count = cores()
    settings = {
        **SEMANTICS,
        "spark.api.mode": "classic",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(2, count)),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.driver.maxResultSize": "0",
        "spark.driver.memory": f"{min(2048, max(512, memory() // 2**21))}m",
        _JAVA_OPTIONS: _quiet_log(),
    }
    if master.startswith("local"):
        settings["spark.driver.host"] = "127.0.0.1"
        settings["spark.driver.bindAddress"] = "127.0.0.1"
        # Small tables still give every core something to do.
        settings["spark.sql.files.maxPartitionBytes"] = "4m"
        settings["spark.sql.files.openCostInBytes"] = "256k"
    for name in ("NUMBA_CACHE_DIR", PLACE, MOST):
        if os.environ.get(name):
            settings[f"spark.executorEnv.{name}"] = os.environ[name]
    return settings


def _quiet_log() -> str:
    """Return the Java option that must be there before Java starts: Spark logs while it is starting."""
    return f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"


def _hush_pyspark() -> None:
    """Keep pyspark from printing each error on stderr, beside raising it."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    # Py4J logs what it raises as well, an interrupt among them: some to its own logger, some to the root.
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_py4j)


def _is_not_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"


@contextmanager
def _launch_environment(master: str, python: str | None) -> Iterator[None]:
    """Set what Spark takes from the environment, only while it starts."""
    wanted: dict[str, str | None] = {
        "JAVA_HOME": str(quiet_home(find_java())),
        # Either would make this a Spark Connect session.
        "SPARK_REMOTE": None,
        "SPARK_CONNECT_MODE_ENABLED": None,
        # Spark heeds the setting in spark-submit only; workers are expected to have this very Python.
        "PYSPARK_PYTHON": python or os.environ.get("PYSPARK_PYTHON") or sys.executable,
    }
    if master.startswith("local"):
        # Spares Spark the look-up of the machine's name, which can hang without a network.
        wanted["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP") or "127.0.0.1"
    before = {name: os.environ.get(name) for name in wanted}
    _set_environment(wanted)
    try:
        yield
    finally:
        _set_environment(before)


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    """Undo pyspark's handler of SIGINT: it calls Java in the midst of another call and always fails."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def _children() -> set[int]:
    """List the processes that this one has started; none where there is no /proc."""
    processes: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        # A thread may end while we look.
        with suppress(OSError):
            processes.update(map(int, task.read_text("ascii").split()))
    return processes


def _end_java() -> None:
    """End the Java process that pyspark would keep until Python exits, and forget it."""
    gateway = getattr(SparkContext, _GATEWAY)
    if gateway is None:
        return
    setattr(SparkContext, _GATEWAY, None)
    setattr(SparkContext, _JVM, None)
    gateway.shutdown()
    process: subprocess.Popen[bytes] | None = gateway.proc
    if process is None:
        return
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _remove_work_folders(application: str) -> None:
    """Remove what a `local-cluster` left in Spark's own folder; it does not heed SPARK_WORKER_DIR."""
    work = Path(find_spark_home()) / "work"
    shutil.rmtree(work / application, ignore_errors=True)
    if work.is_dir() and not any(work.iterdir()):
        work.rmdir()


def _raised_by_worker(text: str) -> HeadgateError | None:
    """Rebuild the last of our own errors that a worker's traceback names."""
    raised = re.findall(r"^headgate\.errors\.(\w+): (.+)$", text, re.MULTILINE)
    if not raised:
        return None
    name, message = raised[-1]
    kind = getattr(errors, name, TableError)
    return FilterError(message, "", None) if kind is FilterError else kind(message)


def _told_by_spark(text: str) -> HeadgateError:
    """Keep the first line that says something, with Spark's error class and without its SQLSTATE."""
    lines = [line.strip() for line in text.splitlines()]
    # Py4J's own first line only names the call; the Java exception with its message comes second.
    telling = [line for line in lines if line and not line.startswith("An error occurred while calling")]
    line = re.sub(r"\.? SQLSTATE: \w{5}", "", telling[0] if telling else "no reason given")
    line = re.sub(r"^: ?(?:[\w$]+\.)+[\w$]+: ", "", line)
    line = re.sub(
        r"^Job aborted due to stage failure: .*?\(TID \d+\) \(.*?\): (?:[\w$]+\.)+[\w$]+: ", "", line
    )
    line = line.rstrip(". ")
    causes = re.findall(r"^Caused by: (?:[\w$]+\.)+[\w$]+: (.+)$", text, re.MULTILINE)
    if "FAILED_READ_FILE" in line and causes:
        line = f"{line}: {causes[-1].rstrip('. ')}"
    line = line[:400]
    if "OutOfMemoryError" in text or "Python worker exited unexpectedly" in text:
        error: HeadgateError = MachineError(f"Spark lost a worker, usually because memory ran out: {line}")
    else:
        error = TableError(f"Spark: {line}")
    error.full = says_full(line)
    return error
