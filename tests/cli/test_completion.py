"""Shells complete commands, options, values and names of files, by what the command prints for them."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from click.shell_completion import BashComplete

from headgate.cli import cli
from tests.cli.running import HEADGATE
from tests.docs.fences import ROOT


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_installed_command_prints_the_script(shell: str) -> None:
    """As the page says; and bash can read its own."""
    page = (ROOT / "docs" / "cli.md").read_text("utf-8")
    assert re.search(rf"\| {shell}\b.*`_HEADGATE_COMPLETE={shell}_source headgate > ", page)
    environment = {**os.environ, "_HEADGATE_COMPLETE": f"{shell}_source"}
    ran = subprocess.run([HEADGATE], env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert f"_HEADGATE_COMPLETE={shell}_complete" in ran.stdout
    if shell == "bash":
        read = subprocess.run(["bash", "-n"], input=ran.stdout, capture_output=True, text=True, check=False)
        assert (read.returncode, read.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "begun", "wanted"),
    [
        ([], "val", ["plain validate"]),
        ([], "snap", ["plain snapshot"]),
        (["snapshot"], "", ["plain info", "plain prune"]),
        (["match"], "--ev", ["plain --events"]),
        (["compile", "--dialect"], "x", ["plain xpath"]),
        (["compile", "--shard-by"], "t", ["plain tenant"]),
        (["match", "--mode"], "", ["plain exact", "plain relaxed"]),
        (["match", "--events"], "ev", ["file ev"]),
        (["match", "--snapshot"], "s", ["dir s"]),
        (["validate"], "subs", ["file subs"]),
        (["explain", "--event"], "e", ["file e"]),
    ],
)
def test_what_is_completed(words: list[str], begun: str, wanted: list[str]) -> None:
    found = BashComplete(cli, {}, "headgate", "_HEADGATE_COMPLETE").get_completions(words, begun)
    assert [f"{each.type} {each.value}" for each in found] == wanted
