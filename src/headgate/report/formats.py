"""The formats that pictures and pages are written in, known without loading what draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headgate.errors import TableError

if TYPE_CHECKING:
    from pathlib import Path

FORMATS = (".html", ".svg", ".png")


def check_output(path: Path) -> None:
    """Refuse a name that says no format."""
    if path.suffix not in FORMATS:
        raise TableError(
            f"{path} names no known format: let it end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        )
