"""Files packed by gzip or Zstandard, known by their endings: read and written as if they were not."""

from __future__ import annotations

import io
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from headgate.errors import TableError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

    Codec = Literal["gzip", "zstd"]

PACKED: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd"}
GROWTH = 8
"""How many times longer the content of a packed file is taken to be, before it is read."""


def plain_name(name: str) -> str:
    """Return a file's name without the ending that says how it is packed.

    >>> plain_name("events/a.jsonl.gz"), plain_name("a.csv"), plain_name("a.XML.ZST")
    ('events/a.jsonl', 'a.csv', 'a.XML')
    """
    return name[: -len(Path(name).suffix)] if codec_of(name) else name


def ending(name: str | Path) -> str:
    """Return the ending of a file's name that says what it holds.

    >>> ending("events.jsonl.gz"), ending(Path("a/B.CSV")), ending("folder/")
    ('.jsonl', '.csv', '')
    """
    return Path(plain_name(str(name).rstrip("/"))).suffix.lower()


def codec_of(name: str | Path) -> Codec | None:
    """Tell how a file is packed, by its name; None if it is not."""
    return PACKED.get(Path(name).suffix.lower())


def size_of(file: Path) -> int:
    """Return how many bytes a file holds; of one that is packed, about."""
    return file.stat().st_size * (GROWTH if codec_of(file) else 1)


@contextmanager
def reading(file: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading what it holds; one that is damaged is refused with its name."""
    codec = codec_of(file)
    if codec is None:
        with file.open("rb") as data:
            yield data
        return
    import pyarrow as pa

    try:
        with file.open("rb") as packed, pa.CompressedInputStream(packed, codec) as stream:
            raw: Any = stream
            yield io.BufferedReader(raw)
    except OSError as error:
        if error.errno is not None:
            raise
        raise TableError(f"{file} cannot be read: it is no sound {codec} file ({error})") from None


def read_file(file: Path) -> bytes:
    """Read what a file holds."""
    with reading(file) as data:
        return data.read()


def unpack(data: bytes, codec: Codec, most: int) -> bytes:
    """Unpack what was read of a packed file, up to one byte more than `most`; OSError if it is damaged."""
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
        return bytes(stream.read(most + 1))


@contextmanager
def writing(file: Path) -> Iterator[IO[bytes]]:
    """Open a file for writing, packed if its name says so."""
    codec = codec_of(file)
    with file.open("wb") as plain:
        if codec is None:
            yield plain
            return
        import pyarrow as pa

        with pa.CompressedOutputStream(plain, codec) as stream:
            packed: Any = stream
            yield packed
