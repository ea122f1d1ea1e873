"""Pages: the formats that they are written in, templates, and writing them whole."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from headgate.core.machine import need, put_file
from headgate.errors import TableError
from headgate.report import words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from jinja2 import Environment, Template


FORMATS = (".html", ".svg", ".png")


class Tile(NamedTuple):
    """A number at the top of a page."""

    label: str
    value: str
    note: str = ""


def check_output(path: Path) -> None:
    """Refuse a name that says no format, and where what draws is not installed."""
    need("report")
    if path.suffix not in FORMATS:
        raise TableError(
            f"{path} has no known ending: let it end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}"
        )


def templates_of(package: str, folder: str = "") -> Environment:
    """Make what loads the templates of a package."""
    # Formats are asked for by commands that load nothing yet.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader(package, folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@lru_cache(maxsize=8)
def template(name: str) -> Template:
    """Load a template of this room."""
    environment = templates_of("headgate.report")
    environment.globals |= {each.__name__: each for each in (words.count, words.duration, words.share_of)}
    return environment.get_template(name)


def write_as(path: Path, page: Callable[[], str], picture: Callable[[str], bytes]) -> None:
    """Write a page, or the picture alone in the form that the file's name says."""
    check_output(path)
    if path.suffix == ".html":
        write_whole(page().encode("utf-8", "replace"), path)
    else:
        write_whole(picture(path.suffix[1:]), path)


def write_whole(data: bytes, path: Path) -> None:
    """Write a file; one that is there already is replaced at once or not at all."""
    try:
        put_file(path, data)
    except OSError as error:
        raise TableError(f"cannot write the report to {path}: {error.strerror or error}") from error
