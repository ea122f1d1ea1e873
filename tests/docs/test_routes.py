"""The list of routes is what the operations say."""

from __future__ import annotations

from tests.docs.routes import PAGE, written


def test_the_list_of_routes_is_written_again() -> None:
    text = PAGE.read_text("utf-8")
    assert written(text) == text, "run python -m tests.docs.routes"
