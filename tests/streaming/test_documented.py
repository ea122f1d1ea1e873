"""The page about streams."""

from __future__ import annotations

from pathlib import Path

from headgate.stream.rows import KINDS

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"


def test_kinds_are_documented() -> None:
    """Each kind of dead letter has its row."""
    text = PAGE.read_text("utf-8")
    for kind in KINDS:
        assert f"| `{kind}` |" in text
