"""Pages: the formats that they are written in, templates, and writing them whole."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from headgate.errors import TableError

if TYPE_CHECKING:
    from jinja2 import Template


FORMATS = (".html", ".svg", ".png")


class Tile(NamedTuple):
    """A number at the top of a page."""

    label: str
    value: str
    note: str = ""


def check_output(path: Path) -> None:
    """Refuse a name that says no format."""
    if path.suffix not in FORMATS:
        raise TableError(
            f"{path} has no known ending: let it end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        )


@lru_cache(maxsize=8)
def template(name: str) -> Template:
    """Load a template of this room."""
    # Formats are asked for by commands that load nothing yet.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("headgate.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def write_whole(data: bytes, path: Path) -> None:
    """Write a file; one that is there already is replaced at once or not at all."""
    try:
        handle, beside = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            # mkstemp's mode is for its owner only; a report is like any other file.
            Path(beside).chmod(0o644)
            Path(beside).replace(path)
        except BaseException:
            with suppress(OSError):
                Path(beside).unlink()
            raise
    except OSError as error:
        raise TableError(f"cannot write the report to {path}: {error.strerror or error}") from error
