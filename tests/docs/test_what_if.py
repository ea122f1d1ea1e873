"""The page on changed subscriptions is run as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.docs.fences import ROOT, agrees, commands, fences
from tests.docs.test_tutorial import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.nightly
@pytest.mark.spark
def test_the_page_runs(tmp_path: Path) -> None:
    for fence in fences(ROOT / "docs" / "what-if.md"):
        for command in commands(fence.body) if fence.language == "console" else ():
            real = run(command, tmp_path)
            assert agrees(command.shown, real), f"{command.text}\n" + "\n".join(real)
