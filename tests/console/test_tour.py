"""The tour: alive at once, and never where others keep theirs."""

from __future__ import annotations

import re
import time
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import urljoin

import pytest

from headgate.cli import cli
from headgate.console.extension import Console
from headgate.console.tour import MARK, Tour, check_place, told
from headgate.errors import StorageError
from tests.console.serving import serving, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.console.serving import Visitor


def test_everything_is_alive_soon(tmp_path: Path) -> None:
    """Events come; one consumer listens, one pulls, one lags, one has dead letters; it goes on later."""
    tour = Tour(200, campaigns=300, down=1.0)
    with serving(tmp_path, Console(tour=tour), private_webhooks=True) as served:
        visitor = served.visitor()
        with served.client() as client:
            end = time.monotonic() + 15
            while True:
                found = {each["id"]: each for each in client.ask("GET", "/v1/consumers")["items"]}
                if found["partner-hook"]["state"].get("dead_letters") and found["bidders"]["cursor"]:
                    break
                assert time.monotonic() < end, found
                time.sleep(0.05)
            assert found["dashboard"]["state"]["listeners"] == 1
            assert found["dashboard"]["cursor"] > 0
            assert found["archive"]["cursor"] == 0
            assert found["archive"]["lag"]["events"] > 0
            kept = client.ask("GET", "/v1/events?limit=1000")["items"]
            assert all("everything" in each["matches"] for each in kept)
            got = {name for each in kept for name in each["matches"]}
            assert not {name for name in got if name.startswith("never-")}
            assert {name for name in got if name.startswith("audit-")}
            assert len(client.ask("GET", "/v1/graph/nodes?limit=1000")["items"]) == len(told().nodes)
            assert len(client.ask("GET", "/v1/graph/edges?limit=1000")["items"]) == len(told().edges)
            first = client.ask("GET", "/v1/info")
            cursors = [each["cursor"] for each in kept[::400]]
        assert "dashboard" in visitor.get("/console/consumers").text
        _open_all(visitor, cursors)
        until(lambda: "The way of document" in visitor.get("/console/network").text)
        seen = visitor.get("/console/network")
        assert ("Sites 6" in seen.text, "In trouble 0" in seen.text) == (True, True)
    assert (tmp_path / MARK).exists()
    check_place(tmp_path)
    again = Console(tour=Tour(200, campaigns=300, network=False))
    with serving(tmp_path, again, private_webhooks=True) as served, served.client() as client:
        while client.ask("GET", "/v1/info")["last"] <= first["last"]:
            time.sleep(0.05)
        assert client.ask("GET", "/v1/info")["subscriptions"] == first["subscriptions"]


KINDS = ("everything", "never-hour", "partner-phones", "night-alert", "audit-exchange-open", "news-1")
"""Subscriptions of the demo: at no node, with a webhook, with a limit, and at two kinds of nodes."""


def _open_all(visitor: Visitor, cursors: list[int]) -> None:
    """Open each page that another leads to: one of each form, and those of each kind of subscription."""
    waiting = [f"/console/subscriptions/{name}" for name in KINDS]
    waiting += [f"/console/subscriptions/{name}/edit" for name in KINDS]
    waiting += [f"/console/events/{cursor}?subscription={name}" for cursor in cursors for name in KINDS]
    forms = set()
    waiting.append("/console/now")
    for path in waiting:
        seen = visitor.get(path)
        assert seen.status == 200, (path, seen.text)
        for target in map(unescape, re.findall(r'href="([^"#]+)', seen.body)):
            found = urljoin(path, target)
            form = re.sub(r"(events|subscriptions|consumers)/[^/?]+|=[^&]*", r"\1", found)
            if found.startswith("/console/") and "/assets/" not in found and form not in forms:
                forms.add(form)
                waiting.append(found)
    assert len(forms) > 20, forms


def test_a_page_that_fails_is_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody thought of is logged, and told on a page with a way back."""

    def fail(*_: object) -> None:
        raise RuntimeError("nobody thought of it")

    monkeypatch.setattr("headgate.console.pages.events.attributes_of", fail)
    with serving(tmp_path) as served, served.client() as client:
        client.publish({"id": "e", "a": 1})
        visitor = served.visitor()
        visitor.get("/console/events")
        seen = visitor.get("/console/events/1", Referer=f"{served.address}/console/events")
    assert seen.status == 500
    assert "the service failed at this request: its log says why" in seen.text
    assert 'href="/console/events"' in seen.body


def test_other_data_is_left_alone(tmp_path: Path) -> None:
    """A directory with events or subscriptions is refused in a line; an empty one is taken."""
    check_place(tmp_path / "none")
    with serving(tmp_path) as served, served.client() as client:
        client.ask("GET", "/v1/info")
    check_place(tmp_path)
    with serving(tmp_path) as served, served.client() as client:
        client.publish({"id": "e", "a": 1})
    with pytest.raises(StorageError, match="has events or subscriptions of its own") as refused:
        check_place(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ([], "Missing option '--data'"),
        (["--data", "x", "--demo-rate", "5"], "--demo-rate goes with --demo"),
        (["--demo", "--demo-rate", "0"], "0.1<=x<=5000"),
    ],
)
def test_options_are_checked(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What does not go together is refused before anything is made."""
    with pytest.raises(SystemExit):
        cli.main(["serve", *given])
    assert told in capsys.readouterr().err
