"""Folders named NAME=VALUE inside a table: columns of it, as Spark reads them.

    events/day=2026-11-01/a.jsonl        the rows of a.jsonl have a column day, a date
    events/day=2026-11-02/b.jsonl

Spark infers a type from all values of a column. What could be read in two ways is left to it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from headgate.core.values import fold
from headgate.tables.places import UnsureError, base_of, roots_of
from headgate.tables.text_types import TEXT, TRUTH, TYPES, UnclearError, kind_of_text, typed_column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""What Spark and Hive name the folder of rows whose value is NULL."""
_BEYOND = re.compile("%[89a-fA-F][0-9a-fA-F]")
Column = tuple[str, Any, pa.DataType]
"""A column that is the same in all rows of a file: its name, value and type."""


def partitions_of(path: str, files: Sequence[Path]) -> list[tuple[Column, ...]]:
    """Return for each file of a table the columns that the folders above it name."""
    base, roots = base_of(path), {*roots_of(path)}
    texts = [_pairs(path, file, base, roots) for file in files]
    names = [tuple(name for name, _ in pairs) for pairs in texts]
    if any(each != names[0] for each in names[1:]):
        raise UnsureError(f"{path}: its files lie in folders that do not name the same columns")
    if not names or not names[0]:
        return [()] * len(files)
    typed = [_typed(path, name, {pairs[at][1] for pairs in texts}) for at, name in enumerate(names[0])]
    return [
        tuple(
            (name, None if text is None else values[text], TYPES[kind])
            for (name, text), (kind, values) in zip(pairs, typed, strict=True)
        )
        for pairs in texts
    ]


def _pairs(path: str, file: Path, base: Path, roots: set[Path]) -> list[tuple[str, str | None]]:
    """Read the names of the folders between a table and one of its files."""
    pairs: list[tuple[str, str | None]] = []
    if file == base:
        return pairs
    inside = file.relative_to(base)
    named = next(each for each in (file, *file.parents) if each in roots).relative_to(base)
    for depth, folder in enumerate(inside.parts[:-1], 1):
        name, sign, value = folder.partition("=")
        if name and sign and value and not _BEYOND.search(folder):
            pairs.append((unquote(name), None if value == NOTHING else unquote(value)))
        elif sign or pairs or depth > len(named.parts):
            # A pattern may name folders above those that name columns.
            raise UnsureError(f"{path}: {inside} lies in a folder inside it")
    if len({fold(name) for name, _ in pairs}) < len(pairs):
        raise UnsureError(f"{path}: {inside} lies in folders that name a column twice")
    return pairs


def _typed(path: str, name: str, texts: set[str | None]) -> tuple[str, Mapping[str, Any]]:
    """Say what Spark takes the values of a column for, and what they are."""
    try:
        return typed_column([text for text in texts if text is not None], _kind)
    except UnclearError:
        raise UnsureError(f"{path}: the type of {name}, which its folders name, is not clear") from None


def _kind(text: str) -> str | None:
    """Say what the name of a folder is; unlike in CSV, true and false are text."""
    kind = kind_of_text(text)
    return TEXT if kind == TRUTH else kind


def add_columns(table: pa.Table, columns: Sequence[Column], path: str) -> pa.Table:
    """Add a file's columns to its rows."""
    taken = {fold(name) for name in table.column_names}
    for name, value, kind in columns:
        if fold(name) in taken:
            raise UnsureError(f"{path}: {name} is a column of its files and a folder's name")
        table = table.append_column(name, pa.array([value] * table.num_rows, kind))
    return table


def add_fields(line: bytes, inner: bytes) -> bytes:
    """Add fields to a JSON object; a line that is none stays as it is. What comes last counts.

    >>> add_fields(b'{"id":7}', b'"day":1'), add_fields(b"{ } ", b'"day":1'), add_fields(b"[7]", b'"day":1')
    (b'{"id":7,"day":1}', b'{ "day":1}', b'[7]')
    """
    text = line.strip(b" \t")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        return line
    body = text[:-1]
    comma = b"" if body.rstrip(b" \t") == b"{" else b","
    return b"%b%b%b}" % (body, comma, inner)
