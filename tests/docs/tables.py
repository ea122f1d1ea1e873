"""The tables of settings in the docs, written from the fields: `./dev docs` writes them anew."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from headgate.cli import cli
from headgate.cli.options import REPEATED, metavar
from headgate.core.settings import AUTO, UNITS, SettingKind, settings_of, write_seconds
from headgate.pipeline.file.settings import TABLES
from headgate.tables.settings import Backtest, WhatIf, Where
from tests.docs.fences import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from typing import Any

    from headgate.core.settings import Setting

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
    (engine,) = (each for each in settings_of(Where) if each.name == "engine")
    found[CLI, "### One filter"] = option_rows([*settings_of(Backtest), engine])
    found[CLI, "### A set of changes"] = option_rows([*settings_of(WhatIf), engine])
    shared = [each for each in command("match").params if each.name in SHARED]
    found[CLI, "## Options of every command on Spark"] = option_rows(shared)
    return found


def option_rows(settings: Iterable[Setting | click.Parameter]) -> list[str]:
    """Write the table of the docs for settings, and for options of a command; those of every command not."""
    rows = ["| option | meaning |", "|---|---|"]
    for each in settings:
        found = getattr(each, "setting", each)
        if not isinstance(found, click.Parameter):
            rows.append(_row(found))
        elif isinstance(found, click.Option) and not found.hidden:
            words = (found.help or "").removesuffix(".")
            last = f" {found.metavar}" if found.metavar else ""
            needed = "; required" if found.required else ""
            rows.append(f"| `{found.opts[0]}{last}` | {words[:1].lower()}{words[1:]}{needed} |")
    return rows


def _row(setting: Setting) -> str:
    written = setting.flag
    if setting.kind is SettingKind.FLAG and setting.default is not False:
        written = f"{setting.flag}`, `--no-{setting.flag.removeprefix('--')}"
    elif setting.kind is not SettingKind.FLAG:
        written += f" {metavar(setting) or setting.metavar or setting.flag.rpartition('-')[2].upper()}"
    parts = [setting.help]
    if setting.choices:
        *most, last = (f"`{choice}`" for choice in setting.choices)
        parts[0] += f": {', '.join(most)} or {last}" if most else f": {last}"
    if setting.needs:
        needed, _, value = setting.needs.partition("=")
        parts.append(f"goes with `--{needed}{f' {value}' if value else ''}`")
    if setting.kind in REPEATED:
        parts.append("may be repeated")
    if setting.required:
        parts.append("required")
    elif setting.shown:
        parts.append(f"by default {setting.shown}")
    elif setting.kind is not SettingKind.FLAG and setting.default not in (None, (), {}):
        parts.append(f"by default {_written(setting)}")
    meaning = "; ".join(parts)
    return f"| `{written}` | {meaning}{f'. {setting.more}' if setting.more else ''} |"


def _written(setting: Setting) -> str:
    """Write a default as it is given."""
    default = setting.default
    if setting.kind is SettingKind.SECONDS:
        return write_seconds(default)
    if isinstance(default, tuple):
        return " ".join(map(str, default))
    return f"`{default}`" if isinstance(default, str) else f"{default:,}".removesuffix(".0")


def file_rows(settings: Iterable[Setting]) -> list[str]:
    """Write the table of the docs for a table of a file."""
    rows = ["| setting | value | default | meaning |", "|---|---|---|---|"]
    for each in settings:
        about = ", ".join(f"`{name}`" for name in each.only)
        meaning = f"{about}: {each.help}" if about else each.help
        rows.append(f"| `{each.where}` | {_value(each)} | {_default(each)} | {meaning} |")
    return rows


def _value(setting: Setting) -> str:
    """Write what a setting may be."""
    if setting.choices:
        return " or ".join(f'`"{choice}"`' for choice in setting.choices)
    if setting.least is None or setting.kind is SettingKind.SECONDS:
        return setting.kind.value
    upto = " or more" if setting.most is None else f" to {setting.most:,}"
    if setting.kind is SettingKind.COUNT:
        return f'{SettingKind.WHOLE.value}, {setting.least:,}{upto}, or `"{AUTO}"`'
    return f"{setting.kind.value}, {setting.least:,}{upto}"


def _default(setting: Setting) -> str:
    """Write what a setting is if nothing is said."""
    if setting.required:
        return "required"
    if setting.shown:
        chosen = setting.shown.strip("`")
        return f'`"{chosen}"`' if chosen in setting.choices else setting.shown
    if setting.kind is SettingKind.SECONDS and setting.default is not None and setting.default >= UNITS["m"]:
        return f'`"{write_seconds(setting.default)}"`'
    return "none" if setting.default in (None, (), {}) else f"`{_toml(setting.default)}`"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return f'"{value}"' if isinstance(value, str) else str(value)


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
