"""The console in a real browser."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from headgate import Client
from headgate.service.security.keys import Keys
from tests.console.browsing import PLACE, started, violations, window
from tests.console.serving import Served, answering, closed_port, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(PLACE is None, reason="not verified in a browser: there is no chromium")
ODD = ("<script>document.title='x'</script>", '"><img src=x onerror=document.title=1>', "{{7*7}}", "' OR 1=1")
PATHS = (
    "/console/now",
    "/console/subscriptions",
    "/console/subscriptions?which=never",
    "/console/subscriptions?which=cost",
    "/console/new-subscription",
    "/console/subscriptions/sport",
    "/console/subscriptions/sport/edit",
    "/console/events",
    "/console/events/new",
    "/console/events/1?subscription=cheap",
    "/console/events?find=none",
    "/console/consumers",
    "/console/consumers/app",
    "/console/consumers/hook",
    "/console/graph",
    "/console/graph?event=6",
    "/console/graph?node=papers",
    "/console/graph/nodes/papers",
    "/console/network",
    "/console/what-if?subscription=cheap",
    "/console/settings",
    "/console/settings/audit",
    "/console/nothing",
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser for all tests."""
    with started() as found:
        yield found


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Return a server with some subscriptions and events."""
    with serving(tmp_path_factory.mktemp("browser"), private_webhooks=True) as found:
        with Client(found.address) as client:
            client.subscribe("sport", "topic = 'sport'", consumer="app", score=3)
            client.subscribe("cheap", "price < 10", consumer="app", score=1)
            client.publish([{"id": f"e{n}", "topic": "sport", "price": 5 * n} for n in range(1, 6)])
            for name, text in (("press", None), ("papers", "topic = 'sport'"), ("late", "hour > 20")):
                client.ask("PUT", f"/v1/graph/nodes/{name}", {} if text is None else {"filter": text})
            for target in ("papers", "late"):
                client.ask("PUT", "/v1/graph/edges", {"source": "press", "target": target})
            client.subscribe("reader", "price < 90", node="papers", consumer="app")
            client.subscribe("sleeper", "price < 90", node="late", consumer="app")
            client.publish({"id": "e6", "source": "press", "topic": "sport", "price": 60, "hour": 8})
            with closed_port() as port:
                hook = {"url": f"http://127.0.0.1:{port}/hook", "attempts": 1, "timeout": 1.0}
                client.consumer("hook", **hook)
                client.subscribe("called", "topic = 'hook'", consumer="hook")
                client.publish({"id": "e7", "topic": "hook"})
        yield found


def test_subscribe_publish_and_see_it_arrive(browser: Browser, served: Served) -> None:
    """A subscription is written with its mistake shown, made, and its event arrives on the page."""
    with window(browser, served.address) as page, window(browser, served.address) as now:
        page.goto("/console/new-subscription")
        page.fill("#id", "art-lover")
        page.fill("#filter", "topic = 'art' AND price <")
        page.wait_for_selector("#check mark")
        assert "character 25" in page.inner_text("#check")
        page.fill("#filter", "topic = 'sport' AND prize > 3")
        page.wait_for_selector("#check >> text=did you mean 'price'")
        page.fill("#filter", "topic = 'sport' AND price < 12")
        page.wait_for_selector("#check >> text=2 of the last 7 events")
        page.fill("#filter", "topic = 'art'")
        page.wait_for_selector("#check >> text=0 of the last 7 events")
        page.click("button.primary")
        page.wait_for_selector("h1 >> text=art-lover")
        now.goto("/console/now")
        now.wait_for_selector("[data-live-state] >> text=live")
        with Client(served.address) as client:
            client.publish({"id": "painting", "topic": "art"})
        now.wait_for_selector("[data-live-rows] >> text=painting")
        row = now.locator("[data-live-rows] tr", has_text="painting")
        assert "art-lover" in row.inner_text()
        row.get_by_role("link").first.click()
        now.wait_for_selector("h1 >> text=Event painting")


NOTES = {
    "tag = 'wide'": "tag is an array, and array_contains asks for an element",
    "colour = 'blu' AND n >= 0": "colour = 'blu' holds for none of the events: colour is 'red', 'blue'",
    "n > 90": "n > 90 holds for none of the events: n is 0 to 39",
    "n = 1 AND b = 2": "each of its clauses holds for some of the events, and never all of them for one",
    "n = 'many'": "n is 0, for one, which cannot be compared so",
    "collour = 'red'": "no event has 'collour': did you mean 'colour'?",
}
# What is odd about filters.


def test_filters_are_told_as_the_index_has_them(browser: Browser, tmp_path: Path) -> None:
    """List, page and form say what the running index does with a filter, and why it never matches."""
    with serving(tmp_path) as running, running.client() as client, window(browser, running.address) as page:
        asked = {"own": "a > 3 AND b = 9", **{f"odd{n}": text for n, text in enumerate(NOTES)}}
        asked |= {f"s{n:03}": f"a = {n % 50} AND b = {n % 50}" for n in range(120)}
        client.import_subscriptions({"id": name, "filter": text} for name, text in asked.items())
        more: list[Any] = [{"colour": ("red", "blue")[n % 2], "tag": ["wide"]} for n in range(40)]
        client.publish([{"id": f"e{n}", "a": 1, "b": n, "n": n, **each} for n, each in enumerate(more)])
        wanted = client.explain({"id": "e", "a": 5, "b": 9}, "own")["verdict"]["indexed_by"]
        client.ask("PUT", "/v1/graph/nodes/gate", {})
        page.goto("/console/subscriptions?which=cost")
        page.wait_for_selector("#list >> text=checks an event")
        assert page.locator("tr", has_text="own").locator("td.reason").inner_text() == "b verifies a"
        page.goto("/console/subscriptions/own")
        assert page.locator("dt:has-text('indexed by') + dd").inner_text() == wanted == "b", "not b and a"
        page.goto("/console/new-subscription?node=gate&filter=a+%3E+3")
        page.wait_for_selector("#check >> text=node gate of the graph")
        page.fill("#node", "")
        page.fill("#filter", "a > 3 AND b = 8")
        page.wait_for_selector("#check dd code >> text=/^b$/")
        for n, note in enumerate(NOTES.values()):
            page.goto(f"/console/subscriptions/odd{n}")
            assert note in page.inner_text(".callout.warn")


def test_explain_a_miss(browser: Browser, served: Served) -> None:
    """Why did I not get this: the clause that failed, with the event's value, at a link of its own."""
    with window(browser, served.address) as page:
        page.goto("/console/subscriptions/cheap")
        page.fill("#event", "e4")
        page.click("button >> text=Explain")
        page.wait_for_selector("#why .explanation")
        why = page.inner_text("#why")
        assert "cheap did not get this event" in why
        assert "price = 20" in why
        assert "off by 10" in why
        assert page.url.endswith("/console/events/4?subscription=cheap")
        page.fill("#subscription", "")
        page.fill("#filter", "price BETWEEN 1 AND 30 AND topic = 'news'")
        page.click("button >> text=Explain")
        page.wait_for_selector("#why .badge >> text=held")
        assert page.locator("#why .clauses .badge.bad").count() == 1


def test_delete_and_undo(browser: Browser, served: Served) -> None:
    """A subscription that was deleted comes back as it was."""
    with Client(served.address) as client:
        client.subscribe("gone", "topic = 'x'", consumer="app", score=2.5, metadata={"a": 1})
        before = client.subscription("gone")
    with window(browser, served.address) as page:
        page.goto("/console/subscriptions/gone")
        page.click("button >> text=Delete")
        page.click("#messages button >> text=Undo")
        page.wait_for_selector("#messages >> text=is back")
    with Client(served.address) as client:
        after = client.subscription("gone")
    assert {name: before[name] for name in before if name not in {"revision", "statistics"}} == {
        name: after[name] for name in after if name not in {"revision", "statistics"}
    }


def test_replay_a_dead_letter(browser: Browser, served: Served) -> None:
    """Its row says what became of a dead letter that is replayed: it failed again, and then it did not."""
    fails = threading.Event()
    with window(browser, served.address) as page, answering(fails) as (port, taken):
        page.goto("/console/consumers/hook")
        page.wait_for_selector("text=Dead letters")
        deadline = time.monotonic() + 20
        while not page.locator("td button", has_text="Replay").count():
            assert time.monotonic() < deadline
            page.reload()
        chosen = page.locator("button", has_text="Replay chosen")
        assert chosen.is_disabled()
        page.locator("td input[type=checkbox]").first.check()
        assert chosen.is_enabled()
        page.fill("[name=url]", f"http://127.0.0.1:{port}/hook")
        page.locator("form", has=page.locator("[name=url]")).locator("button.primary").click()
        page.wait_for_selector("#messages .callout")
        fails.set()
        page.locator("td button", has_text="Replay").first.click()
        page.wait_for_selector("#messages .callout.good")
        page.wait_for_selector("#dead-letters td >> text=failed again the answer was 503")
        assert taken.wait(10)
        fails.clear()
        page.reload()
        page.locator("td button", has_text="Replay").first.click()
        page.wait_for_selector("#dead-letters td >> text=/^delivered/")
        assert not page.locator("td button", has_text="Replay").count()


def test_graph_is_drawn_with_an_events_way(browser: Browser, served: Served) -> None:
    """Nodes are drawn; an event's way is marked, and the clause that stopped it stands below."""
    with window(browser, served.address) as page:
        page.goto("/console/graph?event=6")
        page.wait_for_selector(".drawing svg .node")
        assert page.locator(".drawing svg .node").count() == 3
        assert page.locator(".drawing svg .node.good").count() == 1
        assert page.locator(".drawing svg .node.bad").count() == 1
        assert "hour > 20" in page.inner_text("#content")
        assert "hour = 8" in page.inner_text("#content")
        page.click("text=Follow the newest event, live")
        page.wait_for_selector("[data-live-state] >> text=live")
        with Client(served.address) as client:
            client.publish({"id": "stops", "source": "press", "topic": "art", "hour": 22, "price": 1})
        page.wait_for_selector('#way-details >> text=topic = "art"')
        stopped = page.locator(".drawing .node.bad")
        assert (stopped.get_attribute("aria-label") or "").startswith("papers, 1 subscription")
        page.click("[data-hold]")
        page.locator(".drawing .node").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/graph/nodes/*")
        page.fill("#filter", "topic = ")
        page.wait_for_selector("#check mark")


def test_what_if_is_tried_and_applied(browser: Browser, served: Served) -> None:
    """A changed filter is tried over the events that are kept, compared, applied, and undone."""
    with Client(served.address) as client:
        client.subscribe("tried", "price < 10 AND topic = 'sport'", consumer="app")
    with window(browser, served.address) as page:
        page.goto("/console/what-if?subscription=tried")
        page.fill("#filter", "price < 22 AND topic = 'sport'")
        page.click("button >> text=Add to the draft")
        page.click("button >> text=Run it")
        page.wait_for_selector("#result-title")
        row = page.locator("#result tr", has_text="tried").first.inner_text()
        assert [each.strip() for each in row.split("\t")[:6]][2:] == ["1", "4", "+3", "0"]
        page.click("button >> text=Apply the draft")
        page.wait_for_selector("#messages .callout.good")
        with Client(served.address) as client:
            assert client.subscription("tried")["filter"] == "price < 22 AND topic = 'sport'"
        page.click("#messages button >> text=Undo")
        page.wait_for_selector("#messages >> text=is back")
        with Client(served.address) as client:
            assert client.subscription("tried")["filter"] == "price < 10 AND topic = 'sport'"


def test_two_tenants_in_two_windows(browser: Browser, tmp_path: Path) -> None:
    """Signing in with a wrong key is refused in words; two tenants see their own, live."""
    keys = Keys(tmp_path)
    one, two = (keys.add(name, ["admin"])[1] for name in ("one", "two"))
    keys.close()
    (tmp_path / "format").write_text("headgate service data, format 1\n")
    with (
        serving(tmp_path) as served,
        window(browser, served.address) as first,
        window(browser, served.address) as second,
    ):
        for page, key in ((first, one), (second, two)):
            page.goto("/console/now")
            page.fill("#key", key[:-1])
            page.click("button.primary")
            page.wait_for_selector("#refused >> text=the key is not known here")
            assert violations(page) == []
            page.fill("#key", key)
            page.click("button.primary")
            page.wait_for_selector("[data-live-state] >> text=live")
            assert key not in page.content()
            assert key not in page.url
        with Client(served.address, key=one) as client:
            client.publish({"id": "for one", "n": 1})
        first.wait_for_selector("[data-live-rows] >> text=for one")
        second.goto("/console/events")
        assert "for one" not in second.inner_text("body")
        second.click("button >> text=Sign out")
        second.wait_for_selector("#key")
        second.goto("/console/events")
        second.wait_for_selector("#key")
        assert not second.evaluate("document.cookie")


def test_search_and_keyboard(browser: Browser, served: Served) -> None:
    """The list answers while one types, however slow answers are; rows and pages are reached by keys."""
    slow = "(...all) => new Promise(go => setTimeout(go, 700)).then(() => ask(...all))"
    with window(browser, served.address) as page:
        page.add_init_script(f"const ask = fetch; fetch = {slow}")
        page.goto("/console/now")
        page.keyboard.press("g")
        page.keyboard.press("s")
        page.wait_for_url("**/console/subscriptions")
        page.keyboard.press("/")
        page.keyboard.type("chea", delay=400)
        page.wait_for_selector("#list tbody tr:only-child")
        page.keyboard.press("Escape")
        page.locator("#search").blur()
        page.keyboard.press("j")
        page.keyboard.press("Enter")
        page.wait_for_url("**/console/subscriptions/cheap")
        page.keyboard.press("?")
        assert page.locator("#keys").is_visible()
        page.keyboard.press("Escape")
        assert not page.locator("#keys").is_visible()
        page.keyboard.press("g")
        page.keyboard.press("e")
        page.wait_for_url("**/console/events")


def test_odd_texts_are_text(browser: Browser, served: Served) -> None:
    """What people write is shown as they wrote it, and never run."""
    with Client(served.address) as client:
        for number, odd in enumerate(ODD):
            name = f"odd {number} " + odd.replace("/", "").replace("?", "").replace("#", "").replace("%", "")
            client.ask(
                "POST",
                "/v1/subscriptions",
                {"id": name, "filter": "odd = '" + odd.replace("'", "\\'") + "'", "metadata": {odd: odd}},
            )
            client.publish({"id": odd, "odd": odd, odd: odd})
    with window(browser, served.address) as page:
        for path in ("/console/subscriptions", "/console/events", "/console/now"):
            page.goto(path)
            for odd in ODD:
                shown = odd.replace("'", "\\'") if path.endswith("subscriptions") else odd
                assert shown in page.inner_text("#content"), (path, odd)
            assert page.locator("#content img[src=x]").count() == 0
            assert page.title().endswith("Headgate")
        last = served.running.server.tenants["default"].position
        for back in range(len(ODD)):
            page.goto(f"/console/events/{last - back}")
            assert ODD[len(ODD) - 1 - back] in page.inner_text("h1")
            assert page.title().endswith("Headgate")
        for odd in ODD:
            page.goto("/console/events?find=x")
            page.fill("#find", odd)
            page.fill("#subscription", odd)
            page.press("#find", "Enter")
            page.wait_for_selector("#content >> text=there is no subscription")
            assert odd in page.inner_text("#content")
            assert page.locator("#content img[src=x]").count() == 0


@pytest.mark.parametrize("seconds", [3, pytest.param(60, marks=pytest.mark.nightly)])
def test_page_does_not_grow(browser: Browser, served: Served, seconds: int) -> None:
    """10,000 events a minute and more: the page shows the last ones, and has no more elements than before."""
    with window(browser, served.address) as page, Client(served.address) as client:
        page.goto("/console/now")
        page.wait_for_selector("[data-live-state] >> text=live")
        sizes = []
        for second in range(seconds):
            for part in range(4):
                client.publish([{"id": f"{second} {part} {n}", "topic": "sport"} for n in range(50)])
                page.wait_for_timeout(250)
            sizes.append(page.evaluate("document.querySelectorAll('*').length"))
        newest = f"{seconds - 1} 3 49"
        page.wait_for_selector(f"[data-live-rows] tr >> text={newest}")
        rows = page.locator("[data-live-rows] tr")
        assert rows.count() == 30
        assert newest in rows.first.inner_text()
        assert max(sizes[1:]) - min(sizes[1:]) < 400, sizes


def test_pages_are_accessible(browser: Browser, served: Served) -> None:
    """axe-core finds nothing wrong, in both themes; and no page is wider than a phone."""
    wrong = []
    with window(browser, served.address, viewport={"width": 390, "height": 844}) as page:
        for path in PATHS:
            page.emulate_media(color_scheme="light")
            page.goto(path)
            _settle(page)
            wrong += violations(page)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width <= 390, (path, width)
            # Nothing but colours is another in the dark.
            page.emulate_media(color_scheme="dark")
            wrong += violations(page, "color-contrast")
    assert not wrong, "\n".join(wrong)


def _settle(page: Page) -> None:
    """Wait until parts that are loaded later are there."""
    page.wait_for_selector(".htmx-request", state="detached")
