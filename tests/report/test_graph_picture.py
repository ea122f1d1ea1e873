"""Pictures of graphs of every shape: all texts are there, inside, and none covers another."""

from __future__ import annotations

import random
import re
import warnings
import xml.etree.ElementTree as ET
from functools import cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.patches import FancyBboxPatch

from headgate import Edge, Event, Node, Subscription
from headgate.contents.kind import FilterSettings
from headgate.contents.registry import content_of, kind_of
from headgate.errors import TableError
from headgate.graph import summary
from headgate.graph.build.tables import read_tables
from headgate.graph.index import GraphIndex
from headgate.records.index.index import RecordIndex
from headgate.report.graph import picture as graph_picture
from headgate.report.graph.page import GraphReport, render, write
from headgate.report.graph.scene import MOST_NODES, State, failing, scene
from headgate.workloads.graphs.exchange import Exchange
from tests.graph.random_graphs import SHAPES, draw_event, draw_graph
from tests.lanes import some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from matplotlib.figure import Figure

    from headgate.graph.changes.view import View

SVG = "{http://www.w3.org/2000/svg}"
Case = tuple["View", Event]


def build(nodes: Iterable[Node], edges: Iterable[Edge], subs: Iterable[Subscription] = ()) -> View:
    return GraphIndex.build(nodes, edges, subs, room=RecordIndex).view


def chain() -> Case:
    """A supply chain with a cycle, a filter on an edge, a loop, an isolated node, hanging subscriptions."""
    nodes = [
        Node("herald"),
        Node("gazette"),
        Node("ssp", "region = 'eu'", kind="ssp"),
        Node("exchange", kind="exchange"),
        Node("dsp", "age > 18", kind="dsp", subscription="bids"),
        Node("lonely"),
    ]
    pairs = [("gazette", "ssp"), ("ssp", "exchange"), ("exchange", "dsp"), ("dsp", "ssp"), ("dsp", "dsp")]
    edges = [*(Edge(a, b) for a, b in pairs), Edge("herald", "exchange", "lang = 'fr'")]
    subs = [Subscription("shoes", "age > 20", node="dsp"), Subscription("cars", "age > 30", node="dsp")]
    return build(nodes, edges, subs), Event("e1", {"age": 25, "lang": "fr"}, source="herald")


def ring(count: int) -> Case:
    nodes = [Node(f"n{i:04}", kind="relay", subscription=f"s{i}") for i in range(count)]
    edges = [Edge(f"n{i:04}", f"n{(i + 1) % count:04}", "a = 1" if i == 5 else None) for i in range(count)]
    return build(nodes, edges), Event("e1", {}, source="n0001")


def straight(publishers: int, subscribers: int) -> Case:
    """A graph with no intermediaries."""
    nodes = [
        *(Node(f"p{i}", kind="publisher") for i in range(publishers)),
        *(Node(f"a{i}", "age > 9", kind="advertiser", subscription=f"a{i}") for i in range(subscribers)),
    ]
    edges = [Edge(f"p{i}", f"a{(i * 7 + j) % subscribers}") for i in range(publishers) for j in range(2)]
    return build(nodes, edges), Event("e1", {"age": 1}, source="p0")


@cache
def exchange() -> Case:
    made = Exchange(1, "1/4")
    rows = pa.array(range(made.node_count)).to_numpy()
    nodes = pa.Table.from_batches([made.nodes(rows, 1)])
    edges = pa.Table.from_batches([made.edges(pa.array(range(made.edge_count)).to_numpy(), 1)])
    view = GraphIndex.from_parts(read_tables(nodes, edges).parts, RecordIndex).view
    return view, Event.from_row(made.events(rows[173:174], 1).to_pylist()[0])


def messy(seed: int) -> Case:
    """Many kinds, and names that are long, foreign, or look like markup."""
    rng = random.Random(seed)
    kinds = ["a kind with a very long name, longer than any box", "日本語", "$x$ & <y>", "", "bank"]
    count = 300 if seed % 2 else 30
    nodes = [
        Node(f"{rng.choice(kinds)} {i}", "age > 5" if i % 3 else None, kind=rng.choice(kinds))
        for i in range(count)
    ]
    pairs = {(rng.randrange(count), rng.randrange(count)) for _ in range(count + 20)}
    edges = [Edge(nodes[a].id, nodes[b].id, "age < 9" if a % 5 == 0 else None) for a, b in sorted(pairs)]
    return build(nodes, edges), Event("日本 $e$ <b>", {"age": 7}, source=nodes[3].id)


def drawn(shape: str, count: int) -> Case:
    rng = random.Random(f"{shape}{count}")
    made = draw_graph(rng, shape, count)
    view = build(made.nodes, made.edges, made.subscriptions)
    return view, draw_event(rng, str(made.nodes[0].id))


def complete() -> Case:
    edges = [Edge(a, b) for a in range(9) for b in range(9) if a != b]
    return build([Node(i) for i in range(9)], edges), Event(1, {}, source=4)


CASES: dict[str, Callable[[], Case]] = {
    "exchange": exchange,
    "chain": chain,
    "one big cycle": lambda: ring(3000),
    "a cycle of names": lambda: ring(40),
    "no intermediaries": lambda: straight(100, 80),
    "no intermediaries, names": lambda: straight(4, 3),
    "one node": lambda: (build([Node("only")], []), Event("e", {}, source="only")),
    "all to all": complete,
    "long names": lambda: messy(0),
    "many kinds": lambda: messy(1),
    "many kinds again": lambda: messy(3),
}


@pytest.fixture(scope="module", params=some([*CASES], 0, 1, 6, 8))
def case(request: pytest.FixtureRequest) -> Case:
    """A graph and an event."""
    return CASES[str(request.param)]()


@pytest.mark.parametrize("with_event", [False, True], ids=["graph", "event"])
def test_texts_are_inside_and_apart(case: Case, with_event: bool) -> None:
    view, event = case
    about = GraphReport.of("t", view, event if with_event else None)
    check_texts(graph_picture.draw(about.scene, about.sentence))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("count", some([12, 36, 150], 1))
def test_texts_of_random_graphs(shape: str, count: int) -> None:
    view, event = drawn(shape, count)
    about = GraphReport.of("t", view, event)
    check_texts(graph_picture.draw(about.scene, about.sentence))


def check_texts(figure: Figure) -> None:
    """Measure every text as it is drawn."""
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    (axes,) = figure.axes
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        texts = [(text.get_text(), text.get_window_extent(renderer)) for text in axes.texts]
    assert texts
    boxes = [patch.get_window_extent(renderer) for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    for text, at in texts:
        assert text.strip()
        assert at.x0 >= 0, text
        assert at.y0 >= 0, text
        assert at.x1 <= figure.bbox.x1, text
        assert at.y1 <= figure.bbox.y1, text
        for box in boxes:
            inside = box.x0 <= at.x0 and at.x1 <= box.x1 and box.y0 <= at.y0 and at.y1 <= box.y1
            assert inside or not at.overlaps(box), text
    for (one, a), (other, b) in combinations(texts, 2):
        assert not a.overlaps(b), (one, other)
    for left, right in combinations(boxes, 2):
        # A box is its fill and its line.
        assert left.bounds == right.bounds or not left.overlaps(right)


def test_svg_is_the_same_again(case: Case) -> None:
    view, event = case
    about = GraphReport.of("t", view, event)
    first = graph_picture.svg(about.scene, about.sentence)
    again = GraphReport.of("t", view, event)
    assert graph_picture.svg(again.scene, again.sentence) == first
    texts = svg_texts(first.decode())
    assert " ".join(about.sentence.split()[:2]) in " ".join(texts)


def svg_texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ET.fromstring(svg).iter(f"{SVG}text")]


def test_a_small_graph_has_its_names() -> None:
    view, event = chain()
    about = GraphReport.of("t", view)
    texts = svg_texts(graph_picture.svg(about.scene, about.sentence).decode())
    assert {"herald", "gazette", "ssp", "exchange", "dsp ↻", "lonely", "shoes", "cars"} <= {*texts}
    assert {"publishers", "intermediaries", "subscribers", "an edge with a filter", "serves bids"} <= {*texts}

    about = GraphReport.of("t", view, event)
    texts = svg_texts(graph_picture.svg(about.scene, about.sentence).decode())
    assert {"▶ herald", "✓ exchange", "✓ dsp ↻", "✓ shoes", "✕ cars", "gazette", "✕ ssp"} <= {*texts}
    assert (
        "Event e1 entered at herald, reached 2 nodes and was stopped at one by its filter." in about.sentence
    )
    assert about.sentence.endswith("2 of 3 subscriptions got it.")
    assert about.sentence in " ".join(texts)


def test_states_of_a_small_graph() -> None:
    view, event = chain()
    found = summary.outline(view)
    shown = scene(view, found, summary.follow(view, found, event))
    names = [view.name(vertex) for vertex in found.vertex.tolist()]
    ties = {(names[tie.source], names[tie.target]): tie for tie in shown.ties}
    assert ties["herald", "exchange"].state is State.REACHED
    assert ties["herald", "exchange"].gate is State.REACHED
    assert ties["dsp", "ssp"].state is State.STOPPED
    assert ties["gazette", "ssp"].state is State.MISSED
    assert ties["gazette", "ssp"].gate is None
    columns = {name: part.column for name, part in zip(names, shown.parts, strict=True)}
    assert columns["herald"] == columns["gazette"] == 0
    assert 0 < columns["exchange"] < columns["dsp"] < columns["shoes"] == columns["cars"]


def test_a_gate_that_is_shut() -> None:
    view, _ = chain()
    found = summary.outline(view)
    shown = scene(view, found, summary.follow(view, found, Event("e", {"lang": "de"}, source="herald")))
    assert [tie.gate for tie in shown.ties if tie.gate is not None] == [State.STOPPED]
    assert {part.state for part in shown.parts} == {State.SOURCE, State.MISSED}


def test_each_stop_says_which_clause_failed() -> None:
    view, event = chain()
    about = GraphReport.of("t", view, event)
    assert [(stop.name, stop.kind, stop.failing[0].text) for stop in about.stops] == [
        ("ssp", "node", "region = 'eu'"),
        ("cars", "subscription", "age > 30"),
    ]
    assert about.stops[1].failing[0].seen == "age = 25 (off by 5)"
    texts = svg_texts(graph_picture.svg(about.scene, about.sentence).decode())
    assert {"not: region = 'eu'", "not: age > 30"} <= set(texts)
    page = render(about)
    assert "<h2>Where it was stopped</h2>" in page
    assert "age = 25 (off by 5)" in page
    shut = GraphReport.of("t", view, Event("e2", {"age": 25, "lang": "de"}, source="herald"))
    assert [(stop.name, stop.kind) for stop in shut.stops] == [("herald → exchange", "edge")]
    assert "not: lang = 'fr'" in svg_texts(graph_picture.svg(shut.scene, shut.sentence).decode())


@pytest.mark.parametrize(
    ("text", "dialect", "data", "expected"),
    [
        ("a = 1 AND b = 2", "sql", {"a": 1}, [("b = 2", "b = NULL (the event has no such attribute)")]),
        ("a = 1 AND t = 'x   y'", "sql", {"a": 1, "t": "z"}, [("t = 'x   y'", 't = "z"')]),
        ("//a[b]", "xpath", "<a><c/></a>", [("/b", "(/a has no child b; there are c)")]),
        (
            "count(//a) = 2",
            "xpath",
            "<a/>",
            [("the indexed part holds, but the expression as a whole is false", "")],
        ),
        (
            "ASK { ?x <urn:p> 1 }",
            "sparql",
            "<urn:a> <urn:p> <urn:b> .",
            [("?x <urn:p> 1", "(the event has it with <urn:b>)")],
        ),
    ],
)
def test_failures_are_read_from_verdicts(
    text: str, dialect: str, data: object, expected: list[tuple[str, str]]
) -> None:
    kind = kind_of(content_of([dialect], "the filter"))
    types = {"sql": "application/json", "xpath": "application/xml", "sparql": "application/n-triples"}
    index = kind.room(FilterSettings(dialect)).build([Subscription(0, text, dialect)])
    verdict = index.explain(Event("e", data, content_type=types[dialect]), 0)
    assert [tuple(each) for each in failing(verdict)] == expected


def test_a_large_graph_has_its_numbers() -> None:
    view, event = exchange()
    found = summary.outline(view)
    shown = scene(view, found, None)
    assert len(found.vertex) > MOST_NODES
    lines = {tuple(line.text for line in part.lines[:3]) for part in shown.parts}
    assert ("60,011", "publisher") in lines
    assert ("126", "network", "the core, one component") in lines
    assert ("36", "network", "before the core") in lines
    assert ("10,804", "advertiser") in lines
    labels = {tie.label for tie in shown.ties}
    assert {"17,000", "50,530", "3,864"} <= labels
    widths = {int(tie.label.replace(",", "")): tie.width for tie in shown.ties}
    ordered = [widths[edges] for edges in sorted(widths)]
    assert ordered == sorted(ordered)
    assert ordered[0] < ordered[-1]

    journey = summary.follow(view, found, event)
    shown = scene(view, found, journey)
    counts = [part.lines[0].text for part in shown.parts if part.lines[1].text == "advertiser"]
    assert counts == [f"{len(journey.served):,} / 10,804"]
    (start,) = [part for part in shown.parts if part.state is State.SOURCE]
    assert start.lines[0].text == "1 / 60,011"


def test_the_empty_graph_says_so() -> None:
    view = build([], [])
    about = GraphReport.of("t", view)
    assert svg_texts(graph_picture.svg(about.scene, about.sentence).decode()) == ["The graph has no nodes."]
    page = render(about)
    assert "<svg" not in page
    assert "The graph has no nodes." in page


def test_the_page(case: Case) -> None:
    view, event = case
    about = GraphReport.of("<b>title</b>", view, event, "headgate report graph")
    page = render(about)
    assert page == render(about)
    assert "<b>title" not in page
    assert "<b>" not in page
    assert page.count("<svg") == 1
    svg = page[page.index("<svg") : page.index("</svg>") + 6]
    ET.fromstring(svg)
    assert re.search(r"#ffffff(?!\))", svg) is None
    for heading in ("Who got it", "How far it came", "Layers and degrees", "Structure", "Repeat it"):
        assert f"<h2>{heading}" in page
    assert about.journey is not None
    got = len(about.journey.served)
    assert (f"and {got - 50:,} more." in page) == (got > 50)


def test_the_page_of_the_exchange_has_the_papers_numbers() -> None:
    view, _ = exchange()
    page = render(GraphReport.of("exchange", view))
    for number in (
        "71,097",
        "87,799",
        "70,969",
        "126",
        "60,011",
        "282",
        "10,804",
        "1.3",
        "224.4",
        "42.1",
        "2.3",
    ):
        assert f">{number}<" in page
    assert ">126, 4<" in page
    assert "Who got it" not in page


@pytest.mark.parametrize(
    ("name", "start"), [("a.html", b"<!doctype"), ("a.svg", b"<?xml"), ("a.png", b"\x89PNG")]
)
def test_formats(tmp_path: Path, name: str, start: bytes) -> None:
    about = GraphReport.of("t", *chain())
    (tmp_path / name).write_text("old")
    write(about, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(start)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    about = GraphReport.of("t", build([Node(1)], []))
    with pytest.raises(TableError, match=r"a\.gif has no known ending: let it end in \.html, \.svg or \.png"):
        write(about, tmp_path / "a.gif")
    with pytest.raises(TableError, match=r"cannot write the report to .*No such file"):
        write(about, tmp_path / "missing" / "a.svg")
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(TableError, match="cannot write the report"):
        write(about, tmp_path / "folder.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["folder.svg"]
