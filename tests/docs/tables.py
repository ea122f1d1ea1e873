"""The tables of settings in the docs, written from the fields: `./dev docs` writes them anew."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from headgate.cli import cli
from headgate.cli.options import option_rows
from headgate.core.settings import file_rows, setting_of, settings_of
from headgate.pipeline.file.settings import TABLES
from headgate.tables.settings import Backtest, WhatIf, Where
from tests.docs.fences import ROOT

if TYPE_CHECKING:
    from pathlib import Path

CLI, PIPELINE = ROOT / "docs" / "cli.md", ROOT / "docs" / "pipeline.md"
SHARED = ("master", "conf", "quiet", "as_json")
"""Parameters of every command on Spark, which have a table of their own."""
COMMANDS = ("compile", "match", "stream", "plan", "run", "serve")
WORKLOADS = ("records", "exchange", "social", "ranking", "rdf", "xmark")


def command(name: str) -> click.Command:
    """Return a command of headgate."""
    found = cli.get_command(click.Context(cli), name)
    assert found is not None, name
    return found


def tables() -> dict[tuple[Path, str], list[str]]:
    """Return what is to stand in the docs, by the page and the heading above it."""
    found = {}
    for name, table in TABLES.items():
        found[PIPELINE, f"### `[[{name}]]`" if table.many else f"### `[{name}]`"] = file_rows(table.settings)
    generate = command("generate")
    assert hasattr(generate, "commands")
    commands: dict[str, click.Command] = {name: command(name) for name in COMMANDS}
    commands |= {f"generate {name}": generate.commands[name] for name in WORKLOADS}
    for name, each_command in commands.items():
        own = [each for each in each_command.params if each.name not in SHARED]
        found[CLI, f"## `headgate {name}`"] = option_rows(own)
    engine = setting_of(Where, "engine")
    found[CLI, "### One filter"] = option_rows([*settings_of(Backtest), engine])
    found[CLI, "### A set of changes"] = option_rows([*settings_of(WhatIf), engine])
    shared = [each for each in command("match").params if each.name in SHARED]
    found[CLI, "## Options of every command on Spark"] = option_rows(shared)
    return found


def replaced(text: str, heading: str, rows: list[str]) -> str:
    """Put a table in place of the one below a heading."""
    before, found, after = text.partition(f"\n{heading}\n")
    assert found, f"there is no heading {heading}"
    own, rest = re.split(r"(?=\n##)", after, maxsplit=1) if "\n##" in after else (after, "")
    table = r"\| (?:option \| meaning|setting \| value \| default \| meaning) \|\n(?:\|.*(?:\n|\Z))+"
    made, times = re.subn(table, lambda _: "\n".join(rows) + "\n", own, count=1)
    assert times, f"there is no table below {heading}"
    return before + found + made + rest


def main() -> None:
    """Write all tables anew."""
    for (page, heading), rows in tables().items():
        page.write_text(replaced(page.read_text("utf-8"), heading, rows), "utf-8")


if __name__ == "__main__":
    main()
