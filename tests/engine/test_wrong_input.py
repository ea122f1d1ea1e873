"""Whatever is given to a public function, it answers or refuses with an error of ours, in one line."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from headgate import (
    Box,
    BoxIndex,
    Dissemination,
    Edge,
    Engine,
    Event,
    Interval,
    Node,
    Options,
    SavedPlan,
    Schema,
    Settings,
    Subscription,
    Taxonomy,
)
from headgate.errors import HeadgateError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Odd:
    """Something of which nobody has heard."""


WRONG: list[Any] = [
    None,
    7,
    -1.5,
    "nonsense",
    b"bytes",
    [],
    [None],
    {},
    {"x": Odd()},
    {7: 7},
    Odd(),
    math.nan,
    True,
    10**30,
    "\ud800",
]
RECORDS = [Subscription("s", "age > 30"), Subscription("t", "age > 20 AND topic = 'news'")]
TREES = [Subscription("s", "//a{val}", "xpath"), Subscription("t", "//a/b", "xpath")]
PATTERNS = [Subscription("s", "SELECT * { ?x a <urn:Art> }", "sparql")]
NODES, EDGES = [Node("pub"), Node("net")], [Edge("pub", "net")]
ROW = {"age": 35, "source": "pub"}
TREE = Event("e", "<a><b/></a>", source="pub", content_type="xml")
GRAPH = Event("e", "<urn:x> a <urn:Art> .", content_type="nt")


def hung(subscriptions: list[Subscription]) -> list[Subscription]:
    return [Subscription(each.id, each.filter, each.dialect, node="net") for each in subscriptions]


ENGINES: dict[str, tuple[Callable[[], Engine], Any]] = {
    "plain": (lambda: Engine.build(RECORDS), ROW),
    "ranked": (lambda: Engine.build(RECORDS, ranked=True), ROW),
    "graph": (lambda: Engine.build(hung(RECORDS), nodes=NODES, edges=EDGES), ROW),
    "ranked graph": (lambda: Engine.build(hung(RECORDS), nodes=NODES, edges=EDGES, ranked=True), ROW),
    "xml": (lambda: Engine.build(TREES), TREE),
    "rdf": (lambda: Engine.build(PATTERNS, taxonomy=Taxonomy()), GRAPH),
    "empty": (Engine.build, ROW),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the wrong things are names of files that can be written."""
    monkeypatch.chdir(tmp_path)


def call(function: Callable[[], Any], told: object) -> None:
    """Call something that may refuse."""
    said = "an answer"
    try:
        repr(function())
    except HeadgateError as error:
        said = str(error)
    except Exception as error:
        raise AssertionError(f"{told}: {type(error).__name__}: {error}") from error
    assert len(said.split("\n")) == 1, told
    assert said, told


def try_all(name: str, function: Callable[..., Any], **right: Any) -> None:
    """Give each argument of a function everything that is wrong, with the others right."""
    for argument in right:
        for wrong in WRONG:
            call(partial(function, **{**right, argument: wrong}), (name, argument, wrong))


@pytest.mark.parametrize("kind", ENGINES)
def test_calls_that_ask(kind: str) -> None:
    make, event = ENGINES[kind]
    engine = make()
    one: dict[str, Any] = {"event": event, "identity": "s"}
    best: dict[str, Any] = {"k": 2, "mode": "exact", "factors": None}
    way: dict[str, Any] = {"by": "minus", "decay": 0.9, "hops": False}
    try_all("match", engine.match, event=event)
    try_all("explain", engine.explain, **one)
    try_all("bindings", engine.bindings, **one, limit=5)
    try_all("answer", engine.answer, **one)
    try_all("top", engine.top, event=event, **best, **way)
    try_all("explain_rank", engine.explain_rank, **one, **best, **way)
    try_all("relaxed", engine.top, event=event, k=2, mode="relaxed", factors={"age": 2})
    for many in (engine.match_batch, engine.match_events, engine.unknown):
        try_all(many.__name__, many, events=[event])
        for wrong in WRONG:
            call(partial(many, [wrong]), (many, wrong))
    try_all("top_batch", engine.top_batch, events=[event], **best)
    try_all("filter", engine.filter, identity="s")
    try_all("in", lambda identity: identity in engine, identity="s")


@pytest.mark.parametrize("kind", ENGINES)
def test_calls_that_change(kind: str, tmp_path: Path) -> None:
    make, _ = ENGINES[kind]
    row = {"id": "s", "filter": "TRUE"}
    engine = make()
    try_all("subscribe", engine.subscribe, subscriptions=[{**row, "id": "new"}], on_error="raise")
    try_all("unsubscribe", engine.unsubscribe, identity="new")
    try_all("replace", engine.replace, subscription=row)
    try_all("set_score", engine.set_score, identity="s", score=1.0)
    try_all("set_weights", engine.set_weights, identity="s", weights=None)
    for field in ("id", "filter", "dialect", "node", "score", "weights"):
        for wrong in WRONG:
            given = {**row, field: wrong}
            call(partial(engine.replace, given), (field, wrong))
            call(partial(engine.subscribe, given, on_error="collect"), (field, wrong))
    try_all("save", engine.save, source=None, path=tmp_path / "other\0name")
    for wrong in WRONG:
        call(partial(make().save, tmp_path / "snapshot", source=wrong), wrong)


def test_rows_of_events() -> None:
    for make, _ in ENGINES.values():
        engine = make()
        for name in ("age", "id", "source", "datacontenttype", "data", "time"):
            for more in ({"source": "pub"}, {"data": "<a/>", "datacontenttype": "xml"}):
                for wrong in WRONG:
                    row = {**more, name: wrong}
                    call(partial(engine.match, row), row)
                    call(partial(engine.match_batch, [row]), row)
                    call(partial(engine.top, row, 1), row)


def test_building_and_opening(tmp_path: Path) -> None:
    for way in ("raise", "collect"):
        for filters in (RECORDS, PATTERNS):
            try_all(
                "build",
                Engine.build,
                subscriptions=filters,
                nodes=None,
                edges=(),
                ranked=None,
                taxonomy=None,
                options=None,
                on_error=way,
            )
        for name in ("id", "filter", "dialect", "node", "score", "weights"):
            for wrong in WRONG:
                row = {"id": "z", "filter": "age > 1", name: wrong}
                rows = [RECORDS[0], row]
                call(partial(Engine.build, rows, on_error=way), row)
                placed = [{"node": "net", **row}]
                call(partial(Engine.build, placed, nodes=NODES, edges=EDGES), row)
    for wrong in WRONG:
        for name in ("id", "filter", "kind", "subscription", "dialect", "score", "cost"):
            nodes = [{"id": "n", name: wrong}]
            call(partial(Engine.build, nodes=nodes), nodes)
        for name in ("source", "target", "filter", "dialect", "cost"):
            edges = [{"source": "pub", "target": "net", name: wrong}]
            call(partial(Engine.build, nodes=NODES, edges=edges), edges)
    Engine.build(RECORDS).save(tmp_path / "snapshot")
    try_all("open", Engine.open, path=tmp_path / "snapshot", verify=True)
    try_all("Engine", Engine, backend=None)


def test_what_is_written_down() -> None:
    try_all("Event", Event, id="e", data="", time=None, source=None, content_type="xml")
    try_all("from_row", Event.from_row, row={"id": "e"})
    try_all("from_json", Event.from_json, text='{"id": "e"}')
    try_all("Schema.from_json", Schema.from_json, tree={"age": "int64"})
    try_all("Schema.from_arrow", Schema.from_arrow, schema=pa.schema({"age": pa.int64()}))
    fields: dict[str, Any] = {"id": "s", "filter": "TRUE", "dialect": "sql", "score": 0}
    try_all("Subscription", Subscription, **fields, node=None, weights=None)
    try_all("Node", Node, **fields, kind="", subscription=None, cost=0)
    try_all("Edge", Edge, source="a", target="b", filter="TRUE", dialect="sql", cost=0)
    try_all("Interval", Interval, low=1, high=2, low_open=False, high_open=False)
    try_all("Box", Box, id="s", intervals={"a": Interval(1, 2)}, score=0, weights=1)
    try_all("Options", Options, coerce=True, injective=False)
    try_all("Settings", Settings, **dict.fromkeys(Settings.__dataclass_fields__))


def test_boxes(tmp_path: Path) -> None:
    box = Box("s", {"a": Interval(1, 2)})
    try_all("build", BoxIndex.build, boxes=[box])
    index = BoxIndex.build([box])
    asked: dict[str, Any] = {"event": {"a": 1}, "k": 1, "mode": "exact", "notion": "overlap"}
    asked |= {"factors": None, "combine": "sum"}
    try_all("top", index.top, **asked, method="auto")
    try_all("relaxed", index.top, **{**asked, "mode": "relaxed"})
    try_all("explain", index.explain, **asked, identity="s")
    try_all("insert", index.insert, box=Box("t", {"a": Interval(1, 2)}))
    try_all("set_score", index.set_score, identity="s", score=1.0)
    try_all("set_weights", index.set_weights, identity="s", weights=1.0)
    try_all("in", lambda identity: identity in index, identity="s")
    try_all("delete", index.delete, identity="s")
    try_all("save", index.save, source=None, path=tmp_path / "other\0name")
    try_all("open", BoxIndex.open, path=tmp_path, verify=True)


def test_taxonomies() -> None:
    taxonomy = Taxonomy()
    try_all("of", Taxonomy.of, statements=[])
    try_all("read", Taxonomy.read, data="", content_type="turtle")
    for each in (taxonomy.add, taxonomy.remove):
        try_all(each.__name__, each, statement=("<urn:a>", "<urn:b>", "<urn:c>"))
    for ask in (taxonomy.ancestors, taxonomy.property_ancestors, taxonomy.types):
        try_all(ask.__name__, ask, term="<urn:a>")


def test_plans(tmp_path: Path) -> None:
    given: dict[str, Any] = {"subscriptions": TREES, "sample": [TREE], "settings": None}
    names = dict.fromkeys(("nulls", "names", "dots"))
    try_all("build", Dissemination.build, **given, carries=None, taxonomy=None, **names)
    for wrong in WRONG:
        call(partial(Dissemination.build, PATTERNS, [GRAPH], taxonomy=wrong), wrong)
    plan = Dissemination.build(TREES, [TREE])
    try_all("deliver", plan.deliver, event=TREE)
    try_all("feeding", plan.feeding, identity="s")
    for wrong in WRONG:
        call(partial(plan.subscribe, wrong), wrong)
    try_all("fail", plan.fail, identity="t")
    try_all("unsubscribe", plan.unsubscribe, identity="s")
    try_all("open", SavedPlan.open, path=tmp_path, verify=True)
    try_all("save", plan.saved.save, path=tmp_path / "other\0name")
