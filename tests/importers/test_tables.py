"""The tables of docs/importers.md, and `headgate convert`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Engine
from headgate.errors import FilterError
from headgate.records.language.dialects import to_sql
from headgate.records.names import TOLD, NameSettings, plain_text
from tests.docs.fences import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

PAGE = (ROOT / "docs" / "importers.md").read_text("utf-8")
SECTIONS = {
    "EventBridge": "eventbridge",
    "CloudEvents": "cloudevents",
    "CloudEvents SQL": "cesql",
    "Elasticsearch": "elasticsearch",
    "Vespa": "vespa",
}


def examples() -> list[tuple[str, str, str]]:
    """List the examples of the page: dialect, filter, what it becomes."""
    found = []
    for title, dialect in SECTIONS.items():
        section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
        found += rows_of(section.partition("\n### ")[0], dialect)
    return found


def rows_of(section: str, dialect: str) -> list[tuple[str, str, str]]:
    """List the examples of one table."""
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")][2:]
    return [(dialect, row[-2].strip("`"), row[-1].strip("`")) for row in rows]


def test_patterns_that_tell_null_become_what_the_page_says() -> None:
    section = PAGE.partition("\n### Null and exists\n")[2].partition("\n## ")[0]
    for dialect, text, sql in rows_of(section, "eventbridge"):
        assert plain_text(to_sql(text, dialect, NameSettings(TOLD))) == sql


@pytest.mark.parametrize(("dialect", "text", "sql"), examples())
def test_examples_become_what_the_page_says(dialect: str, text: str, sql: str) -> None:
    if sql.startswith("refused"):
        with pytest.raises(FilterError):
            to_sql(text, dialect)
    else:
        assert to_sql(text, dialect) == sql


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


TABLES: dict[str, tuple[str, list[Any], list[dict[str, Any]]]] = {
    "rules": (
        "eventbridge",
        [
            {
                "Rules": [
                    {"Name": "a", "EventPattern": '{"s": ["x"]}'},
                    {"Name": "b", "EventPattern": '{"s": 1}'},
                ]
            }
        ],
        [{"id": "a", "filter": "s = 'x' OR array_contains(s, 'x')"}],
    ),
    "rows": (
        "eventbridge",
        [{"id": 1, "filter": {"s": [{"exists": True}]}, "score": 2.5}, {"id": 2}],
        [{"id": 1, "filter": "s IS NOT NULL", "score": 2.5}],
    ),
    "hits": (
        "elasticsearch",
        [{"hits": {"hits": [{"_id": "q", "_source": {"query": {"match_all": {}}}}, {"_id": "r"}]}}],
        [{"id": "q", "filter": "TRUE"}],
    ),
    "subscriptions": (
        "cloudevents",
        [{"id": "s", "filters": [{"exact": {"type": "a"}}], "sink": "https://example.org"}, 5],
        [{"id": "s", "filter": "type = 'a'"}],
    ),
    "documents": (
        "vespa",
        [
            {"put": "id:x:y::1", "fields": {"target": "a in [x]", "price": 5}},
            {"put": "id:x:y::2", "fields": {}},
        ],
        [{"id": "id:x:y::1", "filter": "a = 'x' OR array_contains(a, 'x')"}],
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_converted(name: str, tmp_path: Path, headgate: Command) -> None:
    dialect, rows, expected = TABLES[name]
    given, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    ran = headgate("convert", str(given), "--from", dialect, "--output", str(output))
    assert ran.code == 0
    assert ran.out.splitlines()[1].startswith("refused 1 rows, with the reasons in")
    assert lines(output) == expected
    (refused,) = lines(tmp_path / "out-rejected.jsonl")
    assert refused["row"] == 2
    assert refused["reason"]
    strict = headgate("convert", str(given), "--from", dialect, "--output", str(output), "--strict", "--json")
    assert (strict.code, strict.json["filters"], strict.json["rejected"]) == (3, 1, 1)


def test_what_is_converted_says_which_settings_it_needs(tmp_path: Path, headgate: Command) -> None:
    given, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    given.write_text(json.dumps({"id": 1, "filter": {"Source": [None]}}) + "\n", "utf-8")
    asked = ("convert", str(given), "--from", "eventbridge", "--output", str(output))
    assert headgate(*asked).out.splitlines()[-1] == (
        "names mean in eventbridge what --nulls told --names exact --dots either say: give these here and to "
        "compile where it matters"
    )
    ran = headgate(*asked, "--nulls", "told", "--names", "exact")
    assert ran.out.splitlines()[-2:] == [
        "compile them with --nulls told --names exact",
        "names mean in eventbridge what --dots either say: give these here and to compile where it matters",
    ]
    (row,) = lines(output)
    assert row["filter"] == "present(Source) AND Source IS NULL OR exists(Source, x -> x IS NULL)"
    found = headgate(*asked, "--nulls", "told", "--json").json
    assert (found["settings"], found["lacking"]) == ({"nulls": "told"}, {"names": "exact", "dots": "either"})
    names = ("--nulls", "told", "--names", "exact")
    built = headgate("compile", "--subscriptions", str(output), "--output", str(tmp_path / "s"), *names)
    assert built.code == 0
    engine = Engine.open(tmp_path / "s")
    assert (engine.match({"Source": None, "source": 1}), engine.match({"source": None})) == ([1], [])
    events = tmp_path / "events.jsonl"
    events.write_text('{"id": 1, "Source": null, "source": 2}\n{"id": 2, "source": null}\n', "utf-8")
    matched = ("--events", str(events), "--output", str(tmp_path / "m.jsonl"))
    assert headgate("match", "--snapshot", str(tmp_path / "s"), *matched).code == 0
    assert [each["event_id"] for each in lines(tmp_path / "m.jsonl")] == [1]
    checked = headgate("validate", str(output), "--events", str(events), *names, "--json")
    assert json.loads(checked.out)["matched"] == 0.5


def test_what_is_refused_says_where(tmp_path: Path, headgate: Command) -> None:
    given = tmp_path / "in.csv"
    given.write_text("id,filter\n1,type = 'a'\n2,type =\n", "utf-8")
    ran = headgate("convert", str(given), "--from", "cesql", "--output", str(tmp_path / "out.jsonl"))
    assert ran.code == 0
    (refused,) = lines(tmp_path / "out-rejected.jsonl")
    assert refused == {
        "row": 2,
        "reason": "a value is missing at the end, at character 7: type =⟪",
        "position": 7,
        "value": {"id": "2", "filter": "type ="},
    }
    wrong = headgate("convert", str(given), "--from", "cesql", "--output", str(tmp_path / "out.csv"))
    assert wrong.code == 1
    assert "name it .jsonl" in wrong.err
