"""The one place that touches numba: its cache, and life without it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import headgate
from headgate.core.jit import cache_place
from headgate.core.kernels import search_text
from headgate.records import kernels

if TYPE_CHECKING:
    import pytest

PACKAGE = Path(headgate.__file__).parent
SHOW_CACHE = "from headgate.core.jit import cache_place; print(cache_place('records'))"
MATCH = """
import numba
from headgate import Event, RecordIndex, Subscription
from headgate.records import kernels
filters = ["a > 1 AND b LIKE '%x_'", "a IN (1, 2) OR c IS NULL", "array_contains(d, 5) AND NOT a = 7", "TRUE"]
index = RecordIndex.build(Subscription(n, text) for n, text in enumerate(filters))
events = [{"a": 2, "b": "xyz"}, {"a": 7, "d": [5]}, {"d": [5, 6], "a": 1, "c": 0}, {"b": "日x本"}, {}]
answers = [index.match(Event("e", event)) for event in events]
answers.append([index.next(Event("e", event), 1) for event in events])
print(numba.config.DISABLE_JIT, hasattr(kernels.match_events, "py_func"), answers)
"""


def run(code: str, **environment: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**kept, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_same_answers_without_the_jit() -> None:
    compiled, plain = run(MATCH), run(MATCH, NUMBA_DISABLE_JIT="1")
    assert compiled.startswith("0 True [[")
    assert plain.startswith("1 False [[")
    assert compiled.split(maxsplit=2)[2] == plain.split(maxsplit=2)[2]


def cache_of(package: Path, room: str) -> Path:
    """Load a copy of `core/jit.py` and return the cache directory that it chooses for a room."""
    spec = importlib.util.spec_from_file_location("copied_jit", package / "core" / "jit.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Path(module.cache_place(room))


def test_the_cache_is_named_after_the_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "headgate"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.delenv("NUMBA_BOUNDSCHECK", raising=False)
    names = [cache_of(copy, "records")]
    for edited in ("records/kernels.py", "core/kernels.py", "records/arrays.py", "core/interning.py"):
        with (copy / edited).open("a") as file:
            file.write("# an edit\n")
        names.append(cache_of(copy, "records"))
    assert len(set(names)) == len(names)
    assert all(name.parent == tmp_path / "cache" / "headgate" for name in names)
    whole = cache_of(copy, "all")
    for unseen in ("records/explain.py", "rdf/kernels.py"):
        with (copy / unseen).open("a") as file:
            file.write("# an edit that no kernel of the room sees\n")
        assert cache_of(copy, "records") == names[-1]
    # What belongs to no room may use all of them.
    assert cache_of(copy, "all") != whole
    monkeypatch.setenv("NUMBA_BOUNDSCHECK", "1")
    assert cache_of(copy, "records") != names[-1]


def test_kernels_are_kept_where_their_room_is() -> None:
    functions: tuple[tuple[Any, str], ...] = ((kernels.match_events, "records"), (search_text, "core"))
    for function, room in functions:
        if hasattr(function, "py_func"):
            assert Path(function.stats.cache_path).parent == Path(cache_place(room))


def test_a_cache_of_ones_own(tmp_path: Path) -> None:
    own = str(tmp_path / "own")
    assert Path(run(SHOW_CACHE, NUMBA_CACHE_DIR=own)).parent == Path(own)
