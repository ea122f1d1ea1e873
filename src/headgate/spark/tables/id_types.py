"""Ids of tables: text or whole numbers, and what is one in a table may be the other in the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.runtime.rows import WHOLE, fit_id, is_whole

if TYPE_CHECKING:
    Column = pa.Array[Any]

__all__ = ["WHOLE", "are_whole", "fit_id", "fit_ids", "is_whole"]

_compute: Any = pc


def are_whole(texts: Column) -> Column:
    """Tell which texts are whole numbers; null is none.

    >>> are_whole(pa.array(["7", "007", None])).to_pylist()
    [True, False, False]
    """
    found: Column = _compute.match_substring_regex(texts, rf"^(?:{WHOLE})$").fill_null(False)
    return found


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
