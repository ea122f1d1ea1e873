"""What earlier versions wrote opens and answers, or a line says which command brings it up to date."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import apsw
import pyarrow.parquet as pq
import pytest

from headgate.core.snapshot import MANIFEST, add_to_manifest, manifest_of
from headgate.errors import HeadgateError
from headgate.service.storage.database import TENANT, Database
from tests.cli.running import Command
from tests.formats.cases import CASES, FIXTURES, place_of, unpack

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = sorted(FIXTURES.glob("*.tar.gz"))
COMMANDS = {"plan": "(headgate plan)", "stream": "start with a new state", "statistics": "name another file"}
"""What brings a format up to date that is no snapshot; a service does it by itself."""


def test_every_format_has_an_example() -> None:
    """Of its present version: data of this version must open for good."""
    missing = [place_of(name).name for name in CASES if not place_of(name).exists()]
    assert not missing, f"run python -m tests.formats.write, and commit {missing}"
    large = [file.name for file in FILES if file.stat().st_size > 40_000]
    assert not large


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name.removesuffix(".tar.gz"))
def test_an_example_answers(file: Path, tmp_path: Path) -> None:
    """It opens, is changed, and answers; a snapshot of an earlier layout is told with the command."""
    name, _, version = file.name.removesuffix(".tar.gz").rpartition("-")
    case = CASES[name]
    place = unpack(file, tmp_path / "place")
    if version == case.version or name in {"service", "backup"}:
        assert case.ask(place) == case.answer
        return
    with pytest.raises(HeadgateError) as told:
        case.ask(place)
    assert COMMANDS.get(name, "(headgate compile)") in str(told.value)
    assert "\n" not in str(told.value)


def _told(place: Path, more: dict[str, Any]) -> None:
    """Say something else in the manifests of snapshots, but for those inside of others."""
    for manifest in list(place.rglob(MANIFEST)):
        folder = manifest.parent
        if not any((above / MANIFEST).exists() for above in folder.parents):
            about = {**manifest_of(folder)["about"], **more.get("about", {})}
            add_to_manifest(folder, {**more, "about": about})


def _layout(place: Path) -> None:
    _told(place, {"about": {"layout": 99}})


def _version(place: Path) -> None:
    _told(place, {"version": 99})


def _state(place: Path) -> None:
    about = place / "state" / "stream.json"
    about.write_text(json.dumps({**json.loads(about.read_text()), "layout": 99}))


def _statistics(place: Path) -> None:
    file = place / "statistics.parquet"
    table = pq.read_table(file)
    known = {
        key: value.replace(b'"layout": 1', b'"layout": 99') for key, value in table.schema.metadata.items()
    }
    pq.write_table(table.replace_schema_metadata(known), file)


def _database(name: str) -> Callable[[Path], None]:
    def change(place: Path) -> None:
        for file in place.rglob(name):
            connection = apsw.Connection(str(file))
            connection.pragma("user_version", 99)
            connection.close()

    return change


def _directory(place: Path) -> None:
    for note in place.rglob("format"):
        note.write_text("headgate service data, format 99\n")


OTHERS: list[tuple[str, Callable[[Path], None], str]] = [
    *((name, _layout, "(headgate compile)") for name in ("records", "rdf", "xml", "graph", "ranked")),
    (
        "records",
        _version,
        "has format version 99, and this Headgate reads 2: compile it again (headgate compile)",
    ),
    ("plan", _layout, "plan it again (headgate plan)"),
    (
        "stream",
        _state,
        "has layout 99, and this Headgate knows 1: use the Headgate that wrote it, or start with",
    ),
    ("statistics", _statistics, "has layout 99 of statistics, and this Headgate reads 1: name another file"),
    ("service", _database("store.db"), "has format 99, and this version of Headgate reads up to"),
    ("service", _database("server.db"), "has format 99, and this version of Headgate reads up to"),
    (
        "service",
        _directory,
        "format 99', and this version of Headgate reads 'headgate service data, format 1': use",
    ),
    (
        "backup",
        _directory,
        "format 99', and this version of Headgate reads 'headgate service data, format 1': use",
    ),
    ("backup", _database("store.db"), "has format 99, and this version of Headgate reads up to"),
]


@pytest.mark.parametrize(("name", "change", "told"), OTHERS)
def test_another_version_is_refused_in_one_line(
    name: str, change: Callable[[Path], None], told: str, tmp_path: Path
) -> None:
    """Whatever it is: nothing is guessed."""
    place = unpack(place_of(name), tmp_path / "place")
    change(place)
    with pytest.raises(HeadgateError) as error:
        CASES[name].ask(place)
    assert told in str(error.value)
    assert "\n" not in str(error.value)


def test_an_index_that_cannot_be_read_is_built_again(tmp_path: Path) -> None:
    """The service keeps all that it is made of; nobody need do anything."""
    place = unpack(place_of("service"), tmp_path / "place")
    indexes = list((place / "data").rglob(MANIFEST))
    assert indexes
    _layout(place)
    assert CASES["service"].ask(place) == CASES["service"].answer


def test_one_command_brings_a_snapshot_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that the line names, into the same place."""
    place = unpack(place_of("xml"), tmp_path / "place")
    _layout(place)
    rows = [{"id": "t", "filter": "//news/title"}, {"id": "u", "filter": "//news[not(title)]"}]
    table = tmp_path / "subs.jsonl"
    table.write_text("".join(json.dumps({**row, "dialect": "xpath"}) + "\n" for row in rows))
    command = Command(monkeypatch, capsys)
    done = command("compile", "--subscriptions", table, "--output", place / "snapshot", "--quiet")
    assert done.code == 0, done.err
    assert CASES["xml"].ask(place) == CASES["xml"].answer


def test_a_file_of_an_earlier_version_becomes_a_new_one(tmp_path: Path) -> None:
    """Its tables are those of a new file, column by column."""
    earlier = FIXTURES / "service-1.1.tar.gz"
    data = unpack(earlier, tmp_path / "place") / "data"
    shutil.rmtree(data / "tenants" / "default" / "index")
    found = [
        _tables(Database(place)) for place in (data / "tenants" / "default" / "store.db", tmp_path / "new.db")
    ]
    assert found[0] == found[1]


def _tables(database: Database) -> dict[str, Any]:
    names = [
        name for (name,) in database.rows("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    ]
    told = {
        name: database.rows(
            f"SELECT name, type, \"notnull\", dflt_value, pk FROM pragma_table_info('{name}')"
        )
        for name in names
    }
    assert database.reader.pragma("user_version") == TENANT.format
    database.close()
    return {name: sorted(columns) for name, columns in told.items()}
