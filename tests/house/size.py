"""How large the house is: modules, lines, folders, and comparisons with names of contents, by revision.

python -m tests.house.size 8e2ad5d HEAD        prints the table of docs/benchmarks/house.md
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SOURCE = "src/headgate"
COUNTED = ("src", "tests", "benchmarks")
"""Where lines of code are counted."""
KINDS = ("records", "rdf", "xml", "papers")
"""Rooms that may tell contents apart by name."""
MEDIA_TYPES = "core/event.py"
"""There XML is a media type."""
SMALL = 100
"""A module below so many lines is a small one."""


class Size(NamedTuple):
    """What is counted; `__init__` is no module."""

    modules: int
    small: int
    lines: int
    folders: int
    largest: int
    comparisons: int


def measure(files: dict[str, str]) -> Size:
    """Count the files of a package, given by path and text.

    >>> measure({"core/a.py": "x = 1", "core/__init__.py": "", "spark/b.py": "if kind == RDF: pass"})
    Size(modules=2, small=2, lines=2, folders=2, largest=1, comparisons=1)
    """
    modules = {path: text for path, text in files.items() if PurePosixPath(path).name != "__init__.py"}
    lines = {path: len(text.splitlines()) for path, text in files.items()}
    folders = Counter(str(PurePosixPath(path).parent) for path in modules)
    outside = [
        text
        for path, text in modules.items()
        if PurePosixPath(path).parts[0] not in KINDS and path != MEDIA_TYPES
    ]
    return Size(
        modules=len(modules),
        small=sum(lines[path] < SMALL for path in modules),
        lines=sum(lines.values()),
        folders=len(folders),
        largest=max(folders.values()),
        comparisons=sum(map(_comparisons, outside)),
    )


def _comparisons(text: str) -> int:
    found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Compare)]
    return sum(any(map(_names_content, (node.left, *node.comparators))) for node in found)


def _names_content(node: ast.expr) -> bool:
    if isinstance(node, ast.Set | ast.Tuple | ast.List):
        return any(map(_names_content, node.elts))
    if isinstance(node, ast.Constant):
        return node.value in KINDS[:3]
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name in {kind.upper() for kind in KINDS[:3]}


def lines_of_code(text: str) -> int:
    r"""Count the lines that are not blank, a comment or in a docstring.

    >>> lines_of_code("'''What it is.'''\n\n# why\nx = 1  # here\ny = 2\n")
    2
    """
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())) as first, *_]:
                    docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and line[0] != "#" and number not in docstrings for number, line in lines)


def code_of(files: dict[str, str]) -> int:
    """Count the lines of code of all files."""
    return sum(map(lines_of_code, files.values()))


def files_here(folder: str = SOURCE) -> dict[str, str]:
    """Read the files of a folder as they are, the package for a start."""
    place = ROOT / folder
    return {file.relative_to(place).as_posix(): file.read_text("utf-8") for file in place.rglob("*.py")}


def files_at(revision: str, folder: str = SOURCE) -> dict[str, str]:
    """Read them as a commit has them."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", revision, folder], capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        found = {name: archive.extractfile(name) for name in archive.getnames() if name.endswith(".py")}
        return {name.removeprefix(f"{folder}/"): file.read().decode() for name, file in found.items() if file}


def _git(*args: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *args], capture_output=True, text=True, check=True)
    return done.stdout


def main(revisions: list[str]) -> None:
    """Print a row for each of the figures."""
    sizes = {revision: measure(files_at(revision)) for revision in revisions}
    names = [_git("rev-parse", "--short", revision).strip() for revision in revisions]
    print(f"| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    words = {
        "modules": "modules",
        "small": f"modules below {SMALL} lines",
        "lines": "lines",
        "folders": "folders with modules",
        "largest": "modules of the largest folder",
        "comparisons": "comparisons with the name of a content, outside the kinds",
    }
    for field, word in words.items():
        print(f"| {word} | {' | '.join(f'{getattr(size, field):,}' for size in sizes.values())} |")
    for folder in COUNTED:
        counts = [code_of(files_at(revision, folder)) for revision in revisions]
        print(f"| lines of code of `{folder}` | {' | '.join(f'{count:,}' for count in counts)} |")


if __name__ == "__main__":
    main(sys.argv[1:] or ["HEAD"])
