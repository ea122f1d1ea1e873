"""Ids of tables: text or whole numbers, and what is one in a table may be the other in the next."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from headgate.core.event import Id

    Column = pa.Array[Any]

WHOLE = "0|-?[1-9][0-9]{0,17}"
"""Text that is a whole number and nothing else: 007 is an id of its own."""

_WHOLE = re.compile(rf"(?:{WHOLE})\Z")


def are_whole(texts: Column) -> Column:
    """Tell which texts are whole numbers; null is none.

    >>> import pyarrow as pa
    >>> are_whole(pa.array(["7", "007", None])).to_pylist()
    [True, False, False]
    """
    import pyarrow.compute as pc

    compute: Any = pc
    found: Column = compute.match_substring_regex(texts, rf"^(?:{WHOLE})$").fill_null(False)
    return found


def is_whole(text: str) -> bool:
    """Tell whether a text is a whole number."""
    return _WHOLE.match(text) is not None


def fit_ids(column: Column, *, numbered: bool) -> Column:
    """Make ids whole numbers, or text; those that are no whole numbers become null.

    >>> import pyarrow as pa
    >>> fit_ids(pa.array(["7", "007"]), numbered=True).to_pylist()
    [7, None]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not numbered:
        return column.cast(pa.string())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    compute: Any = pc
    read: Column = compute.if_else(are_whole(column), column, pa.scalar(None, pa.string()))
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
