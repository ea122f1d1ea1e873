"""Settings on the console: keys shown once, quotas, what the service was told, snapshots, the audit log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from headgate.console.pages.settings import told
from headgate.console.settings import ServeSettings
from headgate.core.settings import settings_of
from headgate.service.security.keys import Keys
from headgate.service.server import make_place
from headgate.service.settings import Quotas
from tests.console.serving import Served, Visitor, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

_TEXT = re.compile(r'<pre id="key-text">(hg_[0-9a-f]+_[0-9a-f]+)</pre>')
PLACE = "/console/settings"


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Visitor, str]]:
    """Return a server without keys, made to one with keys by its console; who did it, and the key."""
    data = tmp_path_factory.mktemp("settings")
    with serving(data) as served:
        visitor = served.visitor()
        seen = visitor.get(PLACE)
        assert "There are no keys: everybody on this machine may do everything" in seen.text
        seen = visitor.post(f"{PLACE}/keys", {"scope-read": "on"})
        assert seen.status == 422
        assert "the first key needs the scope admin" in seen.text
        seen = visitor.post(f"{PLACE}/keys", {"scope-admin": "on", "note": "<b>me"})
        (text,) = _TEXT.findall(seen.body)
        assert "&lt;b&gt;me" in seen.body
        assert text not in visitor.place
        visitor.get(PLACE)
        assert visitor.place.startswith("/console/sign-in")
        visitor.post("/console/sign-in", {"key": text, "next": PLACE})
        yield served, visitor, text


def test_keys_are_shown_once(keyed: tuple[Served, Visitor, str]) -> None:
    """A key is listed without its text, expires when it was told to, and is deleted for good."""
    served, visitor, own = keyed
    seen = visitor.get(PLACE)
    assert own not in seen.body
    assert own.rpartition("_")[2] not in seen.body
    assert "yours" in seen.text
    assert "&lt;b&gt;me" in seen.body
    seen = visitor.post(
        f"{PLACE}/keys", {"scope-publish": "on", "scope-read": "on", "days": "2", "note": "kiosk"}
    )
    (text,) = _TEXT.findall(seen.body)
    assert text not in visitor.get(PLACE).body
    identity = text.split("_")[1]
    with served.client(own) as client:
        made = next(each for each in client.ask("GET", "/v1/keys")["items"] if each["id"] == identity)
        assert (made["scopes"], made["note"]) == (["publish", "read"], "kiosk")
        assert made["expires"] > made["created"]
    seen = visitor.post(f"{PLACE}/keys", {"note": "none"})
    assert seen.status == 422
    assert 'value="none"' in seen.body
    other = served.visitor()
    other.post("/console/sign-in", {"key": text})
    seen = other.get(PLACE)
    assert "Your key has publish, read" in seen.text
    assert "--retention" not in seen.text
    for path in ("/keys", f"/keys/{own.split('_')[1]}/delete", "/snapshot"):
        assert other.post(f"{PLACE}{path}", {"scope-read": "on"}).status == 403, path
    assert other.get(f"{PLACE}/audit").status == 403
    assert "kiosk" not in visitor.get(f"{PLACE}?search=me").text
    seen = visitor.post(f"{PLACE}/keys/{identity}/delete")
    assert f"key {identity} counts no more" in seen.text
    other.get(PLACE)
    assert other.place.startswith("/console/sign-in")
    assert visitor.post(f"{PLACE}/keys/{own.split('_')[1]}/delete").status == 409


def test_settings_and_sizes(keyed: tuple[Served, Visitor, str]) -> None:
    """Each setting is there with its meaning; a snapshot is written when asked for."""
    served, visitor, own = keyed
    with served.client(own) as client:
        client.subscribe("s", "a = 1")
        assert client.ask("GET", "/v1/storage")["changes"] == 1
        visitor.get(PLACE)
        seen = visitor.post(f"{PLACE}/snapshot")
        assert "the snapshot is written" in seen.text
        found = client.ask("GET", "/v1/storage")
        assert found["changes"] == 0
        assert found["snapshot"] is not None
        assert min(found["index"], found["database"], found["free"]) > 0
    for each in settings_of(type(served.running.server.settings)):
        assert each.flag in seen.text
    assert "How long events are kept." in seen.text
    assert "7 d" in seen.text
    seen = visitor.get(f"{PLACE}/health", HX_Request="true")
    assert "Health ok" in seen.text
    assert "<html" not in seen.body


def test_every_setting_is_told() -> None:
    """Those of `serve` are told in words, and what was given is marked."""
    found = {each.flag: each for each in told(ServeSettings(data="d", port=1, demo=True))}
    assert found["--port"][1:3] == ("1", True)
    assert found["--spare"][1:3] == ("256.0 MiB", False)
    assert found["--demo"].value == "yes"
    assert found["--certificate"].value == "none"
    assert all(each.about.endswith(".") and "`" not in each.about for each in found.values())


def test_quotas_are_those_of_the_tenant(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What was set by whoever runs the service is shown, with the command that sets it."""
    data = tmp_path_factory.mktemp("quotas")
    make_place(data)
    keys = Keys(data)
    keys.keep_quotas("default", Quotas(subscriptions=1_234))
    keys.close()
    with serving(data) as served:
        seen = served.visitor().get(PLACE)
        assert "subscriptions 1,234 how many it may have" in seen.text
        assert "headgate service quotas --data" in seen.text


def test_audit_is_searched_and_paged(keyed: tuple[Served, Visitor, str]) -> None:
    """The latest change comes first; pages go back to the first."""
    served, visitor, own = keyed
    with served.client(own) as client:
        for number in range(60):
            client.ask("PUT", f"/v1/consumers/audited-{number}", {})
        client.ask("PUT", "/v1/consumers/<script>alert(1)", {})
        page = client.ask("GET", "/v1/audit?latest=true&limit=2")
        assert [each["what"] for each in page["items"]] == ["<script>alert(1)", "audited-59"]
        more = client.ask("GET", f"/v1/audit?latest=true&limit=2&after={page['next']}")
        assert [each["what"] for each in more["items"]] == ["audited-58", "audited-57"]
    seen = visitor.get(f"{PLACE}/audit")
    assert "&lt;script&gt;alert(1)" in seen.body
    assert "<script>alert(1)" not in seen.body
    assert "audited-59" in seen.text
    assert "audited-0" not in seen.text
    (earlier,) = re.findall(r'href="([^"]+after=\d+[^"]*)"', seen.body)
    assert "audited-0 " in visitor.get(earlier).text
    seen = visitor.get(f"{PLACE}/audit?search=create+key")
    assert "create key" in seen.text
    assert "replace consumer" not in seen.text
    assert "No change has ' OR 1=1 in it" in visitor.get(f"{PLACE}/audit?search='+OR+1%3D1").text
