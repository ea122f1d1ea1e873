"""What jobs are written over: rows are the same in this process and on Spark."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate.local.runner import LocalRunner
from headgate.spark.runner import SparkRunner
from tests.spark.files import get_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headgate.jobs.runner import Batches, Rows, Runner

TYPES: dict[str, pa.DataType] = {"place": pa.int64(), "name": pa.string(), "home": pa.int32()}
NAMED = pa.schema(TYPES)
FOUND = [("b", 1), ("a", 0), ("b", 0), (None, 2), ("c", 2), ("a", 2)]
ROWS = pa.Table.from_pylist(
    [{"place": place, "name": name, "home": home} for place, (name, home) in enumerate(FOUND)], NAMED
)
_PARTS: dict[str, pa.DataType] = {"part": pa.int64(), "places": pa.list_(pa.int64())}
PARTS = pa.schema(_PARTS)


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def runner(request: pytest.FixtureRequest) -> Runner:
    if request.param == "local":
        return LocalRunner(quiet=True)
    return SparkRunner(request.getfixturevalue("spark"), quiet=True)


def _places(batches: Batches, part: int) -> Iterator[pa.RecordBatch]:
    found: list[Any] = [place for batch in batches for place in batch["place"].to_pylist()]
    yield pa.RecordBatch.from_pylist([{"part": part, "places": found}], PARTS)


def _doubled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_pydict({"id": 2 * batch["id"].to_numpy()})


def test_rows(runner: Runner, tmp_path: Path) -> None:
    def places(rows: Rows) -> list[Any]:
        return rows.collect()["place"].to_pylist()

    with runner.working() as own, own.rows(ROWS).kept() as rows:
        assert (rows.count(), places(rows)) == (6, [0, 1, 2, 3, 4, 5])
        assert rows.head(2)["place"].to_pylist() == [0, 1]
        assert places(rows.lacking("name")) == [3]
        named = rows.having("name")
        assert places(named.sorted("name", "place")) == [1, 5, 0, 2, 4]
        assert places(named.then(rows.lacking("name"))) == [0, 1, 2, 4, 5, 3]
        counts = named.counted("name").collect()
        assert {**dict(zip(*counts.to_pydict().values(), strict=True))} == {"a": 2, "b": 2, "c": 1}
        firsts, others = named.firsts("name", "place")
        assert (sorted(places(firsts)), sorted(places(others))) == ([0, 1, 4], [2, 5])
        once, none = firsts.firsts("name", "place")
        assert (sorted(places(once)), places(none)) == ([0, 1, 4], [])
        parted = rows.parted("home", 4, "place").map(_places, PARTS, numbered=True)
        told = {row["part"]: row["places"] for row in parted.collect().to_pylist()}
        assert {number: told.get(number) or [] for number in range(4)} == {
            0: [1, 2],
            1: [0],
            2: [3, 4, 5],
            3: [],
        }
        path = str(tmp_path / "rows.jsonl")
        rows.select("name", "place").write(path)
        assert [row["name"] for row in get_lines(tmp_path / "rows.jsonl")] == [name for name, _ in FOUND]


def test_numbers_and_what_is_shared(runner: Runner) -> None:
    schema = pa.schema([("id", pa.int64())])
    with runner.working() as own, own.shared({"some": 1}) as shared, own.step("counting"):
        assert own.numbers(7, 3).map(_doubled, schema).collect()["id"].to_pylist() == list(range(0, 14, 2))
        assert own.numbers(0).count() == 0
        assert shared.value == {"some": 1}


def _named(*parts: ast.AST) -> set[str]:
    return {each.id for part in parts for each in ast.walk(part) if isinstance(each, ast.Name)}


def test_every_job_has_a_case_on_both_runners_by_day() -> None:
    """A test of `on_both` calls it, or asks for a fixture that does, by a class of its module."""
    folder = Path(__file__).parent
    jobs = [each for each in ast.parse((folder / "jobs.py").read_text("utf-8")).body if _takes_session(each)]
    missing = {each.name for each in jobs if isinstance(each, ast.FunctionDef)} - {"_said", "runner_of"}
    assert len(missing) == 7
    for file in folder.glob("test_*.py"):
        body = ast.parse(file.read_text("utf-8")).body
        parts = {each.name: each for each in body if isinstance(each, ast.FunctionDef | ast.ClassDef)}
        for part in parts.values():
            if isinstance(part, ast.FunctionDef) and "on_both" in _named(*part.decorator_list):
                called = _named(part) | {arg.arg for arg in part.args.args}
                for _ in parts:
                    called |= {name for each in called & parts.keys() for name in _named(parts[each])}
                missing -= called
    assert not missing


def _takes_session(each: ast.stmt) -> bool:
    return isinstance(each, ast.FunctionDef) and [arg.arg for arg in each.args.args][:1] == ["session"]
