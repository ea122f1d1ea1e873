"""Docstrings as Markdown: examples and tables in them are set as they stand, and not run together."""

from __future__ import annotations

import re

import griffe

_TABLE = re.compile(r"^\S.*?\S {3,}\S", re.MULTILINE)


def as_markdown(text: str) -> str:
    """Fence the paragraphs that are an example or a table, of names and what they mean."""
    done = []
    for paragraph in re.split(r"\n\s*\n", text):
        if paragraph.lstrip().startswith(">>>"):
            done.append(f"```pycon\n{paragraph}\n```")
        elif _TABLE.search(paragraph):
            done.append(f"```text\n{paragraph}\n```")
        else:
            done.append(paragraph)
    return "\n\n".join(done)


class Docstrings(griffe.Extension):
    """Change every docstring when it has been read."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Change the docstring of a module, class, function or field."""
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = as_markdown(obj.docstring.value)
