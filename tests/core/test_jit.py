"""Kernels: life without the JIT, files of machine code, and what is left alone."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

import headgate
from headgate.core.jit import signatures, sources, store
from headgate.core.jit.notation import describe, parse
from headgate.core.jit.store import Target
from headgate.core.jit.warming import remove_old
from tests.seeds import NIGHTLY

PACKAGE = Path(headgate.__file__).parent
MATCH = """
from headgate import Event, Subscription
from headgate.records.index.index import RecordIndex
from headgate.records.index import kernels
filters = ["a > 1 AND b LIKE '%x_'", "a IN (1, 2) OR c IS NULL", "array_contains(d, 5) AND NOT a = 7", "TRUE"]
index = RecordIndex.build(Subscription(n, text) for n, text in enumerate(filters))
events = [{"a": 2, "b": "xyz"}, {"a": 7, "d": [5]}, {"d": [5, 6], "a": 1, "c": 0}, {"b": "日x本"}, {}]
answers = [index.match(Event("e", event)) for event in events]
answers.append([index.next(Event("e", event), 1) for event in events])
print(hasattr(kernels.match_events, "py_func"), answers)
"""
# A kernel of its own, so that what tests do to its files harms no other.
KERNEL = """
import numpy as np
from headgate.core.jit import kernel
from numba.core import event

heard = event.RecordingListener()
event.register("numba:compile", heard)

@kernel
def double(values):
    total = 0
    for value in values:
        total += 2 * value
    return total

print(double(np.arange(5)), len([each for _, each in heard.buffer if each.is_start]))
"""

SLOW = """
import time

class Slow(event.Listener):
    def on_start(self, event):
        pass

    def on_end(self, event):
        time.sleep(2.1)

event.register("numba:compile", Slow())
"""


def run(code: str, **environment: str) -> str:
    return process(code, None, **environment).stdout.strip()


def kept_environment() -> dict[str, str]:
    """Return this process's environment without what it says to Numba."""
    return {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}


def process(code: str, folder: Path | None, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", *(["-c", code] if folder is None else [str(_script(folder, code))])],
        env={**kept_environment(), **environment},
        capture_output=True,
        text=True,
        check=True,
    )


def _script(folder: Path, code: str) -> Path:
    file = folder / "counted.py"
    file.write_text(code, "utf-8")
    return file


def test_the_same_answers_without_the_jit() -> None:
    compiled, plain = run(MATCH), run(MATCH, NUMBA_DISABLE_JIT="1")
    assert compiled.startswith("True [[")
    assert plain.startswith("False [[")
    assert compiled.split(maxsplit=1)[1] == plain.split(maxsplit=1)[1]


def test_a_kernel_is_compiled_once_and_then_found(tmp_path: Path) -> None:
    where = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    assert process(KERNEL, tmp_path, **where).stdout == "20 1\n"
    (file,) = (tmp_path / "cache").rglob("*.nbc")
    assert process(KERNEL, tmp_path, **where).stdout == "20 0\n"
    # A processor that was named gets code of its own, and so does code with other checks.
    other = {**where, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    assert process(KERNEL, tmp_path, **other).stdout == "20 1\n"
    if NIGHTLY:
        assert process(KERNEL, tmp_path, **where, NUMBA_BOUNDSCHECK="1").stdout == "20 1\n"
    # A file that is cut short is compiled anew.
    file.write_bytes(file.read_bytes()[:-1])
    assert process(KERNEL, tmp_path, **where).stdout == "20 1\n"
    assert process(KERNEL, tmp_path, **where).stdout == "20 0\n"


def test_where_nothing_can_be_kept_it_works_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = process(KERNEL, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "file"))
    assert done.stdout == "20 1\n"
    # Compiling that takes over two seconds, as on a busy machine, is told in a line; nothing else is.
    assert re.fullmatch(r"(compiling kernels for this processor, once: .*\n)?", done.stderr)


def test_processes_that_start_together_compile_a_kernel_once(tmp_path: Path) -> None:
    script = _script(tmp_path, KERNEL)
    environment = {**kept_environment(), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    crew = [
        subprocess.Popen([sys.executable, str(script)], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    printed = [one.communicate(timeout=120)[0].split() for one in crew]
    assert [total for total, _ in printed] == ["20"] * 3
    assert sum(int(compiled) for _, compiled in printed) == 1


@pytest.mark.nightly
def test_long_compiling_says_so_once(tmp_path: Path) -> None:
    slow = KERNEL.replace("heard =", SLOW + "heard =", 1)
    said = process(slow, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "two")).stderr.splitlines()
    assert len(said) == 1
    assert "headgate warm" in said[0]


def test_numba_is_left_as_it_was(tmp_path: Path) -> None:
    code = """
import numba
import numpy as np
before = dict(vars(numba.config))

@numba.njit(cache=True)
def own(values):
    return values.sum()

own(np.arange(3))
from headgate import Event, Subscription
from headgate.records.index.index import RecordIndex
index = RecordIndex.build([Subscription("s", "a = 1")])
assert index.match(Event("e", {"a": 1})) == ["s"]
own(np.arange(3.0))
assert {name: value for name, value in vars(numba.config).items() if value is not before.get(name)} == {}
print(own.stats.cache_path)
"""
    where = process(code, tmp_path).stdout.strip()
    # Beside its own source, as numba has it, and none of ours is there.
    assert where == str(tmp_path / "__pycache__")
    assert {file.name.partition("-")[0] for file in Path(where).glob("*.nb?")} == {"counted.own"}


def imports_by_syntax(module: str) -> set[str]:
    source = sources.find_source(module)
    assert source is not None
    named: set[str] = set()
    for node in ast.walk(ast.parse(source.read_bytes())):
        if isinstance(node, ast.Import):
            named.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            named.add(node.module)
            named.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in named if sources.find_source(name) is not None}


def test_every_import_is_seen() -> None:
    modules = [
        ".".join(("headgate", *file.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for file in PACKAGE.rglob("*.py")
        if "jit" not in file.parts
    ]
    assert len(modules) > 300
    for module in modules:
        assert set(sources.imports_of(module)) == imports_by_syntax(module), module


def digests(package: Path, *modules: str) -> list[str]:
    code = f"from headgate.core.jit.sources import digest_of\nprint(*map(digest_of, {modules!r}))"
    return run(code, PYTHONPATH=str(package.parent)).split()


def test_the_digest_covers_all_that_a_kernel_is_made_of(tmp_path: Path) -> None:
    copy = tmp_path / "headgate"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    module = "headgate.records.index.kernels"
    closure = sources.closure(module)
    assert {"headgate.records.index.arrays", "headgate.core.bits"} <= closure
    before = digests(copy, module)
    seen = [before]
    for edited in ("records/index/arrays.py", "core/bits.py"):
        with (copy / edited).open("a") as file:
            file.write("# an edit\n")
        seen.append(digests(copy, module))
    assert len({*map(tuple, seen)}) == 3
    with (copy / "rdf" / "kernels.py").open("a") as file:
        file.write("# an edit that no kernel of records sees\n")
    assert digests(copy, module) == seen[-1]
    # Under another name a file counts as before.
    (copy / "core" / "bits.py").rename(copy / "core" / "renamed.py")
    for source in copy.rglob("*.py"):
        text = source.read_text("utf-8")
        if "headgate.core.bits" in text:
            source.write_text(text.replace("headgate.core.bits", "headgate.core.renamed"), "utf-8")
    renamed = digests(copy, module)
    with (copy / "core" / "renamed.py").open("a") as file:
        file.write("# an edit\n")
    assert len({*seen[-1], *renamed, *digests(copy, module)}) == 3


def test_a_package_in_a_zip_file_finds_and_keeps_machine_code(tmp_path: Path) -> None:
    """As Spark ships packages; what is compiled once on a machine serves whatever form the package has."""
    archive = tmp_path / "headgate.zip"
    with ZipFile(archive, "w") as zipped:
        for file in PACKAGE.rglob("*"):
            if "__pycache__" not in file.parts and file.is_file():
                zipped.write(file, file.relative_to(PACKAGE.parent))
    code = """
import headgate
from headgate.core.jit import store
from headgate.core.jit.sources import digest_of
from headgate.core.interning import TextPool
pool = TextPool.build(["art", "europe", "news"])
print(".zip" in headgate.__file__, pool.place(["art", "news", "sport"], 0, 3).tolist())
print(store._compiling.kernels, digest_of("headgate.records.index.kernels"))
"""
    same = sources.digest_of("headgate.records.index.kernels")
    # Spark's workers have it on their path as `./headgate.zip`.
    for place in (str(archive), os.path.relpath(archive)):
        assert run(code, PYTHONPATH=place).splitlines() == ["True [1, 5, 6]", f"0 {same}"]
    if not NIGHTLY:
        return
    # One that nobody has compiled yet is kept for the next process.
    alone = {"PYTHONPATH": str(archive), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    first, second = (run(code, **alone).splitlines()[1].split()[0] for _ in range(2))
    assert int(first) > 0
    assert second == "0"


def test_the_fields_of_tuples_are_part_of_a_file_name() -> None:
    target = Target("triple", "cpu", "")
    kernel = "headgate.core.bits:none"
    one, two = "headgate.a.T(x=int64, y=int64)", "headgate.a.T(y=int64, x=int64)"
    assert store.file_name(kernel, one, target) != store.file_name(kernel, two, target)


def test_every_signature_is_read_back_as_it_was_written() -> None:
    listed = [text for texts in signatures.read_signatures().values() for text in texts]
    assert len(listed) > 200
    for text in listed:
        assert describe(parse(text)) == text


def test_a_file_of_signatures_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "signatures.json"
    found = {
        "a:k": {"int64, b.T(x=b.U(y=int32:1C), z=(int64, none))", "float64:2Fr"},
        "a:j": {"omitted(None)"},
    }
    signatures.write_signatures(found, file)
    assert {name: set(listed) for name, listed in signatures.read_signatures(file).items()} == found


def test_a_signature_that_warm_does_not_know_is_refused() -> None:
    code = """
from pathlib import Path
from zipfile import ZipFile
import numpy as np
import headgate
from headgate.core.interning import search_text

# As if a module of the product called it.
file = str(Path(headgate.__file__).parent / "engine.py")
call = eval(compile("lambda: search_text(*[np.zeros(1, np.float32)] * 5)", file, "eval"))
try:
    call()
except RuntimeError as error:
    print(error)
"""
    said = run(code, HEADGATE_SIGNATURES="strict")
    assert said.startswith(
        "kernel headgate.core.interning:search_text is called with a signature that is not in"
    )
    assert said.endswith(f"({', '.join(['float32:1C'] * 5)})")


@pytest.mark.nightly
def test_a_tuple_whose_fields_change_places_finds_no_stale_code(tmp_path: Path) -> None:
    copy = tmp_path / "headgate"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    code = """
from numba.core import event
heard = event.RecordingListener()
event.register("numba:compile", heard)
from headgate.core.interning import TextPool
pool = TextPool.build(["art", "europe", "news"])
print(pool.place(["art", "news", "sport"], 0, 3).tolist(), len(heard.buffer) > 0)
"""
    where = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    # The changed tuple makes a signature that the product does not use.
    where[signatures.MODE] = ""
    first = run(code, **where)
    assert first.endswith("True")
    assert run(code, **where) == first.replace("True", "False")
    file = copy / "core" / "interning.py"
    text = file.read_text("utf-8")
    fields = ("    offsets: Ints\n", "    data: Bytes\n")
    assert "".join(fields) in text
    text = text.replace("".join(fields), "".join(reversed(fields)))
    made = 'cls(offsets, np.frombuffer(b"".join(parts), np.uint8))'
    assert made in text
    file.write_text(text.replace(made, 'cls(np.frombuffer(b"".join(parts), np.uint8), offsets)'), "utf-8")
    assert run(code, **where) == first == "[1, 5, 6] True"


def test_code_of_old_sources_is_removed_after_a_while(tmp_path: Path) -> None:
    current = f"headgate.core.interning-{sources.digest_of('headgate.core.interning')}"
    for name in (current, "headgate.core.interning-old", "headgate.core.interning-other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "k.nbc").touch()
    long_ago = 1_000_000_000
    os.utime(tmp_path / "headgate.core.interning-old", (long_ago, long_ago))
    os.utime(tmp_path / current, (long_ago, long_ago))
    assert remove_old(tmp_path) == 1
    assert {place.name for place in tmp_path.iterdir()} == {current, "headgate.core.interning-other"}
    assert remove_old(tmp_path / "nowhere") == 0
