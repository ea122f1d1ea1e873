"""The wheel that carries its kernels: nothing is compiled, for a user who can write nowhere."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.nightly
HEADGATE = "import sys; from headgate.cli import main; sys.argv[0] = 'headgate'; main()"
COUNTED = """
import numba
from numba.core import event

heard = event.RecordingListener()
event.register("numba:compile", heard)
"""
FIRST_MATCHES = """
from headgate import Dissemination, Edge, Engine, Event, Node, Subscription

records = Engine.build([Subscription("s", "age > 30 AND topic IN ('news', 'sport')", score=2.0)])
print(records.match(Event("e", {"age": 35, "topic": "news"})), end=" ")
print([best.subscription for best in records.top(Event("e", {"age": 35, "topic": "news"}), 1)], end=" ")
rdf = Engine.build([Subscription("r", "ASK { ?x a <urn:Art> ; <urn:year> ?y FILTER(?y > 2000) }", "sparql")])
art = Event("e", "<urn:x> a <urn:Art> ; <urn:year> 2001 .", content_type="text/turtle")
print(rdf.match(art), end=" ")
xml = Engine.build([Subscription("x", "//news[company = 'ACME']//headline", "xpath")])
page = "<all><news><company>ACME</company><headline>up</headline></news></all>"
print(xml.match(Event("e", page, content_type="application/xml")), end=" ")
graph = Engine.build(
    [Subscription("g", "age > 30", node="net")],
    nodes=[Node("pub"), Node("net", "topic = 'sport'")],
    edges=[Edge("pub", "net")],
)
print(graph.match(Event("e", {"age": 35, "topic": "sport"}, source="pub")), end=" ")
views = [
    Subscription("all", "//news{id}[author{val}]//title{val}", "xpath"),
    Subscription("titles", "//news//title{val}", "xpath"),
]
news = Event("e1", "<news><author>Bo</author><title>Up</title></news>", content_type="xml")
print(Dissemination.build(views, [news]).feeding("titles").inputs, end=" ")
"""
ANSWERS = "['s'] ['s'] ['r'] ['x'] ['g'] ()"
ONE_KERNEL = """
from headgate.core.interning import TextPool
print(TextPool.build(["art", "news"]).place(["art", "zoo"], 0, 2).tolist(), end=" ")
"""
COMPILED = "\nprint(len([each for _, each in heard.buffer if each.is_start]))"
POWERLESS = """
import ctypes, os, sys
# Root may write anywhere, unless it gives up CAP_DAC_OVERRIDE for good.
ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Installed:
    """A virtual environment with the wheel in it, and nothing of this source tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "env" / "bin" / "python"
        (self.packages,) = (folder / "env" / "lib").glob("python*/site-packages")
        self.prebuilt = self.packages / "headgate" / "core" / "jit" / "prebuilt"

    def run(self, code: str) -> subprocess.CompletedProcess[str]:
        """Run code as somebody who can write neither to the packages nor at home."""
        home = self.folder / "home"
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return subprocess.run(
            [sys.executable, "-c", POWERLESS, str(self.python), "-c", code],
            env={**kept, "HOME": str(home)},
            cwd=home,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


def headgate(*arguments: str) -> str:
    command = [sys.executable, "-c", HEADGATE, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def build_wheel(folder: Path) -> Path:
    """Do what ./dev wheel does, into another directory."""
    headgate("warm", "--quiet", "--copy-to", str(folder / "prebuilt"))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    environment = {**os.environ, "HEADGATE_PREBUILT": str(folder / "prebuilt")}
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def install(folder: Path, wheel: Path, *, alone: bool) -> Installed:
    """Install the wheel, with its dependencies, or beside those of this environment."""
    env = folder / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(env)], check=True)
    # The environment of the tests may have no pip; the Python it was made of has.
    outer = str(Path(sys.base_prefix) / "bin" / "python3")
    pip = [outer, "-m", "pip", "--python", str(env / "bin" / "python"), "install", "--quiet", "--no-input"]
    asked = [f"{wheel}[graph,plan,rdf,xml]"] if alone else ["--no-deps", str(wheel)]
    subprocess.run([*pip, *asked], check=True, capture_output=True)
    installed = Installed(folder)
    if not alone:
        (installed.packages / "beside.pth").write_text("\n".join(site.getsitepackages()) + "\n")
    (folder / "home").mkdir()
    for place in (*env.rglob("*"), env, folder / "home"):
        if place.is_dir() and not place.is_symlink():
            place.chmod(0o555)
    return installed


@pytest.fixture(scope="module", params=["beside", pytest.param("alone", marks=pytest.mark.nightly)])
def installed(request: pytest.FixtureRequest) -> Iterator[Installed]:
    folder = Path(tempfile.mkdtemp(prefix="headgate-wheel-"))
    try:
        yield install(folder, build_wheel(folder), alone=request.param == "alone")
    finally:
        for place in folder.rglob("*"):
            if place.is_dir() and not place.is_symlink():
                place.chmod(0o755)
        shutil.rmtree(folder)


def test_the_wheel_is_for_this_python_and_pins_numba(installed: Installed) -> None:
    (about,) = installed.packages.glob("headgate-*.dist-info")
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert f"Tag: {python}-{python}-manylinux" in (about / "WHEEL").read_text("utf-8")
    metadata = (about / "METADATA").read_text("utf-8")
    assert "Requires-Dist: numba==" in metadata
    assert "Requires-Dist: pyspark" in metadata
    needs = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: pyspark")]
    assert [line for line in needs if "extra == 'spark'" not in line] == []


def test_the_first_matches_compile_nothing(installed: Installed) -> None:
    done = installed.run(COUNTED + FIRST_MATCHES + COMPILED)
    assert (done.stdout, done.stderr) == (f"{ANSWERS} 0\n", "")


def test_a_prebuilt_file_that_is_gone_is_compiled(installed: Installed) -> None:
    assert installed.run(COUNTED + ONE_KERNEL + COMPILED).stdout == "[1, 4] 0\n"
    files = list(installed.prebuilt.glob("headgate.core.interning-*/*.nbc"))
    assert files
    hidden = installed.folder / "hidden"
    hidden.mkdir()
    for file in files:
        file.parent.chmod(0o755)
        shutil.move(file, hidden / file.name)
    try:
        assert installed.run(COUNTED + ONE_KERNEL + COMPILED).stdout == "[1, 4] 1\n"
    finally:
        for file in files:
            shutil.move(hidden / file.name, file)
            file.parent.chmod(0o555)
        hidden.rmdir()


def test_a_processor_that_lacks_something_compiles_and_says_so(installed: Installed) -> None:
    # No processor has it, so this one is as good as an old one.
    older = """
import platform
from headgate.core.jit import store
store._LEAST[platform.machine()] += ("time-travel",)
"""
    done = installed.run(COUNTED + older + ONE_KERNEL + COMPILED)
    assert done.stdout == "[1, 4] 1\n"
    assert done.stderr.splitlines() == [
        "this processor lacks time-travel, which the prebuilt kernels use: they are compiled for it, once"
    ]
