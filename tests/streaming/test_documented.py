"""The page about streams has a row for every setting, and the command has an option for it."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields
from pathlib import Path

from headgate.cli.running import stream
from headgate.spark.stream.rows import KINDS
from headgate.spark.stream.settings import StreamSettings

PAGE = Path(__file__).parents[2] / "docs" / "streaming.md"
SAID = {"format": "files", "content_type": "format", "factors": "factor", "options": "option"}
"""Settings whose option has another name."""


def _default(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def test_settings_are_documented() -> None:
    """Each has its row, and there are no others."""
    text = PAGE.read_text("utf-8").partition("## Settings")[2]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| .+ \|$", text, re.MULTILINE))
    wanted = {}
    for each in fields(StreamSettings):
        if each.default is not MISSING:
            wanted[each.name] = _default(each.default)
        else:
            wanted[each.name] = "required" if each.default_factory is MISSING else "none"
    assert rows == wanted


def test_settings_are_options() -> None:
    """Each can be given on the command line."""
    options = {name for each in stream.params for name in each.opts}
    for each in fields(StreamSettings):
        assert f"--{SAID.get(each.name, each.name).replace('_', '-')}" in options


def test_kinds_are_documented() -> None:
    """Each kind of dead letter has its row."""
    text = PAGE.read_text("utf-8")
    for kind in KINDS:
        assert f"| `{kind}` |" in text
