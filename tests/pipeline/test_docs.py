"""The page on pipelines: its steps, its example, and what is printed."""

from __future__ import annotations

import re

import pytest

from headgate.pipeline.file.read import read_pipeline
from headgate.pipeline.run.plan import KINDS
from tests.docs.fences import ROOT, agrees, commands, fences
from tests.pipeline.pipelines import EXAMPLES

PAGE = ROOT / "docs" / "pipeline.md"


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
