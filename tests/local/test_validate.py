"""Tables of filters are checked without compiling them: what is refused, how events come to the rest."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Event
from headgate.records.events.columns import EventColumns
from headgate.records.explain.access import find_access
from headgate.records.language.parse import parse_filter
from headgate.records.programs.binding import compile_filters
from headgate.records.reference import matches
from tests.records.random_filters import random_event, random_filter
from tests.spark.files import put, put_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.running import Command

EVENTS: list[dict[str, Any]] = [
    {"id": number, "age": number, "topic": ("art", "news", "sport")[number % 3]}
    | {"tags": ["x"] * (number % 10 == 0), "name": "john smith" if number % 7 == 0 else "ann"}
    for number in range(100)
]
CASES = {
    "age > 30": ("age", 69, 69, None),
    "topic = 'art' AND age > 10": ("age and topic", 30, 30, None),
    "name LIKE '%smith%'": ("letters of name", 15, 15, None),
    "topic = 'art' OR array_contains(tags, 'x')": ("topic or elements of tags", 40, 40, None),
    "topic = 'art' OR name NOT LIKE '%smith%'": ("every event", 100, 90, None),
    "age > 30 AND age < 20": ("nothing", 0, 0, "it can never match"),
    "FALSE": ("nothing", 0, 0, "it can never match"),
    "TRUE": ("every event", 100, 100, "it matches every event"),
    "age IS NOT NULL": ("age", 100, 100, "it matches all 100 events"),
    "topc = 'art'": ("topc", 0, 0, "no event has 'topc': did you mean 'topic'?"),
    "zebra IS NULL": ("zebra", 100, 100, "no event has 'zebra'"),
}


def test_records(headgate: Command, tmp_path: Path) -> None:
    """Each filter with what leads to it, the shares, and what is odd; rows that are refused come first."""
    rows = [{"id": place, "filter": text} for place, text in enumerate(CASES)]
    table = put_lines(tmp_path / "subs.jsonl", [*rows, {"id": 7, "filter": "age >"}, {"filter": "age > 1"}])
    events = put_lines(tmp_path / "events.jsonl", [*EVENTS, {"age": 3}])
    ran = headgate("validate", table, "--events", events, "--json")
    assert (ran.code, ran.err) == (1, "")
    first, second, *found = [json.loads(line) for line in ran.out.splitlines()]
    assert (first["id"], first["place"]) == ("7", 5)
    assert second["refused"] == "the row has no 'id': a subscription is an id and a filter"
    assert json.loads(second["row"]) == {"filter": "age > 1"}
    for each in found:
        by, reached, matched, note = CASES[each["filter"]]
        told = (each["indexed_by"], round(100 * each["reached"]), round(100 * each["matched"]))
        assert told == (by, reached, matched), each
        assert note is None or note in each["notes"], each
        assert note is not None or each["notes"] == []
    lines = headgate("validate", table, "--events", events).out.splitlines()
    assert lines[0].split() == ["id", "indexed", "by", "verified", "reached", "matched"]
    assert lines[3].split() == ["2", "letters", "of", "name", "letters", "of", "name", "15.0%", "15.0%"]
    assert "refused 7: a value or a condition is missing after this, at character 5: age ⟪>" in lines
    assert lines[-1] == (
        "11 filters are sound, 2 rows are refused, 6 have notes; 100 events were looked at, "
        "and 1 rows that are not events"
    )


@pytest.mark.parametrize("seed", range(4))
def test_whoever_matches_comes_to_the_filter(seed: int) -> None:
    """No event matches that does not come to the filter; where none can match, none does."""
    rng = random.Random(seed)
    texts = [random_filter(rng) for _ in range(60)]
    events = [Event.from_row(random_event(rng, number)) for number in range(40)]
    columns = EventColumns(events)
    found = find_access(compile_filters(texts).programs, columns)
    for text, each in zip(texts, found, strict=True):
        matched = sum(matches(parse_filter(text), event.attributes) for event in events)
        assert each.reached is not None
        assert matched <= each.reached <= len(events), text
        assert each.note != "it can never match" or not matched, text
        assert each.note != "it matches every event" or matched == len(events), text
        assert each.costs is not None
        assert each.costs.verified or each.reached == matched, "what leads there decides it"


def test_documents(headgate: Command, tmp_path: Path) -> None:
    """Patterns are found by what a document must have: labels, or properties and classes."""
    filters = ["//news[topic]/author", "//news", "//*"]
    rows = [{"id": place, "filter": text, "dialect": "xpath"} for place, text in enumerate(filters)]
    table = put_lines(tmp_path / "trees.jsonl", rows)
    for name, text in (("a", "<news><topic/><author/></news>"), ("b", "<news/>"), ("c", "<other/>")):
        put(tmp_path / "docs" / f"{name}.xml", text)
    ran = headgate("validate", table, "--events", tmp_path / "docs", "--json")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 0
    assert [(each["indexed_by"], each["reached"], each["matched"]) for each in found] == [
        ("author and news and topic", 1 / 3, 1 / 3),
        ("news", 2 / 3, 2 / 3),
        ("every event", 1, 1),
    ]
    pattern = put_lines(
        tmp_path / "rdf.jsonl", [{"id": 1, "filter": "ASK { ?x <urn:p> 7 }", "dialect": "sparql"}]
    )
    ran = headgate("validate", pattern)
    assert ran.out.splitlines()[1].split() == ["1", "<urn:p>"]


def test_a_graph(headgate: Command, tmp_path: Path) -> None:
    """The filters of nodes, edges and subscriptions, and rows that do not fit the others."""
    nodes = put_lines(tmp_path / "n.jsonl", [{"id": "a"}, {"id": "b", "filter": "age > 30"}])
    edges = [{"source": "a", "target": "b", "filter": "topic = 'art'"}, {"source": "a", "target": "zz"}]
    subscriptions = put_lines(tmp_path / "s.jsonl", [{"id": 1, "filter": "age < 50", "node": "b"}])
    ran = headgate(
        *("validate", subscriptions, "--nodes", nodes, "--edges", put_lines(tmp_path / "e.jsonl", edges)),
        *("--events", put_lines(tmp_path / "events.jsonl", EVENTS), "--json"),
    )
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 1
    assert (found[0]["table"], found[0]["id"]) == ("edges", "a → zz")
    assert [(each["table"], each["id"], each["indexed_by"]) for each in found[1:]] == [
        ("nodes", "b", "age"),
        ("edges", "a → b", "topic"),
        ("subscriptions", 1, "age"),
    ]


@pytest.mark.parametrize(
    ("words", "code", "reason"),
    [
        ((), 2, "name a table of subscriptions, or --nodes and --edges"),
        (("--nodes", "n.jsonl"), 2, "a graph has nodes and edges: give both --nodes and --edges"),
        (("no.jsonl",), 1, "no.jsonl does not exist"),
    ],
)
def test_what_is_refused(headgate: Command, words: tuple[str, ...], code: int, reason: str) -> None:
    ran = headgate("validate", *words)
    assert ran.code == code
    assert ran.complaint.startswith(reason)


def test_long_tables_are_cut(headgate: Command, tmp_path: Path) -> None:
    """Fifty filters are listed, and all of them if that is asked for; refused rows as well."""
    rows = [{"id": number, "filter": f"a = {number}"} for number in range(60)]
    table = put_lines(tmp_path / "s.jsonl", rows)
    lines = headgate("validate", table).out.splitlines()
    assert (len(lines), lines[-2]) == (53, "  … and 10 more; --all lists them")
    assert len(headgate("validate", table, "--all").out.splitlines()) == 62
    schema = put(tmp_path / "schema.json", '{"aa": "int64"}')
    ran = headgate("validate", table, "--schema", schema)
    assert ran.code == 1
    assert "refused: 10 more; --all lists them" in ran.out


def test_what_filters_of_records_cost() -> None:
    """How events come to each, what is computed for it and for others, and whether all events come."""
    costs = {
        "topic = 'art'": (("value",), (), (), 0, False),
        "name LIKE '%smith%'": (("letters",), ("letters of name",), (), 0, False),
        "upper(topic) = 'ART' AND age * 2 > 5": (("pair",), (), ("upper(topic)", "age * 2"), 1, False),
        "upper(topic) = 'NEWS' OR array_contains(tags, 'x')": (
            ("value", "element"),
            (),
            ("upper(topic)",),
            1,
            False,
        ),
        "exists(tags, x -> x > 'a' AND x < 'b')": (("element",), (), (), 0, False),
        "name NOT LIKE '%smith%'": (("none",), ("letters of name",), (), 0, True),
    }
    found = find_access(compile_filters(costs).programs, None)
    for text, access in zip(costs, found, strict=True):
        assert access.costs is not None
        told = access.costs
        found_costs = (told.access, told.verified, told.computed, told.shared, told.every_event)
        assert found_costs == costs[text], text


def test_the_table_has_a_column_of_what_is_computed(headgate: Command, tmp_path: Path) -> None:
    texts = ["upper(topic) = 'ART'", "upper(topic) = 'NEWS' AND age + 1 > 5", "age > 3"]
    table = put_lines(
        tmp_path / "subs.jsonl", [{"id": place, "filter": text} for place, text in enumerate(texts)]
    )
    told = headgate("validate", table).out.splitlines()
    assert told[0].split() == ["id", "indexed", "by", "computed"]
    assert [line.split()[-1] for line in told[1:4]] == ["shared", "shared", "-"]
    assert told[1].endswith("1, 1 shared")
    costs = json.loads(headgate("validate", table, "--json").out.splitlines()[1])["costs"]
    assert costs["computed"] == ["upper(topic)", "age + 1"]
    assert (costs["shared"], costs["every_event"]) == (1, False)
