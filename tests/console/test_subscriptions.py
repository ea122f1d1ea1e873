"""The pages of subscriptions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.serving import serving

if TYPE_CHECKING:
    from pathlib import Path

    from tests.console.serving import Served, Visitor


def test_a_life(open_server: Served, visitor: Visitor) -> None:
    """Made, shown, changed with all that the form does not show kept, deleted, brought back."""
    visitor.get("/console/new-subscription?id=life&filter=life+%3D+1")
    form = {
        "id": "life",
        "filter": "life = 1",
        "dialect": "sql",
        "consumer": "me",
        "score": "0.3 * life + 1",
        "metadata": '{"a": 1}',
        "limit": '{"events": 5, "period": 60.0}',
        "expires": "2090-01-01T00:00:00Z",
    }
    seen = visitor.post("/console/new-subscription", form)
    assert visitor.place == "/console/subscriptions/life"
    assert "gets events from now on" in seen.text
    with open_server.client() as client:
        said = client.subscription("life")
        assert (said["score"], said["metadata"], said["consumer"]) == ("0.3 * life + 1", {"a": 1}, "me")
        client.publish({"id": "e1", "life": 1})
    seen = visitor.get("/console/subscriptions/life")
    assert "Matches 1 since the service started" in seen.text
    assert "curl" in seen.body
    seen = visitor.get("/console/subscriptions/life/edit")
    changed = {**form, "filter": "life = 2", "revision": str(said["revision"]), "id": ""}
    assert visitor.post("/console/subscriptions/life", changed).status == 200
    seen = visitor.post("/console/subscriptions/life", changed)
    assert seen.status == 412
    assert "It was not saved" in seen.text
    visitor.get("/console/subscriptions/life")
    seen = visitor.post("/console/subscriptions/life/delete")
    assert "is deleted" in seen.text
    undo = seen.body.partition('name="what" value="')[2].partition('"')[0]
    assert "is back" in visitor.post("/console/undo", {"what": undo}).text
    assert visitor.post("/console/undo", {"what": undo}).status == 404
    with open_server.client() as client:
        after = client.subscription("life")
        for name in ("score", "metadata", "consumer", "limit", "expires", "state"):
            assert after[name] == said[name], name
        assert after["filter"] == "life = 2"
        client.unsubscribe("life")


def test_undo_overwrites_nothing(open_server: Served, visitor: Visitor) -> None:
    """What somebody has made again stays; when it is gone, Undo can be tried once more."""
    with open_server.client() as client:
        client.subscribe("again", "first = 1")
        visitor.get("/console/subscriptions/again")
        seen = visitor.post("/console/subscriptions/again/delete")
        undo = {"what": seen.body.partition('name="what" value="')[2].partition('"')[0]}
        client.subscribe("again", "second = 1")
        seen = visitor.post("/console/undo", undo)
        assert "subscription again is not back" in seen.text
        assert client.subscription("again")["filter"] == "second = 1"
        client.unsubscribe("again")
        assert "subscription again is back" in visitor.post("/console/undo", undo).text
        assert client.subscription("again")["filter"] == "first = 1"
        client.unsubscribe("again")


def test_a_survey_ends_with_the_service(tmp_path: Path) -> None:
    """One that runs holds nobody up: neither requests nor the end."""
    with serving(tmp_path) as served, served.client() as client:
        rows = ({"id": f"s{each}", "filter": f"a > {each}"} for each in range(1_200))
        client.import_subscriptions(rows)
        client.publish({"id": "e1", "a": 3})
        assert "Trying filters" in served.visitor().get("/console/subscriptions?which=cost").text
        survey = served.console.surveys.of(served.running.server.tenants["default"])
    assert survey.ended is not None
    assert survey.error == ""


def test_ids_are_no_pages(open_server: Served, visitor: Visitor) -> None:
    """A subscription may be called as a page or a form would be."""
    with open_server.client() as client:
        for name in ("new", "check", "edit", "delete"):
            client.subscribe(name, "named = 1")
            seen = visitor.get(f"/console/subscriptions/{name}")
            assert "named = 1" in seen.text
            form = {"filter": "named = 2", "revision": str(client.subscription(name)["revision"])}
            assert visitor.post(f"/console/subscriptions/{name}", form).status == 200
            assert client.subscription(name)["filter"] == "named = 2"
            client.unsubscribe(name)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ({"filter": "a ="}, "a value or a condition is missing"),
        ({"filter": ""}, "there is no `filter`"),
        ({"filter": "a = 1", "metadata": "{"}, "metadata is not valid JSON"),
        ({"filter": "a = 1", "expires": "2090-01-01"}, "expires"),
        ({"filter": "a = 1", "node": "none"}, "there is no node 'none'"),
        ({"filter": "a = 1", "id": "a/b"}, "id"),
    ],
)
def test_mistakes_keep_the_form(visitor: Visitor, form: dict[str, Any], said: str) -> None:
    """What is refused is told in one line, and what was written is still there."""
    visitor.get("/console/new-subscription")
    seen = visitor.post("/console/new-subscription", {"consumer": "kept-as-written", **form})
    assert seen.status == 422
    assert said in seen.text
    assert 'value="kept-as-written"' in seen.body


def test_lists(open_server: Served, visitor: Visitor) -> None:
    """All, those that never matched, those that matched everything, and those that cost most."""
    with open_server.client() as client:
        for number in range(3):
            client.subscribe(f"list-{number}", f"listed >= {number} OR n = {number}", consumer="lists")
        client.publish([{"id": f"l{n}", "listed": 1} for n in range(5)])
    assert "list-2" in visitor.get("/console/subscriptions?which=never&consumer=lists").text
    seen = visitor.get("/console/subscriptions?search=LIST-1")
    assert "list-1" in seen.text
    assert "list-0" not in seen.text
    assert "No subscription is like that" in visitor.get("/console/subscriptions?search=zzz").text
    assert visitor.get("/console/subscriptions?sort=odd").status == 400
    deadline = time.monotonic() + 20
    while "checks an event" not in (seen := visitor.get("/console/subscriptions?which=cost")).text:
        assert time.monotonic() < deadline, seen.text
        time.sleep(0.05)
    assert "list-0" in seen.text


def test_check_while_writing(open_server: Served, visitor: Visitor) -> None:
    """The place of an error is marked, and a good filter is tried over what is kept."""
    with open_server.client() as client:
        client.publish({"id": "c1", "checked": 1})
    visitor.get("/console/new-subscription")
    check = "/console/check-filter"
    seen = visitor.post(check, {"filter": "a = 1 AND <b>", "dialect": "sql"})
    assert "<mark>&lt;</mark>b&gt;" in seen.body
    assert "of the last" in visitor.post(check, {"filter": "checked = 1", "dialect": "sql"}).text
    assert "Write a filter" in visitor.post(check, {"filter": " "}).text
    assert visitor.post(check, {"filter": "a = 1", "dialect": "odd"}).status in {200, 422}
