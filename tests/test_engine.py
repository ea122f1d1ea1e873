"""The facade answers as the rooms behind it do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headgate import Edge, Engine, Event, GraphError, Node, SnapshotError, Subscription
from headgate.core.snapshot import write_snapshot

if TYPE_CHECKING:
    from pathlib import Path

EVENT = Event("e", {"age": 35}, source="pub")


def with_graph() -> Engine:
    return Engine.build(
        [Subscription("s", "age > 30", node="net", score=2.0)],
        nodes=[Node("pub"), Node("net", "age < 40")],
        edges=[Edge("pub", "net")],
    )


@pytest.mark.parametrize("graph", [True, False])
def test_publish_subscribe_explain_save_open(tmp_path: Path, *, graph: bool) -> None:
    engine = with_graph() if graph else Engine.build([Subscription("s", "age > 30")])
    node = "net" if graph else None
    assert engine.publish(EVENT) == ["s"]
    engine.subscribe(Subscription("t", "age = 35", node=node))
    assert engine.publish(EVENT) == ["s", "t"]
    engine.unsubscribe("s")
    assert engine.publish(EVENT) == ["t"]
    assert engine.explain(EVENT, "t").matches
    assert "match" in engine.explain(EVENT, "t").lines()[0]
    engine.save(tmp_path / "snapshot")
    assert Engine.open(tmp_path / "snapshot").publish(EVENT) == ["t"]


def test_what_needs_a_graph() -> None:
    assert [each.value for each in with_graph().top(EVENT, 5)] == [1.0]
    assert [each.value for each in with_graph().top(EVENT, 5, by="times", decay=0.5)] == [1.0]
    with pytest.raises(GraphError, match="there is no graph here"):
        Engine.build([]).top(EVENT, 1)
    with pytest.raises(GraphError, match="there are edges and no nodes"):
        Engine.build([], edges=[Edge("a", "b")])
    with pytest.raises(GraphError, match="subscription 's' hangs at node 'net', and there is no graph"):
        Engine.build([Subscription("s", "TRUE", node="net")])


def test_other_rooms_are_refused(tmp_path: Path) -> None:
    write_snapshot(tmp_path / "x", "other", {}, counts={}, about={})
    with pytest.raises(SnapshotError, match="belongs to the room 'other'"):
        Engine.open(tmp_path / "x")
