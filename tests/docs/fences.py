"""Fenced blocks of Markdown files, and the shell sessions in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_WILD = "…"


@dataclass(frozen=True)
class Fence:
    """One fenced block: its language, its text, and the line of the file that it begins at."""

    language: str
    body: str
    line: int


@dataclass(frozen=True)
class Command:
    """One command of a shell session and the output shown below it."""

    text: str
    shown: tuple[str, ...]


def markdown_files() -> list[Path]:
    """List the Markdown files of the project, those of its environments left out."""
    found = [
        *ROOT.glob("*.md"),
        *(path for top in ("docs", "examples") for path in (ROOT / top).rglob("*.md")),
    ]
    return sorted(found)


def fences(path: Path) -> list[Fence]:
    """List the fenced blocks of a file in order."""
    text = path.read_text("utf-8")
    return [
        Fence(found["language"].strip(), found["body"], text.count("\n", 0, found.start()) + 2)
        for found in _FENCE.finditer(text)
    ]


def without_fences(text: str) -> str:
    """Blank the fenced blocks out, so that only prose is left."""
    return _FENCE.sub("", text)


def commands(body: str) -> list[Command]:
    r"""Split a shell session: `$ ` begins a command, a trailing backslash or a here-document goes on.

    >>> commands("$ cat <<EOF\nhello\nEOF\nhello\n$ true\n")[0]
    Command(text='cat <<EOF\nhello\nEOF', shown=('hello',))
    """
    found: list[Command] = []
    lines = iter(body.splitlines())
    text: list[str] = []
    shown: list[str] = []
    for line in lines:
        if not line.startswith("$ "):
            assert text, f"a session begins with '$ ', not {line!r}"
            shown.append(line)
            continue
        if text:
            found.append(Command("\n".join(text), tuple(shown)))
        text, shown = [line[2:]], []
        while text[-1].endswith("\\"):
            text.append(next(lines))
        heredoc = _HEREDOC.search(text[-1])
        while heredoc and text[-1] != heredoc[2]:
            text.append(next(lines))
    if text:
        found.append(Command("\n".join(text), tuple(shown)))
    return found


def agrees(shown: tuple[str, ...], real: list[str]) -> bool:
    """Compare output line by line; `…` as a line stands for any lines, at a line's end for any rest.

    >>> agrees(("a", "…", "z"), ["a", "b", "c", "z"]), agrees(("took …",), ["took 5 s"]), agrees(("a",), [])
    (True, True, False)
    """
    if not shown:
        return not real
    if shown[0] == _WILD:
        return any(agrees(shown[1:], real[skip:]) for skip in range(len(real) + 1))
    return bool(real) and _same(shown[0], real[0]) and agrees(shown[1:], real[1:])


def _same(shown: str, real: str) -> bool:
    return shown == real or (shown.endswith(_WILD) and real.startswith(shown[:-1]))
