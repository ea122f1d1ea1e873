"""The list of routes in the docs, made of the operations: `python -m tests.docs.routes` writes it again."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING

from headgate.service.api import app  # noqa: F401 -- all operations
from headgate.service.api.openapi import problems_of
from headgate.service.api.operation import OPERATIONS
from tests.docs.fences import ROOT

if TYPE_CHECKING:
    from headgate.service.api.operation import Operation

PAGE = ROOT / "docs" / "service-api.md"
HEADING = "## Every route\n"


_EXAMPLES = {
    ("/v1/subscriptions/{id}", "id"): "cheap-sport",
    ("/v1/graph/nodes/{id}", "id"): "sport",
    ("/v1/graph/nodes/{id}/subscriptions", "id"): "sport",
    ("/v1/keys/{id}", "id"): "0123456789ab",
}
"""What stands in paths of examples."""


def example_of(asked: Operation, address: str = "http://127.0.0.1:8080") -> str:
    """Return a curl command that calls an operation."""
    method = "" if asked.method == "GET" else f" -X {asked.method}"
    path = re.sub(r"\{(\w+)\}", lambda found: _named(asked.path, found[1]), asked.path)
    key = "" if asked.public else ' -H "Authorization: Bearer $HEADGATE_KEY"'
    more = f" {asked.example}" if asked.example else ""
    return f"curl{method}{key} {address}{path}{more}"


def _named(path: str, name: str) -> str:
    return "shop" if path.startswith("/v1/consumers/") else _EXAMPLES.get((path, name), "1")


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
