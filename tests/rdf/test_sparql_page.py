"""The tables of the page about the filter language, held against the reference and the index."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from headgate import Event, Subscription
from headgate.errors import FilterError
from headgate.rdf.events.reading import read_graph
from headgate.rdf.index.index import RdfIndex
from headgate.rdf.language import refusal as limits
from headgate.rdf.language.model import EVERY, PATHS, PLAIN, SUBCLASS, SUBPROPERTY, TYPE, Options
from headgate.rdf.language.parse import parse_expression, parse_filter
from headgate.rdf.language.values import evaluate, truth
from headgate.rdf.language.words import FUNCTIONS
from headgate.rdf.taxonomy.taxonomy import Taxonomy
from headgate.rdf.whole.clauses import split
from headgate.rdf.whole.query import Query, parse_any
from tests.docs.fences import ROOT, fences, without_fences
from tests.rdf.reference import matches

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "sparql.md"
TEXT = PAGE.read_text("utf-8")
EX = "http://example.org/"
PREFIX = f"PREFIX : <{EX}> "
TURTLE = f"""@prefix : <{EX}> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . """
VALUES = {"TRUE": True, "FALSE": False, "error": None}
TAXONOMY = [
    (f"<{EX}Article>", SUBCLASS, f"<{EX}Publication>"),
    (f"<{EX}Book>", SUBCLASS, f"<{EX}Publication>"),
    (f"<{EX}editor>", SUBPROPERTY, f"<{EX}creator>"),
    (f"<{EX}moby>", TYPE, f"<{EX}Book>"),
]

_CELLS = re.compile(r"(?<!\\)\|")


def tables() -> Iterator[tuple[list[str], list[list[str]]]]:
    """List the tables of the page: the names of the columns, and the rows."""
    for block in re.findall(r"(?:^\|.*\n)+", without_fences(TEXT), re.MULTILINE):
        rows = [
            [cell.strip().replace("\\|", "|") for cell in _CELLS.split(line)[1:-1]]
            for line in block.splitlines()
        ]
        yield rows[0], rows[2:]


def table(*columns: str) -> list[dict[str, str]]:
    """Collect the rows of all tables that have these columns."""
    return [
        dict(zip(names, row, strict=True))
        for names, rows in tables()
        if {*columns} <= {*names}
        for row in rows
    ]


def code(cell: str) -> str:
    """Take a cell out of its backticks."""
    assert cell[0] == cell[-1] == "`", f"{cell} should be in backticks"
    return cell[1:-1]


def stands_for(value: str) -> str:
    """Read a value as the page writes it."""
    ((_, _, term),) = read_graph(f"{TURTLE} :x :p {value} .", "text/turtle").statements()
    return term


@pytest.mark.parametrize(
    "row", table("filter", "event", "verdict"), ids=lambda row: f"{row['filter']} {row['event']}"
)
def test_verdicts(row: dict[str, str]) -> None:
    pattern = parse_filter(f"{PREFIX} ASK {{ {code(row['filter'])} }}")
    graph = read_graph(TURTLE + code(row["event"]), "text/turtle")
    assert matches(pattern, graph, Taxonomy.of(TAXONOMY)) is (row["verdict"] == "matches")
    assert row["verdict"] in ("matches", "no")


@pytest.mark.parametrize("column", ["value", "value with coerce"])
def test_conditions(column: str) -> None:
    options = Options(coerce=column != "value")
    rows = table("condition", "`?y`", column)
    for row in rows:
        (condition,) = parse_filter(f"{PREFIX} ASK {{ ?x ?p ?y FILTER({code(row['condition'])}) }}").filters
        found = truth(evaluate(condition, {"?y": stands_for(code(row["`?y`"]))}, options))
        assert found is VALUES[row[column]], row
    assert len(rows) > (5 if options.coerce else 60)


def test_the_index_says_the_same() -> None:
    rows = table("filter", "event", "verdict")
    texts = dict.fromkeys(code(row["filter"]) for row in rows)
    filters = [Subscription(text, f"{PREFIX} ASK {{ {text} }}", "sparql") for text in texts]
    index = RdfIndex.build(filters, taxonomy=Taxonomy.of(TAXONOMY))
    for row in rows:
        event = Event("e", TURTLE + code(row["event"]), content_type="text/turtle")
        assert (code(row["filter"]) in index.match(event)) is (row["verdict"] == "matches"), row


@pytest.mark.parametrize("column", ["value", "value with coerce"])
def test_the_index_says_the_same_of_conditions(column: str) -> None:
    rows = table("condition", "`?y`", column)
    texts = [f"{sign}({code(row['condition'])})" for row in rows for sign in ("", "!")]
    index = RdfIndex.build(
        [
            Subscription(place, f"{PREFIX} ASK {{ ?x :p ?y FILTER({text}) }}", "sparql")
            for place, text in enumerate(texts)
        ],
        options=Options(coerce=column != "value"),
    )
    for place, row in enumerate(rows):
        found = index.match(Event("e", f"{TURTLE} :x :p {code(row['`?y`'])} .", content_type="text/turtle"))
        held, opposite = (each in found for each in (2 * place, 2 * place + 1))
        assert (True if held else False if opposite else None) is VALUES[row[column]], row
        assert not (held and opposite)


def test_logic() -> None:
    stands = {"TRUE": "true", "FALSE": "false", "error": f"<{EX}a>"}
    (rows,) = [rows for names, rows in tables() if names[1:] == list(VALUES)]
    for row in rows:
        sign, _, left = row[0].replace("*", "").partition(" ")
        for right, value in zip(VALUES, row[1:], strict=True):
            text = f"!{stands[right]}" if sign == "!" else f"{stands[left]} {sign} {stands[right]}"
            assert evaluate(parse_expression(text), {}, Options()) is VALUES[value], text


@pytest.mark.parametrize("row", table("refused filter", "reason"), ids=lambda row: row["refused filter"])
def test_refusals(row: dict[str, str]) -> None:
    with pytest.raises(FilterError) as refused:
        RdfIndex.build([Subscription(0, code(row["refused filter"]), "sparql")])
    assert refused.value.reason == code(row["reason"])


def test_constraints() -> None:
    for row in table("constraint", "in SPARQL"):
        constraint = code(row["constraint"])
        found = parse_any(f"{PREFIX} (?x, p, ?y, {{{constraint}}})", "tuples")
        joint = "" if "FILTER" in row["in SPARQL"] else "."
        same = parse_any(f"{PREFIX} ASK {{ ?x :p ?y {joint} {code(row['in SPARQL'])} }}")
        if isinstance(found, Query) and isinstance(same, Query):
            assert found.members == same.members
            assert not found.verified
        else:
            assert found == same


def test_whole_queries() -> None:
    for row in table("query", "indexed", "verified"):
        found = parse_any(PREFIX + code(row["query"]))
        assert isinstance(found, Query)
        assert found.verified is not row["verified"].startswith("nothing")
        assert found.unindexed is row["verified"].endswith("for every event")
        indexed = [] if row["indexed"] == "nothing" else row["indexed"].split(", or ")
        wanted = [parse_filter(f"{PREFIX} ASK {{ {code(each)} }}") for each in indexed]
        assert [pattern for pattern, role in found.members if role != EVERY] == wanted


def test_the_example_of_tuples() -> None:
    (example,) = [fence.body for fence in fences(PAGE) if fence.body.startswith("BASE")]
    assert len(parse_filter(example, "tuples").edges) == 4


def test_clauses() -> None:
    for row in table("filter", "clauses", "names"):
        found = split(f"{PREFIX} ASK {{ {code(row['filter'])} }}", "sparql")
        clauses = [code(cell) for cell in row["clauses"].split(" and ")]
        assert [parse_filter(f"{PREFIX} ASK {{ {each} }}") for each in clauses] == [
            parse_filter(clause.filter) for clause in found
        ]
        assert [code(cell) for cell in row["names"].split(" and ")] == [
            " ".join(clause.names) for clause in found
        ]


def test_limits() -> None:
    shown = {code(row["limit"]): row["value"] for row in table("limit", "value")}
    assert shown == {name: f"{value:,}" for name, value in vars(limits).items() if name.startswith("MAX_")}


def test_everything_is_mentioned() -> None:
    for name in FUNCTIONS:
        assert f"`{name}`".lower() in TEXT.lower()
    for path in PATHS:
        assert path == PLAIN or f"{path} " in " ".join(row["path"] for row in table("path", "asks"))
