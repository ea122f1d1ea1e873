"""A real browser for tests: Chromium, where it is installed."""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

PLACE = os.environ.get("HEADGATE_BROWSER") or shutil.which("chromium")
_ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def started() -> Iterator[Browser]:
    """Start the browser, and end it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PLACE, args=_ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def window(browser: Browser, address: str, **settings: Any) -> Iterator[Page]:
    """Open a window with cookies of its own; what goes wrong in its scripts fails the test."""
    context = browser.new_context(base_url=address, **settings)
    context.set_default_timeout(10_000)
    page = context.new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    # What a page could not load was refused, which the test itself expects or does not.
    page.on(
        "console",
        lambda said: (
            wrong.append(said.text)
            if said.type == "error" and "Failed to load resource" not in said.text
            else None
        ),
    )
    try:
        yield page
        assert not wrong, wrong
    finally:
        context.close()


def violations(page: Page, *rules: str) -> list[str]:
    """Say what axe-core finds wrong with a page, by all of its rules or some."""
    from axe_playwright_python.sync_playwright import Axe

    options = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found = Axe().run(page, options=options).response["violations"]
    return [
        f"{page.url}: {each['id']}: {each['help']}: {node['html'][:200]}"
        for each in found
        for node in each["nodes"][:2]
    ]
