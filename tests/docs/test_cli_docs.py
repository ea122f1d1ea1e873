"""The page on the command line names every command and option, and every command's help has an example."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from headgate import cli
from headgate.cli import cli as tree
from tests.docs.fences import ROOT
from tests.docs.tables import replaced, tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = (ROOT / "docs" / "cli.md").read_text("utf-8")


def walk(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """List a command and those below it, by the words that call them."""
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None, name
            yield from walk(child, f"{path} {name}")


EVERYTHING = dict(walk(tree, "headgate"))
COMMANDS = {path: command for path, command in EVERYTHING.items() if not isinstance(command, click.Group)}


def section(path: str) -> str:
    """Return the part of the page below a command's heading."""
    parts = re.split(r"^#{2,3} +`([^`]+)`.*$", PAGE, flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert path in found, f"docs/cli.md has no heading for {path}"
    return str(found[path])


def test_commands_are_those_documented() -> None:
    headings = re.findall(r"^#{2,3} +`(headgate[^`]*)`", PAGE, re.MULTILINE)
    assert {*headings} == {*EVERYTHING} - {"headgate"} - {
        path for path, command in EVERYTHING.items() if isinstance(command, click.Group)
    }


@pytest.mark.parametrize("path", COMMANDS)
def test_options_are_documented(path: str) -> None:
    text = section(path)
    shared = PAGE.partition("## Options of every command on Spark")[2]
    for option in COMMANDS[path].params:
        if isinstance(option, click.Argument):
            assert f"`{option.human_readable_name}`" in text, f"{path} {option.name} is not in docs/cli.md"
            continue
        for name in option.opts:
            documented = f"`{name}" in text or (
                f"`{name}" in shared and "options of every command on Spark" in text
            )
            assert documented, f"{path} {name} is not in docs/cli.md"


@pytest.mark.parametrize("path", COMMANDS)
def test_no_option_is_invented(path: str) -> None:
    real = {name for option in COMMANDS[path].params for name in option.opts} | {"--help", "-h"}
    for row in re.findall(r"^\| `(--?[\w-]+)", section(path), re.MULTILINE):
        assert row in real, f"{path} has no {row}"


@pytest.mark.parametrize("path", COMMANDS)
def test_help_has_an_example(path: str) -> None:
    shown = CliRunner().invoke(tree, [*path.split()[1:], "--help"], prog_name="headgate")
    assert shown.exit_code == 0
    assert "Example" in shown.output
    assert f"{path} " in shown.output.partition("Example")[2]


def test_exit_codes_are_documented() -> None:
    codes = re.findall(r"\b(\d+) (?:done|refused|wrong|interrupted)", cli.__doc__ or "")
    assert {*codes} == {"0", "1", "2", "3", "130"}
    for code in codes:
        assert re.search(rf"^\| {code} \|", PAGE, re.MULTILINE), f"exit code {code} is not in docs/cli.md"


@pytest.mark.parametrize(("place", "rows"), tables().items(), ids=lambda each: str(each[1])[:40])
def test_the_tables_of_settings_are_those_of_the_fields(place: tuple[Path, str], rows: list[str]) -> None:
    """If it fails, `./dev docs` writes them anew."""
    page, heading = place
    text = page.read_text("utf-8")
    assert replaced(text, heading, rows) == text


_CALLED = re.compile(r"(?:^|[`>$\s(|\"'])headgate((?: +[a-z][a-z-]*)+)([^`\n|;&<]*)", re.MULTILINE)


def called(text: str) -> Iterator[tuple[str, click.Command, list[str]]]:
    """Find what is called by name in a text: the words, the command, and the options that it is given."""
    joined = text.replace("\\\n", " ")
    for match in _CALLED.finditer(joined):
        path, rest = "headgate", match[1].split()
        while rest and f"{path} {rest[0]}" in EVERYTHING:
            path = f"{path} {rest.pop(0)}"
        if path != "headgate":
            # Behind a comma the sentence goes on.
            options = re.findall(r"(?<![\w-])--[a-z][a-z-]*", match[2] if match[2][:1] == " " else "")
            yield match[0].strip(), EVERYTHING[path], options


PRINTED = [
    path
    for top, ending in (
        ("docs", "md"),
        ("examples", "md"),
        ("src", "py"),
        ("src", "j2"),
        ("tests/docs", "md"),
    )
    for path in sorted((ROOT / top).rglob(f"*.{ending}"))
] + [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "ARCHITECTURE.md"]


def test_commands_that_are_printed_are_there() -> None:
    """Each command in pages, messages and docs has the options that it is shown with."""
    seen = 0
    for path in PRINTED:
        for text, command, options in called(path.read_text("utf-8")):
            seen += 1
            known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)} | {
                "--help"
            }
            assert {*options} <= known, (path.relative_to(ROOT), text)
    assert seen > 300
