"""The service as it is asked by the contract: worlds are loaded through the API, and answers read from it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from headgate import Event
from headgate.core.event import JSON
from headgate.service.envelope import BATCH, NDJSON
from tests.contract.surfaces import Told
from tests.contract.telling import GROUPS, SUBCLASS, taxonomy
from tests.contract.world import World, draw_world, line, loud

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headgate.engine.question import Top
    from tests.service.servers import Served
    from tests.spark.files import Row

Answers = dict[str, Any]
"""What is answered about each event, by its id."""


def world_of(content: str, seeds: tuple[int, ...], *, graph: bool, ranked: bool) -> World:
    """Draw a world that the service can have: ids are text, and no node names a subscription by itself."""
    world = draw_world(content, seeds, graph=graph, ranked=ranked)
    own = ("subscription", "score")
    nodes = [{name: value for name, value in row.items() if name not in own} for row in world.nodes]
    return replace(world, nodes=nodes)


def cloud_event(row: Row) -> Row:
    """Tell a row as a CloudEvent, about which filters say the same."""
    event = Event.from_row(row)
    fields: Row = {"specversion": "1.0", "id": row["id"], "source": row.get("source", "/"), "type": "thing"}
    if event.content_type != JSON:
        return {**fields, "datacontenttype": event.content_type, "data": row["data"]}
    return {**fields, "data": {name: value for name, value in row.items() if name not in {"id", "source"}}}


class Service:
    """A server with one world."""

    def __init__(self, server: Served, world: World) -> None:
        self.server = server
        self.world = world

    def load(self) -> None:
        """Give it the taxonomy, the graph and the subscriptions: half by an import, the others one by one."""
        world = self.world
        if taxonomy(world.content) is not None:
            pairs = [(topic, group) for topic, group in GROUPS.items() if topic != group]
            text = "\n".join(f"<urn:{topic}> <{SUBCLASS}> <urn:{group}> ." for topic, group in pairs)
            self.send("PUT", "/v1/taxonomy", text, "text/turtle")
        for row in world.nodes:
            self.server.ask("PUT", f"/v1/graph/nodes/{row['id']}", _without(row, "id"))
        for row in world.edges:
            self.server.ask("PUT", "/v1/graph/edges", row)
        half = len(world.subscriptions) // 2
        found = self.send(
            "POST",
            "/v1/subscriptions:import",
            _lines(_said(row) for row in world.subscriptions[:half]),
            NDJSON,
        )
        assert found == {"accepted": half, "refused": 0, "errors": []}
        for row in world.subscriptions[half:]:
            self.subscribe(row)

    def subscribe(self, row: Row) -> None:
        """Have a subscription."""
        self.server.ask("PUT", _place(row), _without(_said(row), "id"))

    def change(self, row: Row) -> None:
        """Make a change of the world."""
        said = _without(row, "op")
        if row["op"] == "subscribe":
            self.subscribe(said)
        elif row["op"] == "unsubscribe":
            self.server.ask("DELETE", _place(row))
        else:
            self.server.ask("PATCH", _place(row), _without(said, "id"))

    def publish(self, rows: Iterable[Row]) -> Answers:
        """Publish events as rows; returns who matched."""
        found = self.send("POST", "/v1/events?matches=true", _lines(map(loud, rows)), NDJSON)
        assert not found["refused"]
        # Of an id that comes again, both answers.
        return _by_id((each["id"], sorted(each["matches"])) for each in found["events"])

    def refusal(self, text: str) -> str | None:
        """Publish one line; returns why it is refused, if it is."""
        try:
            self.send("POST", "/v1/events", text, NDJSON)
        except HTTPError as error:
            if error.code not in {400, 422}:
                raise
            return str(json.loads(error.read())["detail"])
        return None

    def match(self, rows: Iterable[Row]) -> Answers:
        """Ask who matches CloudEvents."""
        body = json.dumps([cloud_event(row) for row in rows])
        found = self.send("POST", "/v1/match", body, BATCH)
        return _by_id((each["id"], sorted(each.get("matches", []))) for each in found["events"])

    def top(self, rows: list[Row], top: Top) -> Answers:
        """Ask for the best."""
        body = {"k": top.k, "mode": top.mode, "factors": top.weighing, **top.path._asdict(), "events": rows}
        found = self.server.ask("POST", "/v1/top", body)
        return _by_id(
            (
                each["id"],
                [(best["subscription"], best["value"], best["rank"]) for best in each.get("best", [])],
            )
            for each in found["events"]
        )

    def explain(self, event: Row, subscription: str) -> Told:
        """Ask why."""
        found = self.server.ask("POST", "/v1/explain", {"event": event, "subscription": subscription})
        return Told(found["matches"], "\n".join(found["lines"]).splitlines())

    def send(self, method: str, path: str, text: str, kind: str) -> Any:
        """Send a text that is no JSON object."""
        request = Request(self.server.address + path, text.encode(), {"Content-Type": kind}, method=method)
        with urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())


def _said(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


def _without(row: Row, name: str) -> Row:
    return {each: value for each, value in row.items() if each != name}


def _place(row: Row) -> str:
    return f"/v1/subscriptions/{quote(str(row['id']))}"


def _lines(rows: Iterable[Row]) -> str:
    return "".join(f"{line(row)}\n" for row in rows)


def _by_id(found: Iterable[tuple[str, Any]]) -> Answers:
    answers: Answers = {}
    for identity, answer in found:
        answers.setdefault(identity, []).append(answer)
    return answers
