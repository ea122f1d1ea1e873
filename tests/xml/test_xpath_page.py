"""The tables of the page about the filter language, held against the parser, the reference and the index."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest
from lxml import etree

from headgate import Event, Subscription
from headgate.errors import FilterError
from headgate.xml.events.reading import read_document
from headgate.xml.explain.explain import shown_need
from headgate.xml.index.index import XmlIndex
from headgate.xml.language import refusal as text_limits
from headgate.xml.language.model import RETURNS, SIGNS
from headgate.xml.language.parse import parse_filter
from headgate.xml.whole.reading import WholeFilter, XPathSettings, clauses, read_filter
from tests.docs.fences import ROOT, without_fences
from tests.xml.reference import matches, tuples

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = ROOT / "docs" / "xpath.md"
TEXT = PAGE.read_text("utf-8")

_CELLS = re.compile(r"(?<!\\)\|")
_CODE = re.compile(r"`([^`]+)`")


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


@pytest.mark.parametrize(
    "row", table("filter", "document", "verdict"), ids=lambda row: f"{row['filter']} {row['document']}"
)
def test_verdicts(row: dict[str, str]) -> None:
    assert row["verdict"] in ("matches", "no")
    document = read_document(code(row["document"]))
    assert matches(parse_filter(code(row["filter"])), document) is (row["verdict"] == "matches")


def test_the_index_says_the_same() -> None:
    rows = table("filter", "document", "verdict")
    texts = dict.fromkeys(code(row["filter"]) for row in rows)
    index = XmlIndex.build([Subscription(text, text, "xpath") for text in texts])
    for row in rows:
        event = Event("e", code(row["document"]), content_type="application/xml")
        assert (code(row["filter"]) in index.match(event)) is (row["verdict"] == "matches"), row
    assert len(rows) > 50


@pytest.mark.parametrize("row", table("filter", "document", "rows"), ids=lambda row: row["filter"])
def test_what_is_returned(row: dict[str, str]) -> None:
    found = tuples(parse_filter(code(row["filter"])), read_document(code(row["document"])))
    assert found == ast.literal_eval(code(row["rows"]))


@pytest.mark.parametrize("row", table("tree", "in XPath"), ids=lambda row: row["tree"])
def test_the_tree_notation(row: dict[str, str]) -> None:
    assert parse_filter(code(row["tree"]), "tree") == parse_filter(code(row["in XPath"]))


@pytest.mark.parametrize("row", table("filter", "clauses", "names"), ids=lambda row: row["filter"])
def test_clauses(row: dict[str, str]) -> None:
    found = clauses(code(row["filter"]), "xpath")
    assert [clause.filter for clause in found] == [code(cell) for cell in row["clauses"].split(" then ")]
    assert [" ".join(clause.names) for clause in found] == [
        code(cell) for cell in row["names"].split(" then ")
    ]


@pytest.mark.parametrize("row", table("refused filter", "reason"), ids=lambda row: row["refused filter"])
def test_refusals(row: dict[str, str]) -> None:
    with pytest.raises(FilterError) as refused:
        read_filter(code(row["refused filter"]), settings=XPathSettings())
    assert refused.value.reason == code(row["reason"])


def test_what_is_indexed_of_expressions() -> None:
    for row in table("expression", "indexed"):
        found = read_filter(code(row["expression"]), settings=XPathSettings())[1]
        assert isinstance(found, WholeFilter)
        assert [shown_need(each) for each in found.needs or ()] == [
            code(cell) for cell in row["indexed"].split(" or ")
        ], row


def test_verdicts_of_expressions() -> None:
    """By lxml alone, and by the index."""
    rows = table("expression", "document", "verdict")
    texts = dict.fromkeys(code(row["expression"]) for row in rows)
    index = XmlIndex.build([Subscription(text, text, "xpath") for text in texts])
    for row in rows:
        text, document, right = code(row["expression"]), code(row["document"]), row["verdict"] == "matches"
        assert etree.XPath(f"boolean({text})")(etree.fromstring(document)) is right, row
        event = Event("e", document, content_type="application/xml")
        assert (text in index.match(event)) is right, row


def test_what_is_supported() -> None:
    """Each spelling is taken, below the document or in brackets; the last column is another for the first."""
    for row in table("support", "written", "also"):
        found = [parse_filter(_whole(text)) for text in _CODE.findall(row["written"])]
        assert found
        for text in _CODE.findall(row["also"]):
            if text not in ("xml:lang", "[(b and c) and d]", "[3 < .]"):
                assert parse_filter(_whole(text)) == found[0]
            parse_filter(_whole(text))
    assert parse_filter("//x[. > 3]") == parse_filter("//x[3 < .]")


def _whole(text: str) -> str:
    return text if text.startswith("/") else f"//x{text}" if text.startswith("[") else f"//{text}"


def test_the_message_in_the_prose() -> None:
    (message, shown) = re.findall(r"`(matches\(\) is not [^`]*at\s+character 5: (//a[^`]*))`", TEXT)[0]
    with pytest.raises(FilterError) as refused:
        read_filter(shown.replace("⟪", ""))
    assert str(refused.value) == " ".join(message.split())


def test_limits() -> None:
    shown = {code(row["limit"]): row["value"] for row in table("limit", "value")}
    assert shown == {
        name: f"{value:,}" for name, value in vars(text_limits).items() if name.startswith("MAX_")
    }


def test_everything_is_mentioned() -> None:
    for name in (*RETURNS, *SIGNS):
        assert name in TEXT
