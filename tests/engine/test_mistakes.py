"""What is said about typical mistakes: the table in mistakes.txt, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.engine.mistakes import TABLE, attempt, make_world, mistakes

if TYPE_CHECKING:
    from pathlib import Path

    from tests.engine.mistakes import Mistake

MISTAKES = mistakes(TABLE.read_text("utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder for all rows."""
    return tmp_path_factory.mktemp("mistakes")


@pytest.fixture(scope="module")
def world(folder: Path) -> dict[str, Any]:
    """Fill it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        return make_world(folder)


@pytest.fixture(autouse=True)
def here(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in it; no row may start Spark."""
    from headgate.spark.session import session

    monkeypatch.chdir(folder)
    monkeypatch.setattr(session, "open_session", lambda *_, **__: pytest.fail("Spark would have started"))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.typed)
def test_what_is_said(mistake: Mistake, world: dict[str, Any], folder: Path) -> None:
    """Exactly that. If it is better now, `python -m tests.engine.mistakes` writes it down."""
    assert attempt(mistake.typed, world).replace(str(folder), "FOLDER") == mistake.said


def test_there_are_a_hundred() -> None:
    """Each once, and each refused in one line."""
    assert len({mistake.typed for mistake in MISTAKES}) == len(MISTAKES) >= 100
    assert not [mistake for mistake in MISTAKES if mistake.said.startswith("no error")]
