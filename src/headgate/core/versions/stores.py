"""Snapshots in object stores: s3://bucket/path and gs://bucket/path, through the file systems of Arrow.

An object is put whole or not at all, and there is no rename: so the files of a version go up first, and
`current` last. What is needed to reach a store is in the environment (AWS_ENDPOINT_URL, AWS_REGION, keys or a
role), or in the address, as Arrow reads it: s3://bucket/path?region=eu-west-1&endpoint_override=host:port.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from headgate.core.arguments import place_of
from headgate.core.versions.current import (
    CURRENT,
    NAME,
    Named,
    at_current,
    called,
    number_of,
    read_text,
    resolved,
    text_of,
)
from headgate.errors import SnapshotError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from os import PathLike
    from pathlib import Path


SCHEMES = ("s3://", "s3a://", "gs://")
PLACE, MOST = "HEADGATE_CACHE", "HEADGATE_CACHE_GB"
"""Variables of the environment: where fetched snapshots are kept, and how much of them."""
_SECRET = re.compile(r"(?<=//)[^/@]*@")


def is_stored(given: object) -> bool:
    """Tell the address of an object store from a path.

    >>> is_stored("s3://bucket/ads"), is_stored("out/ads")
    (True, False)
    """
    text = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    return isinstance(text, str) and text.startswith(SCHEMES)


def shown(address: str) -> str:
    """Write an address without what is nobody's business.

    >>> shown("s3://key:secret@bucket/ads?region=eu-west-1")
    's3://bucket/ads'
    """
    return _SECRET.sub("", address).partition("?")[0]


class Address(NamedTuple):
    """The parts of an address: a snapshot, perhaps a version of it, and perhaps what is inside that.

    >>> Address.of("s3://bucket/ads/000002-c3b8e0f2d94a6157/shard-000?region=x")
    Address(base='s3://bucket/ads', options='?region=x', name='000002-c3b8e0f2d94a6157', inside='shard-000')
    """

    base: str
    options: str
    name: str | None = None
    inside: str = ""

    @classmethod
    def of(cls, address: str) -> Address:
        """Take an address apart."""
        path, sign, options = address.partition("?")
        parts = path.rstrip("/").split("/")
        at = next((at for at, part in enumerate(parts) if at > 2 and NAME.fullmatch(part)), None)
        if at is None:
            return cls("/".join(parts), sign + options)
        return cls("/".join(parts[:at]), sign + options, parts[at], "/".join(parts[at + 1 :]))

    def __str__(self) -> str:
        """Write it as it was."""
        return "/".join(filter(None, (self.base, self.name, self.inside))) + self.options


class Store:
    """The place of a snapshot in an object store."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.shown = shown(address.base)
        with self._telling("read"):
            self._files, self._root = _file_system(address.base + address.options)

    def current(self) -> Named:
        """Tell which version counts; refuses a place without any."""
        named = self.find_current()
        if named is None:
            raise SnapshotError(
                f"{self.shown} is not a snapshot: there is no {CURRENT}; give a place that Headgate compiled "
                "to, and compile snapshots without versions again"
            )
        return named

    def find_current(self) -> Named | None:
        """Tell which version counts, if there is any."""
        with self._telling("read"):
            text = self._read(CURRENT)
        return None if text is None else read_text(text, self.shown)

    def names(self) -> list[str]:
        """List the versions, the oldest first, whole or not."""
        return sorted(filter(number_of, self._entries()), key=lambda name: (number_of(name), name))

    def check_place(self) -> None:
        """Refuse to bury something that is not a snapshot, and a store that cannot be reached."""
        entries = self._entries()
        if entries and CURRENT not in entries and not any(map(number_of, entries)):
            raise SnapshotError(
                f"{self.shown} exists and is not a snapshot: choose another place, or remove it first"
            )

    def files(self, name: str) -> dict[str, Any]:
        """List the files of a version by their paths in it, each with its size and time."""
        from pyarrow.fs import FileSelector, FileType

        root = f"{self._root}/{name}"
        with self._telling("read"):
            files = self._files.get_file_info(FileSelector(root, recursive=True, allow_not_found=True))
        return {each.path[len(root) + 1 :]: each for each in files if each.type is FileType.File}

    def sizes(self, name: str) -> dict[str, int]:
        """List the files of a version by their paths in it, each with its size."""
        return {path: each.size for path, each in self.files(name).items()}

    def fetch(self, name: str, folder: Path, *, only: str = "") -> None:
        """Copy a version here, or those of its files whose paths end in something."""
        from pyarrow.fs import LocalFileSystem, copy_files

        root, here = f"{self._root}/{name}", LocalFileSystem()
        with self._telling("read"):
            if not only:
                copy_files(root, str(folder), source_filesystem=self._files, destination_filesystem=here)
        for path in self.files(name) if only else ():
            if path.endswith(only):
                with self._telling("read"):
                    text = self._read(f"{name}/{path}") or b""
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(text)

    def send(self, folder: Path, name: str) -> None:
        """Copy a version there; nothing names it yet."""
        from pyarrow.fs import LocalFileSystem, copy_files

        with self._telling("written"):
            copy_files(
                str(folder),
                f"{self._root}/{name}",
                source_filesystem=LocalFileSystem(),
                destination_filesystem=self._files,
            )

    def put_current(self, named: Named) -> None:
        """Have a version count."""
        with self._telling("written"), self._files.open_output_stream(f"{self._root}/{CURRENT}") as file:
            file.write(text_of(named))

    def remove(self, name: str) -> None:
        """Remove a version."""
        with self._telling("removed"):
            self._files.delete_dir(f"{self._root}/{name}")

    def _read(self, path: str) -> bytes | None:
        try:
            with self._files.open_input_stream(f"{self._root}/{path}") as file:
                return bytes(file.read())
        except FileNotFoundError:
            return None

    def _entries(self) -> list[str]:
        from pyarrow.fs import FileSelector

        with self._telling("read"):
            entries = self._files.get_file_info(FileSelector(self._root, allow_not_found=True))
        return [each.base_name for each in entries]

    @contextmanager
    def _telling(self, doing: str) -> Iterator[None]:
        """Say in one line what went wrong on the way."""
        import pyarrow as pa

        try:
            yield
        except (OSError, pa.ArrowException) as error:
            why = " ".join(_SECRET.sub("", str(error)).split())[:300]
            raise SnapshotError(
                f"snapshot {self.shown} cannot be {doing}: {why}; look at the address, the keys and the "
                "network"
            ) from None


def _file_system(address: str) -> tuple[Any, str]:
    from pyarrow.fs import FileSystem

    plain = "s3" + address.removeprefix("s3a") if address.startswith("s3a:") else address
    opened: tuple[Any, str] = FileSystem.from_uri(plain)
    return opened


_Read = TypeVar("_Read")


class Located(NamedTuple):
    """A version, which does not change any more."""

    place: Path
    """Its directory on this machine."""
    name: str
    """What other machines find it by: a path that all see, or an address."""

    def name_of(self, inside: str) -> str:
        """Name something inside of it."""
        if not is_stored(self.name):
            return self.name + inside
        return str(Address.of(self.name)._replace(inside=inside.strip("/")))


def locate(given: str | PathLike[str]) -> Located:
    """Find the version that counts at a place, or at an address, from which it is fetched once a machine."""
    if not is_stored(given):
        path = resolved(place_of(given).absolute())
        return Located(path, str(path))
    from headgate.core.versions.replacing import fetched

    address = Address.of(os.fspath(given))
    if address.name is None:
        address = address._replace(name=Store(address).current().name)
    return Located(fetched(address) / address.inside, str(address))


def located(given: str | PathLike[str]) -> Path:
    """Return the directory of the version that counts."""
    return locate(given).place if is_stored(given) else resolved(place_of(given))


def opened_at(path: str | PathLike[str], read: Callable[[Located], _Read]) -> _Read:
    """Open the version that counts at a place; another one, if that is removed before it is open."""
    if is_stored(path):
        return read(locate(path))
    return at_current(place_of(path).absolute(), lambda place: read(Located(place, str(place))))


def title_of(name: str) -> str:
    """Return what people call the snapshot of a version.

    >>> title_of("s3://key:secret@bucket/ads/000002-c3b8e0f2d94a6157"), title_of("ads")
    ('s3://bucket/ads', 'ads')
    """
    return shown(Address.of(name).base) if is_stored(name) else called(name)
