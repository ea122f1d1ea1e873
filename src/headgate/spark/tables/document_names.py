"""How documents are named: content types and endings, checked before Spark, or a parser, is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from headgate.core.event import media_type
from headgate.errors import TableError
from headgate.spark.tables.places import ENDINGS, Format, check_input, check_links, is_remote, local

if TYPE_CHECKING:
    from headgate.contents.kind import Kind


def type_of_file(name: str, kind: Kind) -> str | None:
    """Find the content type of a file by its name."""
    return kind.suffixes.get(Path(name).suffix.lower())


def type_of_name(name: object, kind: Kind) -> str | None:
    """Find the content type that is meant, if it is one of a kind of documents."""
    found = media_type(name) if isinstance(name, str) else None
    return found if found in kind.types.values() else None


def check_type(content_type: str | None, kind: Kind) -> str | None:
    """Return the content type that is meant, if any is; refuses one of another kind."""
    found = None if content_type is None else type_of_name(content_type, kind)
    if content_type is not None and found is None:
        raise TableError(f"{content_type!r} is no format of {kind.title}: use {', '.join(kind.types)}")
    return found


def check_events(path: str, kind: Kind, content_type: str | None = None) -> Format | None:
    """Tell the format of a table of events; None for files. Refuses what is neither, before Spark starts."""
    named = check_type(content_type, kind)
    if not is_remote(path) and not local(path).exists():
        raise TableError(f"{path} does not exist")
    check_links(path)
    suffixes = _suffixes(path, kind)
    if suffixes.isdisjoint(kind.suffixes) and not suffixes.isdisjoint(ENDINGS):
        return check_input(path)
    if suffixes.isdisjoint(kind.suffixes) and named is None:
        known = ", ".join((*ENDINGS, *kind.suffixes))
        raise TableError(f"the format of {path} is not clear: name it with one of {known}, or say --format")
    return None


def _suffixes(path: str, kind: Kind) -> set[str]:
    """List the ending of a path; if that says nothing, those of the files in the folder."""
    own = Path(path.rstrip("/")).suffix.lower()
    if own in kind.suffixes or own in ENDINGS or is_remote(path) or not local(path).is_dir():
        return {own}
    return {file.suffix.lower() for file in files_of(local(path))}


def files_of(place: Path) -> list[Path]:
    """List the files of a folder and of those inside it, without those that Spark passes over."""
    found = [file.relative_to(place) for file in place.rglob("*") if file.is_file()]
    return [place / file for file in found if not any(part.startswith((".", "_")) for part in file.parts)]
