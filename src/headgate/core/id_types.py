"""Ids of tables: text or whole numbers, and what is one in a table may be the other in the next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from headgate.core.event import Id

    Column = pa.Array[Any]

WHOLE = "0|-?[1-9][0-9]{0,17}"
"""Text that is a whole number and nothing else: 007 is an id of its own."""

_WHOLE = re.compile(rf"(?:{WHOLE})\Z")
_compute: Any = pc


def are_whole(texts: Column) -> Column:
    """Tell which texts are whole numbers; null is none.

    >>> are_whole(pa.array(["7", "007", None])).to_pylist()
    [True, False, False]
    """
    found: Column = _compute.match_substring_regex(texts, rf"^(?:{WHOLE})$").fill_null(False)
    return found


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number."""
    return _WHOLE.match(text) is not None


def fit_ids(column: Column, *, numbered: bool) -> Column:
    """Make ids whole numbers, or text; those that are no whole numbers become null.

    >>> fit_ids(pa.array(["7", "007"]), numbered=True).to_pylist()
    [7, None]
    """
    if not numbered:
        return column.cast(pa.string())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    read: Column = _compute.if_else(are_whole(column), column, pa.scalar(None, pa.string()))
    return read.cast(pa.int64())


def fit_id(identity: Id, *, numbered: bool) -> Id | None:
    """Do the same to one id.

    >>> fit_id("7", numbered=True), fit_id("007", numbered=True), fit_id(7, numbered=False)
    (7, None, '7')
    """
    if isinstance(identity, int) is numbered:
        return identity
    if isinstance(identity, int):
        return str(identity)
    return int(identity) if is_whole(identity) else None
