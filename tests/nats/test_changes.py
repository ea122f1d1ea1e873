"""Changes of subscriptions from a stream: in order, none twice, none lost unsaid."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Engine, Subscription
from headgate.core.versions.replacing import new_version
from headgate.errors import TableError
from headgate.runtime.changes import Change
from headgate.runtime.state import State
from headgate.stream.settings import StreamSettings
from headgate.stream.sources.nats_log import NatsChanges
from headgate.stream.sources.registry import open_changes
from headgate.tables.requests import contained
from tests.streaming.world import World, log_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.nats.server import Server


def opened(url: str) -> NatsChanges:
    changes = open_changes(StreamSettings("", "", "", "", changes=url))
    assert isinstance(changes, NatsChanges)
    return changes


def number(position: str | None) -> int:
    assert position is not None
    return int(position.partition(" ")[0])


def row(number: int) -> bytes:
    return json.dumps({"op": "unsubscribe", "id": number}).encode()


def test_changes_come_in_order_and_once(server: Server) -> None:
    server.add("CHANGES", "changes.>")
    server.put("changes.a", [row(0), b"not json", row(1)])
    server.put("changes.other", [row(99)])
    changes = opened(server.url("CHANGES", "subject=changes.a&max_rows=2"))
    found, first = changes.since(None)
    assert [(one.row, one.origin) for one in found] == [(row(0), "changes.a 1"), (b"not json", "changes.a 2")]
    found, second = changes.since(first)
    assert [one.row for one in found] == [row(1)]
    assert changes.since(second) == ([], second)
    server.put("changes.a", [row(2)])
    assert [one.row for one in changes.since(second)[0]] == [row(2)]
    changes.close()
    # After a crash the position of before gives the same again.
    again = opened(server.url("CHANGES", "subject=changes.a"))
    assert [one.row for one in again.since(first)[0]] == [row(1), row(2)]
    again.close()


def test_changes_begin_where_they_are_told_to(server: Server) -> None:
    server.add("BEGINNING", "beginning")
    empty = opened(server.url("BEGINNING"))
    assert number(empty.since(None)[1]) == 1
    server.put("beginning", [row(n) for n in range(4)])
    for start, wanted in (("first", 4), ("new", 0), ("3", 2)):
        changes = opened(server.url("BEGINNING", f"start={start}"))
        found, position = changes.since(None)
        assert (len(found), number(position)) == (wanted, 5)
        changes.close()
    empty.close()


def test_changes_made_anew_are_told(server: Server) -> None:
    server.add("REMADE", "remade")
    server.put("remade", [row(0), row(1)])
    changes = opened(server.url("REMADE"))
    _, position = changes.since(None)
    # Positions of earlier versions say only the number.
    assert changes.since("3") == ([], "3")
    assert [one.row for one in changes.since("2")[0]] == [row(1)]
    server.run(lambda client: client.jetstream().delete_stream("REMADE"))
    server.add("REMADE", "remade")
    server.put("remade", [row(n) for n in range(9)])
    with pytest.raises(
        TableError, match=r"created again at .*, and 3 is the next of the one made at .*: compile"
    ):
        changes.since(position)
    changes.close()


def test_lost_changes_are_told(server: Server) -> None:
    server.add("LOST", "lost")
    server.put("lost", [row(n) for n in range(9)])
    server.purge("LOST", 6)
    changes = opened(server.url("LOST"))
    with pytest.raises(
        TableError, match="begins at 6, and 3 is the next: 3 changes were purged or expired unread"
    ):
        changes.since("3")
    with pytest.raises(TableError, match="ends before 10, and 77 is the next: it was created again, so"):
        changes.since("77")
    changes.close()
    lenient = opened(server.url("LOST", "on_loss=go-on"))
    lost, *found = lenient.since("3")[0]
    assert lost == Change(b"sequence numbers 3 to 5 were purged or expired unread", "LOST 3")
    assert [one.row for one in found] == [row(n) for n in range(5, 9)]
    assert [one.row for one in lenient.since("6")[0]] == [row(n) for n in range(5, 9)]
    lenient.close()


def test_a_snapshot_says_which_messages_it_contains(server: Server, tmp_path: Path) -> None:
    """A stream takes all that come after, before it matches anything, though it reads few at a time."""
    server.add("CONTAINED", "contained.>")

    def put(first: int, count: int) -> None:
        rows = [{"op": "subscribe", "id": f"s{n}", "filter": "age > 1"} for n in range(first, first + count)]
        server.put("contained.a", [json.dumps(row).encode() for row in rows])

    def save(*ids: str, log: dict[str, Any] | None) -> None:
        with new_version(world.snapshot, log) as place:
            Engine.build([Subscription(each, "age > 5") for each in ids]).backend.save(place, source=None)

    def subscribed() -> set[str]:
        found = subscriptions.at(**subscriptions.pin()).open()
        return {str(name) for ids in found.ids for name in ids}

    world = World(tmp_path, {"changes": server.url("CONTAINED", "max_rows=2")})
    put(0, 3)
    log = contained(world.more["changes"])
    assert log is not None
    assert (log["source"], number(log["position"])) == ("nats", 4)
    save("t", log=log)
    subscriptions = log_of(world.settings(), State(world.state))
    assert subscribed() == {"t"}
    put(3, 7)
    while subscriptions.poll():
        pass
    assert subscribed() == {"t", *(f"s{n}" for n in range(3, 10))}
    # Compiled at the same position, with a table that has more in it; and one that says nothing.
    save("t", "u", log=log)
    assert subscribed() == {"t", "u", *(f"s{n}" for n in range(3, 10))}
    save("t", "v", log=None)
    assert subscribed() == {"t", "v", *(f"s{n}" for n in range(10))}
    subscriptions.close()
    # One that begins with what is new loses nothing of that, either.
    late = World(
        tmp_path / "late", {"changes": server.url("CONTAINED", "start=new"), "snapshot": world.snapshot}
    )
    subscriptions = log_of(late.settings(), State(late.state))
    assert subscribed() == {"t", "v"}
    put(20, 1)
    save("w", log=None)
    assert subscribed() == {"w", "s20"}
    save("x", log=None)
    assert subscribed() == {"x", "s20"}
    subscriptions.close()
