"""Plain words: the glossary is in order, and words that readers stumbled over do not come back."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

import pytest

from tests.docs.fences import ROOT, without_fences

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BANNED = {
    "reckon": "estimate",
    "reckoned": "estimated",
    "rehearse": "check, with a dry run",
    "rehearsed": "checked, with a dry run",
    "outcast": "unkeyed entry",
    "outcasts": "unkeyed entries",
    "sieve": "filter planes",
    "anew": "again",
    "heard": "received, reported",
    "whence": "from where",
    "whatever dies": "even if processes are killed",
    "draw what there is": "name it",
    "is of the room": "is a snapshot of",
    "belongs to the room": "is a snapshot of",
    "passed over": "skipped",
    "as they come": "as they arrive",
}
"""What to write in place of each."""

HISTORY = ("docs/decisions", "docs/benchmarks", "CHANGELOG.md")
TERM = re.compile(r"^\*\*([^*]+)\.\*\* \S", re.MULTILINE)
FORBIDDEN = re.compile(r"\b(" + "|".join(map(re.escape, BANNED)) + r")\b", re.IGNORECASE)

PAGES = [
    page
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
    if not str(page.relative_to(ROOT)).startswith(HISTORY)
]


def told(module: Path) -> Iterator[tuple[int, str]]:
    """Give the texts of a module that people see: messages and help; of commands their docstrings, too."""
    tree = ast.parse(module.read_text("utf-8"))
    hidden = set() if "cli" in module.parts else {id(node) for node in docstrings(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in hidden:
            yield node.lineno, node.value


def docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    """Give the strings that stand alone: docstrings of modules, classes, functions and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_in_plain_words(page: Path) -> None:
    prose = without_fences(page.read_text("utf-8"))
    assert not {word: BANNED[word.lower()] for word in FORBIDDEN.findall(prose)}


def test_messages_are_in_plain_words() -> None:
    found = [
        f"{module.relative_to(ROOT)}:{line}: {word!r}, write {BANNED[word.lower()]!r}"
        for module in sorted((ROOT / "src").rglob("*.py"))
        for line, text in told(module)
        for word in FORBIDDEN.findall(text)
    ]
    assert found == []


def test_a_banned_word_is_found() -> None:
    assert FORBIDDEN.findall("Reckoned by what has come, as they come.") == ["Reckoned", "as they come"]


def test_every_term_stands_once_in_the_glossary() -> None:
    terms = TERM.findall((ROOT / "docs" / "glossary.md").read_text("utf-8"))
    assert len(terms) > 60
    assert len(set(terms)) == len(terms)


@pytest.mark.parametrize("page", ["README.md", "docs/README.md"])
def test_the_glossary_is_linked(page: str) -> None:
    assert "glossary.md)" in (ROOT / page).read_text("utf-8")
