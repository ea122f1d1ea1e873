"""What an engine says of itself, how it changes, and how it is carried to another process."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Edge, Engine, Event, Node, Subscription, Taxonomy
from headgate.errors import FilterError, GraphError, HeadgateError, SnapshotError, SubscriptionError
from headgate.rdf.language.model import SUBCLASS
from headgate.records.index.index import RecordIndex
from headgate.runtime.inventory import prune

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ["plain", "ranked", "graph", "ranked graph"]
EVENT = {"age": 35, "source": "pub"}


def made(kind: str, *ids: Any) -> Engine:
    listed = [Subscription(each, "age > 30") for each in ids or ("s", "t")]
    if "graph" not in kind:
        return Engine.build(listed, ranked=kind == "ranked")
    return Engine.build(
        [Subscription(each.id, each.filter, node="net") for each in listed],
        nodes=[Node("pub"), Node("net", "age < 40")],
        edges=[Edge("pub", "net")],
        ranked="ranked" in kind,
    )


def node(kind: str) -> str | None:
    return "net" if "graph" in kind else None


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_it(kind: str, tmp_path: Path) -> None:
    engine = made(kind, "t", "s")
    assert (len(engine), engine.ids) == (2, ["s", "t"])
    assert "s" in engine
    for absent in ("u", 7, None, [], object()):
        assert absent not in engine
    engine.subscribe({"id": "u", "filter": "age > 20", "node": node(kind)})
    engine.unsubscribe("s")
    assert (len(engine), engine.ids, "u" in engine, "s" in engine) == (2, ["t", "u"], True, False)
    assert engine.filter("u") == "age > 20"
    with pytest.raises(SubscriptionError, match="there is no subscription 's' here"):
        engine.filter("s")
    engine.compact()
    assert (len(engine), engine.ids, engine.match(EVENT)) == (2, ["t", "u"], ["t", "u"])
    engine.save(str(tmp_path / "snapshot"))
    assert Engine.open(str(tmp_path / "snapshot")).ids == ["t", "u"]
    assert (len(made(kind, 3, 1)), made(kind, 3, 1).ids) == (2, [1, 3])
    assert Engine.build()


def test_what_it_says(tmp_path: Path) -> None:
    assert repr(made("plain")) == "<Engine: 2 subscriptions over records>"
    assert repr(made("ranked", "s")) == "<Engine: 1 subscription over records, ranked>"
    graph = made("graph")
    assert repr(graph) == "<Engine: 2 subscriptions over records, in a graph of 2 nodes>"
    graph.graph.add_node(Node("new", subscription="n"))
    graph.graph.add_edge(Edge("new", "pub"))
    graph.graph.remove_node("net")
    assert repr(graph) == "<Engine: 1 subscription over records, in a graph of 2 nodes>"
    graph.compact()
    assert repr(graph) == "<Engine: 1 subscription over records, in a graph of 2 nodes>"
    place = tmp_path / "snapshot"
    made("plain").save(place)
    opened = Engine.open(place)
    assert repr(opened) == f"<Engine: 2 subscriptions over records, opened from {place}>"
    opened.unsubscribe("s")
    assert repr(opened) == f"<Engine: 1 subscription over records, changed since it was opened from {place}>"


def shown(engine: Any) -> str:
    return str(engine._repr_html_())


def test_what_a_notebook_shows() -> None:
    engine = Engine.build([{"id": f"<{number:02}>", "filter": "age < 30"} for number in range(12)])
    page = shown(engine)
    assert page.startswith("<p>Engine: 12 subscriptions over records</p><table>")
    assert "<td>&lt;00&gt;</td><td><code>age &lt; 30</code></td>" in page
    assert "and 2 more" in page
    assert page.count("<tr>") == 12
    long = Engine.build([{"id": "s", "filter": " OR ".join(f"a = {each}" for each in range(99))}])
    assert len(shown(long)) < 400
    served = Engine.build(nodes=[Node("n", subscription="own")])
    assert "<td>own</td><td><code></code></td>" in shown(served)


@pytest.mark.parametrize("kind", KINDS)
def test_replacing_is_all_or_nothing(kind: str) -> None:
    engine = made(kind)
    engine.replace(Subscription("s", "age > 50", node=node(kind)))
    assert engine.match(EVENT) == ["t"]
    engine.replace({"id": "s", "filter": "age > 20", "node": node(kind)})
    assert engine.match(EVENT) == ["s", "t"]
    refused: list[tuple[Any, str]] = [
        ({"id": "s", "filter": "age >", "node": node(kind)}, "^subscription 's': "),
        ({"id": "x", "filter": "age > 1", "node": node(kind)}, "there is no subscription 'x' here"),
        ([], "0 subscriptions are given: give one"),
        ({"id": "s", "filter": "age > 1", "node": node(kind), "weights": [1, 2, 3]}, "subscription 's'"),
    ]
    for wrong, reason in refused:
        with pytest.raises(HeadgateError, match=reason):
            engine.replace(wrong)
        assert (engine.ids, engine.filter("s"), engine.match(EVENT)) == (["s", "t"], "age > 20", ["s", "t"])
    numbers = made(kind, 1, -(2**62))
    numbers.replace(Subscription(1, "age > 50", node=node(kind)))
    assert numbers.match(EVENT) == [-(2**62)]


@pytest.mark.parametrize("kind", KINDS)
def test_replacing_compiles_once(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = made(kind)
    compiled: list[str] = []
    read = RecordIndex._read  # noqa: SLF001

    def counted(index: RecordIndex, text: str, dialect: str) -> Any:
        compiled.append(text)
        return read(index, text, dialect)

    monkeypatch.setattr(RecordIndex, "_read", counted)
    engine.replace(Subscription("s", "age > 50 AND b = 1", node=node(kind)))
    assert compiled.count("age > 50 AND b = 1") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_many_are_subscribed_or_none(kind: str) -> None:
    engine = made(kind)
    texts = {"u": "TRUE", "v": "age >"}
    some = [{"id": each, "filter": text, "node": node(kind)} for each, text in texts.items()]
    with pytest.raises(FilterError):
        engine.subscribe(some)
    assert engine.ids == ["s", "t"]
    engine.subscribe(some[:1])
    assert engine.match(EVENT) == ["s", "t", "u"]


@pytest.mark.parametrize("kind", KINDS)
def test_pickling_by_path(kind: str, tmp_path: Path) -> None:
    engine, place = made(kind), tmp_path / "snapshot"
    with pytest.raises(SnapshotError, match="an engine that was built has no snapshot: save it"):
        pickle.dumps(engine)
    engine.save(place)
    opened = Engine.open(place)
    for again in (pickle.loads(pickle.dumps(opened)), copy.copy(opened)):
        assert again.match(EVENT) == ["s", "t"]
    # Folding nothing changes nothing.
    opened.compact()
    packed = pickle.dumps(opened)
    opened.unsubscribe("s")
    with pytest.raises(SnapshotError, match=f"changed since it was opened from {place}: save it"):
        pickle.dumps(opened)
    if "graph" in kind:
        other = Engine.open(place)
        other.graph.set_filter("net", None)
        with pytest.raises(SnapshotError, match="changed since it was opened"):
            pickle.dumps(other)
    opened.save(place)
    # The version that it was opened from is still there, until it is pruned.
    assert pickle.loads(packed).match(EVENT) == ["s", "t"]
    assert Engine.open(place).match(EVENT) == ["t"]
    prune(place, 1)
    with pytest.raises(SnapshotError, match=r"000001-.* is not a snapshot: there is no such directory"):
        pickle.loads(packed)
    # Without versions, another one may lie in its place.
    plain = tmp_path / "plain"
    engine.backend.save(plain, source=None)
    packed = pickle.dumps(Engine.open(plain))
    opened.backend.save(plain, source=None)
    with pytest.raises(SnapshotError, match="is another one than when the engine was pickled"):
        pickle.loads(packed)


def test_a_changed_taxonomy_is_a_change(tmp_path: Path) -> None:
    statement = ("<urn:Painting>", SUBCLASS, "<urn:Art>")
    text = "PREFIX rdfs: <http://www.w3.org/2000/01/rdf-schema#> ASK { ?x a/rdfs:subClassOf* <urn:Art> }"
    Engine.build([Subscription("s", text, "sparql")], taxonomy=Taxonomy.of([statement])).save(tmp_path / "x")
    opened = Engine.open(tmp_path / "x")
    event = Event("e", "<urn:x> a <urn:Painting> .", content_type="turtle")
    assert pickle.loads(pickle.dumps(opened)).match(event) == ["s"]
    opened.taxonomy.remove(statement)
    with pytest.raises(SnapshotError, match="changed since"):
        pickle.dumps(opened)


def test_asking_beside_a_loop() -> None:
    engine = made("plain")

    async def ask() -> list[Any]:
        asked = [asyncio.to_thread(engine.match, {"age": age}) for age in (35, 25, 31)]
        return await asyncio.gather(*asked)

    assert asyncio.run(ask()) == [["s", "t"], [], ["s", "t"]]


def test_paths_and_ids_that_are_none(tmp_path: Path) -> None:
    engine = made("plain")
    for wrong in (7, None, b"x"):
        with pytest.raises(SnapshotError, match="the place of a snapshot is"):
            Engine.open(wrong)  # type: ignore[arg-type]
        with pytest.raises(SnapshotError, match="the place of a snapshot is"):
            engine.save(wrong)  # type: ignore[arg-type]
    with pytest.raises(SubscriptionError, match="id None is not usable"):
        engine.unsubscribe(None)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match="there is no graph here"):
        assert engine.graph
    with pytest.raises(SnapshotError):
        Engine.open(tmp_path)
