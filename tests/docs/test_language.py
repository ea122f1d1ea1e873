"""The tables of the language reference, held against the reference implementation and the index."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import pytest

from headgate import Event, Subscription
from headgate.core.casts import to_timestamp
from headgate.core.values import MAX_DEPTH, Kind
from headgate.errors import FilterError
from headgate.records import reference
from headgate.records.expressions import model as expression_model
from headgate.records.expressions.arrays import MAX_STEPS
from headgate.records.expressions.functions import ALIASES, FUNCTIONS, OPERATORS
from headgate.records.expressions.model import MAX_NODES
from headgate.records.expressions.texts import MAX_TEXT
from headgate.records.index.index import RecordIndex
from headgate.records.language import limits, literals, model
from headgate.records.language.model import Literal, LiteralType
from headgate.records.language.parse import parse_filter
from tests.docs.fences import ROOT, without_fences

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "language.md"
TEXT = PAGE.read_text("utf-8")
VERDICTS = {"TRUE": True, "FALSE": False, "NULL": None}

_CELLS = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"(?:``\s?(.*?)\s?``|`(.*?)`)\Z")
_TYPED = re.compile(r"(TIMESTAMP|DECIMAL) '([^']*)'")


class Case(NamedTuple):
    """A filter, an event, and what the page says that it is."""

    filter: str
    event: str
    verdict: str


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
    found = _CODE.match(cell)
    assert found, f"{cell} should be in backticks"
    return found[1] or found[2]


def cases() -> list[Case]:
    """List every filter with an event and a verdict."""
    found = [
        Case(code(row["filter"]), code(row["event"]), row["verdict"])
        for row in table("filter", "event", "verdict")
    ]
    missing = "when `a` is NULL or missing"
    for row in table("operator", "filter", missing):
        found += [Case(code(row["filter"]), event, row[missing]) for event in ("{}", '{"a": null}')]
        found.append(Case(code(row["filter"]), code(row["another type"]), row["then"]))
    return found


def read_event(text: str) -> Event:
    """Read an event as the page writes it: JSON, TIMESTAMP '…' for a moment, and DECIMAL '…'."""
    kept: list[dt.datetime | Decimal] = []

    def keep(typed: re.Match[str]) -> str:
        if typed[1] == "DECIMAL":
            kept.append(Decimal(typed[2]))
        else:
            micros = to_timestamp(typed[2])
            assert micros is not None
            kept.append(dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=micros))
        return json.dumps({"kept": len(kept) - 1})

    def put(found: dict[str, Any]) -> Any:
        return kept[found["kept"]] if "kept" in found else found

    return Event("event", json.loads(_TYPED.sub(keep, text), object_hook=put))


@pytest.mark.parametrize("case", cases(), ids=str)
def test_verdicts(case: Case) -> None:
    event = read_event(case.event)
    expected = VERDICTS[case.verdict]
    assert reference.evaluate(parse_filter(case.filter), event.attributes) is expected
    index = RecordIndex.build([Subscription("s", case.filter), Subscription("not", f"NOT ({case.filter})")])
    wanted = {True: ["s"], False: ["not"], None: []}
    assert index.match(event) == wanted[expected]


def test_there_are_enough_cases() -> None:
    assert len(cases()) > 100


@pytest.mark.parametrize("row", table("refused filter", "reason"), ids=lambda row: row["refused filter"])
def test_refusals(row: dict[str, str]) -> None:
    with pytest.raises(FilterError) as refused:
        parse_filter(code(row["refused filter"]))
    assert refused.value.reason == code(row["reason"])


def test_logic() -> None:
    truth = list(VERDICTS)
    (rows,) = [rows for names, rows in tables() if names[1:] == truth]
    for row in rows:
        sign, _, left = row[0].replace("*", "").partition(" ")
        for right, verdict in zip(truth, row[1:], strict=True):
            text = f"NOT {right}" if sign == "NOT" else f"{left} {sign} {right}"
            assert reference.evaluate(parse_filter(text), {}) is VERDICTS[verdict], text


LITERALS = {
    LiteralType.BOOL: Literal(LiteralType.BOOL, True),
    LiteralType.INT: Literal(LiteralType.INT, 1),
    LiteralType.DECIMAL: Literal(LiteralType.DECIMAL, Decimal("1.5")),
    LiteralType.DOUBLE: Literal(LiteralType.DOUBLE, 1.5),
    LiteralType.STRING: Literal(LiteralType.STRING, "1"),
    LiteralType.DATE: Literal(LiteralType.DATE, 0),
    LiteralType.TIMESTAMP: Literal(LiteralType.TIMESTAMP, 0),
}
VALUES: dict[Kind, object] = {
    Kind.BOOL: True,
    Kind.INT: 1,
    Kind.FLOAT: 1.5,
    Kind.DECIMAL: Decimal("1.5"),
    Kind.STRING: "1",
    Kind.TIMESTAMP: dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
    Kind.ARRAY: [1],
    Kind.OBJECT: {"b": 1},
}


def test_coercions() -> None:
    rows = {Kind[row["kind"]]: row for row in table("kind", "boolean", "whole number")}
    assert {*rows} == {*VALUES}
    for kind, row in rows.items():
        assert {*row} - {"kind"} == {found.value for found in LITERALS}
        for literal in LITERALS.values():
            value, other = VALUES[kind], literal
            # A text that every cast takes does not exist, so it is chosen by the literal, and the reverse.
            if kind is Kind.STRING and literal.type in model.MOMENTS:
                value = "1970-01-01"
            if kind is Kind.TIMESTAMP and literal.type is LiteralType.STRING:
                other = Literal(LiteralType.STRING, "1970-01-01")
            unknown = reference.compare(value, other) is None
            assert unknown is (row[literal.type.value] == "NULL"), (kind, literal)


def test_kinds() -> None:
    assert {row["kind"] for row in table("kind", "JSON", "Python")} == {kind.name for kind in Kind}


def test_limits() -> None:
    shown = {code(row["limit"]): row["value"] for row in table("limit", "value")}
    real = {
        name: f"{value:,}"
        for module in (limits, literals)
        for name, value in vars(module).items()
        if name.startswith("MAX_")
    }
    assert shown == real
    assert f"Objects of an event may nest {MAX_DEPTH} deep" in TEXT


def test_every_function_has_a_row() -> None:
    rows = {
        name
        for row in table("function", "filter", "verdict")
        for name in re.findall(r"`([^`]+)`", row["function"])
    }
    # Those with a colon are made of other words: of `:event_time` and INTERVAL.
    written = {name for name in (*FUNCTIONS, *OPERATORS) if not name.startswith(":")}
    assert rows == {*written, "cast"}
    section = TEXT[TEXT.index("## Expressions") : TEXT.index("### Regular expressions")]
    assert [name for name in ALIASES if f"`{name}`" not in section] == []
    for bound in (MAX_NODES, expression_model.MAX_DEPTH, MAX_TEXT, MAX_STEPS):
        assert f"{bound:,}" in section


def test_every_node_and_operator_is_mentioned() -> None:
    nodes = " ".join(row["node"] for row in table("node", "written as"))
    for node in get_args(model.Expression):
        assert f"`{node.__name__}`" in nodes
    operators = {
        code(row["operator"]) for row in table("operator", "filter") if row["operator"].startswith("`=")
    }
    operators |= {row["operator"].strip("`") for row in table("operator", "filter")}
    assert {op.value for op in model.Op} <= operators
    for found in LiteralType:
        assert f"| {found.value} |" in TEXT
