"""Sign-in, sessions, what is refused, and what browsers are told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from headgate.console import session as sessions_module
from headgate.console.assets import asset
from headgate.console.guard import local_path
from headgate.console.session import IDLE, LONGEST, ROTATED, Sessions
from headgate.console.view import PAGES
from headgate.errors import HeadgateError
from headgate.service.security.keys import Key, Keys
from tests.console.serving import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY = Key("k", "default", frozenset({"read"}))


class _Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_sessions_end_and_rotate() -> None:
    """A cookie counts until it is not used, or old, or another took its place a while ago."""
    clock = _Clock()
    sessions = Sessions(clock)
    session, cookie = sessions.begin(_KEY)
    assert sessions.find(cookie) is session
    assert sessions.find("x" + cookie) is None
    assert sessions.find(None) is None
    assert sessions.rotate(cookie) is None
    clock.now += ROTATED
    fresh = sessions.rotate(cookie)
    assert fresh is not None
    assert fresh != cookie
    assert sessions.find(fresh) is sessions.find(cookie) is session
    clock.now += 61
    assert sessions.find(cookie) is None
    assert sessions.find(fresh) is session
    clock.now += IDLE - 1
    assert sessions.find(fresh) is session
    clock.now += IDLE + 1
    assert sessions.find(fresh) is None
    _, long = sessions.begin(_KEY)
    for _ in range(int(LONGEST / IDLE * 2)):
        clock.now += IDLE / 2
        assert sessions.find(long) is not None
    clock.now += 1
    assert sessions.find(long) is None
    assert len(sessions) == 0


def test_sessions_end_by_either_cookie() -> None:
    """Who signs out is out, with the cookie before, too."""
    clock = _Clock()
    sessions = Sessions(clock)
    _, cookie = sessions.begin(_KEY)
    clock.now += ROTATED
    fresh = sessions.rotate(cookie)
    sessions.end(cookie)
    assert sessions.find(fresh) is None


def test_wrong_keys_are_slowed() -> None:
    """Ten wrong keys in a minute are enough."""
    clock = _Clock()
    sessions = Sessions(clock)
    for _ in range(10):
        sessions.check_patience("a")
        sessions.note_failure("a")
    sessions.check_patience("b")
    with pytest.raises(HeadgateError, match="10 keys from here were wrong"):
        sessions.check_patience("a")
    clock.now += 60
    sessions.check_patience("a")


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ("/console/events?find=a", "/console/events?find=a"),
        (None, "/x"),
        ("https://example.com/console/", "/x"),
        ("//example.com", "/x"),
        ("/console//example.com", "/x"),
        ("/v1/keys", "/x"),
        ("/console/\\example.com", "/x"),
        ("/console/a\r\nSet-Cookie: b", "/x"),
    ],
)
def test_next_is_a_page_of_the_console(given: str | None, found: str) -> None:
    """Signing in leads nowhere else."""
    assert local_path(given, "/x") == found


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    """Return a server with keys of two tenants, by what they may do."""
    data = tmp_path_factory.mktemp("closed")
    keys = Keys(data)
    made = {
        "admin": keys.add("default", ["admin"])[1],
        "read": keys.add("default", ["read"])[1],
        "publish": keys.add("default", ["publish"])[1],
        "other": keys.add("other", ["admin"])[1],
    }
    keys.close()
    (data / "format").write_text("headgate service data, format 1\n")
    with serving(data) as served:
        yield served, made


def test_signing_in_and_out(closed: tuple[Served, dict[str, str]]) -> None:
    """Without a key there is the sign-in page alone; a session shows what its key may see."""
    served, keys = closed
    visitor = served.visitor()
    seen = visitor.get("/console/events?find=a")
    assert visitor.place == "/console/sign-in?next=/console/events%3Ffind%3Da"
    assert 'name="next" value="/console/events?find=a"' in seen.body
    for wrong in ("", "hg_x_y", keys["read"][:-1], "' OR 1=1 --"):
        seen = visitor.post("/console/sign-in", {"key": wrong, "next": "/console/now"})
        assert seen.status == 401
        assert not wrong or wrong not in seen.body
    seen = visitor.post("/console/sign-in", {"key": keys["read"], "next": "/console/subscriptions"})
    assert seen.status == 200
    assert "Sign out" in seen.text
    assert "New subscription" not in seen.text
    assert keys["read"] not in seen.body
    assert all(keys["read"] not in value for value in visitor.cookies.values())
    assert visitor.get("/console/sign-in").status == 200
    seen = visitor.post("/console/subscriptions/new", {"id": "a", "filter": "a = 1"})
    assert seen.status == 403
    assert "the key has no scope 'subscribe'" in seen.text
    visitor.get("/console/now")
    visitor.post("/console/sign-out")
    assert visitor.place == "/console/sign-in"
    visitor.get("/console/now")
    assert visitor.place.startswith("/console/sign-in")


def test_cookie_is_kept_from_scripts_and_other_sites(closed: tuple[Served, dict[str, str]]) -> None:
    """The cookie is HTTP-only and same-site; each sign-in has another one."""
    served, keys = closed
    found = set()
    for _ in range(2):
        visitor = served.visitor()
        seen = visitor.once(
            "POST", "/console/sign-in", {"key": keys["read"]}, {"Origin": f"http://{visitor.host}"}
        )
        said = seen.headers["Set-Cookie"]
        assert {"HttpOnly", "SameSite=lax", "Path=/console"} <= {each.strip() for each in said.split(";")}
        found.add(visitor.cookies["headgate-session"])
    assert len(found) == 2


def test_key_that_ends_takes_its_sessions(closed: tuple[Served, dict[str, str]]) -> None:
    """A session has no more than its key, and no longer."""
    served, keys = closed
    admin = served.client(keys["admin"])
    made = admin.ask("POST", "/v1/keys", {"scopes": ["read"]})
    visitor = served.visitor()
    assert visitor.post("/console/sign-in", {"key": made["text"]}).status == 200
    admin.ask("DELETE", f"/v1/keys/{made['id']}")
    visitor.get("/console/now")
    assert visitor.place.startswith("/console/sign-in")


def test_tenants_see_their_own(closed: tuple[Served, dict[str, str]]) -> None:
    """Two sessions of two tenants at once; neither sees what the other has."""
    served, keys = closed
    with served.client(keys["admin"]) as client:
        client.subscribe("mine", "a = 1")
        client.publish({"id": "e1", "a": 1})
    mine, theirs = served.visitor(), served.visitor()
    assert (
        "mine" in mine.post("/console/sign-in", {"key": keys["admin"], "next": "/console/subscriptions"}).text
    )
    seen = theirs.post("/console/sign-in", {"key": keys["other"], "next": "/console/subscriptions"})
    assert "mine" not in seen.text
    assert "0 in all" in seen.text
    assert theirs.get("/console/subscriptions/mine").status == 404
    assert theirs.get("/console/events/1").status == 404
    assert mine.get("/console/events/1").status == 200


def test_forms_from_elsewhere_are_refused(closed: tuple[Served, dict[str, str]]) -> None:
    """Without the token, from another origin, or without saying from where, nothing is changed."""
    served, keys = closed
    visitor = served.visitor()
    visitor.post("/console/sign-in", {"key": keys["admin"]})
    form = {"id": "forged", "filter": "a = 1"}
    place = "/console/subscriptions/new"
    assert visitor.post(place, {**form, "token": ""}).status == 403
    assert visitor.post(place, {**form, "token": "0" * 64}).status == 403
    assert visitor.post(place, form, Origin="https://example.com").status == 403
    assert visitor.post(place, form, **{"Sec-Fetch-Site": "cross-site"}).status == 403
    token = {**form, "token": visitor.token}
    assert visitor.once("POST", place, token, {}).status == 403
    assert visitor.get("/console/subscriptions/forged").status == 404
    assert visitor.post(place, form).status == 200
    # A sign-in from elsewhere would make somebody use the session of another.
    assert visitor.post("/console/sign-in", {"key": keys["read"]}, Origin="https://example.com").status == 403


def test_every_page_needs_a_session(closed: tuple[Served, dict[str, str]]) -> None:
    """No page and no form but the sign-in is answered to somebody who is not signed in."""
    served, _ = closed
    visitor = served.visitor()
    for page in PAGES:
        if page.public:
            continue
        path = re.sub(r"\{[a-z:]+\}", "1", page.path)
        origin = {"Origin": f"http://{visitor.host}"}
        seen = visitor.once(page.method, path, {} if page.method == "POST" else None, origin)
        assert (seen.status, seen.headers["Location"].partition("?")[0]) == (303, "/console/sign-in"), path


def test_other_names_of_the_machine_need_keys(open_server: Served) -> None:
    """Without keys, a name that leads here from a page elsewhere is refused."""
    visitor = open_server.visitor()
    assert visitor.get("/console/now", Host="evil.example").status == 403
    assert visitor.get("/console/now", Host=visitor.host.replace("127.0.0.1", "localhost")).status == 200


def test_what_browsers_are_told(open_server: Served) -> None:
    """Pages load from here alone, are not kept, and have no scripts or styles of their own inside."""
    visitor = open_server.visitor()
    assert visitor.once("GET", "/").headers["Location"] == "/console/now"
    for path in ("/console/now", "/console/subscriptions", "/console/nothing", "/console/events/77"):
        seen = visitor.get(path)
        policy = seen.headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert seen.headers["Cache-Control"] == "no-store"
        assert not re.search(r"\s(style|on[a-z]+)=", seen.body), path
        assert not re.findall(r'<script(?! src| type="application/json")', seen.body), path
        assert not re.findall(r'(?:src|href)="(?:https?:)?//', seen.body), path
    seen = visitor.get("/console/now")
    style = re.findall(r'href="(/console/assets/[^"]+style.css)"', seen.body)[0]
    found = visitor.get(style)
    assert "immutable" in found.headers["Cache-Control"]
    assert found.headers["Content-Type"].startswith("text/css")
    assert visitor.get("/console/assets/x/passwd").status == 404


def test_pages_are_small() -> None:
    """What the largest pages load, unpacked, stays under 200 KB."""
    shared = ("style.css", "console.css", "console.js", "htmx.js")
    for more in (("uplot.js", "uplot.css", "charts.js"), ("dagre.js", "drawing.js")):
        assert sum(len(asset(name).body) for name in (*shared, *more)) < 170_000


def test_undo_is_there_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was deleted can be brought back once, and not for ever."""
    session, _ = Sessions().begin(_KEY)
    name = session.can_restore("a", ("op", {}, {}))
    assert session.restoring(name) is not None
    assert session.restoring(name) is None
    monkeypatch.setattr(sessions_module, "_UNDO", -1.0)
    assert session.restoring(session.can_restore("b", ("op", {}, {}))) is None
