"""What tests of local jobs share."""

from __future__ import annotations

import pytest

from tests.cli.running import Command


@pytest.fixture
def headgate(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run commands in this process."""
    return Command(monkeypatch, capsys)
