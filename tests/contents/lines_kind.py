"""A fourth kind of content, in this file alone: lines of text, filtered by how they begin."""

from __future__ import annotations

from headgate.contents.scan import ScanKind
from headgate.errors import EventError, FilterError


class Lines(ScanKind):
    """Texts of one line."""

    name = "lines"
    title = "lines of text"
    dialects = ("prefix",)
    types = {"line": "text/plain"}  # noqa: RUF012 -- never changed
    suffixes = {".txt": "text/plain"}  # noqa: RUF012 -- never changed
    always = "*"

    def check(self, text: str, dialect: str) -> str:
        """Refuse a filter that says nothing."""
        assert dialect == "prefix"
        if not text:
            raise FilterError("a prefix is empty: write * for all lines", text, 0)
        return text

    def parse(self, data: str | bytes) -> str:
        """Refuse more than one line."""
        text = data.decode() if isinstance(data, bytes) else data
        if "\n" in text.rstrip("\n"):
            raise EventError("the text has more than one line: send each by itself")
        return text.rstrip("\n")

    def holds(self, text: str, document: str) -> bool:
        """Tell whether a line begins with a filter."""
        return text == "*" or document.startswith(text)


KIND = Lines()
