"""The list of routes in the docs, made of the operations: `python -m tests.docs.routes` writes it again."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from headgate.service.api import app  # noqa: F401 -- all operations
from headgate.service.api.openapi import example_of, problems_of
from headgate.service.api.operation import OPERATIONS
from tests.docs.fences import ROOT

if TYPE_CHECKING:
    from headgate.service.api.operation import Operation

PAGE = ROOT / "docs" / "service-api.md"
HEADING = "## Every route\n"


def _group(asked: Operation) -> str:
    return asked.path.removeprefix("/v1/").partition("/")[0].partition(":")[0].partition(".")[0]


def routes() -> str:
    """Return what stands below the heading."""
    lines = []
    for name, some in groupby(sorted(OPERATIONS, key=_group), _group):
        lines += [f"### {name}", ""]
        for asked in some:
            who = "no key" if asked.public else f"scope `{asked.scope}`"
            answers = ", ".join(map(str, sorted(asked.answers)))
            problems = ", ".join(map(str, sorted(problems_of(asked))))
            lines += [
                f"`{asked.method} {asked.path}`, {who}: {asked.summary}",
                f"Answers {answers}{f'; problems {problems}' if problems else ''}.",
                "",
                "```sh",
                example_of(asked),
                "```",
                "",
            ]
    return "\n".join(lines)


def written(text: str) -> str:
    """Put the list in its place."""
    before, found, _ = text.partition(HEADING)
    assert found, f"there is no heading {HEADING!r}"
    return f"{before}{HEADING}\n{routes()}".rstrip() + "\n"


def main() -> None:
    """Write the list again."""
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
