"""Changes of subscriptions: versions, refusals, folding, replaced snapshots; no Spark is needed."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate import Engine, Event, Subscription
from headgate.core.event import SECOND_MARK
from headgate.core.versions.current import resolved
from headgate.engine.question import Top
from headgate.errors import SnapshotError
from headgate.runtime.state import State
from tests.streaming.world import World, best, log_of, move, published

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headgate.runtime.engines import Runtime
    from headgate.runtime.log import Subscriptions

EVENTS = [Event(number, {"age": number}) for number in range(0, 100, 7)]


def opened(world: World, **more: Any) -> Subscriptions:
    """Open the subscriptions of a stream, as a new process would."""
    return log_of(world.settings(**more), State(world.state))


def answers(engine: Engine | Runtime) -> list[list[Any]]:
    """Ask for all events."""
    if isinstance(engine, Engine):
        return [engine.match(event) for event in EVENTS]
    return [published(engine, event) for event in EVENTS]


def test_versions(tmp_path: Path) -> None:
    """Each poll that finds something is a version; every version can be had again, in any order."""
    world = World(tmp_path)
    rng = random.Random(3)
    model = {f"s{n}": f"age > {rng.randrange(100)}" for n in range(20)}
    Engine.build([Subscription(*each) for each in model.items()]).save(world.snapshot)
    subscriptions = opened(world)
    pins, truth = [subscriptions.pin()], [dict(model)]
    for number in range(12):
        rows: list[dict[str, Any]] = []
        for _ in range(5):
            name = f"s{rng.randrange(40)}"
            if name in model:
                del model[name]
                rows.append({"op": "unsubscribe", "id": name})
            else:
                model[name] = f"age < {rng.randrange(100)}"
                rows.append({"op": "subscribe", "id": name, "filter": model[name]})
        world.change(f"{number:03d}.jsonl", rows)
        if rng.random() < 0.4:
            subscriptions.close()
            subscriptions = opened(world)
        pins.append(subscriptions.pin())
        truth.append(dict(model))
    assert [pin["version"] for pin in pins] == list(range(13))
    assert subscriptions.pin() == pins[-1]
    order = list(range(13))
    rng.shuffle(order)
    for place in order:
        wanted = Engine.build([Subscription(*each) for each in truth[place].items()])
        assert answers(subscriptions.at(**pins[place]).open()) == answers(wanted)
    assert subscriptions.count == len(model)
    assert not world.rejected()
    subscriptions.close()


def test_refused_changes(tmp_path: Path) -> None:
    """What makes no sense goes to the table, with the reason and the file; the rest takes effect."""
    world = World(tmp_path)
    Engine.build([Subscription("s1", "age > 30")]).save(world.snapshot)
    rows: list[Any] = [
        {"op": "subscribe", "id": "s2", "filter": "age >"},
        {"op": "subscribe", "id": "s1", "filter": "age > 3"},
        {"op": "subscribe", "id": 7, "filter": "age > 3"},
        {"op": "subscribe", "id": "s3"},
        {"op": "subscribe", "id": "s3", "filter": "//a", "dialect": "xpath"},
        {"op": "subscribe", "id": "s3", "filter": "age > 3", "node": "n"},
        {"op": "subscribe", "id": "s3", "filter": "age > 3", "score": True},
        {"op": "subscribe", "id": "s3", "filter": "age > 3", "weights": [1]},
        {"op": "unsubscribe", "id": "s9"},
        {"op": "unsubscribe"},
        {"op": "score", "id": "s1", "score": 3},
        {"op": "replace", "id": "s1"},
        "not JSON",
        "[1]",
        {"op": "subscribe", "id": "s4", "filter": "age > 50"},
    ]
    world.change("a.jsonl", rows)
    move(world.changes, "b.parquet", b"no Parquet")
    (world.changes / "notes.txt").write_text("passed over")
    subscriptions = opened(world)
    pin = subscriptions.pin()
    assert answers(subscriptions.at(**pin).open()) == answers(
        Engine.build([Subscription("s1", "age > 30"), Subscription("s4", "age > 50")])
    )
    refused = world.rejected()
    assert len(refused) == len(rows)
    assert {row["origin"] for row in refused} == {"a.jsonl", "b.parquet"}
    assert all(row["reason"] and row["version"] == 1 for row in refused)
    assert (subscriptions.accepted, subscriptions.refused) == (1, len(rows))
    assert opened(world).pin() == pin


def test_a_file_of_changes_may_begin_with_one_byte_order_mark(tmp_path: Path) -> None:
    world = World(tmp_path)
    Engine.build([Subscription("s1", "age > 30")]).save(world.snapshot)
    for marks, name in enumerate(("a", "b", "c")):
        row = json.dumps({"op": "subscribe", "id": name, "filter": "age > 1"})
        move(world.changes, f"{name}.jsonl", "\ufeff" * marks + row + "\n")
    subscriptions = opened(world)
    subscriptions.pin()
    assert (subscriptions.accepted, subscriptions.refused) == (2, 1)
    assert world.rejected()[0]["reason"] == f"not valid JSON: {SECOND_MARK}"
    subscriptions.close()


def test_parquet_changes(tmp_path: Path) -> None:
    """Changes may come as Parquet; what is null was not given."""
    world = World(tmp_path)
    Engine.build([Subscription("s1", "age > 30", score=1)]).save(world.snapshot)
    weights: pa.DataType = pa.map_(pa.string(), pa.float64())
    kinds: dict[str, pa.DataType] = dict.fromkeys(("op", "id", "filter"), pa.string())
    kinds |= {"score": pa.float64(), "weights": weights}
    rows: list[dict[str, Any]] = [
        {"op": "subscribe", "id": "s2", "filter": "age > 20", "weights": [("age", 2.0)]},
        {"op": "score", "id": "s1", "score": 8.0},
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema(kinds)), world.changes / "_1")
    (world.changes / "_1").rename(world.changes / "1.parquet")
    subscriptions = opened(world)
    engines = subscriptions.at(**subscriptions.pin()).open()
    assert not world.rejected()
    assert best(engines, Event(1, {"age": 50}), Top.of(5)) == [("s1", 8.0), ("s2", 0.0)]
    assert best(engines, Event(1, {"age": 25}), Top.of(5, "relaxed")) == [("s2", 2.0)]


@pytest.mark.parametrize("dialect", ["sql", "sparql", "xpath"])
def test_folding(tmp_path: Path, dialect: str) -> None:
    """A long log becomes a snapshot; answers stay, versions go on, and what is folded is removed."""
    world = World(tmp_path)
    texts: dict[str, Callable[[int], str]] = {
        "sql": lambda n: f"age > {n}",
        "sparql": lambda n: f"ASK {{ ?x <urn:age> ?a FILTER(?a > {n}) }}",
        "xpath": lambda n: f"//x[@age > {n}]",
    }
    events = {
        "sql": Event(1, {"age": 55}),
        "sparql": Event(1, "<urn:x> <urn:age> 55 .", content_type="turtle"),
        "xpath": Event(1, '<x age="55"/>', content_type="xml"),
    }
    text, event = texts[dialect], events[dialect]
    Engine.build([Subscription(n, text(n), dialect) for n in range(0, 100, 10)]).save(world.snapshot)
    subscriptions = opened(world, fold=4)
    pins = []
    for number in range(6):
        rows: list[dict[str, Any]] = [{"op": "subscribe", "id": 1000 + number, "filter": text(number)}]
        rows.append({"op": "unsubscribe", "id": number * 10})
        world.change(f"{number}.jsonl", rows)
        pins.append(subscriptions.pin())
        engines = subscriptions.at(**pins[-1]).open()
        assert published(engines, event) == sorted(
            [*range((number + 1) * 10, 55, 10), *range(1000, 1001 + number)]
        )
        subscriptions.forget()
    subscriptions.close()
    last = subscriptions.pin()
    assert last["version"] == 6
    assert last["since"] > 0
    assert last["snapshot"] != pins[0]["snapshot"]
    subscriptions.forget()
    assert [place.name for place in (world.state / "snapshots").iterdir()] == [last["snapshot"]]
    assert min(int(file.stem) for file in (world.state / "log").iterdir()) >= last["since"]
    again = opened(world)
    assert again.pin() == last
    assert published(again.at(**last).open(), event) == list(range(1000, 1006))


def test_replaced_snapshot(tmp_path: Path) -> None:
    """Changes that a new snapshot does not contain are applied to it, also after a restart."""
    world = World(tmp_path)
    Engine.build([Subscription("s1", "age > 30")]).save(world.snapshot)
    subscriptions = opened(world)
    world.change("1.jsonl", [{"op": "subscribe", "id": "s2", "filter": "age > 40"}])
    old = subscriptions.pin()
    Engine.build([Subscription("t1", "age > 60")]).save(world.snapshot)
    world.change("2.jsonl", [{"op": "subscribe", "id": "t2", "filter": "age > 70"}])
    new = subscriptions.pin()
    assert new["snapshot"] != old["snapshot"]
    assert (new["since"], new["version"]) == (1, 2)
    # It says nothing of changes, so it contains none.
    wanted = Engine.build(
        [Subscription("s2", "age > 40"), Subscription("t1", "age > 60"), Subscription("t2", "age > 70")]
    )
    assert answers(subscriptions.at(**new).open()) == answers(wanted)
    before = Engine.build([Subscription("s1", "age > 30"), Subscription("s2", "age > 40")])
    assert answers(subscriptions.at(**old).open()) == answers(before)
    assert opened(world).pin() == new
    # Written again with the same content, it is the same snapshot.
    Engine.build([Subscription("t1", "age > 60")]).save(world.snapshot)
    assert subscriptions.pin() == new


def test_unusable_replacement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A damaged snapshot, or one of another kind, is told and passed over; the one in use goes on."""
    world = World(tmp_path)
    Engine.build([Subscription("s1", "age > 30")]).save(world.snapshot)
    subscriptions = opened(world)
    pin = subscriptions.pin()
    Engine.build([Subscription("s1", "//a", "xpath")]).save(world.snapshot)
    assert subscriptions.pin() == pin
    assert "continuing with the snapshot in use" in capsys.readouterr().err
    assert subscriptions.pin() == pin
    assert not capsys.readouterr().err
    (world.snapshot / "current").write_text("{}")
    assert subscriptions.pin() == pin
    assert "continuing with the snapshot in use" in capsys.readouterr().err
    Engine.build([Subscription("s1", "age > 31")]).save(world.snapshot)
    assert subscriptions.pin() != pin


def test_snapshot_is_verified(tmp_path: Path) -> None:
    """A stream does not begin with a damaged snapshot."""
    world = World(tmp_path)
    Engine.build([Subscription("s1", "age > 30")]).save(world.snapshot)
    file = next(file for file in sorted(resolved(world.snapshot).glob("*.npy")) if file.stat().st_size > 128)
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(SnapshotError, match="checksum"):
        opened(world)


def test_version_is_whole(tmp_path: Path) -> None:
    """The position is kept with the changes: what was begun and not finished is as if it had not been."""
    world = World(tmp_path)
    Engine.build([Subscription("s1", "age > 30")]).save(world.snapshot)
    opened(world).close()
    (world.state / "log" / "0000000001.new").write_text('{"version": 1, "posi')
    world.change("1.jsonl", [{"op": "subscribe", "id": "s2", "filter": "age > 40"}])
    subscriptions = opened(world)
    assert subscriptions.pin()["version"] == 1
    head = json.loads((world.state / "log" / "0000000001.jsonl").read_text().splitlines()[0])
    assert json.loads(head["position"]) == ["1.jsonl"]
