"""Programs as bytes, to be carried from one process to another.

    magic, number of parts, length of each part     8 bytes each
    part                                            its bytes, and zeros up to the next multiple of 8
    …

The parts are the arrays in the order of `Programs`, the two arrays of the texts, and the attributes as JSON.
Bytes are in the order of the machine: they are carried, not kept. Nothing in them is run.
"""

from __future__ import annotations

import msgspec
import numpy as np

from headgate.core.interning import TextPool
from headgate.records.programs.programs import Programs

_MAGIC = int.from_bytes(b"headgate", "little")
_KINDS: dict[str, type[np.generic]] = {
    "token_start": np.int64,
    "tokens": np.int32,
    "leaf_kind": np.uint8,
    "leaf_attribute": np.int32,
    "leaf_on_null": np.uint8,
    "range_start": np.int64,
    "range_facet": np.uint8,
    "range_low": np.int64,
    "range_high": np.int64,
    "glob_start": np.int64,
    "glob_tokens": np.int16,
}
_PATHS = msgspec.json.Decoder(tuple[tuple[str, ...], ...])


def to_bytes(programs: Programs) -> bytes:
    """Write programs."""
    parts = [np.asarray(getattr(programs, name), kind).tobytes() for name, kind in _KINDS.items()]
    parts += [np.asarray(programs.texts.offsets, np.int64).tobytes(), programs.texts.data.tobytes()]
    parts.append(msgspec.json.encode(programs.attributes))
    head = np.array([_MAGIC, len(parts), *map(len, parts)], np.int64).tobytes()
    return b"".join([head, *(part + bytes(-len(part) % 8) for part in parts)])


def from_bytes(data: bytes | memoryview) -> Programs:
    """Read programs; their arrays are views of the bytes.

    >>> from headgate.records.programs.binding import compile_filters
    >>> from_bytes(to_bytes(compile_filters(["a = 'x' OR b.c"]).programs)).attributes
    (('a',), ('b', 'c'))
    """
    count = len(_KINDS) + 3
    head = np.frombuffer(data, np.int64, count + 2) if len(data) >= 8 * (count + 2) else np.zeros(2, np.int64)
    padded = head[2:] + -head[2:] % 8
    if head[0] != _MAGIC or head[1] != count or head.nbytes + padded.sum() != len(data):
        raise ValueError("these bytes are no programs")
    begins = (head.nbytes + np.cumsum(padded) - padded).tolist()
    view = memoryview(data)
    parts = [view[start : start + size] for start, size in zip(begins, head[2:].tolist(), strict=True)]
    arrays = {
        name: np.frombuffer(part, kind)
        for (name, kind), part in zip(_KINDS.items(), parts[: len(_KINDS)], strict=True)
    }
    offsets, texts, paths = parts[len(_KINDS) :]
    pool = TextPool(np.frombuffer(offsets, np.int64), np.frombuffer(texts, np.uint8))
    return Programs(**arrays, texts=pool, attributes=_PATHS.decode(paths))
