"""Sign-in, sessions, what is refused, and what browsers are told."""

from __future__ import annotations

import http.client
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pytest

from headgate.console import session as sessions_module
from headgate.console.session import IDLE, LONGEST, ROTATED, Sessions
from headgate.console.templates import asset
from headgate.console.view import PAGES, local_path
from headgate.errors import HeadgateError
from headgate.service.security.keys import Key, Keys
from tests.console.serving import Served, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.console.serving import Visitor

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


def test_a_cookie_that_is_lost_is_given_again() -> None:
    """An answer may never arrive: the cookie before counts until the new one was used."""
    clock = _Clock()
    sessions = Sessions(clock)
    session, cookie = sessions.begin(_KEY)
    clock.now += ROTATED
    lost = sessions.rotate(cookie)
    assert sessions.rotate(cookie) is None
    clock.now += 61
    assert sessions.find(cookie) is session
    again = sessions.rotate(cookie)
    assert sessions.find(lost) is None
    assert sessions.find(again) is session
    assert len(sessions) == 1
    clock.now += 61
    assert sessions.find(cookie) is None
    sessions.end(again)
    assert session.ended
    assert len(sessions) == 0


def test_one_key_puts_no_other_out() -> None:
    """Somebody who signs in again and again ends sessions of the own key alone."""
    clock = _Clock()
    sessions = Sessions(clock)
    other, _ = sessions.begin(Key("other", "default", frozenset({"read"})))
    clock.now += 1
    first, _ = sessions.begin(_KEY)
    for _ in range(100):
        clock.now += 1
        sessions.begin(_KEY)
    assert first.ended
    assert not other.ended
    assert len(sessions) == 101


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
        ("/console/subscriptions/łódź", "/console/subscriptions/%C5%82%C3%B3d%C5%BA"),
        ("/console/subscriptions/a%20b?c=d+e", "/console/subscriptions/a%20b?c=d+e"),
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
    seen = visitor.post("/console/new-subscription", {"id": "a", "filter": "a = 1"})
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


def test_nothing_is_kept_of_who_is_not_signed_in(closed: tuple[Served, dict[str, str]]) -> None:
    """The page that asks for a key opens no session, and does not say where the data is."""
    served, keys = closed
    visitor, before = served.visitor(), len(served.console.sessions)
    for _ in range(3):
        seen = visitor.once("GET", "/console/sign-in")
        assert seen.headers["Set-Cookie"] is None
        assert str(served.running.server.settings.data) not in seen.body
    assert len(served.console.sessions) == before
    # A link leads where it would have led, whatever its letters.
    for place in ("/console/subscriptions/%C5%82%C3%B3d%C5%BA", "/console/subscriptions/a%20%26%20b?x=%26"):
        stranger = served.visitor()
        stranger.get(place)
        asked = urlsplit(stranger.place).query.removeprefix("next=")
        seen = stranger.post("/console/sign-in", {"key": keys["read"], "next": unquote(asked)})
        assert (stranger.place, seen.status) == (place, 404)


def test_scopes_hold_for_every_page(closed: tuple[Served, dict[str, str]]) -> None:
    """Who may only publish sees the form for that and no other page; who may only read has no forms."""
    served, keys = closed
    with served.client(keys["admin"]) as client:
        client.subscribe("hidden", "secret_price < 3")
        for name in ("from", "to"):
            client.ask("PUT", f"/v1/graph/nodes/{name}", {})
        client.ask("PUT", "/v1/graph/edges", {"source": "from", "target": "to", "filter": "secret_edge = 1"})
    edge = "/console/graph/edge?source=from&target=to"
    more = ["/console/subscriptions?which=cost", "/console/subscriptions/hidden", edge]
    shown = [
        re.sub(r"\{[a-z:]+\}", "1", page.path) for page in PAGES if page.method == "GET" and not page.public
    ]
    visitor = served.visitor()
    visitor.post("/console/sign-in", {"key": keys["publish"], "next": "/console/events/new"})
    for path in [*shown, *more]:
        if path != "/console/events/new":
            seen = visitor.get(path)
            assert seen.status == 403, path
            assert "secret" not in seen.body
    for path, form in (
        ("/console/graph/nodes", {"id": "from"}),
        ("/console/graph/edges", {"source": "from", "target": "to"}),
        ("/console/graph/delete-edge", {"source": "from", "target": "to"}),
        ("/console/new-subscription", {"filter": "a = 1"}),
    ):
        seen = visitor.post(path, form)
        assert seen.status == 403, path
        assert "<option>" not in seen.body.partition("<datalist")[2].partition("</datalist>")[0], path
    reader = served.visitor()
    reader.post("/console/sign-in", {"key": keys["read"]})
    for path, status in (
        (edge, 200),
        ("/console/subscriptions?which=cost", 200),
        ("/console/graph/new-edge", 403),
        ("/console/graph/new-node", 403),
        ("/console/new-subscription", 403),
    ):
        assert reader.get(path).status == status, path


@contextmanager
def _listening(visitor: Visitor) -> Iterator[http.client.HTTPResponse]:
    """Have a page's stream, after the first second of it."""
    connection = http.client.HTTPConnection(visitor.host, timeout=10)
    said = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
    connection.request("GET", "/console/live", headers={"Cookie": said})
    answer = connection.getresponse()
    try:
        while not answer.readline().startswith(b"data: "):
            pass
        yield answer
    finally:
        answer.close()
        connection.close()


def test_live_ends_with_the_session(closed: tuple[Served, dict[str, str]]) -> None:
    """Who has signed out hears nothing more, in other windows neither."""
    served, keys = closed
    visitor = served.visitor()
    visitor.post("/console/sign-in", {"key": keys["read"]})
    with _listening(visitor) as answer:
        visitor.post("/console/sign-out")
        assert answer.read().count(b"event: sample") <= 1


def test_live_ends_when_keys_are_needed(tmp_path: Path) -> None:
    """From the first key on nobody hears anything without one. A consumer that nothing is for has no lag."""
    with serving(tmp_path) as served:
        visitor = served.visitor()
        with served.client() as client:
            client.ask("PUT", "/v1/consumers/idle", {})
            client.publish({"id": "e1", "a": 1})
            visitor.get("/console/now")
        with _listening(visitor) as answer, served.client() as client:
            assert served.console.histories.of("default").samples[-1].lag == 0
            client.subscribe("all", "a = 1")
            client.publish({"id": "e2", "a": 1})
            client.ask("POST", "/v1/keys", {"scopes": ["admin"]})
            answer.read()
        assert served.console.histories.of("default").samples[-1].lag == 1


@pytest.mark.parametrize(
    ("method", "path", "form", "headers"),
    [
        ("GET", "/console/now", None, {"Host": "[x"}),
        ("POST", "/console/what-if/remove", {}, {"Origin": "http://[x"}),
        ("POST", "/console/what-if/remove", {"row": "²"}, {}),
        ("POST", "/console/what-if/run", {"events": "9" * 5_000}, {}),
        ("POST", "/console/undo", {"what": "x"}, {"Referer": "http://[x"}),
        ("POST", "/console/settings/keys", {"scope-admin": "on", "days": "1.5"}, {}),
        ("POST", "/console/settings/keys", {"scope-admin": "on", "days": "-1"}, {}),
    ],
)
def test_what_cannot_be_read_is_refused(
    open_server: Served, method: str, path: str, form: dict[str, str] | None, headers: dict[str, str]
) -> None:
    """Numbers and addresses that are none are told, and fail nothing."""
    visitor = open_server.visitor()
    visitor.get("/console/settings")
    assert visitor.token
    seen = visitor.get(path, **headers) if method == "GET" else visitor.post(path, form, **headers)
    assert seen.status in {400, 404, 422}
    with open_server.client() as client:
        assert client.ask("GET", "/v1/keys")["items"] == []


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
    place = "/console/new-subscription"
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
    for path in ("/console/now", "/v1/info"):
        assert visitor.get(path, Host="evil.example").status == 403
    said = {"Origin": "https://evil.example"}
    assert visitor.once("POST", "/v1/snapshot", {}, said).status == 403
    assert visitor.once("POST", "/v1/snapshot", {}, {"Origin": "null"}).status == 403
    assert visitor.once("POST", "/v1/snapshot", {}, {"Origin": f"http://{visitor.host}"}).status == 200
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "MDEyMzQ1Njc4OWFiY2RlZg=="
    seen = visitor.once("GET", "/v1/consumers/default/socket", None, upgrade | said)
    assert (seen.status, "pages of other origins" in seen.body) == (403, True)
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
    for path in (style, "/console/assets/x/passwd"):
        assert visitor.get(path).headers["X-Content-Type-Options"] == "nosniff"
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
