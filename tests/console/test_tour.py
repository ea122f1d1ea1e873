"""The tour: alive at once, and never where others keep theirs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from headgate.cli import cli
from headgate.console.extension import Console
from headgate.console.tour import MARK, Tour, check_place, edges, nodes
from headgate.errors import StorageError
from tests.console.serving import serving

if TYPE_CHECKING:
    from pathlib import Path


def test_everything_is_alive_soon(tmp_path: Path) -> None:
    """Events come; one consumer listens, one pulls, one lags, one has dead letters; it goes on later."""
    with serving(tmp_path, Console(tour=Tour(200, campaigns=300)), private_webhooks=True) as served:
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
            assert len(client.ask("GET", "/v1/graph/nodes?limit=1000")["items"]) == len(nodes())
            assert len(client.ask("GET", "/v1/graph/edges?limit=1000")["items"]) == len(edges())
            first = client.ask("GET", "/v1/info")
        assert "dashboard" in visitor.get("/console/consumers").text
    assert (tmp_path / MARK).exists()
    check_place(tmp_path)
    again = Console(tour=Tour(200, campaigns=300))
    with serving(tmp_path, again, private_webhooks=True) as served, served.client() as client:
        while client.ask("GET", "/v1/info")["last"] <= first["last"]:
            time.sleep(0.05)
        assert client.ask("GET", "/v1/info")["subscriptions"] == first["subscriptions"]


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
