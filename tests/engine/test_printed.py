"""What is printed of an answer or an explanation is what people read, and a notebook shows the same."""

from __future__ import annotations

from html import unescape
from typing import TYPE_CHECKING, Any

import pytest

import headgate
from headgate import Edge, Engine, Event, Node, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable

RECORD: dict[str, Any] = {"id": "e", "x": 1}
TURTLE = Event("e", "<urn:p> <urn:year> 2001 .", content_type="text/turtle")
XML = Event("e", "<a><b>1</b><b>2</b></a>", content_type="application/xml")


def built(text: str, dialect: str = "sql", **more: Any) -> Any:
    return Engine.build([Subscription("s", text, dialect, node=more.pop("node", None))], **more)


GRAPH: dict[str, Any] = {"nodes": [Node("p"), Node("q", "x > 5")], "edges": [Edge("p", "q")], "node": "q"}
PRINTED: dict[str, tuple[Callable[[], Any], str]] = {
    "records": (
        lambda: built("x < 1").explain(RECORD, "s"),
        "no match\n  failed  x < 1   x = 1 (equal to 1)",
    ),
    "graph": (
        lambda: built("x > 0", **GRAPH).explain({**RECORD, "source": "p"}, "s"),
        "no match: every path from p to s is blocked",
    ),
    "rank": (lambda: built("x > 0", ranked=True).explain_rank(RECORD, "s", 1), "rank 1 of the best 1"),
    "rdf": (lambda: built("ASK { ?x <urn:no> ?y }", "sparql").explain(TURTLE, "s"), "no match"),
    "xml": (lambda: built("//c", "xpath").explain(XML, "s"), "no match"),
    "bindings": (
        lambda: built("SELECT ?x { ?x <urn:year> ?y }", "sparql").bindings(TURTLE, "s"),
        "?x\n<urn:p>",
    ),
    "answer": (lambda: built("//a/b{val}", "xpath").answer(XML, "s"), "b.val\n1\n2"),
}


@pytest.mark.parametrize("name", PRINTED)
def test_it_is_printed_for_people(name: str) -> None:
    make, begins = PRINTED[name]
    made = make()
    assert str(made).startswith(begins)
    assert "\n".join(made.lines()) == str(made)
    assert unescape(made._repr_html_()) == f"<pre>{made}</pre>"
    assert repr(made) != str(made)


def test_a_module_shows_its_public_names() -> None:
    assert sorted(dir(headgate)) == sorted(headgate.__all__)
