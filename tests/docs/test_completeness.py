"""What exists is written down: modules in the map, dependencies with their reason."""

from __future__ import annotations

import re
import tomllib

import pytest

from tests.docs.fences import ROOT

MAP = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.mark.parametrize(
    "room",
    [
        "core",
        "core/jit",
        "records",
        "rdf",
        "xml",
        "graph",
        "ranking",
        "plan",
        "spark",
        "spark/streaming",
        "spark/nats",
        "pipeline",
    ],
)
def test_every_module_is_on_the_map(room: str) -> None:
    part = MAP.partition(f"### {room}\n")[2].partition("\n### ")[0].partition("\n## ")[0]
    listed = {*re.findall(r"^\| `(\w+)\.py` \|", part, re.MULTILINE)}
    real = {path.stem for path in (ROOT / "src" / "headgate" / room).glob("*.py")} - {"__init__"}
    assert listed == real


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text("utf-8")
    groups = [
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    named = {re.split(r"[\[<>=~! ;]", entry)[0] for group in groups for entry in group}
    listed = {*re.findall(r"^\| `([\w.-]+)", text, re.MULTILINE)}
    assert listed == named


def test_the_version_is_in_the_changelog() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{PROJECT['project']['version']}]" in changes
