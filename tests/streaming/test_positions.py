"""Recompiling while changes arrive: the subscriptions are the table with all changes, whatever came when."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import pytest

from headgate.core.snapshot import manifest_of
from headgate.errors import SnapshotError, TableError
from headgate.runtime.state import State
from headgate.tables.requests import contained
from headgate.tables.results import Tables
from tests.spark.jobs import compile_graph, compile_subscriptions
from tests.streaming.world import World, lines, log_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from headgate.runtime.log import Subscriptions

Table = dict[str, str]


class Owner:
    """Who has the table: a change is in it first, then in the log."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.rng = random.Random(seed)
        self.table: Table = {f"s{number}": "age > 50" for number in range(6)}
        self.told = 0
        self.compile()

    def change(self) -> None:
        """Change some subscriptions, and tell it: ids come back, filters too."""
        rows: list[dict[str, Any]] = []
        for _ in range(self.rng.randrange(1, 4)):
            name, text = f"s{self.rng.randrange(10)}", f"age > {self.rng.randrange(4)}"
            op = self.rng.choice(["unsubscribe", "replace"] if name in self.table else ["subscribe"])
            op = self.rng.choice([op, "upsert"]) if op != "unsubscribe" else op
            if op == "unsubscribe":
                del self.table[name]
                rows.append({"op": op, "id": name})
            else:
                self.table[name] = text
                rows.append({"op": op, "id": name, "filter": text})
        self.tell(rows)

    def there_and_back(self) -> None:
        """Change and undo it: the table is as it was, and the log is longer."""
        name = f"t{self.told}"
        self.tell([{"op": "subscribe", "id": name, "filter": "age > 1"}, {"op": "unsubscribe", "id": name}])

    def tell(self, rows: list[dict[str, Any]]) -> None:
        """Put changes into the log."""
        self.told += 1
        self.world.change(f"{self.told:04d}.jsonl", rows)

    def compile(self, *, before: int = 0, after: Callable[[], None] = lambda: None) -> None:
        """Compile the table: some changes come before it is read, some `after`, when the job is not done."""
        log = contained(str(self.world.changes))
        for _ in range(before):
            self.change()
        rows = [{"id": name, "filter": text} for name, text in self.table.items()]
        table = self.world.root / "table.jsonl"
        table.write_text(lines(rows))
        after()
        # What the job does: its first step was above, and this stands for it.
        held = self.world.root / "held"
        held.mkdir(exist_ok=True)
        for file in held.iterdir():
            file.unlink()
        assert log is not None
        for name in json.loads(log["position"]):
            (held / name).write_text("")
        compile_subscriptions(
            None,
            str(table),
            str(self.world.snapshot),
            rejected=str(self.world.root / "r.jsonl"),
            changes=str(held),
            quiet=True,
        )
        if self.rng.random() < 0.3:
            # What a snapshot contains is needed no longer.
            for name in json.loads(log["position"]):
                (self.world.changes / name).unlink(missing_ok=True)


def opened(world: World) -> Subscriptions:
    return log_of(world.settings(fold=5), State(world.state))


def subscribed(subscriptions: Subscriptions) -> Table:
    """List what workers have at the version that a batch would use."""
    engines = subscriptions.at(**subscriptions.pin()).open()
    return {str(name): str(engines.filter(name)) for ids in engines.ids for name in ids}


def compare(folder: Path, seed: int, steps: int) -> None:
    """Do at random what owner and stream may do, and compare after each step."""
    owner = Owner(World(folder), seed)
    subscriptions = opened(owner.world)

    def meanwhile() -> None:
        """Change while a job compiles; the stream knows it before the snapshot is there."""
        owner.change()
        assert subscribed(subscriptions) == owner.table

    for _ in range(steps):
        step = owner.rng.randrange(8)
        if step < 3:
            owner.change()
        elif step == 3:
            owner.there_and_back()
        elif step == 4:
            owner.compile()
        elif step == 5:
            owner.compile(before=owner.rng.randrange(3), after=meanwhile)
        elif step == 6:
            subscriptions.forget()
        else:
            subscriptions.close()
            subscriptions = opened(owner.world)
        if owner.rng.random() < 0.6:
            assert subscribed(subscriptions) == owner.table
            assert subscriptions.count == len(owner.table)
    subscriptions.close()
    assert subscribed(subscriptions) == owner.table
    # A stream with a new state comes to the same, from the last snapshot and the log alone.
    fresh = log_of(owner.world.settings(state=str(folder / "other")), State(folder / "other"))
    assert subscribed(fresh) == owner.table


@pytest.mark.parametrize("seed", range(3))
def test_no_change_is_lost(tmp_path: Path, seed: int) -> None:
    compare(tmp_path, seed, 14)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 120))
def test_no_change_is_lost_in_long_histories(tmp_path: Path, seed: int) -> None:
    compare(tmp_path, seed, 80)


def test_equal_and_changed_tables_behave_alike(tmp_path: Path) -> None:
    """A change that is in the log only is gone after both if they contain it, and stays after both if not."""
    for changed in (False, True):
        for known in (False, True):
            world = World(tmp_path / f"{changed}{known}")
            owner = Owner(world, 0)
            before = dict(owner.table)
            subscriptions = opened(world)
            owner.tell([{"op": "subscribe", "id": "late", "filter": "age > 9"}])
            assert subscribed(subscriptions) == {**before, "late": "age > 9"}
            if changed:
                owner.table["more"] = "age > 3"
            if known:
                # The owner took it back without telling: the table stands for the whole log.
                owner.compile()
            else:
                compile_subscriptions(
                    None,
                    str(_table(world, owner.table)),
                    str(world.snapshot),
                    rejected=str(world.root / "r.jsonl"),
                )
            assert subscribed(subscriptions) == {**owner.table, **({} if known else {"late": "age > 9"})}
            subscriptions.close()


def _table(world: World, table: Table) -> Path:
    place = world.root / "table.jsonl"
    place.write_text(lines({"id": name, "filter": text} for name, text in table.items()))
    return place


def test_the_position_is_that_before_the_tables_are_read(tmp_path: Path) -> None:
    """In one piece, in shards, with a graph; and without a log there is none."""
    world = World(tmp_path)
    for name in ("b.jsonl", "a.csv", "notes.txt", ".c.jsonl"):
        (world.changes / name).write_text("")
    (tmp_path / "n.jsonl").write_text('{"id": "n"}\n')
    (tmp_path / "e.jsonl").write_text('{"source": "n", "target": "n"}\n')
    more: dict[str, Any] = {"rejected": str(tmp_path / "r.jsonl"), "quiet": True}
    place = str(tmp_path / "s")
    said = {"source": "files", "position": '["a.csv", "b.jsonl"]'}
    table = str(_table(world, {"s": "age > 1"}))
    for shards in (1, 2):
        compile_subscriptions(None, table, place, changes=str(world.changes), shards=shards, **more)
        assert manifest_of(tmp_path / "s")["changes"] == said
    tables = Tables(str(tmp_path / "n.jsonl"), str(tmp_path / "e.jsonl"), None)
    compile_graph(None, tables, place, changes=str(world.changes), **more)
    assert manifest_of(tmp_path / "s")["changes"] == said
    compile_subscriptions(None, table, place, **more)
    assert "changes" not in manifest_of(tmp_path / "s")
    for wrong in (str(tmp_path / "absent"), table):
        with pytest.raises(TableError, match="is not a folder: make it"):
            compile_subscriptions(None, table, place, changes=wrong, **more)
    with pytest.raises(TableError, match="not from Kafka"):
        compile_subscriptions(None, table, place, changes="kafka://host/topic", **more)


def test_another_kind_of_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A position of one kind means nothing to another: refused at the start, passed over while it runs."""
    world = World(tmp_path)
    owner = Owner(world, 0)
    subscriptions = opened(world)
    pin = subscriptions.pin()
    from headgate import Engine, Subscription
    from headgate.core.versions.replacing import new_version

    with new_version(world.snapshot, {"source": "nats", "position": "7 then"}) as place:
        Engine.build([Subscription("x", "age > 1")]).backend.save(place, source=None)
    assert subscriptions.pin() == pin
    assert "contains changes of nats, and this stream takes them from files" in capsys.readouterr().err
    subscriptions.close()
    with pytest.raises(SnapshotError, match="compile it with --changes and the place that the stream has"):
        log_of(world.settings(state=str(tmp_path / "other")), State(tmp_path / "other"))
    assert owner.told == 0
    state = State(tmp_path / "third")
    state.fixed("changes", "nats")
    with pytest.raises(TableError, match="is of a stream that took changes from nats, and not from files"):
        log_of(world.settings(), state)
