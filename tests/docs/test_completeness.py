"""What exists is written down: rooms on the map, dependencies with their reason."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pkgutil import iter_modules

import pytest

from tests.docs.fences import ROOT
from tests.house.budget import MOST_CODE, SLACK
from tests.house.size import COUNTED, code_of, files_here, measure

MAP = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


PACKAGE = ROOT / "src" / "headgate"
ROOMS = [folder for folder in (PACKAGE, *PACKAGE.rglob("*")) if (folder / "__init__.py").is_file()]
MOST_LINES = 250
MOST_MODULES = 22
"""In one folder: about 20."""


def test_the_map_is_short_and_names_every_room() -> None:
    assert MAP.count("\n") <= MOST_LINES
    drawing = MAP.partition("```text\nsrc/headgate/\n")[2].partition("```")[0]
    drawn: set[str] = set()
    above = ""
    for line in drawing.partition("tests/")[0].splitlines():
        named = re.findall(r"([\w/]+)/(?= |$)", re.split(r"\s{3,}", line.strip())[0])
        above = named[0] if len(line) - len(line.lstrip()) == 2 and named else above
        inside = len(line) - len(line.lstrip()) > 2
        drawn |= {f"{above}/{name}" if inside else name for name in named}
    assert drawn == {str(room.relative_to(PACKAGE)) for room in ROOMS} - {"."}


PAGES = [
    *(ROOT / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md")),
    *ROOT.glob("docs/**/*.md"),
]
_FOLDERS = "|".join(
    ("src", "tests", "benchmarks", "examples", *(room.name for room in ROOMS if room.parent == PACKAGE))
)
_MODULE = re.compile(rf"`((?:[\w-]+/)*\w+\.py|(?:{_FOLDERS})/[a-z_/]+|headgate(?:\.[a-z_]+)+)`")
FILES = [
    f"/{file.relative_to(ROOT)}"
    for folder in ("src", "tests", "benchmarks", "examples", "docs")
    for file in (ROOT / folder).rglob("*.py")
]


def test_what_pages_name_is_there() -> None:
    """Modules and folders, by path or by import."""
    named = {(page.name, found) for page in PAGES for found in _MODULE.findall(page.read_text("utf-8"))}
    assert len(named) > 100
    assert sorted(each for each in named if not _is_there(each[1])) == []


def _is_there(name: str) -> bool:
    if name.endswith(".py"):
        # A page about a room may leave that out.
        return any(file.endswith(f"/{name}") for file in FILES)
    if name.startswith("headgate."):
        # The last part may be a name in a module.
        return any(_is_there(path.replace(".", "/")) for path in (name, name.rpartition(".")[0]))
    places = (folder / name for folder in (PACKAGE, ROOT, ROOT / "src"))
    return any(place.exists() or place.with_suffix(".py").is_file() for place in places)


def test_no_room_is_too_large() -> None:
    sizes = {str(room.relative_to(PACKAGE)): len([*room.glob("*.py")]) - 1 for room in ROOMS}
    assert {room: size for room, size in sizes.items() if size > MOST_MODULES} == {}


@pytest.mark.parametrize("folder", COUNTED)
def test_code_stays_within_its_budget(folder: str) -> None:
    count, limit = code_of(files_here(folder)), MOST_CODE[folder]
    file = "tests/house/budget.py"
    assert count <= limit, (
        f"{folder} has {count:,} lines of code, and its limit in {file} is {limit:,}: take something out; a "
        "higher one takes a decision that says what it pays for (docs/decisions/0029-a-budget-of-code.md)"
    )
    assert limit <= count * (1 + SLACK), (
        f"{folder} has {count:,} lines of code: set its limit in {file} to that"
    )


@pytest.mark.parametrize("package", ["headgate", "headgate.spark"])
def test_public_names_are_loaded_from_where_they_are(package: str) -> None:
    """Every name is there, and no module of its name takes its place once that is imported."""
    public = import_module(package)
    assert not {module.name for module in iter_modules(public.__path__)} & {*public.__all__}
    assert all(callable(getattr(public, name)) for name in public.__all__ if not name.isupper())


def test_contents_are_told_apart_by_their_kinds_only() -> None:
    assert measure({"spark/x.py": "if room in {RDF, 'xml'}: pass"}).comparisons == 1
    assert measure(files_here()).comparisons == 0


def test_every_module_says_what_it_is() -> None:
    silent = [
        path for path in PACKAGE.rglob("*.py") if not path.read_text("utf-8").lstrip("r").startswith('"""')
    ]
    assert silent == []


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "docs" / "decisions" / "0001-dependencies.md").read_text("utf-8")
    groups = [
        PROJECT["project"]["dependencies"],
        *PROJECT["project"]["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    named = {re.split(r"[\[<>=~! ;]", entry)[0] for group in groups for entry in group} - {"headgate"}
    listed = {*re.findall(r"^\| `([\w.-]+)", text, re.MULTILINE)}
    assert listed == named


def test_the_version_is_in_the_changelog() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{PROJECT['project']['version']}]" in changes
