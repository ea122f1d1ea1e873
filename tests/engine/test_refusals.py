"""Which subscription was refused, the rest without them, and names that nobody has."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headgate import Edge, Engine, Node, Subscription, Taxonomy
from headgate.engine.backend import Backend
from headgate.engine.inputs import RefusedSubscription
from headgate.engine.queries import Unknown
from headgate.errors import FilterError, GraphError, HeadgateError, SubscriptionError

KINDS = ["plain", "ranked", "graph", "ranked graph"]
BAD = "age > now()"
WHY = (
    "now is not part of the filter language: it asks the clock, and an event means the same at any time; "
    "the event's own time is :event_time"
)


def built(kind: str, rows: Any, **more: Any) -> Engine:
    if "graph" not in kind:
        return Engine.build(rows, ranked=kind == "ranked", **more)
    hung = [{"node": "net", **row} if isinstance(row, dict) else row for row in rows]
    return Engine.build(
        hung, nodes=[Node("pub"), Node("net")], edges=[Edge("pub", "net")], ranked="ranked" in kind, **more
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_bad_filter_is_told_with_its_id(kind: str) -> None:
    rows: list[dict[str, Any]] = [
        {"id": f"s{row}", "filter": BAD if row == 7 else "a = 1"} for row in range(9)
    ]
    reason = f"^subscription 's7': {WHY}, at character 7"
    with pytest.raises(HeadgateError, match=reason) as found:
        built(kind, rows)
    if "graph" not in kind:
        assert isinstance(found.value, FilterError)
        assert found.value.position == 6
    engine = built(kind, rows[:7])
    wrong = {**rows[7], "node": "net" if "graph" in kind else None}
    with pytest.raises(FilterError, match=reason) as later:
        engine.subscribe(wrong)
    assert later.value.position == 6
    assert len(engine) == 7


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_is_built(kind: str) -> None:
    rows: list[Any] = [
        {"id": "s0", "filter": "age > 30"},
        {"id": "s1", "filter": BAD},
        {"id": "s2"},
        7,
        {"id": "s4", "filter": "//a[", "dialect": "xpath"},
        {"id": "s0", "filter": "TRUE"},
        {"id": 6, "filter": "TRUE"},
        {"id": "s7", "filter": "age > 20"},
        {"id": "s8", "filter": "TRUE", "dialect": "prose"},
        {"id": "s9", "filter": "TRUE", "node": "nowhere"},
        {"id": [], "filter": "TRUE"},
    ]
    engine = built(kind, rows, on_error="collect")
    assert engine.ids == ["s0", "s7"]
    assert engine.match({"age": 25, "source": "pub"}) == ["s7"]
    assert [(each.row, each.id) for each in engine.refused] == [
        (1, "s1"),
        (2, "s2"),
        (3, None),
        (4, "s4"),
        (5, "s0"),
        (6, 6),
        (8, "s8"),
        (9, "s9"),
        (10, []),
    ]
    reasons = [each.reason for each in engine.refused]
    for reason, words in zip(
        reasons,
        [
            f"subscription 's1': {WHY}, at character 7: age > ⟪now()",
            "subscription 's2' has no 'filter'",
            "a subscription is an int",
            "subscription 's4': the filter ends too early",
            "id 's0' is given twice: the first one is taken",
            "id 6 has the wrong type: ids here are text",
            "dialect 'prose' is not known",
            "nowhere",
            "id [] is not usable",
        ],
        strict=True,
    ):
        assert words in reason
        assert "\n" not in reason


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_are_refused_are_found_together(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What builds an index tells of all filters that are bad: no subscription is tried by itself."""
    monkeypatch.setattr(Backend, "subscribe", None)
    bad = [
        ("age >", "sql"),
        ("x in a", "labels"),
        ("//a[", "xpath"),
        ("ASK {", "sparql"),
        ("age > 30", "sparql"),
    ]
    for part in (bad, bad[:2], bad[2:3], bad[3:]):
        rows: list[Any] = [
            {"id": f"s{n}", "filter": text, "dialect": dialect} for n, (text, dialect) in enumerate(part)
        ]
        with pytest.raises(HeadgateError, match=r"^subscription 's0': ") as found:
            built(kind, rows)
        assert list(found.value.refused) == [f"s{n}" for n in range(len(part))]
        assert [each.id for each in built(kind, rows, on_error="collect").refused] == [*found.value.refused]
    if kind.startswith("ranked"):
        weighed = [{"id": f"w{n}", "filter": "a = 1", "weights": [1.0, 2.0]} for n in range(3)]
        with pytest.raises(SubscriptionError, match=r"^subscription 'w0' has 2 weights and 1 clauses") as odd:
            built(kind, weighed)
        assert list(odd.value.refused) == ["w0", "w1", "w2"]
        worse = {"id": "s", "filter": BAD}
        assert built(kind, [*weighed, worse], on_error="collect").ids == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "graph" in kind])
def test_what_fits_into_no_table_is_told_by_itself(kind: str) -> None:
    """A node of a type that no node has, or text that is not UTF-8, leaves the others as they are."""
    odd: list[tuple[dict[str, Any], str]] = [
        ({"node": True}, "node True is not usable: give text or a whole number"),
        ({"node": 2.5}, "node 2.5 is not usable: give text or a whole number"),
        ({"node": 3}, "there is no node 3"),
        ({"node": "\ud800"}, "there is no node '\\ud800'"),
        (
            {"filter": "a = '\ud800'"},
            "the filter holds a lone surrogate, which UTF-8 cannot carry, at character 6: a = '⟪ '",
        ),
    ]
    rows: list[dict[str, Any]] = [{"id": f"s{n}", "filter": "a = 1", **row} for n, (row, _) in enumerate(odd)]
    wanted = [f"subscription 's{n}': {reason}" for n, (_, reason) in enumerate(odd)]
    engine = built(kind, [*rows, {"id": "good", "filter": "a = 1"}], on_error="collect")
    assert (engine.ids, [each.reason for each in engine.refused]) == (["good"], wanted)
    with pytest.raises(GraphError) as caught:
        built(kind, rows)
    assert str(caught.value) == wanted[0]
    with pytest.raises(GraphError) as later:
        engine.subscribe(rows[0])
    assert str(later.value) == wanted[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_rest_is_subscribed(kind: str) -> None:
    engine = built(kind, [{"id": "s0", "filter": "age > 30"}], on_error="collect")
    assert engine.refused == ()
    node = "net" if "graph" in kind else None
    rows = [
        {"id": "s1", "filter": BAD, "node": node},
        {"id": "s0", "filter": "TRUE", "node": node},
        {"id": "s2", "filter": None},
        {"id": "s3", "filter": "age > 20", "node": node},
    ]
    refused = engine.subscribe(rows, on_error="collect")
    assert [(each.row, each.id) for each in refused] == [(0, "s1"), (1, "s0"), (2, "s2")]
    assert engine.ids == ["s0", "s3"]
    assert engine.subscribe([], on_error="collect") == []
    some: list[Any] = ["ignore", None, 7, []]
    for wrong in some:
        with pytest.raises(SubscriptionError, match=r"on_error is .*: give 'raise' or 'collect'"):
            engine.subscribe(rows, on_error=wrong)


def test_what_is_not_about_a_subscription_is_raised() -> None:
    for way in ("raise", "collect"):
        with pytest.raises(GraphError, match="node 'net': "):
            Engine.build([], nodes=[Node("net", BAD)], on_error=way)
        with pytest.raises(SubscriptionError, match="a taxonomy and options are for filters of RDF"):
            Engine.build([Subscription("s", "TRUE")], taxonomy=Taxonomy(), on_error=way)
    table = pa.table({"id": ["s1", "s2"], "filter": ["age > 1", None]})
    assert Engine.build(table, on_error="collect").refused == (
        RefusedSubscription(
            1,
            "s2",
            "subscription 's2' has no 'filter': its fields are id, filter, dialect, node, score, weights",
        ),
    )


def test_the_rest_may_be_of_several_contents() -> None:
    rows = [{"id": "x", "filter": "//a", "dialect": "xpath"}, {"id": "r", "filter": "age > 1"}]
    for bad in ({"id": "b", "filter": "//a[", "dialect": "xpath"}, {"id": "b", "filter": "age >"}):
        for some in ([bad, *rows], [*rows[::-1], bad]):
            found = Engine.build(some, on_error="collect")
            assert (found.ids, [each.id for each in found.refused]) == (["r", "x"], ["b"])
    hung = [{**row, "node": "n"} for row in [*rows, bad]]
    assert Engine.build(hung, nodes=[Node("n", "age > 1")], on_error="collect").ids == ["r", "x"]


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_nobody_has(kind: str) -> None:
    engine = built(
        kind,
        [
            {"id": "s0", "filter": "contry = 'CH' AND age > 30"},
            {"id": "s1", "filter": "user.city = 'Bern' OR id = 'e1'"},
        ],
    )
    events: list[dict[str, Any]] = [
        {"id": "e1", "source": "pub", "Country": "CH", "age": 3},
        {"source": "pub", "user": {"citi": "Bern"}, "lang": "de"},
    ]
    expected = Unknown(
        {"country": "contry", "lang": None, "user.citi": "user.city"},
        {"contry": "country", "user.city": "user.citi"},
    )
    assert engine.unknown(events) == expected
    assert engine.unknown(pa.Table.from_pylist(events)) != Unknown({}, {})
    engine.subscribe({"id": "s2", "filter": "lang = 'de'", "node": "net" if "graph" in kind else None})
    assert "lang" not in engine.unknown(events).attributes
    nested = pa.table({"country": ["CH"], "user": [{"citi": "Bern"}], "age": [1]})
    assert engine.unknown(nested) == Unknown(
        {"country": "contry", "user.citi": "user.city"},
        {"contry": "country", "lang": None, "user.city": "user.citi"},
    )


def test_names_of_documents_are_not_compared() -> None:
    engine = Engine.build([Subscription("s", "//a", "xpath")])
    with pytest.raises(
        SubscriptionError, match="these filters look at XML, where names are part of a pattern"
    ):
        engine.unknown([{"a": 1}])
