"""Columns of texts from columns of numbers, without a loop over rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    Ints: TypeAlias = NDArray[np.int64]
    Texts: TypeAlias = pa.Array[pa.Scalar[pa.lib.StringType]]


def glue(*pieces: Texts | str, between: str = "") -> Texts:
    """Write pieces behind each other, row by row; a piece that is a single text is the same in all rows.

    >>> import numpy as np
    >>> glue("p", digits(np.array([7, 12])), ";").to_pylist()
    ['p7;', 'p12;']
    """
    join: Any = pc.binary_join_element_wise
    found: Texts = join(*(pa.scalar(each) if isinstance(each, str) else each for each in pieces), between)
    return found


def digits(numbers: Ints) -> Texts:
    """Write whole numbers."""
    found: Texts = pc.cast(pa.array(numbers, pa.int64()), pa.string())
    return found


def numbered(prefix: str | Texts, numbers: Ints, width: int = 1) -> Texts:
    """Write numbers after a prefix, with zeros before them."""
    return glue(prefix, pc.utf8_lpad(digits(numbers), width, "0"))


def choose(texts: Sequence[str], at: Ints, hidden: NDArray[np.bool_] | None = None) -> Texts:
    """Take the text at a place, for each row; null where it is hidden."""
    found: Texts = pa.array(texts, pa.string()).take(pa.array(at, pa.int64(), mask=hidden))
    return found


def either(where: NDArray[np.bool_], one: Texts | str, other: Texts | str) -> Texts:
    """Take one text or the other, for each row."""
    pick: Any = pc.if_else
    found: Texts = pick(pa.array(where, pa.bool_()), one, other)
    return found


def joined(start: Ints, items: Texts, between: str | Texts) -> Texts:
    """Join the items of each list; those of list n are start[n] : start[n + 1].

    >>> import numpy as np
    >>> joined(np.array([0, 2, 2]), pa.array(["a", "b"]), " . ").to_pylist()
    ['a . b', '']
    """
    join: Any = pc.binary_join
    found: Texts = join(pa.ListArray.from_arrays(pa.array(start, pa.int32()), items), between)
    return found
