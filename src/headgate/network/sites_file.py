"""The file of sites: the name, the address and the key of each, one JSON object a line.

    {"site": "source", "address": "https://hub.example:8080", "key_file": "keys/source"}
    {"site": "paris", "address": "https://paris.example:8080", "key_file": "keys/paris"}

`key_file` is read from the file's folder; `key` gives the key itself. Such a file is for its owner alone.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from headgate.errors import TableError
from headgate.network.assignment import SOURCE, Neighbour

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class _Line(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    site: str
    address: str
    key: str | None = None
    key_file: str | None = None


def read_sites(path: Path) -> dict[str, Neighbour]:
    """Read the sites of a network."""
    found: dict[str, Neighbour] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            given = msgspec.json.decode(line, type=_Line)
        except (msgspec.DecodeError, UnicodeError) as error:
            raise TableError(
                f"{path}, line {number}: {error}: give `site`, `address` and `key_file`"
            ) from None
        if given.site in found:
            raise TableError(f"{path}, line {number}: site {given.site!r} is there already: give it once")
        key = given.key
        if given.key_file is not None:
            try:
                key = (path.parent / given.key_file).read_text("utf-8").strip()
            except (OSError, UnicodeError) as error:
                raise TableError(f"{path}, line {number}: the key cannot be read: {error}") from None
        found[given.site] = Neighbour(given.address, key)
    if SOURCE not in found:
        raise TableError(f"{path} has no site {SOURCE!r}: add the publisher's, under this name")
    return found


def write_sites(path: Path, sites: Mapping[str, Neighbour]) -> None:
    """Write a file of sites, for its owner alone."""
    lines = (msgspec.json.encode(_Line(name, each.address, each.key)) for name, each in sites.items())
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(b"\n".join(lines) + b"\n")
