"""The page on pipelines: every setting is there with its default, and none is that does not exist."""

from __future__ import annotations

import re

import pytest

from headgate.pipeline.file.read import read_pipeline
from headgate.pipeline.file.settings import SETTINGS, TABLES
from headgate.pipeline.file.streams import stream_settings
from headgate.pipeline.run.plan import KINDS
from tests.docs.fences import ROOT, agrees, commands, fences
from tests.pipeline.pipelines import EXAMPLES

PAGE = ROOT / "docs" / "pipeline.md"
EVERYTHING = (*SETTINGS, *stream_settings())


def documented() -> dict[str, tuple[str, str, str]]:
    """Return the rows of the tables of settings, by `table.name`."""
    parts = re.split(r"^### `\[+(\w+)\]+`$", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    rows = {}
    for table, text in zip(parts[1::2], parts[2::2], strict=True):
        for name, value, default, words in re.findall(
            r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", text, re.MULTILINE
        ):
            rows[f"{table}.{name}"] = (value, default, words)
    return rows


def test_every_setting_is_documented_and_none_is_invented() -> None:
    assert documented() == {
        f"{each.table}.{each.name}": (each.value_text, each.default_text, each.words) for each in EVERYTHING
    }


def test_every_table_has_its_heading_as_it_is_written() -> None:
    text = PAGE.read_text("utf-8")
    for name, shape in TABLES.items():
        assert (f"### `[[{name}]]`" if shape.many else f"### `[{name}]`") in text


def test_every_step_is_documented() -> None:
    text = PAGE.read_text("utf-8")
    for kind in KINDS:
        assert re.search(rf"^\| `{kind}(\.NAME)?` \|", text, re.MULTILINE), kind


def test_the_file_on_the_page_is_the_example() -> None:
    (shown,) = (fence.body for fence in fences(PAGE) if fence.language == "toml")
    assert shown == (EXAMPLES / "shop.toml").read_text("utf-8")


@pytest.mark.usefixtures("spark")
def test_what_is_printed_is_what_is_shown(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import shutil

    from tests.cli.running import Command

    folder = tmp_path_factory.mktemp("page")
    shutil.copytree(EXAMPLES, folder, dirs_exist_ok=True)
    monkeypatch.chdir(folder)
    run = Command(monkeypatch, capsys)
    for fence in fences(PAGE):
        for command in commands(fence.body) if fence.language == "console" else ():
            if command.text.startswith("cat "):
                (folder / command.text[4:]).write_text("\n".join(command.shown), "utf-8")
                continue
            ran = run(*command.text.split()[1:])
            assert agrees(command.shown, (ran.out + ran.err).splitlines()), ran.out + ran.err


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_every_example_is_read_and_linked(file: object) -> None:
    from pathlib import Path

    assert isinstance(file, Path)
    assert read_pipeline(file).about.name
    assert file.name in PAGE.read_text("utf-8")
