"""The pages of events, and the live page."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from typing import TYPE_CHECKING

import pytest

from headgate.console.pages.now import Histories, quantile
from headgate.service.metrics import BOUNDS

if TYPE_CHECKING:
    from tests.console.serving import Served, Visitor


def test_find_and_explain(open_server: Served, visitor: Visitor) -> None:
    """An event is found by id and cursor; matches are ranked, misses explained with their values."""
    with open_server.client() as client:
        client.subscribe("high", "kind = 'found' AND price > 5", score=9)
        client.subscribe("low", "kind = 'found'", score=2)
        client.subscribe("far", "kind = 'found' AND price > 100")
        done = client.publish({"id": "found-1", "kind": "found", "price": 20})
        cursor = done.events[0].cursor
        client.publish([{"id": "twice", "n": 1}, {"id": "twice", "n": 2}])
    seen = visitor.get("/console/events?find=found-1")
    assert visitor.place == f"/console/events/{cursor}"
    assert seen.text.index("high") < seen.text.index("low")
    assert "price > 100 the event has price = 20, off by 80" in seen.text
    seen = visitor.get(f"/console/events?find={cursor}&subscription=far")
    assert visitor.place == f"/console/events/{cursor}?subscription=far"
    assert "no match far did not get this event" in seen.text
    assert "It has no rank" in seen.text
    assert "Rank 1" in visitor.get(f"/console/events/{cursor}?subscription=high").text
    assert "match price < 30" in visitor.get(f"/console/events/{cursor}?filter=price+%3C+30").text
    assert "there is no subscription" in visitor.get(f"/console/events/{cursor}?subscription=hi").text
    assert "2 events have the id twice" in visitor.get("/console/events?find=twice").text
    assert "No event that is kept" in visitor.get("/console/events?find=nowhere").text
    assert visitor.get("/console/events/99999").status == 404
    assert visitor.get("/console/events?before=x").status == 400


def test_write_an_event(open_server: Served, visitor: Visitor) -> None:
    """Who would get it is told before; what is no event is refused, and kept in the form."""
    with open_server.client() as client:
        client.subscribe("writer", "written = 1")
    visitor.get("/console/events/new")
    tried = visitor.post("/console/events/try", {"event": '{"id": "w", "written": 1}'})
    assert "1 subscription matches" in tried.text
    assert "Nobody" in visitor.post("/console/events/try", {"event": '{"id": "w", "written": 3}'}).text
    for wrong in ("{", "[1]", '{"specversion": "9"}'):
        assert "callout bad" in visitor.post("/console/events/try", {"event": wrong}).body
        visitor.get("/console/events/new")
        seen = visitor.post("/console/events/new", {"event": wrong})
        assert seen.status == 422
        assert "It was not published" in seen.text
    seen = visitor.post("/console/events/new", {"event": '{"id": "w", "written": 1}'})
    assert "event w is on disk, 1 matched" in seen.text


def test_live(open_server: Served, visitor: Visitor) -> None:
    """The stream has a sample a second, and rows of new events, at most ten, with how many more came."""
    visitor.get("/console/now")
    connection = http.client.HTTPConnection(visitor.host, timeout=10)
    cookie = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    connection.request("GET", "/console/live", headers={"Cookie": cookie})
    answer = connection.getresponse()
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    with open_server.client() as client:
        client.publish([{"id": f"live-{n}"} for n in range(25)])
    found: dict[str, object] = {}
    name = ""
    while {"rows", "sample"} - set(found):
        line = answer.fp.readline().decode()
        if line.startswith("event: "):
            name = line[7:].strip()
        elif line.startswith("data: "):
            found.setdefault(name, json.loads(line[6:]))
    connection.close()
    sample = found["sample"]
    assert isinstance(sample, dict)
    assert abs(sample["time"] - time.time()) < 5
    rows = found["rows"]
    assert isinstance(rows, dict)
    assert len(rows["rows"]) + rows["more"] == 25
    assert len(rows["rows"]) == 10
    assert "live-24" in rows["rows"][-1]


def test_seconds_are_noted_once_each(open_server: Served) -> None:
    """However early or late timers are, each second that is noted comes once, and none before its time."""
    server = open_server.running.server
    histories = Histories()

    async def watch() -> None:
        task = asyncio.get_running_loop().create_task(histories.sample(server))
        await asyncio.sleep(1.2)
        # Somebody else has the processor for more than a second.
        time.sleep(1.3)
        await asyncio.sleep(1.0)
        task.cancel()

    asyncio.run(watch())
    times = [each.time for each in histories.of("default").samples]
    assert 2 <= len(times) <= 4
    assert times == sorted(set(times))
    assert times[-1] <= time.time()
    assert times[-1] >= time.time() - 2


@pytest.mark.parametrize("part", [0.5, 0.99])
def test_quantiles_lie_between_their_bounds(part: float) -> None:
    """An estimate is within the bounds that the request really was counted between."""
    for place, bound in enumerate(BOUNDS):
        counts = [0] * (len(BOUNDS) + 1)
        counts[place] = 7
        found = quantile(counts, part)
        low = BOUNDS[place - 1] if place else 0.0
        assert found is not None
        assert 1_000 * low <= found <= 1_000 * bound
